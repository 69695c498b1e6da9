#!/usr/bin/env python3
"""Kills the program at random moments, starts it twice, and replaces models under their readers.

Kills: a command is undisturbed once; then it runs again and is sent KILL, INT or TERM at a random moment, one to three
times, goes on (--resume, or the same command), and has to end with the same bytes. After each signal what stands at
its output has to be what stood there before (nothing, or an older model) or the whole result; at the end no partial
file may lie beside it. INT and TERM have to end with 130 and 143 (or 0, when the command was done already) and at
most one line.

Double starts: two of one command at almost the same time; one has to be refused (2), or both come through, and the
result has the same bytes.

Opens: a model is replaced again and again by another one while it is asked; every answer has to be of one or of the
other.

    cargo build --release -p xc-cli
    python3 fuzz/campaigns/kill.py --xc target/release/xc

Standard library and numpy. Exit code 1 when anything was lost, mixed or different.
"""

import argparse
import collections
import ctypes
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

from fixtures import MODELS, asked, contents, make_data, make_models, remove, run

STEPS = "--network.widths 16 --epochs 12 --batch-size 32 --checkpoint-every 10"
TRAIN = "train {} --train d/train.txt --model out"
# Commands, and what each leaves: the first is looked at after every signal.
COMMANDS = {
    "tree": (TRAIN.format("tree") + " --trees 24", ["out"]),
    "mach": (TRAIN.format("mach") + f" --repetitions 4 --buckets 16 {STEPS}", ["out"]),
    "dense": (TRAIN.format("dense") + f" {STEPS}", ["out"]),
    "uniform": (TRAIN.format("uniform") + f" {STEPS} --network.intermediate 64", ["out"]),
    "lns": (TRAIN.format("lns") + f" {STEPS} --negatives.sampled 5 --negatives.uniform 20", ["out"]),
    "astra": (TRAIN.format("astra") + f" {STEPS}", ["out"]),
    "skipgram": ("train skipgram --train d/train.jsonl --network.widths 16 --epochs 4 --batch-size 64"
                 " --checkpoint-every 10 --model out", ["out", "out.vectors.txt"]),
    "refit": (TRAIN.format("tree") + " --trees 12 --validation-fraction 0.2 --refit all", ["out", "all"]),
    "blend": ("blend blend.a blend.b --validation d/train.txt --held-out --rule logistic --output out", ["out"]),
    "merge": ("merge mach --output out", ["out"]),
    "index": ("index build --vectors d/x.npy --metric l2 --output out", ["out"]),
    "inverted": ("index build --vectors d/x.npz --metric ip --output out", ["out"]),
    "labels": ("index build --model lns --output out", ["out"]),
    "npz": ("convert --from xc-text d/train.txt --to npz out --output-labels out.labels", ["out", "out.labels"]),
    "pipeline": ("convert --from jsonl d/train.jsonl --to xc-text out.txt --save-pipeline out", ["out", "out.txt"]),
    "to pecos": ("convert --from xc tree --to pecos out --tree 0", ["out"]),
    "from pecos": ("convert --from pecos pecos --to xc out", ["out"]),
    "predict": ("predict --model tree --input d/test.txt --output out", ["out"]),
    "generate": ("generate --instances 100 --features 200 --labels 50 --output out", ["out"]),
}
# Folders that are written file by file, and so may be there in part.
IN_PARTS = {"generate"}
SIGNALS = [signal.SIGKILL] * 3 + [signal.SIGINT, signal.SIGTERM]


