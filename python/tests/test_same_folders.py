"""What is trained on arrays is what the program makes of the same rows in a file, byte for byte.

Only the form of the input (`parameters.input` of config.json: a file has one) and the hash over the configuration differ.
"""

import json

import numpy as np
import pytest
import xc
from program import KINDS, SMALL, flags, kept, same

FORMS = [(kind, form) for kind in KINDS if kind != "skipgram" for form in ("sparse", "vectors", "texts")]


def settings(kind, form):
    """Small settings of a kind, for instances of a form."""
    chosen = dict(SMALL[kind])
    if form == "texts":
        chosen["text_min_df"] = 1
    if form == "vectors" and kind in ("dense", "uniform", "lns", "astra", "mach"):
        chosen["network_widths"] = 8
    return chosen


@pytest.mark.parametrize("kind, form", [*FORMS, ("skipgram", "words")])
def test_a_model_of_arrays_is_the_model_of_a_file(run, data, tmp_path, kind, form):
    chosen = settings(kind, form)
    theirs, ours = tmp_path / "theirs", tmp_path / "ours"
    run("train", kind, *data.files(form), "--model", theirs, "--seed", 3, *flags(kind, chosen))
    trained = xc.train(kind, *data.arrays(form), model=ours, seed=3, threads=2, progress=False, **chosen)
    same(kept(ours), kept(theirs), f"{kind}, {form}")
    assert trained.model.kind == kind and trained.model.folder == str(ours)
    if kind == "skipgram":
        # The vectors stand beside the model.
        name = "{}.vectors.txt"
        assert (tmp_path / name.format("ours")).read_bytes() == (tmp_path / name.format("theirs")).read_bytes()


@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind != "skipgram"])
def test_held_out_rows_judge_alike(run, data, tmp_path, kind):
    chosen, theirs, ours = settings(kind, "sparse"), tmp_path / "theirs", tmp_path / "ours"
    validation = data.files("sparse", "test")
    run("train", kind, *data.files("sparse"), *validation, "--model", theirs, "--seed", 3, *flags(kind, chosen))
    trained = xc.train(
        kind, *data.arrays("sparse"), validation=data.arrays("sparse", "test"), model=ours, seed=3, threads=2,
        progress=False, **chosen,
    )
    same(kept(ours), kept(theirs), kind)
    written = json.loads((tmp_path / "theirs.log" / "train.json").read_text())
    metrics = {name: value for name, value in trained.report.metrics.items() if isinstance(value, float)}
    assert len(metrics) > 10 and metrics["P@1"] > 0
    assert {name: written[name] for name in metrics} == metrics
    # A share of the training rows, the same in both, and a second model of all rows.
    held_out = {**chosen, "validation_fraction": 0.3}
    run(
        "train", kind, *data.files("sparse"), "--model", theirs, "--refit", tmp_path / "theirs-all", "--seed", 4,
        *flags(kind, held_out),
    )
    xc.train(
        kind, *data.arrays("sparse"), model=ours, refit=tmp_path / "ours-all", seed=4, threads=2, progress=False, **held_out
    )
    same(kept(ours), kept(theirs), f"{kind}, held out")
    same(kept(tmp_path / "ours-all"), kept(tmp_path / "theirs-all"), f"{kind}, refit")


def test_weights_costs_and_label_features_are_those_of_files(run, data, tmp_path):
    weights = np.linspace(0.5, 2, len(data.train.labels)).astype(np.float32)
    costs = np.linspace(0.2, 3, data.n_labels).astype(np.float32)
    of_instances = data.write("weights.txt", "".join(f"{weight}\n" for weight in weights))
    of_labels = data.write("costs.txt", "".join(f"{cost}\n" for cost in costs))
    chosen = {**SMALL["tree"], "cluster_representation": "pifa-and-label-features"}
    theirs, ours = tmp_path / "theirs", tmp_path / "ours"
    run(
        "train", "tree", *data.files("sparse"), "--model", theirs, "--instance-weights", of_instances, "--label-costs",
        of_labels, "--label-features", data.label_rows.path("txt"), "--label-names", data.folder / "names.txt",
        *flags("tree", chosen),
    )
    # Weights of another type are taken as they are.
    xc.train(
        "tree", *data.arrays("sparse"), model=ours, instance_weights=weights.astype(np.float64), label_costs=costs.tolist(),
        label_features=data.label_rows.sparse, label_names=data.names, threads=2, progress=False, **chosen,
    )
    same(kept(ours), kept(theirs), "weights")


