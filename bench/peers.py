"""The peer systems, one step in one process of its own: `python peers.py SPEC.json OUT.json`.

Steps: `pecos_train`, `pecos_predict`, `pecos_online` (libpecos), `omikuji_train`, `omikuji_predict` (its command line).
Other scripts call `step(spec)`, which starts the process and adds peak memory and CPU time.
"""
import json
import os
import re
import resource
import subprocess
import sys
import tempfile
import time

import numpy as np

import metrics
import rows

PARABEL = []
BONSAI = ["--cluster.unbalanced", "--cluster.k", "100", "--max_depth", "3"]


def cpu():
    r = resource.getrusage(resource.RUSAGE_SELF)
    return r.ru_utime + r.ru_stime


def rss_bytes():
    with open("/proc/self/status", encoding="ascii") as f:
        return next(int(line.split()[1]) * 1024 for line in f if line.startswith("VmRSS"))


def pecos_train(a):
    from pecos.xmc import Indexer, LabelEmbeddingFactory
    from pecos.xmc.xlinear.model import XLinearModel

    x, y = rows.load(a["train"])
    yc = y.tocsc()
    before, threads = rss_bytes(), a["threads"]
    t0, c0 = time.perf_counter(), cpu()
    z = LabelEmbeddingFactory.create(yc, x, method="pifa", threads=threads)
    chain = Indexer.gen(z, indexer_type="hierarchicalkmeans", threads=threads, seed=a.get("seed", 0),
                        nr_splits=a["nr_splits"], min_codes=a["nr_splits"], max_leaf_size=a.get("max_leaf_size", 100))
    t1 = time.perf_counter()
    c = a.get("C", 1.0)
    model = XLinearModel.train(x, yc, C=chain, threads=threads, threshold=a.get("threshold", 0.1), Cp=c, Cn=c)
    t2, c2 = time.perf_counter(), cpu()
    model.save(a["model"])
    return dict(wall_s=t2 - t0, cluster_s=t1 - t0, cpu_s=c2 - c0, data_rss_bytes=before,
                layers=[[int(m.nr_codes), int(m.nr_labels), int(m.W.nnz)] for m in model.model.model_chain])


def pecos_predict(a):
    from pecos.xmc.xlinear.model import XLinearModel

    x, _ = rows.load(a["test"])
    model = XLinearModel.load(a["model"], is_predict_only=True, weight_matrix_type="BINARY_SEARCH_CHUNKED")
    got = model.predict(x, threads=a["threads"], beam_size=a["beam"], only_topk=a["top_k"])
    np.save(a["top"], metrics.top_of_csr(got, a["top_k"]))
    return {}


def pecos_online(a):
    """Mean milliseconds of a query, asked one at a time."""
    from pecos.xmc.xlinear.model import XLinearModel

    x, _ = rows.load(a["test"])
    model = XLinearModel.load(a["model"], is_predict_only=True, weight_matrix_type="BINARY_SEARCH_CHUNKED")
    queries = [x[i] for i in range(min(a["queries"], x.shape[0]))]
    ask = lambda row: model.predict(row, threads=1, beam_size=a["beam"], only_topk=a["top_k"])
    for row in queries[:50]:
        ask(row)
    begin = time.perf_counter()
    for row in queries:
        ask(row)
    return dict(mean_ms=(time.perf_counter() - begin) * 1e3 / len(queries))


def took(text, label):
    """Seconds that omikuji's log gives for a step."""
    found = re.findall(label + r"[^;\n]*; it took ([0-9.]+)\s*(ms|s|m)?", text)
    return float(found[-1][0]) * {"ms": 1e-3, "m": 60}.get(found[-1][1], 1) if found else None


def command(argv):
    """Runs a program -> (its output, wall s, CPU s, peak bytes)."""
    t = time.perf_counter()
    p = subprocess.Popen(argv, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    text = p.stdout.read().decode("utf-8", "replace")
    _, status, use = os.wait4(p.pid, 0)
    if status:
        raise RuntimeError(f"{' '.join(argv)}: status {status}: {text[-1500:]}")
    return text, time.perf_counter() - t, use.ru_utime + use.ru_stime, use.ru_maxrss * 1024


def omikuji_train(a):
    flags = (BONSAI if a["kind"] == "bonsai" else PARABEL) + ["--n_trees", str(a["trees"])]
    if "C" in a:
        flags += ["--linear.c", str(a["C"])]
    text, wall, c, peak = command([a["omikuji"], "train", a["train"] + ".txt", "--model_path", a["model"],
                                   "--n_threads", str(a["threads"])] + flags)
    return dict(wall_s=took(text, "Model training complete"), process_s=wall, cpu_s=c, peak_rss_bytes=peak,
                load_s=took(text, r"Loaded \d+ examples"), save_s=took(text, "Model saved"))


def omikuji_predict(a):
    out = a["top"] + ".txt"
    text, _, _, _ = command([a["omikuji"], "test", a["model"], a["test"] + ".txt", "--n_threads", str(a["threads"]),
                             "--beam_size", str(a["beam"]), "--k_top", str(a["top_k"]), "--out_path", out])
    ids, _ = metrics.read_lines(out, a["top_k"])
    os.remove(out)
    np.save(a["top"], ids)
    return dict(predict_s=took(text, r"Done testing on \d+ examples"))


STEPS = dict(pecos_train=pecos_train, pecos_predict=pecos_predict, pecos_online=pecos_online, omikuji_train=omikuji_train,
             omikuji_predict=omikuji_predict)


def step(spec):
    """One step in a process of its own -> its record, with the peak memory of that process."""
    env = dict(os.environ, OMP_WAIT_POLICY="passive", OMP_NUM_THREADS=str(spec["threads"]), OPENBLAS_NUM_THREADS="1",
               MKL_NUM_THREADS="1", TOKENIZERS_PARALLELISM="false")
    with tempfile.TemporaryDirectory() as tmp:
        ask, answer = os.path.join(tmp, "ask"), os.path.join(tmp, "answer")
        with open(ask, "w", encoding="utf-8") as f:
            json.dump(spec, f)
        p = subprocess.Popen([sys.executable, os.path.abspath(__file__), ask, answer], env=env,
                             stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        text = p.stdout.read().decode("utf-8", "replace")
        _, status, use = os.wait4(p.pid, 0)
        if status or not os.path.exists(answer):
            raise RuntimeError(f"{spec['step']}: status {status}: {text[-2000:]}")
        with open(answer, encoding="utf-8") as f:
            record = json.load(f)
    record.setdefault("peak_rss_bytes", use.ru_maxrss * 1024)
    return record


if __name__ == "__main__":
    with open(sys.argv[1], encoding="utf-8") as f:
        asked = json.load(f)
    told = STEPS[asked["step"]](asked)
    with open(sys.argv[2], "w", encoding="utf-8") as f:
        json.dump(told, f)