class Campaign:
    def __init__(self, options, base):
        self.xc, self.base, self.rng = options.xc, base, random.Random(options.seed)
        self.options, self.failures, self.tally = options, [], collections.Counter()

    def fail(self, what, detail):
        self.tally[what] += 1
        self.failures.append(f"{what}: {detail}")
        print(f"{what}: {detail}"[:600], file=sys.stderr)

    def start(self, command):
        arguments = [self.xc, *command.split(), "--quiet", "--threads", "1"]
        return subprocess.Popen(arguments, cwd=self.base, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                                stderr=subprocess.PIPE)

    def clean(self):
        """Removes what commands made."""
        for path in self.base.iterdir():
            if path.name.split(".")[0] in ("out", "all") or path.name.startswith((".out", ".all")):
                remove(path)

    def results(self, outputs):
        return [contents(self.base / name) for name in outputs]

    def undisturbed(self, name):
        """The bytes of a command that nothing disturbs, and its seconds."""
        command, outputs = COMMANDS[name]
        self.clean()
        start = time.monotonic()
        run(self.xc, self.base, command)
        took = time.monotonic() - start
        return self.results(outputs), took

    def older(self, name):
        """What may stand at the output before: a model of another seed, or nothing."""
        command, outputs = COMMANDS[name]
        can_replace = name not in ("to pecos", "generate", "predict", "npz")
        if not can_replace or self.rng.random() < 0.4:
            return {}
        run(self.xc, self.base, f"merge older --output {outputs[0]}")
        return contents(self.base / outputs[0])

    def partials(self):
        return [path.name for path in self.base.iterdir() if path.name.endswith(".partial")]

    def kill(self, name, expected, took):
        """One command, killed one to three times, then ended; gives how often it was killed."""
        command, outputs = COMMANDS[name]
        resume = " --resume" if command.startswith("train") else ""
        self.clean()
        old, killed = self.older(name), 0
        for _ in range(self.rng.choice([1, 2, 3])):
            wait = self.rng.uniform(0, took * 0.95)
            if self.rng.random() < 0.3:
                # Saving is at the end.
                wait = took * self.rng.uniform(0.85, 1.05)
            child = self.start(command + resume)
            time.sleep(wait)
            sent = self.rng.choice(SIGNALS)
            was_running = child.poll() is None
            child.send_signal(sent)
            said = child.communicate()[1].decode(errors="replace")
            if was_running and child.returncode != 0:
                killed += 1
                self.tally[f"{sent.name}"] += 1
            allowed = {signal.SIGKILL: -9, signal.SIGINT: 130, signal.SIGTERM: 143}[sent]
            # Before the program listens, a signal ends it as the system does.
            if child.returncode not in (0, allowed, -sent):
                self.fail("exit code", f"{name}: {sent.name}: {child.returncode} {said}")
            if said.count("\n") > 1 or "panicked" in said or "internal error" in said:
                self.fail("lines", f"{name}: {sent.name}: {said}")
            got = contents(self.base / outputs[0])
            if name not in IN_PARTS and got not in (old, expected[0]):
                self.fail("lost", f"{name}: neither the old nor the new: {sorted(got)}")
            if child.returncode == 0:
                break
        if child.returncode != 0:
            done = run(self.xc, self.base, command + resume, check=False)
            # Its output stands there whole: nothing is to be done.
            refused = done.returncode == 2 and self.results(outputs) == expected
            if done.returncode != 0 and not refused:
                self.fail("lost", f"{name}: does not go on: {done.stderr.decode(errors='replace')}")
        if self.results(outputs) != expected:
            differ = [key for a, b in zip(self.results(outputs), expected) for key in a.keys() | b.keys()
                      if a.get(key) != b.get(key)]
            self.fail("different bytes", f"{name}: {differ}")
        if self.partials() or (self.base / "out.checkpoint").exists():
            self.fail("left behind", f"{name}: {self.partials()} {(self.base / 'out.checkpoint').exists()}")
        return killed

    def kills(self, wanted):
        facts = {name: self.undisturbed(name) for name in COMMANDS}
        for name in COMMANDS:
            # Twice the same: else nothing could be compared.
            if self.undisturbed(name)[0] != facts[name][0]:
                self.fail("different bytes", f"{name}: two undisturbed runs")
        killed, by_name = 0, collections.Counter()
        # Trainings and the commands beside them in turn.
        order = [name for name in COMMANDS]
        while killed < wanted:
            name = order[sum(by_name.values()) % len(order)] if self.rng.random() < 0.7 else self.rng.choice(order[:8])
            n = self.kill(name, *facts[name])
            killed += n
            by_name[name] += 1
            self.tally[f"killed {name}"] += n
        self.tally["kills"] = killed
        self.facts = facts

    def double_starts(self, wanted):
        names = [name for name in COMMANDS if name not in IN_PARTS]
        for at in range(wanted):
            name = names[at % len(names)]
            command, outputs = COMMANDS[name]
            expected, took = self.facts[name]
            self.clean()
            children = [self.start(command)]
            time.sleep(self.rng.choice([0, self.rng.uniform(0, took)]))
            children.append(self.start(command))
            ends = [(child.communicate()[1].decode(errors="replace"), child.returncode) for child in children]
            codes = [code for _, code in ends]
            self.tally["double starts"] += 1
            self.tally[f"double start ends {sorted(codes)}"] += 1
            if 0 not in codes or set(codes) - {0, 2}:
                self.fail("double start", f"{name}: {ends}")
            if self.results(outputs) != expected:
                self.fail("different bytes", f"{name}: after a double start")
            if self.partials() or (self.base / "out.checkpoint").exists():
                self.fail("left behind", f"{name}: {self.partials()}")

    def opens(self, wanted):
        """Every kind is asked while it is replaced."""
        kinds = [kind for kind in MODELS if kind != "pipeline"]
        for at, kind in enumerate(kinds):
            n = wanted * (at + 1) // len(kinds) - wanted * at // len(kinds)
            self.open_replaced(kind, n)

    def open_replaced(self, kind, n):
        live, stop = self.base / "live", threading.Event()
        remove(live)
        models = [self.base / "a" / kind, self.base / "b" / kind]
        ask = asked(kind).split()
        answers = [self.answer([*ask, str(model)])[0] for model in models]
        if answers[0] == answers[1]:
            self.fail("mixed", f"{kind}: two models with the same answers show nothing")
        shutil.copytree(models[0], live)
        saves = collections.Counter()

        def replace():
            while not stop.is_set():
                model = models[(saves["n"] + 1) % 2]
                building = self.base / "live.building"
                shutil.copytree(model, building, copy_function=os.link)
                exchange(building, live)
                shutil.rmtree(building)
                saves["n"] += 1

        writer = threading.Thread(target=replace)
        writer.start()
        try:
            for _ in range(n):
                got, code, said = self.answer([*ask, str(live)])
                self.tally["opens"] += 1
                if code != 0:
                    self.fail("refused open", f"{kind}: {code} {said}")
                elif got not in answers:
                    self.fail("mixed", f"{kind}: an answer of neither model")
                elif said:
                    self.fail("warned open", f"{kind}: {said}")
        finally:
            stop.set()
            writer.join()
        self.tally["replacements"] += saves["n"]

    def answer(self, arguments):
        command = [self.xc, *arguments, "--threads", "1"]
        done = subprocess.run(command, cwd=self.base, stdin=subprocess.DEVNULL, capture_output=True)
        said = done.stderr.decode(errors="replace")
        return done.stdout, done.returncode, "".join(line for line in said.splitlines() if "xc: warning" in line or
                                                     "xc: error" in line)


