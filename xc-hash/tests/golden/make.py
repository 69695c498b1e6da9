"""Writes sklearn.json: rows of scikit-learn's vectorizers that our pipelines must reproduce value by value.

Run once with scikit-learn 1.9.1: python make.py. The result is frozen; change it only together with a reason.
"""
import json
import os

from sklearn import __version__
from sklearn.feature_extraction.text import HashingVectorizer, TfidfVectorizer

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


def options(o):
    return {k: tuple(v) if k == "ngram_range" else v for k, v in o.items()}


out = {"sklearn": __version__, "texts": TEXTS, "hashing": [], "tfidf": []}
for o in HASHING:
    out["hashing"].append({"options": o, "rows": rows(HashingVectorizer(**options(o)).transform(TEXTS))})
for o in TFIDF:
    fitted = TfidfVectorizer(**options(o)).fit(TEXTS)
    terms = sorted(fitted.vocabulary_, key=fitted.vocabulary_.get)
    out["tfidf"].append({"options": o, "terms": terms, "rows": rows(fitted.transform(TEXTS))})
path = os.path.join(os.path.dirname(os.path.abspath(__file__)), "sklearn.json")
with open(path, "w", encoding="utf-8") as f:
    json.dump(out, f, ensure_ascii=False, separators=(",", ":"))
    f.write("\n")
