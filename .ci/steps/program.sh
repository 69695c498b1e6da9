# Steps about the release program: its size, the first command of the README, and accuracy on real data.

xc=${CARGO_TARGET_DIR:-target}/release/xc

release() {
  local n
  cargo build --release --locked -p xc-cli || return 1
  n=$(wc -c < "$xc")
  printf '%s: %s bytes, at most %s expected\n' "$xc" "$n" "$1"
  [ "$n" -le "$1" ]
}

# has_program: a step that was asked for alone builds the program first.
has_program() { [ -x "$xc" ] || cargo build --release --locked -p xc-cli; }

quickstart() { "$xc" quickstart --output "$scratch/quickstart" --quiet; }

# figure NAME: a number of the JSON report on stdin.
figure() { python3 -c 'import json, sys; print(json.load(sys.stdin)[sys.argv[1]])' "$1"; }

# at_least WHAT GOT WANTED
at_least() {
  printf '%s: %s, at least %s expected\n' "$1" "$2" "$3"
  awk -v got="$2" -v wanted="$3" 'BEGIN { exit !(got >= wanted) }'
}

# judged NAME MODEL TEST MINIMUM: P@1 of a model's answers, a fraction of 1.
judged() {
  "$xc" predict --quiet --model "$2" --input "$3" --top-k 5 --output "$scratch/$1.predictions" || return 1
  at_least "$1: P@1" "$("$xc" evaluate --quiet --truth "$3" --predictions "$scratch/$1.predictions" --model "$2" --json | figure P@1)" "$4"
}

# accept NAME MINIMUM TRAIN TEST KIND FLAGS...: trains, predicts, evaluates.
accept() {
  local name=$1 minimum=$2 train=$3 test=$4 kind=$5
  shift 5
  "$xc" train "$kind" --quiet --train "$train" --model "$scratch/$name.model" "$@" || return 1
  judged "$name" "$scratch/$name.model" "$test" "$minimum"
}

# merged TRAIN MODEL FLAGS...: repetitions trained in two processes and merged have to be MODEL, byte for byte.
merged() {
  local train=$1 model=$2
  shift 2
  "$xc" train mach --quiet --train "$train" --model "$scratch/low.model" --repetitions-range 0..2 "$@" || return 1
  "$xc" train mach --quiet --train "$train" --model "$scratch/high.model" --repetitions-range 2..4 --threads 1 "$@" || return 1
  "$xc" merge --quiet "$scratch/high.model" "$scratch/low.model" --output "$scratch/merged.model" || return 1
  diff -r "$model" "$scratch/merged.model"
}

# blended NAME MINIMUM TEST VALIDATION MODEL...: a blend is at least as good as a bound, better than its members.
blended() {
  local name=$1 minimum=$2 test=$3 validation=$4
  shift 4
  "$xc" blend --quiet "$@" --validation "$validation" --held-out --output "$scratch/$name.model" || return 1
  judged "$name" "$scratch/$name.model" "$test" "$minimum"
}

# calibrated NAME MODEL VALIDATION TEST MINIMUM: micro F1 at the micro threshold.
calibrated() {
  local threshold
  "$xc" calibrate --quiet --model "$2" --validation "$3" --held-out --output "$scratch/$1.model" || return 1
  "$xc" predict --quiet --model "$scratch/$1.model" --input "$4" --threshold micro --output "$scratch/$1.predictions" || return 1
  threshold=$("$xc" evaluate --quiet --model "$scratch/$1.model" --truth "$4" --predictions "$scratch/$1.predictions" --threshold 0 --json | figure micro-F1@threshold)
  at_least "$1: micro F1 of the labels above the threshold" "$threshold" "$5"
}

# indexed NAME MODEL FIT TEST SHARE: share of the best labels that a search in an index of them finds.
indexed() {
  "$xc" index build --quiet --model "$2" --fit-queries "$3" --output "$scratch/$1.index" || return 1
  cp -r "$2" "$scratch/$1.model" && cp -r "$scratch/$1.index" "$scratch/$1.model/index" || return 1
  judged "$1" "$scratch/$1.model" "$4" "$5"
}

step_release() { check release release 18000000; }

step_quickstart() {
  has_program
  check quickstart quickstart
}

# unpacked: the packs that the runs on real data take, or why there are none.
step_data() {
  local data=${XC_DATA:-../shared/data}
  if [ ! -x "$data/unpack" ]; then
    skip data "there is no $data/unpack"
  elif ! { command -v zstd > /dev/null || python3 -c 'import zstandard' 2> /dev/null ||
    { may_install && timeout 120 apt-get install -y -q zstd > "$scratch/apt.log" 2>&1; }; }; then
    skip data "unpacking needs zstd, and it is not installed"
  elif ! "$data/unpack" eurlex57k-4k cve-libs -d "$scratch/data"; then
    failed+=(unpack)
  else
    has_program
    real_data
  fi
}

# Bounds: two points below what the models reached when they were written down.
real_data() {
  local eurlex=$scratch/data/eurlex57k-bow cve=$scratch/data/cve-libs/out_desc
  local mach=(--buckets 200 --network.widths 128 --epochs 5)
  check eurlex57k-4k-tree accept eurlex57k-4k-tree 0.84 "$eurlex/4k_train.txt" "$eurlex/4k_test.txt" tree --tfidf
  check cve-libs-tree accept cve-libs-tree 0.70 "$cve/train.jsonl" "$cve/test.jsonl" tree
  check eurlex57k-4k-lns accept eurlex57k-4k-lns 0.86 "$eurlex/4k_train.txt" "$eurlex/4k_test.txt" lns --tfidf
  check cve-libs-lns accept cve-libs-lns 0.70 "$cve/train.jsonl" "$cve/test.jsonl" lns
  check cve-libs-mach accept cve-libs-mach 0.53 "$cve/train.jsonl" "$cve/test.jsonl" mach --repetitions 4 "${mach[@]}"
  check merged-parts merged "$cve/train.jsonl" "$scratch/cve-libs-mach.model" "${mach[@]}"
}
