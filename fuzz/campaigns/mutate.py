#!/usr/bin/env python3
"""Damages models in every way and asks the program about them.

A mutant is a model, or an index, with one to three changes: values of an array (extreme, flipped bits, permuted,
NaN, infinite, one value everywhere; hashes are made to fit), shapes and types, fields of config.json (negative, huge,
of another type, missing, added, twice), raw bytes, or files, arrays and parameters of another model. Each is given to
`predict` (an index to `index search`), `inspect`, `inspect --verify`, `merge` and, where it was a tree, `convert`.

What must not be: a panic, a signal, an exit code other than 0, 2 and 3 (a part of memory is missing), more than one
line of error, a control character on stderr, no end after --limit seconds, NaN in an answer, and a model that
`inspect --verify` takes and `predict` refuses. Mutants of raw bytes that `inspect --verify` does not notice are
counted too: blanks in JSON are no damage.

Every mutant follows from its number and --seed alone; `--only N --work DIR` makes one again and leaves it in DIR.

    cargo build --release -p xc-cli
    python3 fuzz/campaigns/mutate.py --xc target/release/xc --mutants 10000 --jobs 2

Standard library and numpy. Exit code 1 when anything failed.
"""

import argparse
import collections
import json
import multiprocessing
import os
import random
import re
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

from fixtures import MODELS, asked, contents, make_data, make_models
from xxh3 import hex16

CLASSES = {"values": 35, "shapes": 15, "config": 25, "bytes": 15, "swaps": 10}
WIDTHS = {"F32": "<f4", "U32": "<u4", "I32": "<i4", "U64": "<u8", "I64": "<i8", "F64": "<f8", "U16": "<u2", "U8": "u1",
          "I8": "i1", "I16": "<i2", "F16": "<f2", "BF16": "<u2", "BOOL": "u1", "F8_E4M3": "u1", "F8_E5M2": "u1"}


class Raw(str):
    """A number of a JSON text, as it stands there."""


def dumps(value):
    """Compact JSON as the program hashes it: keys sorted, numbers as they stand."""
    if isinstance(value, Raw):
        return str(value)
    if isinstance(value, dict):
        return "{" + ",".join(f"{dumps(key)}:{dumps(value[key])}" for key in sorted(value)) + "}"
    if isinstance(value, (list, tuple)):
        return "[" + ",".join(map(dumps, value)) + "]"
    return json.dumps(value, ensure_ascii=False)


def loads(text):
    return json.loads(text, parse_float=Raw, parse_int=Raw)


class Folder:
    """The files of one folder that holds a container, some of it taken apart."""

    def __init__(self, path):
        self.path = path
        self.config = loads((path / "config.json").read_text())

    def arrays(self):
        return sorted(self.config.get("arrays", {}))

    def header(self, name):
        """Bytes and header of an array file."""
        data = (self.path / name).read_bytes()
        n = int.from_bytes(data[:8], "little")
        return data, json.loads(data[8:8 + n]), 8 + n

    def file_of(self, array):
        return str(self.config["arrays"][array]["file"])

    def array(self, name):
        data, header, start = self.header(self.file_of(name))
        entry = header[name]
        begin, end = entry["data_offsets"]
        return np.frombuffer(data[start + begin:start + end], dtype=WIDTHS[entry["dtype"]]).copy()

    def put(self, name, values):
        """Writes the bytes of an array over it, as many as fit, and notes their hash."""
        file = self.file_of(name)
        data, header, start = self.header(file)
        begin, end = header[name]["data_offsets"]
        new = values.tobytes()[:end - begin]
        new += data[start + begin + len(new):start + end]
        (self.path / file).write_bytes(data[:start + begin] + new + data[start + end:])
        self.config["arrays"][name]["xxh3"] = hex16(new)

    def replace(self, name, dtype, shape, values):
        """Puts an array of another shape or type in the place of one, everything else moved."""
        file = self.file_of(name)
        data, header, start = self.header(file)
        parts, at, out = sorted(header, key=lambda key: header[key]["data_offsets"]), 0, b""
        for part in parts:
            begin, end = header[part]["data_offsets"]
            body = values if part == name else data[start + begin:start + end]
            if part == name:
                header[part].update(dtype=dtype, shape=shape)
            header[part]["data_offsets"] = [at, at + len(body)]
            at += len(body)
            out += body
        text = json.dumps(header).encode()
        text += b" " * (-(len(text) + 8) % 64)
        (self.path / file).write_bytes(len(text).to_bytes(8, "little") + text + out)
        self.config["arrays"][name].update(dtype=dtype, shape=shape, xxh3=hex16(values))

    def save(self, text=None):
        """Writes config.json with the hash of what it holds."""
        self.config.pop("xxh3", None)
        text = text or dumps(self.config)
        hashed = dumps(loads(text))
        (self.path / "config.json").write_text(text[:-1] + f',"xxh3":"{hex16(hashed.encode())}"}}\n')


