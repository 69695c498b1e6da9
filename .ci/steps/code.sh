# Steps about the code: tests, form, and every crate on its own.

# Tests write thousands of small files and wait for the disk each time: where memory can hold them, they are there.
suite() {
  local free
  free=$(df --output=avail -k /dev/shm 2> /dev/null | tail -n 1) || free=0
  if [ -z "${TMPDIR:-}" ] && [ -w /dev/shm ] && [ "${free:-0}" -ge $((4 << 20)) ]; then
    TMPDIR=/dev/shm cargo test --workspace --locked --no-fail-fast
  else
    cargo test --workspace --locked --no-fail-fast
  fi
}

documentation() { pages && RUSTDOCFLAGS='-D warnings' cargo doc --workspace --no-deps --locked; }

# Links of the pages lead to files, and docs/ stays short.
pages() {
  python3 - << 'END'
import pathlib, re, sys
words, lost = 0, []
for page in pathlib.Path(".").rglob("*.md"):
    if "target" in page.parts:
        continue
    text = page.read_text()
    words += len(text.split()) if page.parts[0] == "docs" else 0
    to = re.findall(r"\]\(([^)#:\s]+)(?:#[^)\s]*)?\)", text)
    lost += [f"{page}: {link}" for link in to if not (page.parent / link).exists()]
print("\n".join(lost) or "all links lead to files", f"docs: {words} words, at most 30000 expected", sep="\n")
sys.exit(bool(lost) or words > 30000)
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
# crates of ours is checked in the crate that owns them; `emulated` is of tests alone, which step `gpu` builds.
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

# Every crate with and without its default features, and with each feature alone: what only builds beside others does not.
alone() {
  local crate own feature
  while read -r crate own; do
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

step_tests() { check tests suite; }

# Tests of optional parts are all built with the same features and beside the whole workspace, so that each crate is compiled
# for them once: kernels, whose tests need a device or `emulated`, and transformers. Tests of the other parts run without
# them, in step `tests`. Where inner tests are run, crates are named beside those that have some: with the features of these
# alone, of clap's for one, all of it would be compiled again.
optional=xc-nn/transformer,xc-train/transformer,xc-cli/transformer,xc-kernels/emulated,xc-tree/emulated,xc-mach/emulated
optional+=,xc-ann/emulated,xc-lsh/emulated,xc-nn/emulated,xc-train/emulated,xc-cli/emulated
with_inner_tests=(-p xc-ann -p xc-lsh -p xc-nn -p xc-sparse -p xc-hash -p xc-cli)

transformers() {
  cargo test --locked --workspace --features "$optional" --test transformer --test tokens &&
    cargo test --locked "${with_inner_tests[@]}" --features "$optional" --lib transformer &&
    cargo test --locked "${with_inner_tests[@]}" --features "$optional" --doc transformer &&
    cargo test --locked "${with_inner_tests[@]}" --features "$optional" --test commands transformer::
}
step_transformer() { check transformer transformers; }
step_format() { check format cargo fmt --all --check; }
# With kernels and transformers: what is there without them alone is checked in step `alone`, which takes no warning either.
step_lints() { check lints cargo clippy --workspace --all-targets --features "$optional" --locked -- -D warnings; }
step_docs() { check docs documentation; }
step_alone() { check alone alone; }

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
  check packaged packaged
  check packages-xc-metrics bounded xc-metrics 45
  check packages-xc-tree bounded xc-tree 45
  check packages-xc-nn bounded xc-nn 50
  check packages-xc-train bounded xc-train 60
}

step_machines() {
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
