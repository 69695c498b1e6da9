"""The peers of `ann.py`, one in a process of its own: `ann_peers.py NAME FOLDER METRIC OUT THREADS K...`.

Builds on THREADS threads and asks at rising efforts until a recall of ENOUGH is reached, for every K; writes a line of JSON for
the build and one for each K to OUT. Two threads, and one query at a time, are measured at the settings next to a target.
Cosine is asked of vectors of length 1: by inner products of hnswlib, faiss-hnsw, usearch, pecos and ScaNN, by distances of
SVS and faiss-ivf, whose graphs and lists are made for them.
"""
import importlib.metadata
import json
import os
import resource
import sys
import tempfile
import time

TARGETS = (0.9, 0.95, 0.99)
ENOUGH = 0.995
EFFORTS = (1, 2, 3, 4, 6, 8, 10, 16, 24, 32, 48, 64, 96, 128, 192, 256, 384, 512, 768, 1024, 1536, 2048, 3072, 4096)
RUNS = 5


def saved_bytes(save):
    """Bytes of what `save(folder)` leaves there."""
    with tempfile.TemporaryDirectory() as folder:
        save(folder)
        return sum(os.path.getsize(os.path.join(at, name)) for at, _, names in os.walk(folder) for name in names)


class Graph:
    """What the peers share: `set` fixes the answers, effort and threads of the calls to follow, `ask` answers rows of
    queries, `one` a single one."""

    package = None
    bytes_from = "size of the saved index"

    def efforts(self, k):
        return sorted({k} | {e for e in EFFORTS if e >= k})

    def one(self, row):
        return self.ask(row)


class Hnswlib(Graph):
    package = "hnswlib"
    bytes_from = "size of the saved index, as index_file_size says"

    def __init__(self, base, metric, threads):
        import hnswlib

        self.index = hnswlib.Index(space="l2" if metric == "l2" else "ip", dim=base.shape[1])
        self.index.init_index(max_elements=len(base), ef_construction=200, M=16, random_seed=1)
        self.index.add_items(base, num_threads=threads)

    def set(self, k, effort, threads):
        self.index.set_ef(effort)
        self.k, self.threads = k, threads

    def ask(self, query):
        return self.index.knn_query(query, k=self.k, num_threads=self.threads)[0]

    def n_bytes(self):
        return self.index.index_file_size()


class Pecos(Graph):
    package = "libpecos"

    def __init__(self, base, metric, threads):
        from pecos.ann.hnsw import HNSW

        self.kind, metric = HNSW, "l2" if metric == "l2" else "ip"
        self.index = HNSW.train(base, train_params=HNSW.TrainParams(M=16, efC=200, threads=threads, metric_type=metric))
        self.searchers = {threads: self.index.searchers_create(threads) for threads in (1, 2)}

    def set(self, k, effort, threads):
        self.params, self.threads = self.kind.PredParams(efS=effort, topk=k, threads=threads), threads

    def ask(self, query):
        return self.index.predict(query, pred_params=self.params, searchers=self.searchers[self.threads], ret_csr=False)[0]

    def n_bytes(self):
        return saved_bytes(lambda folder: self.index.save(os.path.join(folder, "index")))


class Svs(Graph):
    package = "scalable-vs"

    def __init__(self, base, metric, threads):
        import svs

        alpha, distance = (0.95, svs.DistanceType.MIP) if metric == "ip" else (1.2, svs.DistanceType.L2)
        params = svs.VamanaBuildParameters(alpha=alpha, graph_max_degree=32, window_size=200)
        self.index = svs.Vamana.build(params, base, distance, num_threads=threads)

    def set(self, k, effort, threads):
        self.k, self.index.num_threads, self.index.search_window_size = k, threads, effort

    def ask(self, query):
        return self.index.search(query, self.k)[0]

    def n_bytes(self):
        return saved_bytes(lambda folder: self.index.save(*(os.path.join(folder, part) for part in ("config", "graph", "data"))))


class Usearch(Graph):
    package = "usearch"
    bytes_from = "size of the saved index, as serialized_length says"

    def __init__(self, base, metric, threads):
        import numpy as np
        import usearch.index

        of = "l2sq" if metric == "l2" else "ip"
        self.index = usearch.index.Index(ndim=base.shape[1], metric=of, dtype="f32", connectivity=16, expansion_add=200)
        self.index.add(np.arange(len(base)), base, threads=threads)

    def set(self, k, effort, threads):
        self.k, self.threads, self.index.expansion_search = k, threads, effort

    def ask(self, query):
        return self.index.search(query, self.k, threads=self.threads).keys

    def one(self, row):
        return self.index.search(row[0], self.k, threads=1).keys

    def n_bytes(self):
        return self.index.serialized_length


class FaissHnsw(Graph):
    package = "faiss-cpu"
    euclidean = ("l2",)

    def __init__(self, base, metric, threads):
        import faiss

        self.faiss, of = faiss, faiss.METRIC_L2 if metric in self.euclidean else faiss.METRIC_INNER_PRODUCT
        faiss.omp_set_num_threads(threads)
        self.index = faiss.index_factory(base.shape[1], self.kind(len(base)), of)
        self.prepare()
        self.index.train(base)
        self.index.add(base)

    def kind(self, _n):
        return "HNSW16"

    def prepare(self):
        self.index.hnsw.efConstruction = 200

    def set(self, k, effort, threads):
        self.k, self.index.hnsw.efSearch = k, effort
        self.faiss.omp_set_num_threads(threads)

    def ask(self, query):
        return self.index.search(query, self.k)[1]

    def n_bytes(self):
        counted = []
        writer = self.faiss.PyCallbackIOWriter(lambda part: counted.append(len(part)))
        self.faiss.write_index(self.index, writer)
        del writer
        return sum(counted)


