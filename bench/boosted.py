"""The boosted rule beside LightGBM's trees: the same features, depth, number and rate, on the answers of one model.

    python bench/boosted.py MODEL.fit TRAIN.jsonl TEST.jsonl [--xc XC] [--example target/release/examples/from_files]

MODEL.fit held rows of TRAIN out (--validation-fraction). Features are those of docs/formats/blend.md, of one member. Needs numpy,
scipy and lightgbm.
"""
import argparse
import json
import pathlib
import subprocess
import tempfile
import time

import lightgbm
import numpy as np
import scipy.sparse as sp

DEPTH = 30


def lines(path):
    return [json.loads(line) for line in open(path, encoding="utf-8")]


def array(folder, name, dtype):
    """An array of a model folder."""
    for path in sorted(pathlib.Path(folder).glob("*.safetensors")):
        data = path.read_bytes()
        size = int.from_bytes(data[:8], "little")
        entry = json.loads(data[8 : 8 + size]).get(name)
        if entry:
            first, last = entry["data_offsets"]
            return np.frombuffer(data[8 + size + first : 8 + size + last], dtype)
    raise SystemExit(f"{folder}: no array {name}")


def answers(xc, model, rows, scratch):
    """Ranked labels and scores of each row."""
    (scratch / "rows.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    subprocess.run([xc, "predict", "--model", model, "--input", scratch / "rows.jsonl", "--top-k", str(DEPTH), "--output",
                    scratch / "answers.npz", "--quiet"], check=True)
    matrix = sp.load_npz(scratch / "answers.npz")
    return [(matrix.indices[a:b], matrix.data[a:b]) for a, b in zip(matrix.indptr[:-1], matrix.indptr[1:])]


def features(found, counts):
    """Numbers of each candidate, and where the candidates of each row end."""
    out, ends = [], [0]
    for labels, scores in found:
        p = np.clip(scores.astype(np.float32), 1e-6, 1 - 1e-6)
        rank = np.arange(1, len(labels) + 1, dtype=np.float32)
        n = counts[labels].astype(np.float32)
        out.append(np.stack([np.log(p) - np.log1p(-p), 1 / rank, np.log(rank), np.ones_like(rank), np.log1p(n), n < 10], 1))
        ends.append(ends[-1] + len(labels))
    return np.concatenate(out).astype(np.float32), np.array(ends)


def precision(found, ends, logits, truth, k):
    hits = 0
    for at, (labels, _) in enumerate(found):
        order = np.lexsort((labels, -logits[ends[at] : ends[at + 1]]))[:k]
        hits += len(truth[at].intersection(labels[order].tolist()))
    return 100 * hits / (k * len(found))


def main():
    args = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    args.add_argument("model"), args.add_argument("train"), args.add_argument("test")
    args.add_argument("--xc", default="target/release/xc")
    args.add_argument("--example", default="target/release/examples/from_files")
    args = args.parse_args()
    train, test = lines(args.train), lines(args.test)
    held = [train[at] for at in array(args.model, "training.held_out", "<u4")]
    counts = array(args.model, "training.label_counts", "<u4")
    with tempfile.TemporaryDirectory() as scratch:
        scratch = pathlib.Path(scratch)
        of_held, of_test = (answers(args.xc, args.model, rows, scratch) for rows in (held, test))
        (x, ends), (x_test, ends_test) = features(of_held, counts), features(of_test, counts)
        truth = [set(row["labels"]) for row in test]
        y = np.array([label in row["labels"] for row, (labels, _) in zip(held, of_held) for label in labels.tolist()])
        x.tofile(scratch / "x"), x_test.tofile(scratch / "t"), y.astype(np.uint8).tofile(scratch / "y")
        said = subprocess.run([args.example, str(x.shape[1]), scratch / "x", scratch / "y", scratch / "t", scratch / "o"],
                              check=True, capture_output=True, text=True).stdout.strip()
        ours = np.fromfile(scratch / "o", np.float32)
        begin = time.process_time()
        theirs = lightgbm.LGBMClassifier(
            n_estimators=200, max_depth=4, num_leaves=16, learning_rate=0.05, reg_lambda=1.0, min_child_weight=1.0,
            min_child_samples=1, n_jobs=1, verbose=-1, deterministic=True,
        ).fit(x, y)
        seconds = time.process_time() - begin
        print(f"ours: {said}; LightGBM {lightgbm.__version__}: {seconds:.2f} CPU s, one thread")
        plain = -np.log(np.concatenate([np.arange(1, b - a + 1) for a, b in zip(ends_test[:-1], ends_test[1:])]))
        for name, logits in (("member alone", plain), ("ours", ours), ("LightGBM", theirs.predict(x_test, raw_score=True))):
            print(f"{name:13}", *(f"P@{k} {precision(of_test, ends_test, logits, truth, k):.2f}" for k in (1, 3, 5)))


main()
