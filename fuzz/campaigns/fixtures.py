"""Tiny data, and models of every kind trained on them, for the campaigns. Standard library and numpy."""

import json
import os
import shutil
import subprocess
from pathlib import Path

import numpy as np

SMALL = "--network.widths 8 --epochs 2"
TRAIN = "--train d/train.txt"
NAMED = "--train d/train.jsonl --label-names d/labels.txt"
HELD = "--validation-fraction 0.2"

# What makes each model: commands, one after the other, in a folder that holds `d`; NAME stands for its folder.
MODELS = {
    "tree": [f"train tree {TRAIN} --trees 2 --model NAME"],
    "text": [f"train tree {NAMED} --trees 1 --model NAME"],
    "mach": [f"train mach {TRAIN} --repetitions 3 --buckets 16 {SMALL} --model NAME"],
    "dense": [f"train dense {NAMED} {SMALL} --model NAME"],
    "uniform": [f"train uniform {TRAIN} {SMALL} --network.intermediate 64 --model NAME"],
    "uniform-bf16": [f"train uniform {TRAIN} {SMALL} --network.intermediate 64 --head.precision bf16 --model NAME"],
    "lns": [f"train lns {TRAIN} {SMALL} --model NAME", "index build --model NAME"],
    "lists": [f"train uniform {TRAIN} {SMALL} --network.intermediate 64 --model NAME", "index build --model NAME"],
    "astra": [f"train astra {TRAIN} {SMALL} --model NAME", "index build --model NAME"],
    "vectors": [f"train dense --train d/x.npy --train-labels d/y.npz {SMALL} --model NAME"],
    "mach-vectors": [
        f"train mach --train d/x.npy --train-labels d/y.npz --repetitions 3 --buckets 8 {SMALL} --model NAME"
    ],
    "skipgram": ["train skipgram --train d/train.jsonl --epochs 1 --network.widths 8 --model NAME"],
    "blend": [
        f"train tree {TRAIN} --trees 1 {HELD} --model NAME.a",
        f"train dense {TRAIN} {SMALL} {HELD} --model NAME.b",
        "blend NAME.a NAME.b --validation d/train.txt --held-out --rule logistic --output NAME",
    ],
    "graph": ["index build --vectors d/x.npy --metric l2 --output NAME"],
    "cells": ["index build --vectors d/x.npy --metric ip --cells 8 --output NAME"],
    "inverted": ["index build --vectors d/x.npz --metric ip --output NAME"],
    "pipeline": ["convert --from jsonl d/train.jsonl --to xc-text NAME.txt --save-pipeline NAME"],
}

# How each model is asked: the arguments before and after its folder.
ASKED = {
    "text": ("predict --input d/test.jsonl --names --model", ""),
    "dense": ("predict --input d/test.jsonl --names --model", ""),
    "vectors": ("predict --input d/x.npy --model", ""),
    "mach-vectors": ("predict --input d/x.npy --model", ""),
    "skipgram": ("predict --input d/words.txt --format fasttext --names --model", ""),
    "graph": ("index search --queries d/q.npy --top-k 5 --output - --index", ""),
    "cells": ("index search --queries d/q.npy --top-k 5 --output - --index", ""),
    "inverted": ("index search --queries d/q.npz --top-k 5 --output - --index", ""),
    "pipeline": ("convert --from jsonl d/test.jsonl --to xc-text - --pipeline", ""),
}


def asked(kind):
    """Arguments of the command that asks a model, before its folder."""
    return ASKED.get(kind, ("predict --input d/test.txt --model", ""))[0]


def run(xc, folder, arguments, seed=0, check=True, **more):
    """Runs the program in a folder; arguments are separated by blanks."""
    command = [str(xc), *arguments.split(), "--quiet", "--threads", "1", "--seed", str(seed)]
    done = subprocess.run(command, cwd=folder, stdin=subprocess.DEVNULL, capture_output=True, **more)
    if check and done.returncode != 0:
        raise SystemExit(f"{arguments}: exit code {done.returncode}: {done.stderr.decode(errors='replace')}")
    return done


def make_data(xc, folder, instances=200):
    """Data of every form in `folder`/d."""
    folder.mkdir(parents=True, exist_ok=True)
    sizes = f"--instances {instances} --test-instances 20 --features 200 --labels 50 --words 20"
    run(xc, folder, f"generate {sizes} --output d")
    rng = np.random.default_rng(1)
    np.save(folder / "d/x.npy", rng.standard_normal((instances, 16)).astype("f4"))
    np.save(folder / "d/q.npy", rng.standard_normal((20, 16)).astype("f4"))
    run(xc, folder, "convert --from xc-text d/train.txt --to npz d/x.npz --output-labels d/y.npz")
    run(xc, folder, "convert --from xc-text d/test.txt --to npz d/q.npz --output-labels d/qy.npz")
    with open(folder / "d/test.jsonl") as lines:
        texts = [json.loads(line)["text"] for line in lines]
    (folder / "d/words.txt").write_text("".join(" ".join(text.split()[:3]) + "\n" for text in texts))


def make_models(xc, folder, kinds=None, seed=0):
    """Models of these kinds in `folder`, where data are; gives their names."""
    kinds = list(kinds or MODELS)
    for kind in kinds:
        for command in MODELS[kind]:
            run(xc, folder, command.replace("NAME", kind), seed=seed)
    return kinds


def contents(folder):
    """Every file below a folder, or the file itself, by its path; nothing where nothing is."""
    folder = Path(folder)
    if folder.is_file():
        return {"": folder.read_bytes()}
    found = {}
    for path in sorted(folder.rglob("*")):
        if path.is_file():
            found[str(path.relative_to(folder))] = path.read_bytes()
    return found


def remove(path):
    """Removes a file or folder, if it is there."""
    if os.path.isdir(path) and not os.path.islink(path):
        shutil.rmtree(path)
    elif os.path.lexists(path):
        os.remove(path)