def exchange(one, other):
    """Exchanges two folders in a single step, as saving does."""
    libc = ctypes.CDLL(None, use_errno=True)
    at_cwd, flag = -100, 2
    if libc.renameat2(at_cwd, os.fsencode(one), at_cwd, os.fsencode(other), flag) != 0:
        raise OSError(ctypes.get_errno(), "renameat2")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--xc", default="target/release/xc", help="the program [target/release/xc]")
    parser.add_argument("--kills", type=int, default=300)
    parser.add_argument("--double-starts", type=int, default=50)
    parser.add_argument("--opens", type=int, default=2000)
    parser.add_argument("--commands", help="commands to kill, separated by commas [all]: " + ", ".join(COMMANDS))
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--work", type=Path, help="folder to work in, which stays [a temporary one]")
    options = parser.parse_args()
    options.xc = str(Path(options.xc).resolve())
    if options.commands:
        wanted = options.commands.split(",")
        for name in [name for name in COMMANDS if name not in wanted]:
            del COMMANDS[name]
    start = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="kill") as temporary:
        base = (options.work or Path(temporary)).resolve()
        base.mkdir(exist_ok=True)
        campaign = Campaign(options, base)
        make_data(options.xc, base)
        make_models(options.xc, base, ["tree", "mach", "lns", "blend"])
        run(options.xc, base, "convert --from xc tree --to pecos pecos --tree 0")
        make_models(options.xc, base, ["mach"], seed=7)
        (base / "mach").rename(base / "older")
        make_models(options.xc, base, ["mach"])
        campaign.kills(options.kills)
        campaign.double_starts(options.double_starts)
        if options.opens:
            make_pairs(options.xc, base)
            campaign.opens(options.opens)
    print(f"{time.monotonic() - start:.0f} s")
    for what, n in sorted(campaign.tally.items()):
        print(f"{what}: {n}")
    wanted = ["lost", "mixed", "different bytes", "left behind", "exit code", "lines", "double start", "refused open",
              "warned open"]
    print("FAILED " if campaign.failures else "", ", ".join(f"{campaign.tally[what]} {what}" for what in wanted), sep="")
    return int(bool(campaign.failures))


def make_pairs(xc, base):
    """Two models of each kind, in `a` and `b`, whose answers differ, names of labels included."""
    for name, seed in (("a", 0), ("b", 1)):
        folder = base / name
        folder.mkdir(exist_ok=True)
        remove(folder / "d")
        shutil.copytree(base / "d", folder / "d")
        if name == "b":
            labels = (folder / "d/labels.txt").read_text().splitlines()
            (folder / "d/labels.txt").write_text("".join(f"{label}\n" for label in reversed(labels)))
            import numpy as np
            np.save(folder / "d/x.npy", np.load(base / "d/x.npy")[::-1])
            run(xc, folder, "convert --from xc-text d/test.txt --to npz d/x.npz --output-labels d/y2.npz")
        make_models(xc, folder, [kind for kind in MODELS if kind != "pipeline"], seed=seed)


if __name__ == "__main__":
    sys.exit(main())
