#!/bin/sh
# Every comparison, one after the other: quality, training time, inference. Each part can be repeated alone; quality
# runs that are there already are not repeated. Run it on an idle machine.
#
# usage: bench/all.sh PART FEATURES OUT     PART: quality | train | infer | load | mach | report
# from the environment: PYTHON (with libpecos), XC, OMIKUJI, OMIKUJI_DRIVER; SETS, TIMED_SETS, INFER_SETS narrow what runs;
# ONE, THREE, BEST: arguments of `xc train tree` for one tree, three trees and the default preset
set -eu
part=$1 feat=$2 out=$3
here=$(dirname "$0")
: "${PYTHON:=python3}" "${XC:=xc}" "${OMIKUJI:=omikuji}" "${OMIKUJI_DRIVER:=}"
: "${SETS:=eurlex57k debian-depends git-files cve-libs}"
: "${TIMED_SETS:=eurlex57k git-files syn500k}"
: "${INFER_SETS:=eurlex4k syn30k syn500k}"
: "${ONE:=--preset xr-linear --trees 1}" "${THREE:=--preset parabel --trees 3}" "${BEST:=}"
export OMP_WAIT_POLICY=passive
mkdir -p "$out/quality" "$out/models" "$out/work"

each() { for s in $1; do printf '%s/%s\n' "$feat" "$s"; done; }

case $part in
quality)
    for data in $(each "$SETS"); do
        q() { "$PYTHON" "$here/quality.py" "$@" --data "$data" --out "$out/quality" --models "$out/work"; }
        q tune --system pecos
        q tune --system xc-1 --xc "$XC"
        q tune --system xc-3 --xc "$XC"
        q tune --system omikuji --omikuji "$OMIKUJI"
        q peers --omikuji "$OMIKUJI"
        q ours --xc "$XC" --name xc-1 --args "$ONE"
        q ours --xc "$XC" --name xc-3 --args "$THREE"
        q ours --xc "$XC" --name xc-default --args "$BEST"
        q ours --xc "$XC" --name xc-1-tuned
        q ours --xc "$XC" --name xc-3-tuned
    done ;;
train)
    for data in $(each "$TIMED_SETS"); do
        "$PYTHON" "$here/train_time.py" run --data "$data" --work "$out/work" --results "$out/train.jsonl" --xc "$XC" --omikuji "$OMIKUJI" \
            --peers pecos-s16,omikuji-parabel-3 --ours "xc-1=$ONE" "xc-3=$THREE" "xc-default=$BEST"
    done ;;
infer)
    for data in $(each "$INFER_SETS"); do
        "$PYTHON" "$here/models.py" --data "$data" --models "$out/models"
        for b in 2 16 32; do
            set -- --model "$out/models/$(basename "$data")-s$b" --data "$data" --xc "$XC" --results "$out/infer.jsonl"
            bonsai="$out/models/$(basename "$data")-bonsai-1"
            if [ -n "$OMIKUJI_DRIVER" ] && [ -d "$bonsai" ]; then
                set -- "$@" --omikuji "$OMIKUJI_DRIVER" --omikuji-model "$bonsai"
            fi
            "$PYTHON" "$here/infer.py" run "$@"
        done
    done ;;
load)
    for data in $(each "$INFER_SETS"); do
        model="$out/work/$(basename "$data")-s16.xc"
        [ -d "$model" ] || "$XC" convert --from pecos "$out/models/$(basename "$data")-s16" --to xc "$model" --quiet
        "$PYTHON" "$here/infer.py" load --xc "$XC" --xc-model "$model" --data "$data"
    done ;;
mach)
    "$PYTHON" "$here/mach.py" run --data "$feat/debian-depends" --out "$out/mach/debian-depends" --xc "$XC" --buckets 125 250
    "$PYTHON" "$here/mach.py" run --data "$feat/debian-depends" --out "$out/mach/debian-depends" --xc "$XC" --buckets 500 \
        --repetitions 1 2 4 8
    "$PYTHON" "$here/mach.py" multiclass --data "$feat/git-files" --out "$feat/git-first"
    "$PYTHON" "$here/mach.py" run --data "$feat/git-first" --out "$out/mach/git-first" --xc "$XC" --epochs 5 --buckets 200 1000 \
        --repetitions 1 2 4 8
    for set in debian-depends git-first; do "$PYTHON" "$here/mach.py" report --out "$out/mach/$set"; done ;;
report)
    "$PYTHON" "$here/quality.py" report --data $(each "$SETS") --out "$out/quality" \
        --against xc-1=pecos-s16 xc-1-tuned=pecos-tuned xc-3=omikuji-parabel-3 xc-3-tuned=omikuji-parabel-3-tuned \
        xc-default=pecos-s16 xc-default=pecos-tuned xc-default=omikuji-parabel-3 xc-default=omikuji-parabel-3-tuned \
        xc-default=omikuji-bonsai-3
    [ ! -e "$out/train.jsonl" ] || "$PYTHON" "$here/train_time.py" report --results "$out/train.jsonl"
    [ ! -e "$out/infer.jsonl" ] || "$PYTHON" "$here/infer.py" report --results "$out/infer.jsonl" ;;
*)
    echo "unknown part $part: quality, train, infer, load, mach or report" >&2
    exit 2 ;;
esac
