#!/usr/bin/env python3
"""Features written once, so that every system is fed the same rows.

    prepare.py text   --train T.jsonl --test S.jsonl --out DIR [--fields title,text] [--min-df 2] [--xc BIN]
    prepare.py counts --train T.txt --test S.txt --out DIR
    prepare.py rows   --all ROWS.txt --test-rows NUMBERS --out DIR
    prepare.py split  --data DIR

`text` takes JSON lines (text fields, and `labels`: integers or names); `counts` takes XC text whose
values are term counts; `rows` XC text whose rows it scales to length 1, without any other weights, and takes apart: NUMBERS
has the number of a test row (from 0) on each line; `split` adds the tuning split to a folder that already has `train.txt`.
All leave in DIR: `train.txt`, `test.txt` (XC text with header), `fit.txt`, `dev.txt` (the training
rows, nine in ten and one in ten, by a hash of the row number), and beside each file `*.X.npz`, `*.Y.npz`.
Weighting: (1 + ln tf) * (ln((1 + N) / (1 + df)) + 1), rows of length 1; words are lower-cased runs
of at least two letters, digits or underscores; df counted on the training rows.

With `--xc BIN` the features come from `xc convert` and need no scikit-learn.
DIR appears when it is whole: the work happens in a folder beside it.
"""
import argparse
import json
import os
import shutil
import subprocess
import sys

import numpy as np
import scipy.sparse as sp

import rows


def weigh(counts, idf):
    x = counts.tocsr().astype(np.float64)
    x.data = (1 + np.log(x.data)) * idf[x.indices]
    return scaled(x)


def scaled(x):
    """Rows of length 1, values as they are written."""
    x = x.tocsr().astype(np.float64)
    norm = np.sqrt(np.asarray(x.multiply(x).sum(1)).ravel())
    norm[norm == 0] = 1
    x.data /= np.repeat(norm, np.diff(x.indptr))
    x = x.astype(np.float32)
    x.data = rows.six_digits(x.data)
    x.sort_indices()
    return x


def idf_of(counts):
    df = np.bincount(counts.indices, minlength=counts.shape[1])
    return np.log((1 + counts.shape[0]) / (1 + df)) + 1


def documents(path, fields, labels_out):
    """The texts of a JSON-lines file one by one; its label lists are appended to `labels_out`."""
    with open(path, encoding="utf-8") as f:
        for line in f:
            row = json.loads(line)
            labels_out.append(row["labels"])
            yield " ".join(row.get(k) or "" for k in fields)


def label_matrix(lists, ids, width):
    cols = [sorted({ids(v) for v in row}) for row in lists]
    ptr = np.concatenate([[0], np.cumsum([len(c) for c in cols])])
    flat = np.array([v for c in cols for v in c], np.int32)
    return sp.csr_matrix((np.ones(len(flat), np.float32), flat, ptr), shape=(len(cols), width))


def put(folder, name, x, y):
    stem = os.path.join(folder, name)
    rows.write_text(f"{stem}.txt", x, y)
    rows.save_npz(stem, x, y)


def report(folder, train, test):
    x, y = train
    print(json.dumps(dict(
        data=os.path.basename(folder).removeprefix(".making-"), train_rows=x.shape[0], test_rows=test[0].shape[0], features=x.shape[1],
        labels=y.shape[1], labels_seen=int((np.bincount(y.indices, minlength=y.shape[1]) > 0).sum()),
        features_per_row=round(x.nnz / x.shape[0], 1), labels_per_row=round(y.nnz / y.shape[0], 2),
        rows_without_features=int((np.diff(x.indptr) == 0).sum()))))


def put_all(folder, train, test):
    put(folder, "train", *train)
    put(folder, "test", *test)
    put_split(folder, *train)
    report(folder, train, test)


def put_split(folder, x, y):
    dev = rows.held_out(x.shape[0])
    put(folder, "fit", x[~dev], y[~dev])
    put(folder, "dev", x[dev], y[dev])


