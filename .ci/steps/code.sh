# Steps about the code: tests, form, and every crate on its own.

# One build of the tests has all optional parts: kernels, whose tests need a device or `emulated`, and transformers. What is
# true of builds without them is asked of the program that step `program` builds.
optional=xc-nn/transformer,xc-model/transformer,xc-train/transformer,xc-options/transformer,xc-cli/transformer,xc-kernels/emulated,xc-tree/emulated,xc-mach/emulated
optional+=,xc-ann/emulated,xc-lsh/emulated,xc-nn/emulated,xc-train/emulated,xc-cli/emulated,xc-sparse/serde

# in_memory COMMAND...: tests write thousands of small files and wait for the disk each time: where memory can hold them,
# they are there.
in_memory() {
  local free
  free=$(df -Pk /dev/shm 2> /dev/null | awk 'END { print $4 }')
  if [ -z "${TMPDIR:-}" ] && [ -w /dev/shm ] && [ "${free:-0}" -ge $((4 << 20)) ]; then
    TMPDIR=/dev/shm "$@"
  else
    "$@"
  fi
}

# README's command, with optional parts; TESTS is a part of it.
suite() {
  local -a part=(--workspace)
  [ -z "${TESTS:-}" ] || read -ra part <<< "$TESTS"
  XC_DEFAULT_PROGRAM=$(realpath "$xc") in_memory cargo test --locked --no-fail-fast --features "$(features_of "${part[@]}")" "${part[@]}"
}