@pytest.mark.parametrize("kind", ["tree", "mach", "lns"])
def test_a_search_finds_and_trains_alike(run, data, tmp_path, kind):
    chosen, theirs, ours = settings(kind, "sparse"), tmp_path / "theirs", tmp_path / "ours"
    run("tune", kind, *data.files("sparse"), "--trials", 3, "--output", theirs, "--seed", 3, *flags(kind, chosen))
    found = xc.tune(kind, *data.arrays("sparse"), trials=3, output=ours, seed=3, threads=2, progress=False, **chosen)
    same(kept(ours / "model"), kept(theirs / "model"), kind)
    # Options stand in the order that they were given in.
    assert sorted((ours / "best.toml").read_text().splitlines()) == sorted((theirs / "best.toml").read_text().splitlines())
    lines = [[json.loads(line) for line in open(folder / "trials.jsonl")] for folder in (ours, theirs)]
    for line in lines[0] + lines[1]:
        del line["wall_s"]
    assert lines[0] == lines[1] and len(found.runs) >= 3
    assert found.model.folder == str(ours / "model")
    without = xc.tune(kind, *data.arrays("sparse"), trials=2, train_model=False, progress=False, threads=2, **chosen)
    assert without.model is None and without.report is None


def members(data, tmp_path, **more):
    """Two models that leave some rows out."""
    return [
        xc.train(
            kind, *data.arrays("sparse"), model=tmp_path / kind, seed=3, threads=2, progress=False,
            validation_fraction=0.4, **SMALL[kind], **more,
        ).model
        for kind in ("tree", "dense")
    ]


@pytest.mark.parametrize("rule, options", [
    (None, {"folds": 2, "networks": 1, "hidden": 3}), ("logistic", {"folds": 3}), ("reciprocal-ranks", {}),
    ("net", {"folds": 2, "networks": 1}), ("boosted", {"folds": 2}),
])
def test_a_blend_of_arrays_is_the_blend_of_a_file(run, data, tmp_path, rule, options):
    models, train = members(data, tmp_path), data.train.path("txt")
    theirs, ours = tmp_path / "theirs", tmp_path / "ours"
    typed = [word for name, value in options.items() for word in (f"--{name}", value)]
    rules = [] if rule is None else ["--rule", rule]
    run(
        "blend", *(model.folder for model in models), "--validation", train, "--held-out", "--output", theirs, "--seed", 5,
        *typed, *rules,
    )
    fitted = xc.blend(
        models, *data.arrays("sparse"), output=ours, rule=rule, seed=5, held_out=True, threads=2, progress=False, **options
    )
    same(kept(ours), kept(theirs), f"blend {rule}")
    assert fitted.model.kind == "blend" and fitted.report["left_out"] > 0


@pytest.mark.parametrize("method", ["isotonic", "platt"])
def test_a_calibration_on_arrays_is_that_on_a_file(run, data, tmp_path, method):
    for model in members(data, tmp_path):
        theirs, ours = tmp_path / f"theirs-{model.kind}", tmp_path / f"ours-{model.kind}"
        options = ["--method", method, "--top-k", 6, "--least-true", 3, "--folds", 4, "--seed", 5]
        run(
            "calibrate", "--model", model.folder, "--validation", data.train.path("txt"), "--held-out", "--output", theirs,
            *options,
        )
        fitted = xc.calibrate(
            model, *data.arrays("sparse"), method=method, held_out=True, top_k=6, least_true=3, folds=4, seed=5, output=ours,
            threads=2, progress=False,
        )
        same(kept(ours), kept(theirs), f"calibrate {model.kind} {method}")
        assert fitted.model.calibrated and not model.calibrated
        # Without a folder the model itself becomes a calibrated one.
        assert xc.calibrate(model, *data.arrays("sparse"), held_out=True, progress=False).model is model
        assert model.calibrated


@pytest.mark.parametrize("form", ["sparse", "vectors", "texts"])
@pytest.mark.parametrize("kind", ["tree", "lns"])
def test_rows_that_a_model_has_seen_are_known_in_every_form(data, kind, form):
    X, Y = data.arrays(form)
    model = xc.train(kind, X, Y, seed=3, threads=2, progress=False, validation_fraction=0.4, **settings(kind, form)).model
    with pytest.raises(xc.DataError, match="of 60 instances are training instances of .*held_out leaves them out"):
        xc.calibrate(model, X, Y, progress=False)
    fitted = xc.calibrate(model, X, Y, held_out=True, progress=False, least_true=2)
    assert fitted.report["left_out"] > 20 and fitted.report["instances"] + fitted.report["left_out"] == 60


