"""Answers are those of `xc predict`, bit for bit: 1,000 queries each, in a batch and one by one."""

import json
import pickle

import numpy as np
import pytest
import xc
from program import SMALL, Data, Sparse, kept, shortest, text_of_rows

N = 1000

MODELS = [
    ("tree", "sparse"), ("tree", "texts"), ("tree", "vectors"),
    ("mach", "sparse"), ("mach", "texts"), ("mach", "vectors"),
    ("dense", "sparse"), ("dense", "texts"), ("dense", "vectors"),
    ("uniform", "sparse"), ("uniform", "texts"), ("uniform", "vectors"),
    ("lns", "sparse"), ("lns", "texts"), ("lns", "vectors"),
    ("astra", "sparse"), ("astra", "texts"), ("astra", "vectors"),
    ("blend", "sparse"), ("blend", "texts"),
    ("calibrated tree", "sparse"), ("calibrated dense", "texts"), ("calibrated blend", "sparse"),
]


class Asked:
    """Models of every kind, and the same 1,000 queries as arrays and in files."""

    def __init__(self, folder):
        self.folder, self.models = folder, {}
        self.data = Data(folder, n=160, n_test=N, n_features=60, n_labels=40, seed=3)
        self.draw = np.random.default_rng(11)
        self.files = {"sparse": self.rows(), "texts": self.texts(), "vectors": self.data.test.path("npy")}

    def rows(self):
        """Rows without their labels: some without a feature, some with one, unsorted in memory."""
        test = self.data.test
        kept = [row % 50 != 7 for row in range(N)]
        ids, values = [], []
        for row in range(N):
            at = slice(test.indptr[row], test.indptr[row + 1])
            at = slice(at.start, at.start) if not kept[row] else slice(at.start, at.start + 1) if row % 50 == 9 else at
            ids.append(test.indices[at])
            values.append(test.values[at])
        indptr = np.cumsum([0] + list(map(len, ids))).astype(np.int32)
        order = [self.draw.permutation(len(of_row)) for of_row in ids]
        self.sparse = Sparse(
            indptr, np.concatenate([i[o] for i, o in zip(ids, order)]).astype(np.int32),
            np.concatenate([v[o] for v, o in zip(values, order)]), (N, self.data.n_features),
        )
        nothing = [[] for _ in range(N)]
        sizes = self.data.n_features, self.data.n_labels
        text = text_of_rows(indptr, np.concatenate(ids), np.concatenate(values), nothing, *sizes)
        return self.data.write("queries.txt", text)

    def texts(self):
        """Texts: some empty, some of unknown words, some with what JSON escapes."""
        odd = ["", "unheard words alone", 'luna "quoted" \\ caf\u00e9\tstone', "BERG \u00e9\u00e8 \U0001f600 rio", " "]
        self.list = [odd[row // 40 % 5] if row % 40 == 3 else text for row, text in enumerate(self.data.test.texts)]
        lines = "".join(json.dumps({"text": text}) + "\n" for text in self.list)
        return self.data.write("queries.jsonl", lines)

    def queries(self, form):
        """All queries as one argument, and each alone."""
        if form == "sparse":
            at = [slice(self.sparse.indptr[row], self.sparse.indptr[row + 1]) for row in range(N)]
            return self.sparse, [(self.sparse.indices[rows], self.sparse.data[rows]) for rows in at]
        if form == "vectors":
            return self.data.test.vectors, list(self.data.test.vectors)
        return self.list, self.list

    def model(self, kind, form):
        """A model, trained when it is first asked for."""
        if (kind, form) not in self.models:
            self.models[kind, form] = self.trained(kind, form)
        return self.models[kind, form]

    def trained(self, kind, form):
        folder = self.folder / f"{kind.replace(' ', '-')}-{form}"
        X, Y = self.data.arrays(form)
        if kind.startswith("calibrated"):
            model = self.model(kind.split()[1], form)
            fitted = xc.calibrate(model, X, Y, held_out=True, least_true=2, output=folder, progress=False, threads=2)
            return fitted.model
        if kind == "blend":
            members = [self.model(name, form) for name in ("tree", "dense")]
            rule = {"rule": "net", "networks": 1, "folds": 2} if form == "texts" else {"rule": "logistic"}
            return xc.blend(members, X, Y, held_out=True, output=folder, progress=False, threads=2, **rule).model
        chosen = dict(SMALL[kind], **({"text_min_df": 1} if form == "texts" else {}))
        chosen.update({"epochs": 4} if kind != "tree" else {}, validation_fraction=0.3)
        return xc.train(kind, X, Y, model=folder, seed=5, threads=2, progress=False, **chosen).model


@pytest.fixture(scope="module")
def asked(run, tmp_path_factory):
    return Asked(tmp_path_factory.mktemp("asked"))


def program_says(run, asked, model, form, *options, tmp):
    """Answers of the program as arrays."""
    output = tmp / "answers.npz"
    run("predict", "--model", model.folder, "--input", asked.files[form], "--output", output, *options)
    answers = np.load(output)
    return answers["indptr"], answers["indices"], answers["data"]


def is_same(ranked, answers, what):
    """Fails where lists differ in a label, an order or a bit of a score."""
    indptr, ids, scores = answers
    assert np.array_equal(ranked.indptr, indptr), what
    assert np.array_equal(ranked.ids, ids), what
    assert ranked.scores.tobytes() == scores.astype(np.float32).tobytes(), what


def alone(model, queries, ranked, what, first=0, **options):
    """Fails where a query alone has another answer."""
    names = model.labels
    for row, query in enumerate(queries, first):
        at = slice(ranked.indptr[row], ranked.indptr[row + 1])
        ids = ranked.ids[at].tolist()
        expected = list(zip(ids if names is None else [names[i] for i in ids], ranked.scores[at].tolist()))
        own = {name: value[row] if name in ("candidates", "exclude") else value for name, value in options.items()}
        assert model.predict_one(query, **own) == expected, f"{what}: row {row}"


@pytest.mark.parametrize("kind, form", MODELS)
def test_answers_are_those_of_the_program(run, asked, tmp_path, kind, form):
    model = asked.model(kind, form)
    X, queries = asked.queries(form)
    # The program wants scores that it can write: sums of all labels.
    ranked = model.predict(X, top_k=7)
    is_same(ranked, program_says(run, asked, model, form, "--top-k", 7, tmp=tmp_path), kind)
    alone(model, queries, ranked, kind, top_k=7)
    assert len(ranked.ids) > N
    # At another number of threads, and of the model in memory.
    in_memory = xc.load(model.folder, in_memory=True).predict(X, top_k=7, threads=3)
    is_same(in_memory, (ranked.indptr, ranked.ids, ranked.scores), kind)
    if form == "texts":
        known = ranked.known_terms
        assert known is not None and (known == 0).any() and known.max() > 2
        said = run("predict", "--model", model.folder, "--input", asked.files[form], "--output-format", "jsonl", "--top-k", 7)
        lines = [json.loads(line) for line in said.out.splitlines()]
        assert [line.get("known_terms") == 0 for line in lines] == (known == 0).tolist()
        assert [line["names"] for line in lines] == ranked.names()
        assert [[shortest(score) for score in line["scores"]] for line in lines] == [
            [shortest(score) for _, score in row] for row in ranked
        ]


@pytest.mark.parametrize("kind, form", [(kind, form) for kind, form in MODELS if form != "vectors"])
def test_what_a_query_may_choose_from_is_what_it_is_for_the_program(run, asked, tmp_path, kind, form):
    model = asked.model(kind, form)
    X, queries = asked.queries(form)
    n_labels, draw = model.n_labels, np.random.default_rng(2)
    own = [sorted(draw.choice(n_labels, int(draw.integers(0, 12)), replace=False).tolist()) for _ in range(N)]
    shared = sorted(draw.choice(n_labels, 15, replace=False).tolist())
    named = (lambda ids: ids) if model.labels is None else (lambda ids: [model.labels[i] for i in ids])
    as_typed = (lambda ids: [str(i) for i in ids]) if model.labels is None else named
    lists = tmp_path / "lists.txt"
    lists.write_text("".join(",".join(map(str, of_row)) + "\n" for of_row in own))
    only = tmp_path / "only.txt"
    only.write_text("".join(f"{label}\n" for label in as_typed(shared)))
    lists_of_names = [named(of_row) for of_row in own]
    if model.labels is not None:
        lists = tmp_path / "lists.jsonl"
        lists.write_text("".join(json.dumps({"text": "", "labels": of_row}) + "\n" for of_row in lists_of_names))
    at = tmp_path
    for given, typed, per_query in (
        ({"candidates": named(shared)}, ["--only-labels", only], False),
        ({"candidates": lists_of_names}, ["--candidates", lists], True),
        ({"exclude": lists_of_names}, ["--exclude", lists], True),
        ({"candidates": named(shared), "exclude": lists_of_names}, ["--only-labels", only, "--exclude", lists], None),
    ):
        ranked = model.predict(X, top_k=4, **given)
        is_same(ranked, program_says(run, asked, model, form, "--top-k", 4, *typed, tmp=at), f"{kind} {typed}")
        own_lists = {
            name: value if per_query or name == "exclude" and per_query is None else [value] * N
            for name, value in given.items()
        }
        alone(model, queries[:300], ranked, f"{kind} {typed}", top_k=4, **own_lists)
    # Ids are taken as well as names.
    by_id = model.predict(X, top_k=4, candidates=shared)
    by_name = model.predict(X, top_k=4, candidates=named(shared))
    is_same(by_id, (by_name.indptr, by_name.ids, by_name.scores), kind)


@pytest.mark.parametrize("kind, form", [("tree", "sparse"), ("dense", "texts"), ("mach", "sparse"), ("blend", "texts"),
                                        ("calibrated tree", "sparse"), ("calibrated blend", "sparse")])
def test_scores_that_are_cut_are_cut_as_by_the_program(run, asked, tmp_path, kind, form):
    model = asked.model(kind, form)
    X, queries = asked.queries(form)
    middle = float(np.median(model.predict(X, top_k=9).scores))
    cut = float(np.float32(middle))
    options = [({"min_score": cut}, ["--min-score", repr(cut)])]
    if model.calibrated:
        options += [({"threshold": name}, ["--threshold", name]) for name in ("micro", "macro", "label")]
        options += [({"raw_scores": True}, ["--raw-scores"])]
    for given, typed in options:
        ranked = model.predict(X, top_k=9, **given)
        # The program answers every label that reaches a threshold, unless a number is asked for.
        is_same(ranked, program_says(run, asked, model, form, "--top-k", 9, *typed, tmp=tmp_path), f"{kind} {typed}")
        alone(model, queries[:300], ranked, f"{kind} {typed}", top_k=9, **given)
    assert 0 < len(model.predict(X, top_k=9, min_score=cut).ids) < len(model.predict(X, top_k=9).ids)


@pytest.mark.parametrize("kind, given, typed", [
    ("tree", {"beam": 1}, ["--beam", 1]),
    ("mach", {"decoder": "mean"}, ["--decoder", "mean"]),
    ("mach", {"max_labels": 3}, ["--max-labels", 3]),
])
def test_a_search_is_that_of_the_program(run, asked, tmp_path, kind, given, typed):
    model = asked.model(kind, "sparse")
    X, queries = asked.queries("sparse")
    ranked = model.predict(X, **given)
    is_same(ranked, program_says(run, asked, model, "sparse", *typed, tmp=tmp_path), kind)
    alone(model, queries[:200], ranked, kind, **given)


def test_an_index_of_labels_answers_as_for_the_program(run, asked, tmp_path):
    X, Y = asked.data.arrays("sparse")
    model = xc.train("dense", X, Y, model=tmp_path / "m", progress=False, threads=2, **SMALL["dense"]).model
    model.build_index(cells=4)
    queries = asked.queries("sparse")[1]
    for given, typed in (({}, []), ({"exact": True}, ["--exact"]), ({"cells": 2}, ["--cells", 2]),
                         ({"search_width": 0.5}, ["--search-width", 0.5])):
        ranked = model.predict(asked.sparse, **given)
        is_same(ranked, program_says(run, asked, model, "sparse", *typed, tmp=tmp_path), typed)
        alone(model, queries[:200], ranked, str(typed), **given)


def test_every_form_of_a_query_is_the_same_query(asked):
    model = asked.model("tree", "sparse")
    X, pairs = asked.queries("sparse")
    ranked = model.predict(X, top_k=5)
    for row in range(0, 200):
        ids, values = pairs[row]
        expected = list(zip(*(part[ranked.indptr[row]:ranked.indptr[row + 1]].tolist() for part in (ranked.ids, ranked.scores))))
        dictionary = dict(zip(ids.tolist(), values.tolist()))
        vector = np.zeros(X.shape[1], np.float32)
        vector[ids] = values
        forms = [
            (ids, values), (ids.astype(np.int64), values.astype(np.float64)), (ids.tolist(), values.tolist()), dictionary,
            (tuple(ids.tolist()), tuple(values.tolist())),
        ]
        for query in forms:
            assert model.predict_one(query) == expected, (row, query)
        # A vector of a value a feature is a row of features, too.
        assert model.predict_one(vector) == expected, row
        assert model.predict_one(vector.tolist()) == expected, row


def test_an_explanation_is_that_of_the_program(run, asked, tmp_path):
    for kind, form in (("tree", "texts"), ("dense", "sparse"), ("blend", "texts")):
        model = asked.model(kind, form)
        X, queries = asked.queries(form)
        said = run("explain", "--model", model.folder, "--input", asked.files[form], "--label", 3, "--json", "--top", 1000)
        lines = [json.loads(line) for line in said.out.splitlines()]
        label = 3 if model.labels is None else model.labels[3]
        for row in range(0, N, 97):
            ours = model.explain(queries[row], label)
            theirs = {name: value for name, value in lines[row].items() if name not in ("instance", "id")}
            assert close(ours, theirs), f"{kind} row {row}: {ours} {theirs}"


def close(ours, theirs):
    """Whether two documents are the same, but for absent and empty fields."""
    if isinstance(ours, dict):
        names = {name for document in (ours, theirs) for name, value in document.items() if value not in (None, False, [])}
        return all(close(ours.get(name), theirs.get(name)) for name in names if name != "term")
    if isinstance(ours, list):
        return len(ours) == len(theirs) and all(map(close, ours, theirs))
    if isinstance(ours, float) or isinstance(theirs, float):
        return theirs is not None and ours is not None and np.float32(ours) == np.float32(theirs)
    return ours == theirs


def test_repetitions_that_are_chosen_answer_alone(run, asked, tmp_path):
    whole = asked.model("mach", "sparse")
    X, queries = asked.queries("sparse")
    model = xc.load(whole.folder, repetitions=(1,))
    ranked = model.predict(X)
    is_same(ranked, program_says(run, asked, model, "sparse", "--repetitions", 1, tmp=tmp_path), "one repetition")
    alone(model, queries[:200], ranked, "one repetition")
    assert (ranked.scores != whole.predict(X).scores).any()
    assert (pickle.loads(pickle.dumps(model)).predict(X).scores == ranked.scores).all()
    for wrong in ((), [-1], [0.5], "0"):
        with pytest.raises((xc.OptionError, xc.DataError), match="^repetitions"):
            xc.load(whole.folder, repetitions=wrong)
    with pytest.raises(xc.ModelError, match="9"):
        xc.load(whole.folder, repetitions=[9])
    with pytest.raises(xc.ModelError, match="has no repetitions"):
        xc.load(asked.model("tree", "sparse").folder, repetitions=[0])


@pytest.mark.parametrize("metric", ["ip", "cosine", "l2"])
def test_an_index_of_sparse_rows_is_that_of_the_program(run, asked, tmp_path, metric):
    run("index", "build", "--vectors", asked.files["sparse"], "--metric", metric, "--output", tmp_path / "theirs")
    index = xc.index(asked.sparse, metric, tmp_path / "ours")
    assert kept(tmp_path / "ours") == kept(tmp_path / "theirs")
    assert len(index) == N and index.width == asked.sparse.shape[1] and index.metric == metric
    found = index.search(asked.sparse, top_k=5)
    opened = xc.load_index(tmp_path / "theirs").search(asked.sparse, top_k=5, threads=1)
    assert (found.ids == opened.ids).all() and (found.scores == opened.scores).all()
    # Some of the rows alone.
    few = index.search(asked.sparse, top_k=5, filter=[3, 4, 700])
    assert set(few.ids.tolist()) <= {3, 4, 700} and len(few.ids) > N
    for work, message in (
        (lambda: xc.index(asked.sparse, metric, degree=8), "degree has no effect"),
        (lambda: xc.index(asked.sparse, "dot"), "metric: l2, cosine or ip"),
        (lambda: index.search(asked.sparse, cells=2), "cells has no effect"),
        (lambda: index.search(asked.sparse, top_k=0), "top_k 0"),
        (lambda: index.search(np.zeros((2, 3), np.float32)), "q: rows of 3 columns"),
        (lambda: index.insert(asked.sparse), "insert: an index of sparse rows"),
        (lambda: index.delete([0]), "delete: an index of sparse rows"),
    ):
        with pytest.raises((xc.OptionError, xc.DataError), match=f"^{message}"):
            work()
