"""What the Python package makes of arrays, into the folder in which it runs: compared between two wheels by compare.py."""

import json

import numpy as np
import xc

rng = np.random.default_rng(5)
vectors = rng.standard_normal((120, 12))
labels = [[int(row[0] > 0), 2 + int(row[1] > 0)] for row in vectors]
texts = [json.loads(line)["text"] for line in open("d/train.jsonl")][:120]
given = {"float32": vectors.astype("f4"), "fortran": np.asfortranarray(vectors), "texts": texts}
for kind, options in (("tree", {"trees": 1}), ("dense", {"epochs": 2, "network_widths": [8]}), ("mach", {"epochs": 2})):
    for name, X in given.items():
        if name == "texts" and kind == "mach":
            continue
        trained = xc.train(kind, X, labels, model=f"{kind}-{name}", threads=1, progress=False, **options)
        ranked = trained.model.predict(X, top_k=3)
        np.savez(f"{kind}-{name}.npz", indptr=ranked.indptr, ids=ranked.ids, scores=ranked.scores)
        print(kind, name, json.dumps(xc.evaluate(labels, ranked), sort_keys=True, default=float))
index = xc.index(given["float32"], metric="l2")
print(index.search(given["float32"][:5], 3))
