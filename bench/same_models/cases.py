"""The cases: commands on one folder that holds `d`, the data of folders.py. A blank within an argument is U+00A0."""

SMALL = "--network.widths 8 --epochs 3"
TEXT = "--train d/train.jsonl --label-names d/labels.txt"
ROWS = "--train d/train.txt"
HELD = "--validation-fraction 0.2"


def asked(model, given, more=""):
    """Commands that show all of a model but what a search of it is for."""
    return [
        f"inspect {model} --json",
        f"predict --model {model} --input {given} --top-k 4 --output a.jsonl {more}",
        f"evaluate --model {model} --input {given} --json",
        f"explain --model {model} --input {given} --label 1 --top 3 --json",
    ]


def trained(kind, options, given, more=""):
    """A model: its plan, its training, its answers."""
    train = f"train {kind} {options} --model m"
    return [f"{train} --explain --json", f"{train} --json", *asked("m", given, more)]


def continued(kind, options, epochs=400):
    """A training that is stopped and goes on."""
    train = f"train {kind} {options} --epochs {epochs} --model m"
    return [f"stop {train}", f"{train} --resume --quiet", "predict --model m --input d/test.txt --output a.txt --quiet"]


CASES = {
    "tree": trained("tree", f"{ROWS} --trees 2", "d/test.txt"),
    "tree-text": trained("tree", f"{TEXT} --trees 2 --text.ngrams 2", "d/test.jsonl", "--names"),
    "tree-clusters": trained("tree", f"{ROWS} --trees 1 --cluster.method unbalanced --tree.branching 4", "d/test.txt"),
    "tree-names": trained("tree", "--train d/named.csv --text-fields text --label-field tags --label-separator ; --id-field id "
                          "--text.min-df 1", "d/named.csv"),
    "mach": trained("mach", f"{ROWS} --repetitions 3 --buckets 16 {SMALL}", "d/test.txt"),
    "mach-parts": [
        f"train mach {ROWS} --buckets 16 {SMALL} --repetitions-range 0..2 --model low --quiet",
        f"train mach {ROWS} --buckets 16 {SMALL} --repetitions-range 2..4 --model high --quiet",
        "merge high low --output m",
        *asked("m", "d/test.txt"),
    ],
    "tree-parts": [
        f"train tree {ROWS} --trees 3 --part 0/2 --model p0 --quiet",
        f"train tree {ROWS} --trees 3 --part 1/2 --model p1 --quiet",
        "merge p0 p1 --output m",
        *asked("m", "d/test.txt"),
    ],
    "dense-text": trained("dense", f"{TEXT} {SMALL} --wide on", "d/test.jsonl"),
    "dense-vectors": trained("dense", f"--train d/x.npy --train-labels d/y.npz {SMALL}", "d/x.npy")[:4],
    "uniform": trained("uniform", f"{ROWS} {SMALL} --network.intermediate 64", "d/test.txt"),
    "uniform-bf16": trained("uniform", f"{ROWS} {SMALL} --network.intermediate 64 --head.precision bf16", "d/test.txt"),
    "lns": trained("lns", f"{ROWS} {SMALL} {HELD}", "d/test.txt"),
    "astra-labels": trained("astra", f"{TEXT} {SMALL} --label-features d/label-texts.jsonl", "d/test.jsonl"),
    "astra": trained("astra", f"{ROWS} {SMALL}", "d/test.txt"),
    "skipgram": [
        "train skipgram --train d/train.jsonl --epochs 1 --network.widths 8 --model m --json",
        "inspect m --json",
        "predict --model m --input d/words.txt --format fasttext --names --output a.txt --quiet",
    ],
    "frozen": trained("lns", f"{TEXT} {SMALL} --encoder frozen --transformer.from d/bert", "d/test.jsonl"),
    "transformer": trained("dense", f"{TEXT} --epochs 1 --encoder transformer --transformer.from d/bert", "d/test.jsonl"),
    "transformer-out": [
        f"train dense {TEXT} --epochs 1 --encoder transformer --transformer.from d/bert --model m --quiet",
        "convert --from xc m --to huggingface out --quiet",
        "embed --from out --input d/test.jsonl --output v.npy --quiet",
    ],
    "blend": [
        f"train tree {ROWS} --trees 1 {HELD} --model a --quiet",
        f"train dense {ROWS} {SMALL} {HELD} --model b --quiet",
        "blend a b --validation d/train.txt --held-out --rule logistic --output m --json",
        *asked("m", "d/test.txt"),
    ],
    "calibrated": [
        f"train tree {ROWS} --trees 1 {HELD} --model a --quiet",
        "calibrate --model a --validation d/train.txt --held-out --output m --json",
        *asked("m", "d/test.txt"),
        "predict --model m --input d/test.txt --threshold micro --output b.txt --quiet",
    ],
    "index-of-labels": [
        f"train lns {ROWS} {SMALL} --model m --quiet",
        "index build --model m --json",
        *asked("m", "d/test.txt"),
        "predict --model m --input d/test.txt --search-width 0.5 --output b.txt --quiet",
    ],
    "index-of-lists": [
        f"train uniform {ROWS} {SMALL} --network.intermediate 64 --model m --quiet",
        "index build --model m --json",
        *asked("m", "d/test.txt"),
    ],
    "graph": [
        "index build --vectors d/x.npy --metric l2 --output i --json",
        "index search --index i --queries d/q.npy --top-k 5 --output a.txt --quiet",
        "index evaluate --index i --queries d/q.npy --top-k 5 --json",
    ],
    "cells": [
        "index build --vectors d/x.npy --metric ip --cells 8 --output i --json",
        "index search --index i --queries d/q.npy --top-k 5 --cells 3 --output a.txt --quiet",
    ],
    "inverted": [
        "index build --vectors d/x.npz --metric cosine --output i --json",
        "index search --index i --queries d/q.npz --top-k 5 --output a.txt --quiet",
    ],
    "refit": [
        f"train dense {TEXT} {SMALL} {HELD} --refit again --model m --json",
        *asked("again", "d/test.jsonl"),
    ],
    "tune": [
        f"tune dense {ROWS} {HELD} --trials 3 --epochs 2 --output t --json",
        "inspect t/model --json",
        "predict --model t/model --input d/test.txt --output a.txt --quiet",
    ],
    "changes": [
        f"train tree {TEXT} --trees 2 --model a --quiet",
        "convert --from xc a --to xc b --trees 1 --prune-below 0.2 --precision bf16 --quiet",
        "convert --from xc b --to xc c --keep-labels d/some.txt --quiet",
        "convert --from xc c --to xc m --post-processor sigmoid --quiet",
        *asked("m", "d/test.jsonl")[:2],
    ],
    "files": [
        "convert --from jsonl d/train.jsonl --to xc-text t.txt --save-pipeline p --quiet",
        "convert --from xc-text t.txt --to svmlight t.svm --output-base 1 --quiet",
        "convert --from svmlight t.svm --svmlight-base 1 --to npz t.npz --output-labels y.npz --quiet",
        "convert --from jsonl d/test.jsonl --to xc-text u.txt --pipeline p --quiet",
        "convert --from csv d/named.csv --text-fields text --label-field tags --label-separator ; --to jsonl n.jsonl --quiet",
    ],
    "joined": [
        "train tree --train d/named.csv --text-fields text --train-labels d/ids.jsonl --id-field id --text.min-df 1 --model m",
        "predict --model m --input d/named.csv --id-field id --exclude d/ids.jsonl --output a.jsonl",
    ],
    "requests": [
        f"train tree {TEXT} --trees 1 --model m --quiet",
        "predict --model m --input - --output-format jsonl < d/requests.jsonl",
        "predict --model m --input - --top-k 2 --names < d/requests.jsonl",
    ],
    "stopped-dense": continued("dense", f"{ROWS} --network.widths 16"),
    "stopped-lns": continued("lns", f"{ROWS} --network.widths 16"),
    "stopped-mach": continued("mach", f"{ROWS} --network.widths 16 --repetitions 8 --buckets 16", 60),
    "stopped-uniform": continued("uniform", f"{ROWS} --network.widths 16 --network.intermediate 64"),
}