# features_of ARGUMENTS: the optional features of the packages that are named, of all where none is.
features_of() {
  local name names=()
  while [ $# -gt 0 ]; do
    [ "$1" != -p ] || names+=("$2")
    shift
  done
  [ ${#names[@]} -gt 0 ] || { printf '%s' "$optional" && return; }
  for name in "${names[@]}"; do tr ',' '\n' <<< "$optional" | grep "^$name/" || true; done | paste -sd ,
}

# README's command as it stands there: no optional parts.
suite_of_defaults() { in_memory cargo test --workspace --locked --no-fail-fast; }

# What takes minutes: every pair of scenario and option, trainings up to the memory that was foreseen.
slow_tests() {
  XC_DEFAULT_PROGRAM=$(realpath "$xc") in_memory cargo test --locked --workspace --features "$optional" --test commands -- --ignored
}

documentation() { pages && RUSTDOCFLAGS='-D warnings' cargo doc --workspace --no-deps --locked; }

# Links of the pages lead to files, and docs/ stays short: the pages of options, which a test writes, do not count.
pages() {
  python3 - << 'END'
import pathlib, re, sys
words, lost = 0, []
for page in pathlib.Path(".").rglob("*.md"):
    if "target" in page.parts:
        continue
    text = page.read_text()
    words += len(text.split()) if page.parts[0] == "docs" and "options" not in page.parts else 0
    to = re.findall(r"\]\(([^)#:\s]+)(?:#[^)\s]*)?\)", text)
    lost += [f"{page}: {link}" for link in to if not (page.parent / link).exists()]
print("\n".join(lost) or "all links lead to files", f"docs: {words} words, at most 25000 expected", sep="\n")
sys.exit(bool(lost) or words > 25000)
END
}

# checked ARGUMENTS: `cargo check` without errors and warnings.
checked() {
  local said
  said=$(cargo check --locked --quiet "$@" 2>&1) && [[ -z $said ]] && return
  printf '%s\n' "cargo check $*" "$said"
  return 1
}

# crates: each crate of the workspace with its own features, a line each. A feature that only turns on features of other
# crates of ours is checked in the crate that owns them; `emulated` is of tests alone, which step `tests` builds.
crates() {
  cargo metadata --no-deps --locked --format-version 1 | python3 -c '
import json, sys
packages = json.load(sys.stdin)["packages"]
ours = {package["name"] for package in packages}
def is_forwarded(parts):
    of = [part.split("/")[0].rstrip("?") for part in parts]
    return bool(parts) and all("/" in part and name in ours for part, name in zip(parts, of))
for package in packages:
    left_out = ("default", "emulated")
    own = [name for name, parts in package["features"].items() if name not in left_out and not is_forwarded(parts)]
    print(package["name"], *sorted(own))
'
}

# alone [CRATE...]: each of them, or of all, with and without its default features, and with each feature alone: what only
# builds beside others does not.
alone() {
  local crate own feature of=" $* "
  while read -r crate own; do
    [ $# = 0 ] || [[ $of == *" $crate "* ]] || continue
    checked -p "$crate" && checked -p "$crate" --no-default-features || return 1
    for feature in $own; do
      checked -p "$crate" --no-default-features --features "$feature" || return 1
    done
    printf '%s: with and without default features; each alone: %s\n' "$crate" "${own:-none}"
  done < <(crates)
}

bounded() { # bounded CRATE MOST: what somebody compiles who depends on CRATE without its default features.
  local n
  n=$(cargo tree --locked -p "$1" --no-default-features --edges normal --prefix none | awk '{ print $1, $2 }' | sort -u | wc -l)
  printf '%s without default features: %s packages, at most %s expected\n' "$1" "$n" "$2"
  [ "$n" -le "$2" ]
}

# elsewhere TARGET...: the workspace checks for other machines, all in one command.
elsewhere() {
  local target under stub=${CARGO_TARGET_DIR:-$PWD/target}/stub
  # No other machine's compiler is here. Nothing is linked in a check, so empty object files of the one C library do.
  mkdir -p "${stub%/*}" && stub_compiler "$stub"
  (
    for target in "$@"; do
      under=${target//-/_}
      export "CC_$under=$stub" "AR_$under=$stub"
    done
    checked --workspace "${@/#/--target=}"
  ) && printf '%s: checks\n' "$@"
}

# stub_compiler FILE: a compiler and archiver that makes empty files.
stub_compiler() {
  cat > "$1" << 'END'
#!/bin/sh
while [ $# -gt 0 ]; do
  case $1 in
    -o) : > "$2"; shift ;;
    -Fo*) : > "${1#-Fo}" ;;
    -out:* | -OUT:*) : > "${1#*:}" ;;
    *.a | *.lib) : > "$1" ;;
  esac
  shift
done
END
  chmod +x "$1"
}

step_tests() {
  has_program || true
  check tests suite
}
step_defaults() { check defaults suite_of_defaults; }
step_slow() {
  has_program || true
  check slow slow_tests
}
# Views for sprs and faer, and their products and decompositions beside ours. faer is most of a build of its own, so it is in
# no other step.
step_twins() {
  is_due twins || return 0
  check twins twins
}
twins() {
  local features=xc-sparse/sprs,xc-dense/faer,xc-nn/faer,xc-ann/faer
  cargo test --locked -p xc-sparse --features xc-sparse/sprs --test arrays -- sprs &&
    cargo test --locked -p xc-dense -p xc-nn --features xc-dense/faer,xc-nn/faer --test faer &&
    cargo test --locked -p xc-sparse -p xc-dense --features xc-sparse/sprs,xc-dense/faer --doc &&
    cargo run --quiet --locked -p xc-ann --features xc-ann/faer --example faer_svd &&
    cargo clippy --locked -p xc-sparse -p xc-dense -p xc-nn -p xc-ann --features "$features" --all-targets -- -D warnings
}
step_format() { check format cargo fmt --all --check; }
# With kernels and transformers: what is there without them alone is checked in step `alone`, which takes no warning either.
step_lints() { check lints lints; }
lints() {
  .ci/names && cargo clippy --workspace --all-targets --features "$optional" --locked -- -D warnings &&
    cargo fmt --manifest-path python/Cargo.toml --check &&
    cargo clippy --quiet --locked --manifest-path python/Cargo.toml --target-dir "$target" -- -D warnings
}
step_docs() { check docs documentation; }

# Crates that changed, and those above them.
step_alone() {
  local of=()
  is_due alone || return 0
  [ ! -f "$scratch/due" ] || read -ra of <<< "$(sed -n 's/^alone due: only //p' "$scratch/due")"
  check alone alone "${of[@]}"
}

# Every crate makes a package of which cargo has nothing to say: description, licence, readme, files.
packaged() {
  local said
  said=$(cargo package --workspace --no-verify --locked --allow-dirty --target-dir "$scratch/packages" 2>&1) || {
    printf '%s\n' "$said"
    return 1
  }
  ! grep -E '^warning' <<< "$said"
}

step_packages() {
  is_due packages || return 0
  check packaged packaged
  check packages-xc-metrics bounded xc-metrics 45
  check packages-xc-tree bounded xc-tree 45
  check packages-xc-nn bounded xc-nn 50
  check packages-xc-model bounded xc-model 60
}

step_machines() {
  is_due machines || return 0
  # Another processor and two other systems: nothing is written for a pair of these alone.
  local others=(aarch64-apple-darwin x86_64-pc-windows-msvc)
  if ! command -v rustup > /dev/null; then
    skip machines "there is no rustup to install the standard library of ${others[*]}"
  elif ! has_targets "${others[@]}" && ! { may_install && timeout 120 rustup --quiet target add "${others[@]}"; }; then
    skip machines "the standard library of ${others[*]} is not installed (rustup target add)"
  else
    check machines elsewhere "${others[@]}"
  fi
}

has_targets() {
  local installed target
  installed=" $(rustup target list --installed | xargs) "
  for target in "$@"; do
    case $installed in *" $target "*) ;; *) return 1 ;; esac
  done
}

# The oldest compiler that the manifests promise compiles all crates and their tests.
oldest_compiler() { sed -n 's/^rust-version = "\(.*\)"$/\1/p' Cargo.toml; }

step_msrv() {
  local version
  version=$(oldest_compiler)
  if command -v rustup > /dev/null && { rustup run "$version" cargo --version > /dev/null 2>&1 ||
    { may_install && timeout 300 rustup --quiet toolchain install "$version" --profile minimal; }; }; then
    CARGO_TARGET_DIR=$target/msrv check msrv rustup run "$version" cargo check --locked --workspace --all-targets --features "$optional"
  else
    skip msrv "Rust $version is not installed (rustup toolchain install $version)"
  fi
}
