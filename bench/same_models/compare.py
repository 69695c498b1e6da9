#!/usr/bin/env python3
"""Whether two programs are the same one to everybody: models byte for byte, answers, plans, reports, refusals, memory.

A case is a list of commands that work on one folder. It runs with the first program alone, with the second one alone, and
with one of them up to each command and the other behind it, both ways: so each opens what the other wrote, goes on with what
the other left, and merges its parts. Every run has to leave the same files and to say the same; times, memory that was
measured and the folder's path are left out. `stop` in front of a command ends it by a signal once its checkpoint has a part.

    python3 bench/same_models/compare.py BEFORE AFTER              programs built with the same features
    python3 bench/same_models/compare.py BEFORE BEFORE             has to find nothing
    python3 bench/same_models/compare.py ... --only lns --keep DIR
    python3 bench/same_models/compare.py ... --python BEFORE_PYTHON AFTER_PYTHON     interpreters with the wheels

Linux, Python 3 (with numpy for its data). Exit code 1 when anything differs.
"""

import argparse
import collections
import contextlib
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path


HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parents[1] / "fuzz/campaigns"))

import fixtures  # noqa: E402
import folders  # noqa: E402
from cases import CASES, HEAVY, REFUSED  # noqa: E402

# What is measured, not computed, of reports, logs and plans: memory that is foreseen begins with what is resident.
MEASURED = re.compile(r"(^ms|_s|seconds|_per_second|peak_\w+|memory_bytes|total_bytes|resident_bytes|qps|p\d+_us|time|date)$")
TIMES = re.compile(r"\d[\d.,]* ?(ns|us|µs|ms|s|min|h|MiB)\b(?! ?/)|(?<=a step: )[^;]*|(?<=^xc: )\w+ +\d+\.\d\d +\d+\.\d(?=  )")
SECONDS = 120


def without_measures(value):
    if isinstance(value, dict):
        return {key: without_measures(of) for key, of in value.items() if not MEASURED.search(key) and key != "run"}
    if isinstance(value, list):
        if all(isinstance(of, dict) and "option" in of for of in value):
            # In the order of the help, which is for readers.
            value = sorted(value, key=lambda of: of["option"])
        return [without_measures(of) for of in value]
    return TIMES.sub("TIME", value) if isinstance(value, str) else value


def shown(text, folder):
    """What a program wrote, without what differs from run to run."""
    text = text.decode(errors="replace").replace(str(folder), "FOLDER")
    lines = []
    for line in text.splitlines():
        try:
            lines.append(json.dumps(without_measures(json.loads(line)), sort_keys=True))
        except ValueError:
            lines.append(TIMES.sub("TIME", line))
    return "\n".join(lines)


def command_of(xc, arguments):
    return [str(xc), *(word.replace("\u00a0", " ") for word in arguments.split()), "--threads", "1"]


def stopped(xc, arguments, folder):
    """Runs a command until its checkpoint has a part, and ends it by Ctrl-C."""
    checkpoint = folder / (re.search(r"--model (\S+)", arguments)[1] + ".checkpoint")
    child = subprocess.Popen(command_of(xc, arguments), cwd=folder, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                             stderr=subprocess.DEVNULL)
    begin = time.monotonic()
    while child.poll() is None and time.monotonic() - begin < SECONDS:
        # A run that ends removes it between two looks.
        with contextlib.suppress(FileNotFoundError):
            if checkpoint.is_dir() and any(of.is_dir() and not of.name.startswith(".") for of in checkpoint.iterdir()):
                child.send_signal(signal.SIGINT)
                break
        time.sleep(0.001)
    code = child.wait(SECONDS)
    # Where it ended depends on the machine; that it did is what the case needs.
    return [f"exit code {code}", "", ""]


def step(xc, command, folder):
    if command.startswith("stop "):
        return stopped(xc, command.removeprefix("stop "), folder)
    command, _, given = command.partition(" < ")
    given = (folder / given).read_bytes() if given else b""
    done = subprocess.run(command_of(xc, command), cwd=folder, input=given, capture_output=True, timeout=SECONDS)
    return [f"exit code {done.returncode}", shown(done.stdout, folder), shown(done.stderr, folder)]


def files(folder):
    """What a run left, without what it measured."""
    found = {}
    for name, content in fixtures.contents(folder).items():
        # What a search keeps of a trial has its seconds, and a picture of them.
        of_search = name.startswith("t/") and not name.startswith("t/model/")
        if name.startswith("d/") or ".checkpoint/" in name or (of_search and name.endswith(".svg")):
            continue
        if (".log/" in name or of_search) and name.endswith((".json", ".jsonl")):
            lines = [json.loads(line) for line in ([content] if name.endswith(".json") else content.splitlines())]
            # Where a run was stopped depends on the machine.
            lines = [line for line in lines if line.get("event") != "saved"]
            for line in lines:
                line.pop("xxh3", None)
            content = "\n".join(json.dumps(without_measures(line), sort_keys=True) for line in lines)
            content = content.replace(str(folder), "FOLDER").encode()
        found[name] = content
    return found


def ways(n):
    """Which of the two programs runs each command of a case."""
    made = {"A" * n: None, "B" * n: None}
    for at in range(1, n):
        made["A" * at + "B" * (n - at)] = made["B" * at + "A" * (n - at)] = None
    return list(made)


