# Steps about the Python package: its tests as it is installed, with a wheel in the profile of tests; as it is released, the
# wheel's size, and the tests on every Python that is found.

# Versions of what the tests use; wheels alone are installed.
python_needs=python/requirements-test.txt

# programs_of ROOM: the folder of its programs, as the system names it.
programs_of() {
  if [ -d "$1/Scripts" ]; then printf '%s/Scripts' "$1"; else printf '%s/bin' "$1"; fi
}

# python_room VERSION: a virtual environment of that interpreter with what the tests need, made once for each list of it.
python_room() {
  local room
  room=${CARGO_TARGET_DIR:-$PWD/target}/python/$1-$(sha256sum < "$python_needs" | cut -c 1-12)
  if [ ! -e "$room/complete" ]; then
    rm -rf "$room"
    "$(interpreter "$1")" -m venv "$room" &&
      timeout 300 "$(programs_of "$room")/pip" install --quiet --only-binary :all: -r "$python_needs" > "$scratch/pip.log" 2>&1 &&
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

# wheel ROOM PROFILE: a wheel in $scratch/wheels. The extension is built in the target folder of the workspace: crates that both
# need with the same features and profile are compiled once.
wheel() {
  rm -rf "$scratch/wheels"
  PATH=$(programs_of "$1"):$PATH CARGO_TARGET_DIR=$target maturin build --quiet --profile "$2" --locked --manifest-path python/Cargo.toml \
    --out "$scratch/wheels"
}

released_wheel() { # released_wheel MOST ROOM
  local size
  wheel "$2" release || return 1
  size=$(wc -c < "$scratch"/wheels/*.whl)
  printf '%s: %s bytes, at most %s expected\n' "$(basename "$scratch"/wheels/*.whl)" "$size" "$1"
  [ "$size" -le "$1" ]
}

# tested ROOM: the suite with the wheel as it is installed; it runs where no source of the package is on the path.
tested() {
  local program=$xc
  # That of the tests is optimised.
  [ ! -x "$target/debug/xc$exe" ] || program=$target/debug/xc$exe
  [ -z "$all" ] || [ ! -x "$released" ] || program=$released
  "$(programs_of "$1")/pip" install --quiet --force-reinstall --no-deps "$scratch"/wheels/*.whl &&
    (cd "$scratch" && XC_PROGRAM=$program "$(programs_of "$1")/python" -m pytest -q -n 2 -p no:cacheprovider "$here/python/tests")
}

# interpreter VERSION: a Python of that version, on the path or of pyenv.
interpreter() {
  local found
  for found in "python$1" "$HOME"/.pyenv/versions/"$1".*/bin/python; do
    "$found" -c '' > /dev/null 2>&1 && printf '%s\n' "$found" && return
  done
  return 1
}

# tested_with VERSION oldest|newest: with what the package needs alone, and pytest.
tested_with() {
  local room=$scratch/room-$1-$2 numpy=numpy
  local -A oldest=([3.9]=1.21.6 [3.10]=1.21.6 [3.11]=1.23.5 [3.12]=1.26.4 [3.13]=2.1.0 [3.14]=2.3.2)
  [ "$2" = newest ] || numpy=numpy==${oldest[$1]}
  "$(interpreter "$1")" -m venv "$room" && "$(programs_of "$room")/pip" install --quiet --only-binary :all: "$numpy" pytest pytest-xdist && tested "$room"
}

# python_step NAME COMMAND...: runs it with the room behind its arguments, or says why there is none.
python_step() {
  local name=$1
  shift
  if take_python_room; then
    check "$name" "$@" "$room"
  else
    skip "$name" "pip does not install what $python_needs names"
  fi
}

tested_in_dev() { wheel "$1" dev && tested "$1"; }

step_python() {
  has_program || true
  python_step python tested_in_dev
}

step_wheel() { python_step wheel released_wheel 8388608; }

# Every interpreter from 3.9 on that is found, each with the oldest numpy that has a wheel for it, and with the newest; the
# released wheel and program.
step_pythons() {
  local version numpy
  if ! take_python_room; then
    skip pythons "pip does not install what $python_needs names"
    return
  fi
  [ -x "$released" ] || cargo build --release --locked -p xc-cli
  wheel "$room" release || { failed+=(pythons) && return; }
  for version in 3.9 3.10 3.11 3.12 3.13 3.14; do
    interpreter "$version" > /dev/null || continue
    for numpy in oldest newest; do
      check "python-$version-$numpy" tested_with "$version" "$numpy"
    done
  done
}
