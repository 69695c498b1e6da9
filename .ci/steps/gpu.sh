# Steps about kernels: the driver that runs them on a CPU, what runs where a card is, and their PTX made anew. Tests of the
# crates on that driver are part of step `tests`.

emulator() {
  local folder=(--manifest-path kernels/emulated/Cargo.toml)
  local build=("${folder[@]}" --locked --release --target-dir kernels/emulated/target)
  cargo fmt "${folder[@]}" --all --check && cargo clippy "${build[@]}" --all-targets -- -D warnings && cargo test "${build[@]}"
}

step_gpu-emulator() {
  is_due gpu-emulator || return 0
  check gpu-emulator emulator
}

# What runs where a card is, with the emulated driver in its place.
step_gpu-run() {
  is_due gpu-run || return 0
  FEATURES=$optional PROFILE=dev check gpu-pack bench/gpu/pack
  DRY=1 OUT=$scratch/gpu-run check gpu-run bench/gpu/run
}

# NVRTC gives the committed bytes; what ptxas says of registers, spills and shared memory is part of them.
step_gpu-ptx() {
  is_due gpu-ptx || return 0
  local wheels=('nvidia-cuda-nvrtc==13.0.*' 'nvidia-cuda-nvcc==13.0.*' xxhash)
  if python3 -m venv "$scratch/nvrtc" > /dev/null 2>&1 &&
    timeout 300 "$scratch/nvrtc/bin/pip" install --quiet "${wheels[@]}" > "$scratch/pip.log" 2>&1; then
    check gpu-ptx "$scratch/nvrtc/bin/python" kernels/compile --check
  else
    skip gpu-ptx "pip does not install ${wheels[*]}"
  fi
}
