# Steps about the Python package: the wheel, and its tests as it is installed.

# Versions of what the tests use; wheels alone are installed.
python_needs=python/requirements-test.txt

# python_room VERSION: a virtual environment of that interpreter with what the tests need, made once for each list of it.
python_room() {
  local room
  room=${CARGO_TARGET_DIR:-$PWD/target}/python/$1-$(sha256sum < "$python_needs" | cut -c 1-12)
  if [ ! -e "$room/complete" ]; then
    rm -rf "$room"
    "$(interpreter "$1")" -m venv "$room" &&
      timeout 300 "$room/bin/pip" install --quiet --only-binary :all: -r "$python_needs" > "$scratch/pip.log" 2>&1 &&
      : > "$room/complete" || return 1
  fi
  printf '%s\n' "$room"
}

# The room of the two steps is made while others run: it waits for the network.
begin_python_room() {
  python_room 3 > "$scratch/python-room" 2> /dev/null &
  python_room_job=$!
}

# The room, in `room`.
take_python_room() {
  [ -z "${room:-}" ] || return 0
  [ -n "${python_room_job:-}" ] || begin_python_room
  wait "$python_room_job" && room=$(cat "$scratch/python-room")
}

wheel() { # wheel ROOM MOST
  local size
  cargo fmt --manifest-path python/Cargo.toml --check &&
    PATH=$1/bin:$PATH cargo clippy --quiet --locked --manifest-path python/Cargo.toml --target-dir "${CARGO_TARGET_DIR:-target}" -- -D warnings &&
    PATH=$1/bin:$PATH CARGO_TARGET_DIR=${CARGO_TARGET_DIR:-$PWD/target} maturin build --quiet --release --locked \
      --manifest-path python/Cargo.toml --out "$scratch/wheels" || return 1
  size=$(wc -c < "$scratch"/wheels/*.whl)
  printf '%s: %s bytes, at most %s expected\n' "$(basename "$scratch"/wheels/*.whl)" "$size" "$2"
  [ "$size" -le "$2" ]
}

# tested ROOM: the suite with the wheel as it is installed; it runs where no source of the package is on the path.
tested() {
  local program
  program=$(realpath "$xc")
  "$1/bin/pip" install --quiet --force-reinstall --no-deps "$scratch"/wheels/*.whl &&
    (cd "$scratch" && XC_PROGRAM=$program "$1/bin/python" -m pytest -q -n 2 -p no:cacheprovider "$here/python/tests")
}

# interpreter VERSION: a Python of that version, on the path or of pyenv.
interpreter() {
  local found
  for found in "python$1" "$HOME"/.pyenv/versions/"$1".*/bin/python; do
    "$found" -c '' > /dev/null 2>&1 && printf '%s\n' "$found" && return
  done
  return 1
}

# Every interpreter from 3.9 on that is found, each with the oldest numpy that has a wheel for it, and with the newest.
step_python-all() {
  local version numpy room
  has_program
  take_python_room && wheel "$room" 8388608 || { failed+=(python-all) && return; }
  for version in 3.9 3.10 3.11 3.12 3.13 3.14; do
    interpreter "$version" > /dev/null || continue
    for numpy in oldest newest; do
      check "python-$version-$numpy" tested_with "$version" "$numpy"
    done
  done
}

# tested_with VERSION oldest|newest: with what the package needs alone, and pytest.
tested_with() {
  local room=$scratch/room-$1-$2 numpy=numpy
  local -A oldest=([3.9]=1.21.6 [3.10]=1.21.6 [3.11]=1.23.5 [3.12]=1.26.4 [3.13]=2.1.0 [3.14]=2.3.2)
  [ "$2" = newest ] || numpy=numpy==${oldest[$1]}
  "$(interpreter "$1")" -m venv "$room" && "$room/bin/pip" install --quiet --only-binary :all: "$numpy" pytest pytest-xdist && tested "$room"
}

step_python-wheel() {
  if take_python_room; then
    check python-wheel wheel "$room" 8388608
  else
    skip python-wheel "pip does not install what $python_needs names"
  fi
}

step_python-tests() {
  has_program
  if ! take_python_room; then
    skip python-tests "pip does not install what $python_needs names"
  elif ! ls "$scratch"/wheels/*.whl > /dev/null 2>&1 && ! wheel "$room" 8388608; then
    failed+=(python-wheel)
  else
    check python-tests tested "$room"
  fi
}
