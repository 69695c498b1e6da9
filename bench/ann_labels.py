#!/usr/bin/env python3
"""The labels of a trained network as vectors, for `ann.py --set NAME=ip:OUT`.

    ann_labels.py --model MODEL --rows test.txt --out OUT [--queries 4000]

MODEL: a folder of `xc train lns | astra | dense` over sparse features, with one layer of embeddings. OUT/base.npy gets the
weights of each label with its bias behind them, OUT/query.npy the hidden vectors of the rows of an XC text file with a 1
behind them, so that their inner products are the logits. Needs numpy, scipy and safetensors.
"""
import argparse
import json
import os

import numpy as np
from safetensors.numpy import load_file

import rows


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", required=True)
    parser.add_argument("--rows", required=True)
    parser.add_argument("--out", required=True)
    parser.add_argument("--queries", type=int, default=4000, help="the first rows, at most [4000]")
    a = parser.parse_args()
    with open(os.path.join(a.model, "config.json"), encoding="utf-8") as f:
        encoder = json.load(f)["parameters"]["classifier"]["encoder"]
    if encoder["kind"] != "bag" or len(encoder["widths"]) != 1:
        raise SystemExit(f"{a.model}: one layer of embeddings over sparse features is expected, not {encoder}")
    arrays = load_file(os.path.join(a.model, "model.safetensors"))
    x, _ = rows.read_text(a.rows)
    x = x[: a.queries].astype(np.float64)
    norms = np.sqrt(x.multiply(x).sum(1)).A1
    norms[norms == 0] = 1
    hidden = (x.multiply(1 / norms[:, None]).tocsr() @ arrays["bag.table"].astype(np.float64)) + arrays["bag.bias"].T
    if encoder["activation"] == "relu":
        hidden = np.maximum(hidden, 0)
    os.makedirs(a.out, exist_ok=True)
    base = np.hstack([arrays["head.weights"].astype(np.float32), arrays["head.bias"].reshape(-1, 1).astype(np.float32)])
    np.save(os.path.join(a.out, "base.npy"), base)
    np.save(os.path.join(a.out, "query.npy"), np.hstack([hidden, np.ones((len(hidden), 1))]).astype(np.float32))
    print(f"{len(base)} labels and {len(hidden)} queries of {base.shape[1]} values")


if __name__ == "__main__":
    main()
