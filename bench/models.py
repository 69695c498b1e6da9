#!/usr/bin/env python3
"""PECOS models to measure inference on: one for each branching factor, PIFA features, leaves of at most 100 labels.

    models.py --data DIR --models OUT [--nr-splits 2,16,32] [--threads 2]

Leaves OUT/SET-s2, OUT/SET-s16, ... (what PECOS's `save` writes) and one JSON line a model. Models that are there stay.
"""
import argparse
import json
import os
import shutil

import peers


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--data", required=True)
    p.add_argument("--models", required=True)
    p.add_argument("--nr-splits", default="2,16,32")
    p.add_argument("--threads", type=int, default=2)
    a = p.parse_args()
    os.makedirs(a.models, exist_ok=True)
    name = os.path.basename(os.path.normpath(a.data))
    for splits in a.nr_splits.split(","):
        model = os.path.join(a.models, f"{name}-s{splits}")
        if os.path.isdir(model):
            continue
        part = os.path.join(a.models, f".making-{name}-s{splits}")
        shutil.rmtree(part, ignore_errors=True)
        record = peers.step(dict(step="pecos_train", train=os.path.join(a.data, "train"), model=part, threads=a.threads,
                                 seed=0, nr_splits=int(splits)))
        os.rename(part, model)
        print(json.dumps(dict(data=name, nr_splits=int(splits), **record)), flush=True)


if __name__ == "__main__":
    main()