class FaissIvf(FaissHnsw):
    euclidean = ("l2", "cosine")

    def kind(self, n):
        import math

        self.lists = 2 ** round(math.log2(3.2 * n**0.5))
        return f"IVF{self.lists},Flat"

    def prepare(self):
        pass

    def efforts(self, k):
        return [e for e in EFFORTS if e >= 8]

    def set(self, k, effort, threads):
        self.k, self.index.nprobe = k, min(self.lists, max(1, effort // 8))
        self.faiss.omp_set_num_threads(threads)


class Scann(Graph):
    package = "scann"

    def __init__(self, base, metric, threads):
        import scann

        of = "squared_l2" if metric == "l2" else "dot_product"
        builder = scann.scann_ops_pybind.builder(base, 10, of).set_n_training_threads(threads)
        self.leaves = int(len(base) ** 0.5)
        tree = builder.tree(num_leaves=self.leaves, num_leaves_to_search=30, training_sample_size=len(base))
        self.index = tree.score_ah(2, anisotropic_quantization_threshold=0.2).reorder(100).build()
        self.index.set_num_threads(2)

    def efforts(self, k):
        return [e for e in EFFORTS if e >= 10]

    def set(self, k, effort, threads):
        leaves = min(self.leaves, max(1, effort // 6))
        self.how = {"final_num_neighbors": k, "leaves_to_search": leaves, "pre_reorder_num_neighbors": max(2 * k, effort)}
        self.batch = self.index.search_batched if threads == 1 else self.index.search_batched_parallel

    def ask(self, query):
        return self.batch(query, **self.how)[0]

    def one(self, row):
        return self.index.search(row[0], **self.how)[0]

    def n_bytes(self):
        return saved_bytes(self.index.serialize)


PEERS = {"hnswlib": Hnswlib, "pecos": Pecos, "svs": Svs, "faiss-ivf": FaissIvf, "faiss-hnsw": FaissHnsw, "usearch": Usearch,
         "scann": Scann}


def around(curve, target):
    """The two neighbouring points of a curve that a recall is between, or the first one twice; None: not reached."""
    if curve and curve[0]["recall"] >= target:
        return curve[0], curve[0]
    return next(((low, high) for low, high in zip(curve, curve[1:]) if low["recall"] <= target <= high["recall"]), None)


def at(curve, target, key):
    """A figure at a recall, between the two nearest settings; None if the recall is not reached."""
    pair = around(curve, target)
    if not pair or pair[0].get(key) is None or pair[1].get(key) is None:
        return None
    low, high = pair
    part = (target - low["recall"]) / (high["recall"] - low["recall"]) if high["recall"] > low["recall"] else 0
    return low[key] * (high[key] / low[key]) ** part


def batch_qps(peer, query):
    """The fastest of some runs, and the answers."""
    best, spent = float("inf"), 0
    for _ in range(RUNS):
        begin = time.perf_counter()
        found = peer.ask(query)
        took = time.perf_counter() - begin
        best, spent = min(best, took), spent + took
        if spent > 30:
            break
    return len(query) / best, found


def one_by_one(peer, query, most=2000):
    """Microseconds of a call with one query: half of the calls take less than the first figure, 99 % less than the second."""
    import numpy as np

    rows, taken = [query[i : i + 1] for i in range(min(most, len(query)))], []
    for row in rows[:50]:
        peer.one(row)
    for row in rows:
        begin = time.perf_counter_ns()
        peer.one(row)
        taken.append(time.perf_counter_ns() - begin)
    return [float(x) / 1000 for x in np.percentile(taken, (50, 99))]


def curve_of(peer, base, query, truth, metric, k):
    import ann_sets

    curve = []
    for effort in peer.efforts(k):
        peer.set(k, effort, 1)
        try:
            qps, found = batch_qps(peer, query)
        except RuntimeError:  # hnswlib, where it finds fewer than k
            continue
        curve.append({"effort": effort, "recall": ann_sets.recall(found, truth[:, :k], base, query, metric), "qps": qps})
        if curve[-1]["recall"] >= ENOUGH:
            break
    for point in {id(point): point for target in TARGETS for point in around(curve, target) or ()}.values():
        peer.set(k, point["effort"], 2)
        point["qps2"] = batch_qps(peer, query)[0]
        peer.set(k, point["effort"], 1)
        point["p50_us"], point["p99_us"] = one_by_one(peer, query)
    return curve


def main(name, folder, metric, out, threads, ks):
    import ann_sets

    base, query, truth = (ann_sets.load(folder, part) for part in ("base", "query", "truth"))
    if metric == "cosine":
        base, query = ann_sets.unit(base), ann_sets.unit(query)
    begin = time.perf_counter()
    peer = PEERS[name](base, metric, threads)
    build_s = time.perf_counter() - begin
    peer.set(1, 1, 1)
    told = {"build_s": build_s, "bytes_per_vector": peer.n_bytes() / len(base), "bytes_from": peer.bytes_from,
            "empty_us": one_by_one(peer, query)[0], "version": importlib.metadata.version(peer.package)}
    with open(out, "w", encoding="utf-8") as f:
        print(json.dumps(told), file=f, flush=True)
        for k in ks:
            curve = curve_of(peer, base, query, truth, metric, k)
            peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
            print(json.dumps({"k": k, "curve": curve, "peak_rss_bytes": peak}), file=f, flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:5], int(sys.argv[5]), [int(k) for k in sys.argv[6:]])