def from_text(a, folder):
    from sklearn.feature_extraction.text import CountVectorizer

    fields = a.fields.split(",")
    count = CountVectorizer(lowercase=True, token_pattern=r"(?u)\b\w\w+\b", min_df=a.min_df, dtype=np.int32)
    train_labels, test_labels = [], []
    xt = count.fit_transform(documents(a.train, fields, train_labels))
    xs = count.transform(documents(a.test, fields, test_labels))
    with open(os.path.join(folder, "vocabulary.txt"), "w", encoding="utf-8") as f:
        f.writelines(w + "\n" for w in count.get_feature_names_out())
    every = [v for lists in (train_labels, test_labels) for row in lists for v in row]
    if all(isinstance(v, int) for v in every):
        width = max(every) + 1
        if a.labels:
            with open(a.labels, encoding="utf-8") as f:
                width = max(width, sum(1 for _ in f))
        ids = int
    else:  # names: those of the training rows first, then those that only the test rows have
        seen = sorted({v for row in train_labels for v in row})
        late = sorted({v for row in test_labels for v in row} - set(seen))
        names = seen + late
        table = {v: i for i, v in enumerate(names)}
        width, ids = len(names), table.__getitem__
        with open(os.path.join(folder, "labels.txt"), "w", encoding="utf-8") as f:
            f.writelines(str(v) + "\n" for v in names)
    idf = idf_of(xt)
    put_all(folder, (weigh(xt, idf), label_matrix(train_labels, ids, width)),
            (weigh(xs, idf), label_matrix(test_labels, ids, width)))


def from_text_with_xc(a, folder):
    """The same by `xc convert`: a pipeline fitted to the training rows, applied to both files."""
    stem = lambda name: os.path.join(folder, name)
    common = ["--to", "xc-text", "--text-fields", a.fields, "--quiet"]
    pipeline = stem("pipeline")
    convert = [a.xc, "convert", "--from", "jsonl"]
    subprocess.run([*convert, a.train, stem("train.txt"), *common, "--text.min-df", str(a.min_df), "--save-pipeline", pipeline], check=True)
    subprocess.run([*convert, a.test, stem("test.txt"), *common, "--pipeline", pipeline], check=True)
    train, test = rows.load(stem("train")), rows.load(stem("test"))
    put_split(folder, *train)
    report(folder, train, test)


def from_counts(a, folder):
    (xt, yt), (xs, ys) = rows.read_text(a.train), rows.read_text(a.test)
    idf = idf_of(xt)
    put_all(folder, (weigh(xt, idf), yt), (weigh(xs, idf), ys))


def from_rows(a, folder):
    x, y = rows.read_text(a.all)
    is_test = np.zeros(x.shape[0], bool)
    is_test[np.loadtxt(a.test_rows, dtype=np.int64)] = True
    x = scaled(x)
    put_all(folder, (x[~is_test], y[~is_test]), (x[is_test], y[is_test]))


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    s = p.add_subparsers(dest="cmd", required=True)
    for name in ("text", "counts"):
        q = s.add_parser(name)
        for k in ("train", "test", "out"):
            q.add_argument("--" + k, required=True)
        if name == "text":
            q.add_argument("--fields", default="text")
            q.add_argument("--labels", help="file with one label a line: fixes the number of labels")
            q.add_argument("--min-df", type=int, default=2)
            q.add_argument("--xc", help="the xc program; features are then made by `xc convert`")
    q = s.add_parser("rows")
    for k in ("all", "test-rows", "out"):
        q.add_argument("--" + k, required=True)
    s.add_parser("split").add_argument("--data", required=True)
    a = p.parse_args()
    if a.cmd == "split":
        put_split(a.data, *rows.load(os.path.join(a.data, "train")))
        return
    out = os.path.normpath(a.out)
    if os.path.exists(out):
        sys.exit(f"{out}: is there already")
    work = os.path.join(os.path.dirname(out) or ".", ".making-" + os.path.basename(out))
    shutil.rmtree(work, ignore_errors=True)
    os.makedirs(work)
    if a.cmd == "counts":
        from_counts(a, work)
    elif a.cmd == "rows":
        from_rows(a, work)
    elif a.xc:
        from_text_with_xc(a, work)
    else:
        from_text(a, work)
    os.rename(work, out)


if __name__ == "__main__":
    main()