def index_files(folder):
    """Files of an index but for the time that its build took."""
    return {name: value for name, value in kept(folder).items() if not name.endswith("build.json")}


@pytest.mark.parametrize("metric", ["l2", "cosine", "ip"])
def test_an_index_of_an_array_is_the_index_of_a_file(run, data, tmp_path, metric):
    draw = np.random.default_rng(5)
    vectors, queries = (draw.normal(size=(n, 12)).astype(np.float32) for n in (1500, 200))
    np.save(tmp_path / "vectors.npy", vectors)
    np.save(tmp_path / "queries.npy", queries)
    theirs, ours = tmp_path / "theirs", tmp_path / "ours"
    run(
        "index", "build", "--vectors", tmp_path / "vectors.npy", "--metric", metric, "--output", theirs, "--fit-queries",
        tmp_path / "queries.npy", "--degree", 8, "--keep", 20, "--cells", 6, "--top-k", 5, "--target-recall", 0.8,
        "--seed", 7,
    )
    built = xc.index(
        vectors, metric, ours, fit_queries=queries, degree=8, keep=20, cells=6, top_k=5, target_recall=0.8, seed=7, threads=2
    )
    same(index_files(ours), index_files(theirs), metric)
    # Answers: those of the program, from memory and from the folder.
    options = [("", {}), ("--exact", {"exact": True}), ("--cells 2", {"cells": 2}), ("--search-width 0.5", {"search_width": 0.5})]
    for typed, given in options:
        run(
            "index", "search", "--index", theirs, "--queries", tmp_path / "queries.npy", "--output", tmp_path / "a.npz",
            "--top-k", 7, *typed.split(),
        )
        answers = np.load(tmp_path / "a.npz")
        for index in (built, xc.load_index(ours), xc.load_index(theirs, in_memory=True)):
            found = index.search(queries, top_k=7, **given)
            assert np.array_equal(found.ids, answers["indices"]), typed
            assert found.scores.tobytes() == answers["data"].tobytes(), typed


def test_an_index_of_labels_is_that_of_the_program(run, data, tmp_path):
    folders = {}
    for name in ("ours", "theirs", "ours-fitted", "theirs-fitted"):
        folders[name] = tmp_path / name
        xc.train(
            "dense", *data.arrays("sparse"), model=folders[name], seed=3, threads=2, progress=False, **SMALL["dense"]
        )
    X, Y = data.arrays("sparse", "test")
    run("index", "build", "--model", folders["theirs"], "--seed", 3)
    xc.load(folders["ours"]).build_index(seed=3, threads=2)
    same(index_files(folders["ours"]), index_files(folders["theirs"]), "label index")
    run("index", "build", "--model", folders["theirs-fitted"], "--fit-queries", data.test.path("txt"), "--seed", 3)
    model = xc.load(folders["ours-fitted"])
    assert not model.has_index
    report = model.build_index(X, Y, seed=3, threads=2)
    assert model.has_index and report["labels"] == data.n_labels
    same(index_files(folders["ours-fitted"]), index_files(folders["theirs-fitted"]), "fitted label index")


def test_a_plan_says_what_the_program_explains(run, data, tmp_path):
    for kind, form in [*FORMS, ("skipgram", "words")]:
        chosen = settings(kind, form)
        said = run("train", kind, *data.files(form), "--model", "model", "--explain", "--json", *flags(kind, chosen))
        theirs = json.loads(said.out)
        plan = xc.plan(kind, *data.arrays(form), threads=1, **chosen)
        ours = {row["option"]: row["value"] for row in plan["options"]}
        explained = {row["option"]: row["value"] for row in theirs["options"]}
        given = {xc.settings(kind)[keyword]["name"] for keyword in chosen}
        of_files = {row["name"] for row in xc.settings(kind).values() if row["heading"] == "Input options"}
        # The program leaves out what a kind has no use for.
        shared = [name for name in ours if name in explained and name not in given | of_files]
        assert len(shared) > 15
        for name in shared:
            assert explained[name] == ours[name], f"{kind}, {form}: --{name}"
        # What the process has in memory already is counted.
        assert plan["memory_bytes"] > 1 << 20 and {row["from"] for row in plan["options"]} >= {"given", "default"}
