# Steps about what stands around the crates: fuzz targets, drivers of peers, scripts.

# The library of libFuzzer is C++ and is linked by cargo-fuzz alone: a check needs none, so an empty file stands for it.
fuzz_targets() {
  : > "$scratch/libfuzzer.a"
  CUSTOM_LIBFUZZER_PATH=$scratch/libfuzzer.a outside fuzz --all-targets
}

# outside FOLDER ARGUMENTS...: `cargo check` of a package beside the workspace, without errors and warnings.
outside() {
  local folder=$1 said
  shift
  said=$(cargo check --locked --quiet --manifest-path "$folder/Cargo.toml" --target-dir "${CARGO_TARGET_DIR:-target}/$folder" "$@" 2>&1) &&
    [[ -z $said ]] && return
  printf '%s\n' "cargo check in $folder" "$said"
  return 1
}

drivers() {
  local manifest
  for manifest in bench/*/Cargo.toml; do
    outside "$(dirname "$manifest")" || return 1
  done
  for source in bench/*/*.rs bench/*.rs; do
    [ -e "$source" ] && printf '%s: a Rust file without a manifest\n' "$source" && return 1
  done
  return 0
}

# Python files compile, shell files parse, and patches fit the code that they change.
scripts() {
  local file
  python3 - << 'END' || return 1
import pathlib, sys
files = sorted(path for folder in ("bench", "fuzz", "python") for path in pathlib.Path(folder).rglob("*.py") if "target" not in path.parts)
files.append(pathlib.Path(".ci/due"))
for path in files:
    compile(path.read_text(), str(path), "exec", dont_inherit=True)
print(len(files), "Python files compile")
sys.exit(not files)
END
  for file in .ci/run .ci/steps/*.sh bench/*.sh bench/faults/run bench/same_models/run bench/additions/run bench/gpu/run bench/gpu/pack bench/gpu/compare; do
    bash -n "$file" || return 1
  done
  for file in bench/{faults,same_models,additions}/*.patch; do
    git apply --check "$file" || { printf '%s does not apply\n' "$file" && return 1; }
  done
}

step_fuzz() {
  is_due fuzz || return 0
  check fuzz fuzz_targets
}
step_drivers() {
  is_due drivers || return 0
  check drivers drivers
}
step_scripts() { check scripts scripts; }
