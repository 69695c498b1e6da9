"""Writes sklearn.json: rows of scikit-learn's vectorizers that our pipelines must reproduce value by value.

Run once with scikit-learn 1.9.1: python make.py. The result is frozen; change it only together with a reason.
"""
import json
import os
from collections import Counter

from sklearn import __version__
from sklearn.feature_extraction.text import CountVectorizer, HashingVectorizer, TfidfVectorizer
from sklearn.utils import murmurhash3_32

# No decomposed accents and no capital sigma: there we differ on purpose.
TEXTS = [
    "",
    " \t\n",
    "?! ... ---",
    "a",
    "I",
    "The cat sat on the mat; the other cat did not.",
    "the THE The tHe",
    "On the rules of the Transport Committee (Article 83) of 15-09-1958",
    "snake_case and kebab-case, foo.bar(), x86_64 0x7f 3.14 1,000",
    "Größe ÉTÉ naïve façade Łódź ÅNGSTRÖM Istanbul",
    "дом Дом ДОМ в лесу",
    "中文 分词 不 简单 中文",
    "emoji 😀😀 between 😀words😀 and 👩‍👩‍👧 families",
    "tabs\tand\nnew lines\r\n\r\nand  double  blanks   and\u00a0hard ones",
    "\ufb01ne \u2167 \u00bd x\u00b2 \uff21\uff22\uff23",
    "aa aa aa bb bb cc",
    "z" * 300 + " end",
    "The committee shall consist of experts on transport matters designated by the governments.",
    "The experts of the committee met; the rules of transport were designated.",
    "one two three four five six seven eight nine ten eleven twelve",
]

HASHING = [
    dict(),
    dict(n_features=16),
    dict(n_features=1000, alternate_sign=False, norm="l1", ngram_range=[1, 2]),
    dict(n_features=1 << 18, norm=None, ngram_range=[2, 3], lowercase=False),
    dict(n_features=4096, analyzer="char", ngram_range=[1, 3], norm=None),
    dict(n_features=500, analyzer="char_wb", ngram_range=[2, 5], norm="l2", strip_accents="unicode"),
    dict(n_features=4096, analyzer="char_wb", ngram_range=[3, 3], alternate_sign=False, norm=None),
]
TFIDF = [
    dict(sublinear_tf=True),
    dict(sublinear_tf=True, ngram_range=[1, 2], min_df=2, max_df=0.8),
    dict(smooth_idf=False, norm="l1", strip_accents="unicode"),
    dict(binary=True, analyzer="char_wb", ngram_range=[2, 3], min_df=0.1),
    dict(use_idf=False, analyzer="char", ngram_range=[3, 3], min_df=3, norm=None),
]


def rows(matrix):
    matrix = matrix.tocsr()
    matrix.eliminate_zeros()
    matrix.sort_indices()
    return [
        [[int(i), float(v)] for i, v in zip(matrix[r].indices, matrix[r].data)] for r in range(matrix.shape[0])
    ]


# Vocabularies of the most frequent terms, shared slots for all others, everything folded by hash. Kinds of terms as
# (analyzer, n, size of the vocabulary).
FOLDED = [
    dict(blocks=[["word", 1, 20], ["word", 2, 5], ["char_wb", 3, 30]], oov=50, fold=40, seed=0, sign=False),
    dict(blocks=[["word", 1, 9], ["char_wb", 3, 15]], oov=7, fold=1000, seed=11, sign=True),
    dict(blocks=[["char_wb", 3, 0], ["word", 1, 0]], oov=300, fold=64, seed=5, sign=True),
]


def slot(key, n, seed=0):
    return abs(murmurhash3_32(key, seed=seed)) % n


def folded(o):
    counts = [{} for _ in TEXTS]
    first, shared = 0, sum(size for _, _, size in o["blocks"])
    for number, (analyzer, n, size) in enumerate(o["blocks"]):
        terms = CountVectorizer(analyzer=analyzer, ngram_range=(n, n)).build_analyzer()
        cut = [terms(text) for text in TEXTS]
        most = sorted(Counter(t for text in cut for t in text).items(), key=lambda x: (-x[1], x[0].encode()))[:size]
        assert len(most) == size
        rank = {term: i for i, term in enumerate(sorted((t for t, _ in most), key=str.encode))}
        for row, text in zip(counts, cut):
            for term in text:
                s = first + rank[term] if term in rank else shared + slot(term, o["oov"], number)
                row[s] = row.get(s, 0) + 1
        first += size
    out = []
    for row in counts:
        sums = {}
        for s, count in row.items():
            negative = o["sign"] and murmurhash3_32(s, seed=o["seed"]) < 0
            f = slot(s, o["fold"], o["seed"])
            sums[f] = sums.get(f, 0) + (-count if negative else count)
        out.append([[f, float(v)] for f, v in sorted(sums.items()) if v])
    return out


def options(o):
    return {k: tuple(v) if k == "ngram_range" else v for k, v in o.items()}


out = {"sklearn": __version__, "texts": TEXTS, "hashing": [], "tfidf": [], "folded": []}
for o in HASHING:
    out["hashing"].append({"options": o, "rows": rows(HashingVectorizer(**options(o)).transform(TEXTS))})
for o in TFIDF:
    fitted = TfidfVectorizer(**options(o)).fit(TEXTS)
    terms = sorted(fitted.vocabulary_, key=fitted.vocabulary_.get)
    out["tfidf"].append({"options": o, "terms": terms, "rows": rows(fitted.transform(TEXTS))})
for o in FOLDED:
    out["folded"].append({"options": o, "rows": folded(o)})
path = os.path.join(os.path.dirname(os.path.abspath(__file__)), "sklearn.json")
with open(path, "w", encoding="utf-8") as f:
    json.dump(out, f, ensure_ascii=False, separators=(",", ":"))
    f.write("\n")
