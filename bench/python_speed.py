"""CPU time a row of the Python package beside `xc predict` on the same file and PECOS in Python on the same model.

    python bench/python_speed.py --xc target/release/xc --train 4k_train.txt --test 4k_test.txt --work DIR [--pecos PYTHON]

One tree on the training file, ten labels a row, one thread. Times are CPU time of the process, medians of rounds that
take turns. --pecos names an interpreter that has libpecos: it asks the same model, converted.
"""

import argparse
import json
import os
import resource
import statistics
import subprocess
import sys
import time

K = 10


def rows_of(path):
    """The rows of an XC text file as a CSR matrix: counts."""
    import numpy as np
    import scipy.sparse as sp

    with open(path) as file:
        n, features, _ = map(int, file.readline().split())
        indptr, indices, data = [0], [], []
        for line in file:
            entries = line.split(" ")[1:]
            pairs = [entry.split(":") for entry in entries if ":" in entry]
            indices += [int(i) for i, _ in pairs]
            data += [float(v) for _, v in pairs]
            indptr.append(len(indices))
    return sp.csr_matrix((np.float32(data), np.int32(indices), np.int32(indptr)), shape=(n, features))


def timed(work):
    begin = time.process_time()
    work()
    return time.process_time() - begin


def median(values):
    return statistics.median(values)


def of_package(model, X, rounds):
    """Seconds a row: a batch, a row alone as arrays, a row alone as a CSR of one row, and a text's worth of nothing."""
    import xc

    m = xc.load(model)
    n = X.shape[0]
    parts = [(X.indices[a:b].copy(), X.data[a:b].copy()) for a, b in zip(X.indptr[:-1], X.indptr[1:])]
    ones = [X[i] for i in range(n)]
    empty = ones[0][:, :].copy()
    empty.data[:] = 0
    m.predict(X, top_k=K, threads=1)

    def alone():
        for part in parts:
            m.predict_one(part, top_k=K)

    def one_row():
        for one in ones:
            m.predict(one, top_k=K, threads=1)

    figures = {"batch": [], "alone": [], "one-row CSR": []}
    for _ in range(rounds):
        figures["batch"].append(timed(lambda: m.predict(X, top_k=K, threads=1)) / n)
        figures["alone"].append(timed(alone) / n)
        figures["one-row CSR"].append(timed(one_row) / n)
    return {name: median(values) for name, values in figures.items()}


def of_program(program, model, X, work, rounds):
    """Seconds a row of `xc predict` on the rows as npz, which takes next to no reading, less those of one row: start,
    opening, and the writing of nothing."""
    import scipy.sparse as sp

    def cpu(rows):
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        out = os.path.join(work, "answers.txt")
        subprocess.run([program, "predict", "--model", model, "--input", rows, "--output", out, "--threads", "1",
                        "--top-k", str(K), "--quiet"], check=True)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime

    whole, one = os.path.join(work, "rows.npz"), os.path.join(work, "row.npz")
    sp.save_npz(whole, X, compressed=False)
    sp.save_npz(one, X[:1], compressed=False)
    differences = [cpu(whole) - cpu(one) for _ in range(rounds)]
    return {"batch, answers written": median(differences) / (X.shape[0] - 1)}


PECOS = """
import json, statistics, sys, time
import numpy as np, scipy.sparse as sp
from pecos.xmc.xlinear.model import XLinearModel
model, rows, rounds = sys.argv[1], sys.argv[2], int(sys.argv[3])
X = sp.load_npz(rows).astype(np.float32).tocsr()
X.sort_indices()
m = XLinearModel.load(model, is_predict_only=True)
ones = [X[i] for i in range(X.shape[0])]
ask = lambda X: m.predict(X, only_topk=%d, beam_size=10, threads=1)
ask(X)
def timed(work):
    begin = time.process_time()
    work()
    return (time.process_time() - begin) / X.shape[0]
batch = statistics.median(timed(lambda: ask(X)) for _ in range(rounds))
alone = statistics.median(timed(lambda: [ask(one) for one in ones]) for _ in range(max(1, rounds // 3)))
answers = ask(X)
print(json.dumps({"batch": batch, "alone": alone, "labels": [sorted(map(int, answers[i].indices)) for i in range(X.shape[0])]}))
""" % K


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--xc", required=True)
    parser.add_argument("--train", required=True)
    parser.add_argument("--test", required=True)
    parser.add_argument("--work", required=True)
    parser.add_argument("--pecos")
    parser.add_argument("--rounds", type=int, default=9)
    args = parser.parse_args()
    os.makedirs(args.work, exist_ok=True)
    model = os.path.join(args.work, "tree.model")
    if not os.path.exists(model):
        # Rows as they come, so that PECOS can be given the same: its format cannot say that rows are scaled.
        subprocess.run([args.xc, "train", "tree", "--train", args.train, "--trees", "1", "--normalise", "false",
                        "--model", model, "--quiet"], check=True)
    X = rows_of(args.test)
    n = X.shape[0]
    found = {"rows": n, "entries a row": X.nnz / n}
    found["package"] = of_package(model, X, args.rounds)
    found["program"] = of_program(args.xc, model, X, args.work, args.rounds)
    if args.pecos:
        import scipy.sparse as sp
        import xc

        folder, rows = os.path.join(args.work, "pecos"), os.path.join(args.work, "test.npz")
        if not os.path.exists(folder):
            subprocess.run([args.xc, "convert", "--from", "xc", model, "--to", "pecos", folder, "--quiet"], check=True)
        sp.save_npz(rows, X)
        environment = {**os.environ, "OMP_WAIT_POLICY": "passive"}
        said = subprocess.run([args.pecos, "-c", PECOS, folder, rows, str(args.rounds)], check=True, env=environment,
                              capture_output=True, text=True).stdout
        theirs = json.loads(said.splitlines()[-1])
        ours = xc.load(model).predict(X, top_k=K, threads=1)
        same = sum(sorted(ours.ids[a:b].tolist()) == labels
                   for a, b, labels in zip(ours.indptr[:-1], ours.indptr[1:], theirs.pop("labels")))
        found["pecos"] = {**theirs, "rows with the same labels": same}
    json.dump(found, sys.stdout, indent=1)
    print()


if __name__ == "__main__":
    main()