# Commands that are refused, each by itself.
REFUSED = [
    "train",
    "train tree",
    "train forest --train d/train.txt",
    "train tree --train absent.txt --model m",
    "train tree --train d --model m",
    "train tree --train d/train.txt --model absent/m",
    "train tree --train d/train.txt --trees 0 --model m",
    "train tree --train d/train.txt --trees x --model m",
    "train tree --train d/train.txt --branching 4 --model m",
    "train tree --train d/train.txt --tree.branching 1 --model m",
    "train tree --train d/train.txt --validation-fraction 1.5 --model m",
    "train tree --train d/x.npy --model m",
    "train tree --train d/words.txt --model m",
    "train tree --train d/train.jsonl --text-fields absent --model m",
    "train tree --train d/train.jsonl --label-field absent --model m",
    "train tree --train d/named.csv --text-fields text --label-field absent --model m",
    "train tree --train d/train.txt --resume --restart --model m",
    "train tree --train d/train.txt --max-memory 1KiB --model m",
    "train mach --train d/train.txt --buckets 1 --model m",
    "train mach --train d/train.txt --repetitions 0 --model m",
    "train mach --train d/train.txt --repetitions-range 3..2 --model m",
    "train dense --train d/train.txt --network.widths 0 --model m",
    "train dense --train d/train.txt --epochs 0 --model m",
    "train dense --train d/train.txt --rate -1 --model m",
    "train dense --train d/train.txt --loss unknown --model m",
    "train uniform --train d/train.txt --network.intermediate 0 --model m",
    "train lns --train d/train.txt --negatives.sampled 0 --model m",
    "train lns --train d/train.txt --label-features d/some.txt --model m",
    "train astra --train d/train.txt --transformer.from d/bert --model m",
    "train dense --train d/train.jsonl --encoder transformer --transformer.from absent --model m",
    "train skipgram --train d/some.txt --model m",
    "predict --model absent --input d/test.txt",
    "predict --model d --input d/test.txt",
    "evaluate --truth d/test.txt --predictions d/some.txt",
    "evaluate --truth absent --predictions d/some.txt",
    "convert --from xc-text d/train.txt --to unknown x",
    "convert --from jsonl d/train.txt --to csv x.csv",
    "index build --vectors d/x.npy --output i",
    "index build --vectors d/train.txt --metric l2 --output i",
    "index search --index absent --queries d/q.npy",
    "merge absent --output m",
    "blend absent other --validation d/train.txt --output m",
    "calibrate --model absent --validation d/test.txt",
    "tune dense --train d/train.txt --trials 0 --output t",
    "embed --from absent --input d/test.jsonl --output v.npy",
    "inspect absent",
    "inspect d/train.txt",
    "quickstart --output d/train.txt",
]

# Commands whose peak memory is compared, on larger data.
HEAVY = [
    "train tree --train d/train.txt --model tree",
    "train tree --train d/train.jsonl --model text",
    "train dense --train d/train.txt --network.widths 32 --epochs 1 --model dense",
    "train lns --train d/train.txt --network.widths 32 --epochs 1 --model lns",
    "train mach --train d/train.txt --network.widths 32 --epochs 1 --model mach",
    "predict --model tree --input d/train.txt --output a.txt",
    "predict --model dense --input d/train.txt --output b.txt",
    "convert --from jsonl d/train.jsonl --to xc-text x.txt",
]
