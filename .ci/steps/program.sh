# Steps about the program: as it is built without optional parts, the first command of the README on it; as it is released,
# with its size and its accuracy on real data.

# The program without optional parts, where the build of the tests does not put its own. It is asked what it refuses and shows,
# and for little work: our crates are compiled without optimising, which takes a third of the time.
exe=
[ "${OS:-}" != Windows_NT ] || exe=.exe
xc=$target/default-program/xc$exe
released=$target/release/xc$exe

default_program() {
  local crate plain=()
  for crate in sparse hash tree mach lsh ann metrics nn; do plain+=(--config "profile.dev.package.xc-$crate.opt-level=0"); done
  cargo build --locked -p xc-cli "${plain[@]}" && mkdir -p "$(dirname "$xc")" && cp "$target/debug/xc$exe" "$xc"
}

# has_program: a step that was asked for alone builds the program first, as it is now.
has_program() {
  [ -n "${program_is_built:-}" ] || default_program || return 1
  program_is_built=1
}

release() {
  local n
  cargo build --release --locked -p xc-cli || return 1
  n=$(wc -c < "$released")
  printf '%s: %s bytes, at most %s expected\n' "$released" "$n" "$1"
  [ "$n" -le "$1" ]
}

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
  "$released" predict --quiet --model "$2" --input "$3" --top-k 5 --output "$scratch/$1.predictions" || return 1
  at_least "$1: P@1" "$("$released" evaluate --quiet --truth "$3" --predictions "$scratch/$1.predictions" --model "$2" --json | figure P@1)" "$4"
}

# accept NAME MINIMUM TRAIN TEST KIND FLAGS...: trains, predicts, evaluates.
accept() {
  local name=$1 minimum=$2 train=$3 test=$4 kind=$5
  shift 5
  "$released" train "$kind" --quiet --train "$train" --model "$scratch/$name.model" "$@" || return 1
  judged "$name" "$scratch/$name.model" "$test" "$minimum"
}

# merged TRAIN MODEL FLAGS...: repetitions trained in two processes and merged have to be MODEL, byte for byte.
merged() {
  local train=$1 model=$2
  shift 2
  "$released" train mach --quiet --train "$train" --model "$scratch/low.model" --repetitions-range 0..2 "$@" || return 1
  "$released" train mach --quiet --train "$train" --model "$scratch/high.model" --repetitions-range 2..4 --threads 1 "$@" || return 1
  "$released" merge --quiet "$scratch/high.model" "$scratch/low.model" --output "$scratch/merged.model" || return 1
  diff -r "$model" "$scratch/merged.model"
}

# blended NAME MINIMUM TRAIN TEST: a blend of two models, on the instances that both have not seen.
blended() {
  local name=$1 minimum=$2 train=$3 test=$4 kind members=()
  for kind in tree dense; do
    members+=("$scratch/$name-$kind.model")
    "$released" train "$kind" --quiet --train "$train" --validation-fraction 0.1 --model "$scratch/$name-$kind.model" > "$scratch/$name.log" || return 1
  done
  "$released" blend --quiet "${members[@]}" --validation "$train" --held-out --output "$scratch/$name.model" > "$scratch/$name.log" || return 1
  judged "$name" "$scratch/$name.model" "$test" "$minimum"
}

# calibrated NAME MINIMUM MODEL TRAIN TEST: micro F1 of the labels above the threshold that was found on held-out ones.
calibrated() {
  local name=$1 minimum=$2 model=$3 train=$4 test=$5
  "$released" calibrate --quiet --model "$model" --validation "$train" --held-out --output "$scratch/$name.model" > "$scratch/$name.log" || return 1
  "$released" predict --quiet --model "$scratch/$name.model" --input "$test" --threshold micro --output "$scratch/$name.predictions" || return 1
  at_least "$name: micro F1" "$("$released" evaluate --quiet --model "$scratch/$name.model" --truth "$test" --predictions "$scratch/$name.predictions" --threshold 0 --json | figure micro-F1)" "$minimum"
}

# indexed NAME MINIMUM MODEL TRAIN TEST: P@1 of a model that searches an index of its labels.
indexed() {
  local name=$1 minimum=$2 model=$3 train=$4 test=$5
  cp -r "$model" "$scratch/$name.model" || return 1
  "$released" index build --quiet --model "$scratch/$name.model" --fit-queries "$train" || return 1
  judged "$name" "$scratch/$name.model" "$test" "$minimum"
}

step_program() { check program has_program; }

step_release() { check release release 18000000; }

step_quickstart() {
  has_program || true
  check quickstart quickstart
}

# Models that PECOS wrote give its answers.
pecos_fixture() {
  XC_DATA=$scratch/data cargo test --locked --workspace --features "$optional" --lib -- --ignored libpecos
}

# Runs on real data, or why there are none.
step_data() {
  local data=${XC_DATA:-../shared/data}
  if [ "$without" = data ]; then
    printf '\n... data: --without data\n'
  elif [ ! -x "$data/unpack" ]; then
    skip data "there is no $data/unpack"
  elif ! { command -v zstd > /dev/null || python3 -c 'import zstandard' 2> /dev/null ||
    { may_install && timeout 120 apt-get install -y -q zstd > "$scratch/apt.log" 2>&1; }; }; then
    skip data "unpacking needs zstd, and it is not installed"
  elif ! "$data/unpack" eurlex57k-4k cve-libs pecos-fixture -d "$scratch/data"; then
    failed+=(unpack)
  else
    [ -x "$released" ] || cargo build --release --locked -p xc-cli
    real_data
    check pecos-fixture pecos_fixture
  fi
}

# Bounds: two points below what the models reached when they were written down.
real_data() {
  local eurlex=$scratch/data/eurlex57k-bow cve=$scratch/data/cve-libs/out_desc
  local mach=(--buckets 200 --network.widths 128 --epochs 5)
  check eurlex57k-4k-tree accept eurlex57k-4k-tree 0.84 "$eurlex/4k_train.txt" "$eurlex/4k_test.txt" tree --tfidf
  check cve-libs-tree accept cve-libs-tree 0.70 "$cve/train.jsonl" "$cve/test.jsonl" tree
  check cve-libs-lns accept cve-libs-lns 0.70 "$cve/train.jsonl" "$cve/test.jsonl" lns
  check cve-libs-dense accept cve-libs-dense 0.69 "$cve/train.jsonl" "$cve/test.jsonl" dense
  check eurlex57k-4k-uniform accept eurlex57k-4k-uniform 0.85 "$eurlex/4k_train.txt" "$eurlex/4k_test.txt" uniform --tfidf
  check eurlex57k-4k-astra accept eurlex57k-4k-astra 0.86 "$eurlex/4k_train.txt" "$eurlex/4k_test.txt" astra --tfidf
  check eurlex57k-4k-index indexed eurlex57k-4k-index 0.86 "$scratch/eurlex57k-4k-astra.model" "$eurlex/4k_train.txt" "$eurlex/4k_test.txt"
  check cve-libs-blend blended cve-libs-blend 0.69 "$cve/train.jsonl" "$cve/test.jsonl"
  check cve-libs-calibrated calibrated cve-libs-calibrated 0.53 "$scratch/cve-libs-blend-tree.model" "$cve/train.jsonl" "$cve/test.jsonl"
  check cve-libs-mach accept cve-libs-mach 0.53 "$cve/train.jsonl" "$cve/test.jsonl" mach --repetitions 4 "${mach[@]}"
  check merged-parts merged "$cve/train.jsonl" "$scratch/cve-libs-mach.model" "${mach[@]}"
}