def run_case(name, commands, programs, data, scratch):
    """Differences of one case."""
    outcomes = {}
    for way in ways(len(commands)):
        folder = scratch / f"{name}-{way}"
        folder.mkdir(parents=True)
        (folder / "d").symlink_to(data)
        said = [step(programs[of], command, folder) for of, command in zip(way, commands)]
        outcomes[way] = (said, files(folder))
        shutil.rmtree(folder)
    first, *others = outcomes.items()
    (said, left), wrong = first[1], []
    for way, (other_said, other_left) in others:
        for at, (one, other) in enumerate(zip(said, other_said)):
            for what, a, b in zip(("exit code", "stdout", "stderr"), one, other):
                if a != b:
                    wrong.append(f"{name} {way}: {what} of {commands[at]!r}:\n{difference(a, b)}")
        for path in sorted(left.keys() | other_left.keys()):
            a, b = left.get(path), other_left.get(path)
            if a != b:
                wrong.append(f"{name} {way}: {path}: {difference(a, b)}")
    failed = [f"{name}: {commands[at]!r} ends with {of[0]}: {of[2]}" for at, of in enumerate(said)
              if of[0] not in ("exit code 0", "exit code 130") and not name.startswith("refused")]
    return wrong + failed


def difference(a, b):
    """The first place where two texts differ."""
    if a is None or b is None:
        return "only one has it"
    at = next((i for i, (x, y) in enumerate(zip(a, b)) if x != y), min(len(a), len(b)))
    begin = max(0, at - 40)
    return f"    {a[begin:at + 80]!r}\n    {b[begin:at + 80]!r}"


def peak(xc, command, folder):
    """Kilobytes that a command needed at its peak, pages of its own program file apart: unoptimised code is no memory of a user's."""
    running = subprocess.Popen(command_of(xc, command), cwd=folder, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    proc, most, code_pages = Path(f"/proc/{running.pid}"), 0, 0
    while running.poll() is None:
        with contextlib.suppress(OSError):  # it ended meanwhile
            status, maps = (proc / "status").read_text(), (proc / "smaps").read_text()
            high = re.search(r"^VmHWM:\s+(\d+)", status, re.MULTILINE)
            own = sum(int(kb) for kb in re.findall(rf" {re.escape(str(xc))}\n(?:.*\n)*?Rss:\s+(\d+)", maps))
            if high and own:  # neither before it is this program, nor once its memory is gone
                most, code_pages = int(high[1]), own
        time.sleep(0.002)
    if running.returncode != 0:
        raise SystemExit(f"{command}: exit code {running.returncode}")
    return most - code_pages


def memory(programs, scratch):
    """Differences of peak memory beyond 3%, of the largest of seven runs: one that ends between two looks shows less."""
    wrong = []
    folder = scratch / "memory"
    folder.mkdir()
    fixtures.run(programs["A"], folder, "generate --instances 6000 --test-instances 200 --features 8000 --labels 600 --output d")
    for command in HEAVY:
        found = collections.defaultdict(list)
        for _ in range(7):
            for of, xc in programs.items():
                found[of].append(peak(xc, command, folder))
        before, after = (max(found[of]) for of in "AB")
        print(f"  {after / before:.3f} of {before} kB: {command}")
        if after > 1.03 * before:
            wrong.append(f"memory: {command}: {before} kB before, {after} kB after")
    shutil.rmtree(folder)
    return wrong


def arrays(pythons, data, scratch):
    """Differences of what two wheels make of arrays."""
    made = []
    for of, python in zip("AB", pythons):
        folder = scratch / f"python-{of}"
        folder.mkdir()
        (folder / "d").symlink_to(data)
        done = subprocess.run([python, str(HERE / "arrays.py")], cwd=folder, capture_output=True)
        made.append((done.returncode, shown(done.stdout, folder), shown(done.stderr, folder), files(folder)))
    if made[0][0] != 0:
        return [f"python: {made[0][2]}"]
    return [f"python: {part} differs" for part, a, b in zip(("exit code", "stdout", "stderr", "files"), *made) if a != b]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("before", type=Path)
    parser.add_argument("after", type=Path)
    parser.add_argument("--default", nargs=2, type=Path, metavar=("BEFORE", "AFTER"), help="the same without features")
    parser.add_argument("--python", nargs=2, metavar=("BEFORE", "AFTER"), help="interpreters with the wheels")
    parser.add_argument("--only", nargs="*", help="names of cases")
    parser.add_argument("--no-memory", action="store_true")
    parser.add_argument("--keep", type=Path, help="work here and leave the data")
    asked = parser.parse_args()
    scratch = Path(asked.keep or tempfile.mkdtemp(prefix="same-models-"))
    scratch.mkdir(parents=True, exist_ok=True)
    programs = {"A": asked.before.resolve(), "B": asked.after.resolve()}
    data = folders.make(programs["A"], scratch)
    cases = {**CASES, **{f"refused-{at:02}": [command] for at, command in enumerate(REFUSED)}}
    unknown = set(asked.only or ()) - cases.keys()
    if unknown:
        raise SystemExit(f"no case is called {', '.join(sorted(unknown))}; expected some of: {', '.join(cases)}")
    wrong, n = [], 0
    for name, commands in cases.items():
        if asked.only and name not in asked.only:
            continue
        found = run_case(name, commands, programs, data, scratch)
        n += len(ways(len(commands)))
        if not name.startswith("refused") or found:
            print(f"{name}: {'differs' if found else 'the same'}", flush=True)
        wrong += found
    if asked.default:
        for command in folders.WITHOUT_FEATURES:
            wrong += run_case("refused-default", [command], dict(zip("AB", (of.resolve() for of in asked.default))), data, scratch)
            n += 2
    if asked.python:
        wrong += arrays(asked.python, data, scratch)
    if not asked.no_memory and not asked.only:
        wrong += memory(programs, scratch)
    for line in wrong:
        print(line)
    print(f"{n} runs of {len(cases)} cases: {len(wrong)} differences")
    if not asked.keep:
        shutil.rmtree(scratch)
    return bool(wrong)


if __name__ == "__main__":
    sys.exit(main())