def paths_of(value, at=()):
    """Every place in a JSON value."""
    found = [at] if at else []
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, inner in items:
        found += paths_of(inner, at + (key,))
    return found


def inner_of(value, path):
    for key in path[:-1]:
        value = value[key]
    return value


def mutate_values(rng, folder, note):
    names = [name for name in folder.arrays() if folder.array(name).size]
    name = rng.choice(names)
    values = folder.array(name)
    is_float = values.dtype.kind == "f"
    how = rng.choice(["value", "value", "bit", "bit", "permute", "fill", "shift"] + ["special"] * (2 if is_float else 0))
    at = rng.randrange(values.size)
    raw = values.view(f"<u{values.dtype.itemsize}")
    top = (1 << 8 * values.dtype.itemsize) - 1
    if how == "special":
        with np.errstate(over="ignore"):
            values[at:at + rng.choice([1, 1, 7, values.size])] = rng.choice(
                [np.nan, np.inf, -np.inf, 3.4e38, -3.4e38, 1e-42, -0.0])
    elif how == "value":
        raw[at] = top & rng.choice([0, 1, top, top >> 1, (top >> 1) + 1, int(raw[at]) + 1, int(raw[at]) - 1,
                                    rng.randrange(top + 1), values.size, 1 << 31])
    elif how == "bit":
        for _ in range(rng.choice([1, 1, 3])):
            raw[rng.randrange(values.size)] ^= raw.dtype.type(1 << rng.randrange(8 * values.dtype.itemsize))
    elif how == "permute":
        order = np.random.default_rng(rng.randrange(1 << 30)).permutation(values.size)
        values[:] = values[order] if rng.random() < 0.5 else values[::-1]
    elif how == "fill":
        raw[:] = rng.choice([0, 1, top, int(raw[at]), rng.randrange(top + 1)])
    else:
        values[:] = np.roll(values, rng.choice([1, -1]))
    note.append(f"values {how} {name}[{at}]")
    folder.put(name, values)
    folder.save()


