#!/usr/bin/env python3
"""Whether an imported PECOS model answers as PECOS does, label for label.

    same_answers.py files  --fixture DIR --xc BIN                       predictions that PECOS left in files
    same_answers.py models --xc BIN MODEL=STEM [MODEL=STEM ...]         PECOS and xc side by side, now

`files`: DIR has `model/`, `X.tst.npz` and `pred_beamB_topK_POST.npz`. `models`: MODEL is a folder that PECOS's save()
wrote, STEM the rows (`STEM.txt` or `STEM.X.npz`); every row is answered under each of `--settings` BEAM:TOP:POST.
Another post-processor than the model's own is set in a copy of the model, before the import.

A place (row, rank) where the labels differ counts as a tie when both systems' scores there are within 1e-6 of each
other. A row that differs more than that is searched again in double precision: it counts as tied in the beam where the
last cluster inside the beam and the first outside are within 1e-6, so that either may be followed; else as different.
Scores of labels that do not exist count as -1. Exit code 1 if any row is different.
"""
import argparse
import glob
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile

import numpy as np
import scipy.sparse as sp

import metrics
import rows

TIE = 1e-6


def with_post_processor(model, post, folder):
    """A copy of a PECOS model whose every layer names `post`."""
    copy = os.path.join(folder, "pecos-" + post)
    if not os.path.isdir(copy):
        shutil.copytree(model, copy)
        for path in glob.glob(os.path.join(copy, "ranker", "*.model", "param.json")):
            with open(path, encoding="utf-8") as f:
                param = json.load(f)
            param["pred_kwargs"]["post_processor"] = post
            with open(path, "w", encoding="utf-8") as f:
                json.dump(param, f)
    return copy


def of_csr(got, top):
    """Labels and scores in the order in which PECOS stores them."""
    ids, scores = np.full((got.shape[0], top), -1, np.int64), np.full((got.shape[0], top), np.nan)
    for r in range(got.shape[0]):
        a, b = int(got.indptr[r]), int(got.indptr[r + 1])
        ids[r, : b - a], scores[r, : b - a] = got.indices[a:b], got.data[a:b]
    down = np.all(~(np.diff(scores, axis=1) > 0), axis=1)
    assert down.all(), f"row {np.flatnonzero(~down)[0]}: scores do not go down"
    return ids, scores


def ours(a, model, post, source, beam, top, folder):
    imported = os.path.join(folder, "xc-" + post)
    if not os.path.isdir(imported):
        pecos = with_post_processor(model, post, folder)
        subprocess.run([a.xc, "convert", "--from", "pecos", pecos, "--to", "xc", imported, "--quiet"], check=True)
    lines = os.path.join(folder, "lines")
    subprocess.run([a.xc, "predict", "--model", imported, "--input", source, "--top-k", str(top), "--beam", str(beam),
                    "--output", lines, "--threads", str(a.threads), "--quiet"], check=True)
    return metrics.read_lines(lines, top)


def activation(post, z):
    """Scores of margins, and how they join the parent's score: None where this search does not know the post-processor."""
    if post == "sigmoid":
        return 1 / (1 + np.exp(-z))
    if found := re.fullmatch(r"l(\d)-hinge", post):
        return np.exp(-np.maximum(0, 1 - z) ** int(found[1]))
    return None


def tied_in_the_beam(model, post, beam, row):
    """Whether a beam search in double precision meets two clusters at the edge of the beam whose scores are tied."""
    query = sp.hstack([row, sp.csr_matrix([[1.0]])]).tocsr().astype(np.float64)
    kept = {0: 1.0}
    layers = len(glob.glob(os.path.join(model, "ranker", "*.model")))
    for layer in range(layers):
        folder = os.path.join(model, "ranker", f"{layer}.model")
        weights = sp.load_npz(os.path.join(folder, "W.npz")).tocsc().astype(np.float64)
        if weights.shape[0] < query.shape[1]:  # no bias
            query = query[:, : weights.shape[0]]
        scores = activation(post, (query @ weights).toarray().ravel())
        if scores is None:
            return False
        parent = sp.load_npz(os.path.join(folder, "C.npz")).tocoo()
        assert parent.shape[0] == weights.shape[1], f"{folder}: C of shape {parent.shape}, W of {weights.shape}"
        found = sorted(((kept[c] * scores[i], i) for i, c in zip(parent.row, parent.col) if c in kept), reverse=True)
        if layer + 1 < layers and len(found) > beam and found[beam - 1][0] - found[beam][0] < TIE:
            return True
        kept = {i: score for score, i in found[:beam]}
    return False


