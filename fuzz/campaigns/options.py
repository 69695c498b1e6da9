#!/usr/bin/env python3
"""Every option of every command with absurd values, over tiny data.

The options are those that `--help` lists. A run is right when it ends with exit code 0, 1, 2 or 3, without a panic, with
at most one line of error and no control characters on stderr, and leaves no partial file behind. One that takes longer than --limit
is counted apart: it may be work that was asked for.
"""

import argparse
import concurrent.futures
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from fixtures import MODELS, make_data, run

VALUES = [
    "", "0", "1", "-1", "2", "0.5", "-0.0", "1e308", "-1e308", "1e-320", "nan", "inf", "-inf", "4294967295", "4294967296",
    "9223372036854775807", "18446744073709551615", "18446744073709551616", "99999999999999999999999999", "1e999", "x",
    "\u202e\x1b[31m", ",", "1,2", "=", "/dev/null", "/proc/x", "no/such/file", ".", "a" * 300,
]

# A run of each command that works, which one option more is added to.
RUNS = {
    "generate": "generate --instances 20 --test-instances 5 --features 30 --labels 10 --words 5 --output NEW",
    "train tree": "train tree --train d/train.txt --trees 1 --model NEW",
    "train mach": "train mach --train d/train.txt --buckets 8 --repetitions 1 --epochs 1 --network.widths 4 --model NEW",
    "train dense": "train dense --train d/train.txt --epochs 1 --network.widths 4 --model NEW",
    "train uniform": "train uniform --train d/train.txt --epochs 1 --network.widths 4 --network.intermediate 16 --model NEW",
    "train lns": "train lns --train d/train.txt --epochs 1 --network.widths 4 --model NEW",
    "train astra": "train astra --train d/train.txt --epochs 1 --network.widths 4 --model NEW",
    "train skipgram": "train skipgram --train d/train.jsonl --epochs 1 --network.widths 4 --model NEW",
    "tune tree": "tune tree --train d/train.txt --trials 2 --no-model --output NEW",
    "predict": "predict --model lns --input d/test.txt --output NEW",
    "evaluate": "evaluate --truth d/test.txt --predictions predictions.txt",
    "explain": "explain --model tree --input d/test.txt --label 0",
    "index build": "index build --vectors d/x.npy --output NEW",
    "index search": "index search --index graph --queries d/q.npy --output NEW",
    "index evaluate": "index evaluate --index graph --queries d/q.npy --runs 1",
    "index refresh": "index refresh --index graph --vectors d/x.npy --output NEW",
    "inspect": "inspect tree",
    "merge": "merge mach --output NEW",
    "blend": "blend blend.a blend.b --validation d/train.txt --held-out --folds 2 --networks 1 --output NEW",
    "calibrate": "calibrate --model blend.a --validation d/train.txt --held-out --folds 2 --output NEW",
    "convert": "convert --from xc-text d/train.txt --to jsonl NEW",
    "bench predict": "bench predict --model tree --input d/test.txt",
    "completions": "completions bash",
}

OPTION = re.compile(r"^\s+(?:-\w, )?--([a-z0-9][a-z0-9.-]*)(?:[ =\[]|\.\.\.|$)", re.M)


def options(xc, name):
    text = subprocess.run([xc, *name.split(), "--help"], capture_output=True, text=True).stdout
    return sorted(set(OPTION.findall(text)) - {"help", "version"})


def without(arguments, option):
    """The arguments without an option and its value."""
    out, skip = [], False
    for argument in arguments:
        if skip and not argument.startswith("--"):
            skip = False
            continue
        skip = argument == f"--{option}"
        if not skip:
            out.append(argument)
    return out


def probe(xc, place, name, option, value, limit):
    with tempfile.TemporaryDirectory(dir=place) as folder:
        folder = Path(folder)
        for entry in (place / "fixtures").iterdir():
            (folder / entry.name).symlink_to(entry)
        arguments = without(RUNS[name].split(), option)
        command = [xc, *arguments, f"--{option}={value}"]
        for usual in ["quiet", "threads=1", "max-memory=2GiB"]:
            if usual.split("=")[0] != option:
                command.append(f"--{usual}")
        try:
            done = subprocess.run(command, cwd=folder, stdin=subprocess.DEVNULL, capture_output=True, timeout=limit)
        except subprocess.TimeoutExpired:
            return "slow", ""
        said = done.stderr.decode(errors="replace")
        errors = [line for line in said.splitlines() if line.startswith("xc: error:")]
        if done.returncode not in (0, 1, 2, 3):
            return "failed", f"exit code {done.returncode}: {said[:300]}"
        if "internal error" in said or "panicked" in said:
            return "failed", said[:300]
        if done.returncode and len(errors) != 1 or re.search(r"[\x00-\x09\x0b-\x1f\x7f-\x9f\u202e]", said):
            return "failed", f"exit code {done.returncode}, {len(errors)} lines of error: {said[:300]!r}"
        left = [str(path.name) for path in folder.rglob("*.partial")]
        if left:
            return "failed", f"left behind: {left}"
        return f"exit code {done.returncode}", ""


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--xc", required=True, help="the program")
    parser.add_argument("--only", help="one command, such as 'train tree'")
    parser.add_argument("--option", help="one option, without --")
    parser.add_argument("--limit", type=float, default=20, help="seconds of a run")
    parser.add_argument("--jobs", type=int, default=2, help="runs at a time")
    args = parser.parse_args()
    xc = str(Path(args.xc).resolve())
    place = Path(tempfile.mkdtemp(prefix="xc-options-"))
    try:
        fixtures = place / "fixtures"
        make_data(xc, fixtures, instances=80)
        for kind in ["tree", "mach", "lns", "blend", "graph"]:
            for command in MODELS[kind]:
                run(xc, fixtures, command.replace("NAME", kind))
        run(xc, fixtures, "predict --model tree --input d/test.txt --output predictions.txt")
        names = [args.only] if args.only else list(RUNS)
        probes = [(name, option, value) for name in names for option in options(xc, name) for value in VALUES]
        probes = [probe for probe in probes if args.option in (None, probe[1])]
        tally, failed = {}, 0
        with concurrent.futures.ThreadPoolExecutor(args.jobs) as pool:
            outcomes = pool.map(lambda p: probe(xc, place, *p, args.limit), probes)
            for (name, option, value), (outcome, why) in zip(probes, outcomes):
                tally[outcome] = tally.get(outcome, 0) + 1
                if outcome in ("failed", "slow"):
                    print(f"{outcome}: xc {name} --{option}={value[:40]!r}: {why}", flush=True)
                failed += outcome == "failed"
        print(f"{len(probes)} runs of {len(names)} commands:", ", ".join(f"{n} {what}" for what, n in sorted(tally.items())))
        sys.exit(failed > 0)
    finally:
        shutil.rmtree(place, ignore_errors=True)


if __name__ == "__main__":
    main()