def mutate_shapes(rng, folder, note):
    name = rng.choice(folder.arrays())
    entry = folder.config["arrays"][name]
    file = folder.file_of(name)
    data, header, start = folder.header(file)
    begin, end = header[name]["data_offsets"]
    body = data[start + begin:start + end]
    dtype, shape = str(entry["dtype"]), [int(n) for n in entry["shape"]]
    width = np.dtype(WIDTHS[dtype]).itemsize
    how = rng.choice(["grow", "cut", "empty", "type", "shape", "rank", "config", "huge"])
    if how == "grow":
        n = rng.choice([1, 2, 64]) * (int(np.prod(shape[1:])) if len(shape) > 1 else 1)
        shape[0] += n // max(1, int(np.prod(shape[1:]))) if len(shape) > 1 else n
        body += bytes(int(np.prod(shape)) * width - len(body))
    elif how == "cut":
        shape[0] = max(0, shape[0] - rng.choice([1, 2, shape[0] // 2 + 1]))
        body = body[:int(np.prod(shape)) * width]
    elif how == "empty":
        shape, body = [0] + shape[1:], b""
    elif how == "type":
        same = [other for other in WIDTHS if np.dtype(WIDTHS[other]).itemsize == width and other != dtype]
        dtype = rng.choice(same or ["U8"])
    elif how == "shape":
        n = int(np.prod(shape))
        divisors = [d for d in range(1, min(n, 500) + 1) if n % d == 0] or [1]
        first = rng.choice(divisors)
        shape = [first, n // first] if n else shape
    elif how == "rank":
        shape = rng.choice([[1] + shape, shape + [1], [int(np.prod(shape))], shape[::-1], []])
        if not shape:
            body = body[:width]
    elif how == "config":
        entry["shape"] = rng.choice([shape + [1], shape[::-1], [], [0], [n + 1 for n in shape], [1 << 62, 8]])
        note.append(f"shapes config {name} {shape} -> {entry['shape']}")
        return folder.save()
    else:
        entry["shape"] = rng.choice([[1 << 63], [(1 << 64) - 1], [1 << 32, 1 << 32], [1 << 62, 4], [-1]])
        note.append(f"shapes huge {name} {entry['shape']}")
        return folder.save()
    note.append(f"shapes {how} {name} {dtype} {shape}")
    folder.replace(name, dtype, shape, body)
    folder.save()


ODD = [Raw("-1"), Raw("0"), Raw("1"), Raw("2"), Raw("4294967295"), Raw("4294967296"), Raw("9223372036854775807"),
       Raw("18446744073709551615"), Raw("18446744073709551616"), Raw("1e308"), Raw("1e999"), Raw("-1e308"), Raw("0.5"),
       Raw("1e-320"), None, True, False, "", "x", "\u001b[31mred", "é" * 40, "x" * 70000, [], {}, [[]], [None],
       {"a": {}}, [Raw("0")] * 5000]


def mutate_config(rng, folder, note):
    places = paths_of(folder.config)
    # Places below `parameters` are what the program builds on.
    deep = [path for path in places if path[0] in ("parameters", "pipeline", "labels", "kind", "format_version")]
    path = rng.choice(deep if deep and rng.random() < 0.8 else places)
    inner, key = inner_of(folder.config, path), path[-1]
    old = inner[key]
    how = rng.choice(["odd", "odd", "odd", "near", "remove", "rename", "add", "twice"])
    text = None
    if how == "odd":
        inner[key] = rng.choice(ODD)
    elif how == "near":
        number = int(float(old)) if isinstance(old, Raw) and abs(float(old)) < 1e15 else 1
        inner[key] = Raw(str(rng.choice([number + 1, number - 1, number * 2, number // 2, number * 1000, -number])))
    elif how == "remove":
        del inner[key]
    elif how == "rename" and isinstance(inner, dict):
        inner[str(key) + "x"] = inner.pop(key)
    elif how == "add" and isinstance(inner, dict):
        inner[rng.choice(["other", "", "x" * 70000, "\u001b[2J", "kind"])] = rng.choice(ODD)
    elif isinstance(inner, dict):
        mark = json.dumps(key, ensure_ascii=False)
        text = dumps({k: v for k, v in folder.config.items() if k != "xxh3"})
        text = text.replace(f"{mark}:", f"{mark}:{dumps(rng.choice(ODD))},{mark}:", 1)
    else:
        inner.append(rng.choice(ODD))
    note.append(f"config {how} {'.'.join(map(str, path))} = {str(inner.get(key) if isinstance(inner, dict) else '')[:40]!r}")
    try:
        folder.save(text)
    except (ValueError, KeyError, TypeError):
        (folder.path / "config.json").write_text(text or dumps(folder.config))


def mutate_bytes(rng, folder, note):
    files = [path for path in sorted(folder.path.rglob("*")) if path.is_file()]
    path = rng.choice(files)
    data = bytearray(path.read_bytes())
    how = rng.choice(["flip", "flip", "flip", "cut", "grow", "length", "remove", "zero", "insert", "text"])
    at = rng.randrange(len(data)) if data else 0
    if how == "flip" and data:
        for _ in range(rng.choice([1, 1, 8])):
            data[rng.randrange(min(len(data), rng.choice([64, 1 << 20])))] ^= 1 << rng.randrange(8)
    elif how == "cut":
        del data[at:]
    elif how == "grow":
        data += bytes(rng.choice([1, 8, 4096]))
    elif how == "length":
        data[:8] = rng.choice([0, 7, len(data), 100_000_001, 1 << 63, (1 << 64) - 1, rng.randrange(1 << 20)]).to_bytes(8, "little")
    elif how == "remove":
        path.unlink()
        note.append(f"bytes remove {path.name}")
        return
    elif how == "zero":
        data[at:at + 64] = bytes(len(data[at:at + 64]))
    elif how == "insert":
        data[at:at] = bytes(rng.randrange(256) for _ in range(rng.choice([1, 8])))
    else:
        words = [b'"', b"{", b"}", b",", b"0", b"-", b"\xff\xfe", b"NaN", b"1e999", b"\\u0000", b"\x1b[31m", b"[" * 200]
        data[at:at + 1] = rng.choice(words)
    note.append(f"bytes {how} {path.name} at {at}")
    path.write_bytes(data)


def mutate_swaps(rng, folder, note, models):
    other = rng.choice(models)
    inside = [path.parent for path in sorted(other.rglob("config.json"))]
    other = Folder(rng.choice(inside))
    how = rng.choice(["file", "array", "array", "pipeline", "parameters", "labels", "kind", "part"])
    note.append(f"swaps {how} from {other.path.name}")
    if how == "file":
        ours, theirs = ([path for path in sorted(f.path.iterdir()) if path.is_file()] for f in (folder, other))
        shutil.copy(rng.choice(theirs), rng.choice(ours))
        return
    if how == "labels":
        labels = other.path / "labels.txt"
        if labels.exists():
            shutil.copy(labels, folder.path / "labels.txt")
            folder.config["labels"] = other.config["labels"]
        else:
            folder.config.pop("labels", None)
    elif how == "array":
        name, theirs = rng.choice(folder.arrays() or [""]), rng.choice(other.arrays() or [""])
        if rng.random() < 0.5 and name in other.arrays():
            theirs = name
        if name and theirs:
            entry = other.config["arrays"][theirs]
            body = other.array(theirs).tobytes()
            folder.replace(name, str(entry["dtype"]), [int(n) for n in entry["shape"]], body)
    elif how == "part":
        parts = [path for path in sorted(other.path.iterdir()) if path.is_dir()]
        if parts:
            part = rng.choice(parts)
            shutil.rmtree(folder.path / part.name, ignore_errors=True)
            shutil.copytree(part, folder.path / part.name)
    elif how == "parameters":
        key = rng.choice(sorted(other.config["parameters"]) or ["x"])
        folder.config["parameters"][key] = other.config["parameters"].get(key)
    else:
        folder.config[how] = other.config.get(how)
    folder.save()


def mutant(number, seed, models, place):
    """Makes a mutant in `place`; gives the kind of the model and what was done."""
    rng = random.Random(f"{seed} {number}")
    model = rng.choice(models)
    shutil.rmtree(place, ignore_errors=True)
    shutil.copytree(model, place)
    note = []
    for _ in range(rng.choice([1, 1, 1, 2, 3])):
        inside = sorted(path.parent for path in place.rglob("config.json"))
        # A member or an index inside as often as the model itself.
        path = rng.choice(inside) if inside else place
        what = rng.choices(list(CLASSES), CLASSES.values())[0]
        try:
            folder = Folder(path)
            if what in ("values", "shapes") and not folder.arrays():
                what = "config"
            if what == "swaps":
                mutate_swaps(rng, folder, note, models)
            else:
                globals()[f"mutate_{what}"](rng, folder, note)
        except (OSError, ValueError, KeyError, TypeError, AttributeError, IndexError, OverflowError):
            # The change before left nothing that could be taken apart.
            if not note:
                note.append("nothing")
        follow(place)
    return model.name, note


def follow(place):
    """Brings the hashes of members that a blend notes up to the members."""
    try:
        folder = Folder(place)
        for number, entry in enumerate(folder.config["parameters"]["members"]):
            member = loads((place / f"member-{number}/config.json").read_text())
            member.pop("xxh3", None)
            entry["xxh3"] = hex16(dumps(member).encode())
        folder.save()
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        pass


LINE = re.compile(rb"xc: (warning: .*|error: .*)\n")
NAN = re.compile(rb":-?nan\b", re.IGNORECASE)


def probe(xc, place, arguments, limit, is_answer=False):
    """Runs the program; gives its exit code and what is wrong with how it ended."""
    def bounded():
        resource.setrlimit(resource.RLIMIT_AS, (8 << 30, 8 << 30))
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))

    command = [xc, *arguments, "--threads", "1"]
    start = time.monotonic()
    child = subprocess.Popen(command, cwd=place.parent, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                             stderr=subprocess.PIPE, preexec_fn=bounded)
    try:
        stdout, stderr = child.communicate(timeout=limit)
    except subprocess.TimeoutExpired:
        child.kill()
        child.communicate()
        return None, "no end", f"{time.monotonic() - start:.1f} s"
    code = child.returncode
    last = stderr[-300:].decode(errors="replace")
    errors = [line for line in stderr.splitlines(True) if line.startswith(b"xc: error: ")]
    if b"panicked" in stderr or b"internal error" in stderr:
        return code, "panic", last
    if code < 0:
        return code, "signal", f"{signal.Signals(-code).name} {last}"
    if code not in (0, 2, 3):
        return code, "exit code", f"{code} {last}"
    if len(errors) != (code != 0) or (code != 0 and not stderr.endswith(errors[0])):
        return code, "lines", last
    if re.search(rb"[\x00-\x09\x0b-\x1f\x7f]", stderr) or len(stderr) > 20_000:
        return code, "raw characters", repr(stderr[:300])
    if code == 0 and is_answer and NAN.search(stdout):
        return code, "NaN", stdout[:200].decode(errors="replace")
    return code, None, errors[0].decode(errors="replace") if errors else ""


def outcome_of(job):
    """Makes one mutant and asks the program about it."""
    number, options, models, base = job
    place = base / f"{os.getpid()}" / "m"
    for name in ("d",):
        link = place.parent / name
        link.parent.mkdir(exist_ok=True)
        if not link.exists():
            link.symlink_to(base / name)
    kind, note = mutant(number, options.seed, models, place)
    out = place.parent / "out"
    asks = [("ask", [*asked(kind).split(), "m"]), ("inspect", ["inspect", "m"]),
            ("verify", ["inspect", "m", "--verify"]), ("merge", ["merge", "m", "--output", "out"])]
    if kind in ("tree", "text"):
        asks.append(("convert", ["convert", "--from", "xc", "m", "--to", "pecos", "out", "--tree", "0"]))
    found, codes, n, refused = [], {}, 0, ""
    for name, arguments in asks:
        shutil.rmtree(out, ignore_errors=True)
        code, wrong, detail = probe(options.xc, place, arguments, options.limit, name == "ask")
        codes[name], n = code, n + 1
        if name == "ask":
            refused = detail
        if wrong:
            found.append((name, wrong, detail))
    # A sound model of another shape may not take these queries, or have no names: they are at fault then.
    # And a container of a kind that is no model is shown by `inspect` all the same.
    is_query = refused.startswith(("xc: error: d/", "xc: error: --names")) or "a model of kind" in refused
    if codes["verify"] == 0 and codes["ask"] == 2 and not is_query and not any(f[0] == "ask" for f in found):
        found.append(("verify", "takes what is refused", refused))
    is_raw = any(part.startswith("bytes") for part in note)
    unnoticed = is_raw and codes["verify"] == 0
    return number, kind, note, found, codes, n, unnoticed


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--xc", default="target/release/xc", help="the program [target/release/xc]")
    parser.add_argument("--mutants", type=int, default=10_000, help="how many [10000]")
    parser.add_argument("--first", type=int, default=0, help="number of the first mutant [0]")
    parser.add_argument("--only", type=int, help="make this mutant alone, and say what each command says of it")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--jobs", type=int, default=1, help="processes at once [1]")
    parser.add_argument("--limit", type=float, default=20, help="seconds that a command may take [20]")
    parser.add_argument("--seconds", type=float, help="end after so many seconds, with the tally so far")
    parser.add_argument("--kinds", help="kinds of models, separated by commas [all]")
    parser.add_argument("--work", type=Path, help="folder to work in, which stays [a temporary one]")
    parser.add_argument("--failures", type=Path, default=Path("mutants-failed.jsonl"), help="file for what failed")
    options = parser.parse_args()
    options.xc = str(Path(options.xc).resolve())
    with tempfile.TemporaryDirectory(prefix="mutate", dir="/dev/shm" if os.path.isdir("/dev/shm") else None) as temporary:
        base = (options.work or Path(temporary)).resolve()
        if not (base / "d").exists():
            make_data(options.xc, base)
            make_models(options.xc, base, options.kinds and options.kinds.split(","))
        kinds = options.kinds.split(",") if options.kinds else list(MODELS)
        models = [base / kind for kind in kinds]
        for model in models:
            check_hashes(model)
        if options.only is not None:
            number, kind, note, found, codes, _, _ = outcome_of((options.only, options, models, base))
            print(f"{number}: {kind}: {note}\n{codes}\n{found}\nin {base / str(os.getpid()) / 'm'}")
            return int(bool(found))
        return campaign(options, models, base)


def check_hashes(model):
    """Our hashes are those of the program."""
    for path in sorted(model.rglob("config.json")):
        folder = Folder(path.parent)
        written = folder.config.pop("xxh3")
        assert hex16(dumps(folder.config).encode()) == written, path
        for name in folder.arrays():
            assert hex16(folder.array(name).tobytes()) == folder.config["arrays"][name]["xxh3"], (path, name)


def campaign(options, models, base):
    jobs = ((number, options, models, base) for number in range(options.first, options.first + options.mutants))
    start, tally, failed, n_probes, unnoticed = time.monotonic(), collections.Counter(), 0, 0, 0
    by_class, exits = collections.Counter(), collections.Counter()
    n_mutants = 0
    with multiprocessing.Pool(options.jobs) as pool, open(options.failures, "w") as failures:
        for number, kind, note, found, codes, n, is_unnoticed in pool.imap_unordered(outcome_of, jobs, chunksize=8):
            n_mutants += 1
            n_probes += n
            unnoticed += is_unnoticed
            by_class[note[0].split()[0]] += 1
            exits.update((name, code) for name, code in codes.items())
            for command, wrong, detail in found:
                tally[command, wrong] += 1
            if found:
                failed += 1
                case = {"mutant": number, "seed": options.seed, "model": kind, "changes": note, "found": found}
                failures.write(json.dumps(case) + "\n")
                failures.flush()
                print(f"{number} {kind} {note} {found[:2]}"[:400], file=sys.stderr)
            if options.seconds and time.monotonic() - start > options.seconds:
                pool.terminate()
                break
    print(f"{n_mutants} mutants of {len(models)} models, {n_probes} commands, {time.monotonic() - start:.0f} s")
    print("mutants by first change: " + ", ".join(f"{name} {n}" for name, n in sorted(by_class.items())))
    for name in ("ask", "inspect", "verify", "merge", "convert"):
        of = sorted((str(code), n) for (command, code), n in exits.items() if command == name)
        print(f"{name:8} exit codes: " + ", ".join(f"{code}: {n}" for code, n in of))
    print(f"raw bytes that --verify takes: {unnoticed}")
    for (command, wrong), n in sorted(tally.items()):
        print(f"FAILED {command}: {wrong}: {n}")
    print(f"failed mutants: {failed}" + (f" (in {options.failures})" if failed else ""))
    return int(failed > 0)


if __name__ == "__main__":
    sys.exit(main())