def compare(name, model, x, post, beam, top, mine, theirs):
    (ids, scores), (their_ids, their_scores) = mine, theirs
    assert ids.shape == their_ids.shape, f"{name}: {ids.shape} here, {their_ids.shape} of PECOS"
    gap = np.abs(np.nan_to_num(scores, nan=-1) - np.nan_to_num(their_scores, nan=-1))
    other = ids != their_ids
    tie = other & (gap < TIE)
    wrong = other & ~tie
    suspects = np.flatnonzero(wrong.any(1))
    in_beam = [r for r in suspects if tied_in_the_beam(model, post, int(beam), x[r])]
    different = len(suspects) - len(in_beam)
    largest = np.delete(gap, in_beam, axis=0).max(initial=0)
    print(f"| {name} | {post} | {beam} | {top} | {len(ids)} | {int((~other.any(1)).sum())} | {int((tie.any(1) & ~wrong.any(1)).sum())} "
          f"({int(tie[~wrong.any(1)].sum())}) | {len(in_beam)} | {different} | {largest:.1e} |", flush=True)
    return different


def head():
    print("| model | post-processor | beam | top | rows | equal label for label | equal except for ties (places) | tied in the beam "
          "| different | largest score gap of the others |")
    print("|---|---|---|---|---|---|---|---|---|---|", flush=True)


def from_files(a):
    wrong = 0
    x = sp.load_npz(os.path.join(a.fixture, "X.tst.npz")).tocsr()
    head()
    with tempfile.TemporaryDirectory() as tmp:
        for path in sorted(glob.glob(os.path.join(a.fixture, "pred_*.npz"))):
            beam, top, post = re.fullmatch(r"pred_beam(\d+)_top(\d+)_(.+)\.npz", os.path.basename(path)).groups()
            mine = ours(a, os.path.join(a.fixture, "model"), post, os.path.join(a.fixture, "X.tst.npz"), int(beam), int(top), tmp)
            theirs = of_csr(sp.load_npz(path).tocsr(), int(top))
            wrong += compare("fixture", os.path.join(a.fixture, "model"), x, post, beam, top, mine, theirs)
    return wrong


def from_models(a):
    from pecos.xmc.xlinear.model import XLinearModel

    wrong = 0
    head()
    for pair in a.models:
        model, stem = pair.split("=")
        x, _ = rows.load(stem)
        loaded = XLinearModel.load(model, is_predict_only=True, weight_matrix_type="BINARY_SEARCH_CHUNKED")
        with tempfile.TemporaryDirectory() as tmp:
            for setting in a.settings.split(","):
                beam, top, post = setting.split(":")
                got = loaded.predict(x, beam_size=int(beam), only_topk=int(top), post_processor=post, threads=a.threads)
                theirs = of_csr(got, int(top))
                mine = ours(a, model, post, stem + ".txt", int(beam), int(top), tmp)
                wrong += compare(os.path.basename(os.path.normpath(model)), model, x, post, beam, top, mine, theirs)
    return wrong


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    s = p.add_subparsers(dest="cmd", required=True)
    for name in ("files", "models"):
        q = s.add_parser(name)
        q.add_argument("--xc", default=shutil.which("xc"))
        q.add_argument("--threads", type=int, default=1)
        if name == "files":
            q.add_argument("--fixture", required=True)
        else:
            q.add_argument("--settings", default="10:10:l3-hinge,1:5:l3-hinge,50:20:l3-hinge,10:10:sigmoid,10:10:noop")
            q.add_argument("models", nargs="+")
    a = p.parse_args()
    return int(dict(files=from_files, models=from_models)[a.cmd](a) > 0)


if __name__ == "__main__":
    sys.exit(main())
