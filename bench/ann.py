#!/usr/bin/env python3
"""Recall and queries a second of `xc index` beside other libraries, in one run.

    ann.py --xc XC --work DIR [--sets l2 ip] [--rows 100000] [--peers hnswlib svs faiss-ivf faiss-hnsw usearch scann]
           [--python NAME=PYTHON ...]

Makes clustered vectors of 128 values, and inner-product ones of unequal lengths, builds every index on two threads,
and asks one thread for the ten best of 2,000 queries, all in one call. Says for recalls of 0.90, 0.95 and 0.99 the
queries a second: of xc at a width that was fitted with 2,000 other queries, of the peers between the two nearest of
their settings, which favours them. xc is measured before and behind the peers. Needs numpy; a peer that is not
installed is left out, and said. --python runs a peer under another interpreter.
"""

import argparse
import json
import os
import subprocess
import sys
import time

TARGETS = (0.9, 0.95, 0.99)
EFFORTS = (10, 16, 24, 32, 48, 64, 96, 128, 192, 256, 384, 512, 768, 1024)
K = 10


def make(folder, metric, n, columns=128, n_queries=2000):
    """Gaussian clusters of unequal sizes and widths around centres near a subspace of 32 dimensions."""
    import numpy as np

    if os.path.exists(os.path.join(folder, "truth.npy")):
        return
    os.makedirs(folder, exist_ok=True)
    random = np.random.default_rng(7)
    n_centres = max(1, n // 100)
    centres = random.normal(size=(n_centres, 32)) @ random.normal(size=(32, columns)) / 32**0.5
    spread = np.exp(random.normal(-0.3, 0.4, size=n_centres))
    share = random.pareto(1.5, size=n_centres) + 0.2
    share /= share.sum()

    def draw(m):
        of = random.choice(n_centres, size=m, p=share)
        return centres[of] + random.normal(size=(m, columns)) * spread[of][:, None]

    base, query, fit = draw(n), draw(n_queries), draw(n_queries)
    if metric == "ip":
        unit = lambda rows: rows / np.linalg.norm(rows, axis=1, keepdims=True)
        base = unit(base) * np.exp(random.normal(0, 0.4, size=(n, 1)))
        query, fit = unit(query), unit(fit)
    base, query, fit = (np.ascontiguousarray(rows, np.float32) for rows in (base, query, fit))
    squares = (base.astype(np.float64) ** 2).sum(1)
    truth = np.empty((n_queries, K), np.int64)
    for at in range(0, n_queries, 200):
        scores = query[at : at + 200].astype(np.float64) @ base.T.astype(np.float64)
        scores = scores if metric == "ip" else 2 * scores - squares
        truth[at : at + 200] = np.argsort(-scores, axis=1, kind="stable")[:, :K]
    for name, rows in (("base", base), ("query", query), ("fit", fit), ("truth", truth)):
        np.save(os.path.join(folder, name + ".npy"), rows)


def hnswlib_(base, metric):
    import hnswlib

    index = hnswlib.Index(space=metric, dim=base.shape[1])
    index.init_index(max_elements=len(base), ef_construction=200, M=16, random_seed=1)
    index.add_items(base, num_threads=2)

    def ask(query, effort):
        index.set_ef(effort)
        return index.knn_query(query, k=K, num_threads=1)[0]

    return ask


def svs_(base, metric):
    import svs

    alpha = 1.2 if metric == "l2" else 0.95
    params = svs.VamanaBuildParameters(alpha=alpha, graph_max_degree=32, window_size=200)
    distance = svs.DistanceType.L2 if metric == "l2" else svs.DistanceType.MIP
    index = svs.Vamana.build(params, base, distance, num_threads=2)
    index.num_threads = 1

    def ask(query, effort):
        index.search_window_size = effort
        return index.search(query, K)[0]

    return ask


def faiss_(kind):
    def build(base, metric):
        import faiss

        of = faiss.METRIC_L2 if metric == "l2" else faiss.METRIC_INNER_PRODUCT
        faiss.omp_set_num_threads(2)
        index = faiss.index_factory(base.shape[1], kind, of)
        if kind.startswith("HNSW"):
            index.hnsw.efConstruction = 200
        index.train(base)
        index.add(base)

        def ask(query, effort):
            faiss.omp_set_num_threads(1)
            if kind.startswith("HNSW"):
                index.hnsw.efSearch = effort
            else:
                index.nprobe = max(1, effort // 8)
            return index.search(query, K)[1]

        return ask

    return build


def usearch_(base, metric):
    import numpy as np
    import usearch.index

    of = "l2sq" if metric == "l2" else "ip"
    index = usearch.index.Index(ndim=base.shape[1], metric=of, dtype="f32", connectivity=16, expansion_add=200)
    index.add(np.arange(len(base)), base, threads=2)

    def ask(query, effort):
        index.expansion_search = effort
        return index.search(query, K, threads=1).keys

    return ask


def scann_(base, metric):
    import scann

    of = "squared_l2" if metric == "l2" else "dot_product"
    builder = scann.scann_ops_pybind.builder(base, K, of).set_n_training_threads(2)
    tree = builder.tree(num_leaves=int(len(base) ** 0.5), num_leaves_to_search=30, training_sample_size=len(base))
    index = tree.score_ah(2, anisotropic_quantization_threshold=0.2).reorder(100).build()

    def ask(query, effort):
        return index.search_batched(query, K, leaves_to_search=max(1, effort // 6), pre_reorder_num_neighbors=max(20, effort))[0]

    return ask


PEERS = {"hnswlib": hnswlib_, "svs": svs_, "faiss-ivf": faiss_("IVF1024,Flat"), "faiss-hnsw": faiss_("HNSW16"),
         "usearch": usearch_, "scann": scann_}


def measure_peer(name, folder, metric):
    """In a process of its own: the line of a peer."""
    import numpy as np

    base, query, truth = (np.load(os.path.join(folder, part + ".npy")) for part in ("base", "query", "truth"))
    begin = time.time()
    ask = PEERS[name](base, metric)
    build_s, curve = time.time() - begin, []
    for effort in EFFORTS:
        seconds = []
        for _ in range(3):
            begin = time.time()
            found = ask(query, effort)
            seconds.append(time.time() - begin)
        hits = sum(len(set(map(int, a)) & set(map(int, b))) for a, b in zip(found, truth))
        curve.append((hits / truth.size, len(query) / min(seconds)))
        if curve[-1][0] > 0.999:
            break
    print(json.dumps({"name": name, "build_s": build_s, "qps": {str(t): at(curve, t) for t in TARGETS}}))


def at(curve, target):
    """Queries a second at a recall, between the two nearest settings."""
    for (low, fast), (high, slow) in zip(curve, curve[1:]):
        if low <= target <= high:
            part = (target - low) / (high - low) if high > low else 0
            return fast * (slow / fast) ** part
    return curve[0][1] if curve and curve[0][0] >= target else None


def measure_xc(a, folder, metric):
    run = lambda *options: json.loads(subprocess.run([a.xc, "index", *options, "--json", "--quiet"], check=True,
                                                     capture_output=True, text=True).stdout)
    part = lambda name: os.path.join(folder, name)
    built = run("build", "--vectors", part("base.npy"), "--metric", metric, "--output", part("xc.index"), "--threads", "2")
    line = {"name": "xc", "build_s": built["build_s"], "qps": {}, "recall": {}}
    evaluate = ("evaluate", "--index", part("xc.index"), "--top-k", str(K), "--threads", "1", "--in-memory")
    for target in TARGETS:
        fitted = run(*evaluate, "--queries", part("fit.npy"), "--target-recall", str(target), "--runs", "1")
        width = str(fitted["search_width"])
        got = run(*evaluate, "--queries", part("query.npy"), "--search-width", width, "--runs", "8")
        line["qps"][str(target)], line["recall"][str(target)] = got["qps"], got["recall"]
    return line


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--xc")
    parser.add_argument("--work", required=True)
    parser.add_argument("--sets", nargs="+", default=["l2", "ip"])
    parser.add_argument("--rows", type=int, default=100_000)
    parser.add_argument("--peers", nargs="*", default=list(PEERS), choices=list(PEERS))
    parser.add_argument("--python", nargs="*", default=[], metavar="NAME=PYTHON")
    parser.add_argument("--one", help=argparse.SUPPRESS)
    a = parser.parse_args()
    pythons = dict(pair.split("=", 1) for pair in a.python)
    for metric in a.sets:
        folder = os.path.join(a.work, f"{metric}-{a.rows}")
        if a.one:
            return measure_peer(a.one, folder, metric)
        make(folder, metric, a.rows)
        lines = [measure_xc(a, folder, metric)]
        for name in a.peers:
            command = [pythons.get(name, sys.executable), __file__, "--work", a.work, "--sets", metric, "--rows",
                       str(a.rows), "--one", name]
            done = subprocess.run(command, capture_output=True, text=True)
            if done.returncode:
                print(f"{metric}: {name} left out: {done.stderr.strip().splitlines()[-1:]}", flush=True)
            else:
                lines.append(json.loads(done.stdout.strip().splitlines()[-1]))
        lines.append(measure_xc(a, folder, metric))
        print(f"\n| {metric}, {a.rows} | build, s | " + " | ".join(f"{t:.2f}" for t in TARGETS) + " |\n|---|---|---|---|---|")
        for line in lines:
            cells = [f"{line['qps'][str(t)]:,.0f}" if line["qps"][str(t)] else "not reached" for t in TARGETS]
            print(f"| {line['name']} | {line['build_s']:.1f} | " + " | ".join(cells) + " |", flush=True)
        print("recall of xc:", lines[0]["recall"], flush=True)


if __name__ == "__main__":
    main()
