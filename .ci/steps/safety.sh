# Steps about memory: Miri over what is pure, the address sanitizer over what reads files. Both need a nightly compiler.

# Miri interprets: a thousandth of the speed, so property tests draw few cases.
miri() {
  local flags="-Zmiri-disable-isolation -Zmiri-deterministic-floats" # else powers have another last bit each time
  MIRIFLAGS=$flags XC_SIMD=scalar PROPTEST_CASES=4 CARGO_TARGET_DIR=$target/miri cargo +nightly miri test --locked -p xc-buffer \
    -p xc-sparse --no-default-features --lib -- rows:: rank:: sums:: buffer::
}

has_nightly() { # has_nightly COMPONENT
  command -v rustup > /dev/null || return 1
  rustup component list --toolchain nightly 2> /dev/null | grep -q "^$1.*(installed)" && return
  may_install && timeout 300 rustup toolchain install nightly --profile minimal --component "$1" > "$scratch/rustup.log" 2>&1
}

step_miri() {
  if has_nightly miri && has_nightly rust-src; then
    check miri miri
  else
    skip miri "there is no nightly compiler with miri and rust-src"
  fi
}

# Folders of arrays, indexes and readers of files, whose buffers are mapped and whose views are unchecked in hot loops.
sanitized() {
  local host
  host=$(rustc -vV | sed -n 's/^host: //p')
  RUSTFLAGS=-Zsanitizer=address ASAN_OPTIONS=detect_leaks=0 PROPTEST_CASES=32 CARGO_TARGET_DIR=$target/sanitizer in_memory \
    cargo +nightly test --locked --target "$host" -p xc-buffer -p xc-dense -p xc-store -p xc-sparse -p xc-data -p xc-ann \
    --features xc-ann/store --lib --tests
}

step_sanitizer() {
  if has_nightly rust-std; then
    check sanitizer sanitized
  else
    skip sanitizer "there is no nightly compiler"
  fi
}

# Licences and known faults of what we depend on.
step_deny() {
  if ! command -v cargo-deny > /dev/null; then
    skip deny "cargo-deny is not installed (cargo install cargo-deny)"
  else
    check deny cargo deny --workspace --locked check licenses bans sources
  fi
}
