"""Every option of every kind, by keyword, does what it does for the program; generated from the table of settings.

For each row of :func:`xc.settings`: a value other than the one that holds without it, in a small training run. Either both
save the same model, or both refuse, with the same message but for the spelling of options. An option that belongs to a
choice is tried with that choice and without it. Each option has to change a model of some kind, unless `UNSEEN` says why
so few rows cannot show it.

By default every option is tried with one kind; `XC_EVERY_OPTION=1` tries all pairs.
"""

import os
import re
import zlib

import pytest
import xc
from program import KINDS, SMALL, flags, kept, same, without_input

ALL = os.environ.get("XC_EVERY_OPTION") == "1"

VALUES = {
    "sampler": "frequency",
    "post_processor": "sigmoid",
    "text_chars": "3-4",
    "text_ngrams": 2,
    "text_min_df": 15,
    "text_hash": 16,
    "text_oov": 16,
    "text_fold": 16,
    "text_min_chars": 5,
    "monitor": "recall@3",
    "repetitions_range": "0..1",
    "network_intermediate": 8,
    "linear_tolerance": 0.9,
    "linear_prune_below": 0.3,
    "linear_max_weights": 2,
    "cluster_max_iterations": 1,
    "cluster_max_sample": 4,
    "cluster_max_label_nnz": 2,
    "validation_fraction": 0.4,
    "clip_norm": 0.001,
    "patience": 1,
    "subsample": 0.01,
    "min_count": 4,
    "vocabulary": 9,
    "weight_cap": 1.5,
    "wide_prune_below": 0.5,
    "wide_labels": 2,
    "wide_negatives": 1,
    "head_fan_in": 3,
    "negatives_sampled": 3,
    "head_rewire_fraction": 0.4,
    "upkeep_share": 0.9,
}
"""Values where what follows from the type is none, or would change nothing in so few rows."""

CHOSEN_FOR = {
    "sampler": {"frequency": {"negatives_sampled": 3}, "lsh-embedding": {"negatives_sampled": 2, "negatives_uniform": 3, "tables": 4}},
}
"""What a choice needs that another option belongs to."""

BESIDE = {
    "sampler": {"negatives_sampled": 3, "negatives_uniform": 3},
    "split_seed": {"validation_fraction": 0.3},
    "monitor": {"validation_fraction": 0.3},
    "keep": {"validation_fraction": 0.3, "epochs": 3},
    "patience": {"validation_fraction": 0.3, "epochs": 3, "optimizer_rate": 0.9},
    "patience_from": {"validation_fraction": 0.3},
    "network_embedding_rate": {"validation_fraction": None},
    "clip_norm": {"optimizer": "sgd"},
    "optimizer_weight_decay": {"optimizer": "adamw"},
    "head_rewire_every": {"epochs": 6},
    "head_rewire_fraction": {"epochs": 6, "head_rewire_every": 3},
    "hard_from_epoch": {"epochs": 4},
    "upkeep_every": {"epochs": 4},
}
"""Options that show more beside others."""

UNSEEN = {
    "checkpoint_every": "how often finished work is kept changes no model",
    "log_every": "lines of a log, and none of a model",
    "head_no_screening": "answers and models are the same, later",
    "index_every": "there are too few labels for an index",
    "index_exact_below": "there are too few labels for an index",
    "index_recall": "there are too few labels for an index",
    "retrieval_every": "every label is a hard negative of so few",
    "upkeep_every": "tables of so few labels hold all of them",
    "upkeep_share": "tables of so few labels hold all of them",
    "schedule_lowest": "a rate falls after more epochs than these",
    "patience_from": "a rate falls after more epochs than these",
    "cluster_max_sample": "all of so few labels are sampled",
}
"""Options that so few rows do not show, though both doors take them alike."""


def is_of_files(row):
    return row["heading"] == "Input options"


def form_of(keyword, kind):
    """The form of instances that an option is about."""
    if kind == "skipgram":
        return "words"
    return "texts" if keyword.startswith("text_") else "sparse"


def holding(kind, form, data, options):
    """What holds without an option: its value by the program's name."""
    try:
        plan = xc.plan(kind, *data.arrays(form), threads=1, options=options)
    except (xc.OptionError, xc.DataError):
        # Refused as it is: what is then tried has to be refused alike, or to mend it.
        return {}
    return {row["option"]: row["value"] for row in plan["options"]}


def other_value(row, keyword, now):
    """A value that is not the one that holds now."""
    kind = row["type"]
    if kind == "switch":
        return True
    if kind == "bool":
        return now != "true"
    if keyword in VALUES and str(VALUES[keyword]) != now and VALUES[keyword] in (row["names"] or [VALUES[keyword]]):
        return VALUES[keyword]
    if kind == "name":
        return next(name for name in row["names"] if name != now)
    if kind == "int":
        n = int(now) if (now or "").isdigit() else 4
        return n // 2 if n > 1 else n + 1
    if kind == "ints":
        return [6]
    if kind == "float":
        try:
            return round(float(now) / 2, 6) or 0.3
        except (TypeError, ValueError):
            return 0.3
    raise AssertionError(f"{keyword}: no value is known of it; add one to VALUES")


def small(kind, form):
    chosen = dict(SMALL[kind])
    if form == "texts":
        chosen["text_min_df"] = 1
    return chosen


def without(options, kind, keyword):
    """Options but for those that cannot be given with one."""
    settings = xc.settings(kind)
    excluded = {settings[keyword]["name"], *settings[keyword]["excludes"]}
    return {
        other: value
        for other, value in options.items()
        if value is not None and settings[other]["name"] not in excluded
        and settings[keyword]["name"] not in settings[other]["excludes"]
    }


def needed(kind, keyword, depth=0):
    """The choices that give an option a meaning."""
    settings = xc.settings(kind)
    belongs = settings[keyword]["belongs_to"]
    out = {}
    if belongs is not None and depth < 4:
        other, values = belongs
        other = next(name for name, row in settings.items() if row["name"] == other)
        out.update(needed(kind, other, depth + 1))
        if values:
            out[other] = next((value for value in values if value in CHOSEN_FOR.get(other, {})), values[0])
            out.update({k: v for k, v in CHOSEN_FOR.get(other, {}).get(out[other], {}).items() if k in settings})
        else:
            out[other] = {"validation-fraction": 0.3}.get(belongs[0], VALUES.get(other))
    beside = BESIDE.get(keyword, {})
    return {**out, **{name: value for name, value in beside.items() if name in settings}}


def ours(kind, form, data, options, folder):
    """The model of the package, or what it says is wrong."""
    try:
        xc.train(kind, *data.arrays(form), model=folder, seed=3, threads=1, progress=False, options=options)
    except (xc.OptionError, xc.DataError) as error:
        return str(error)
    return kept(folder)


def theirs(run, kind, form, data, options, folder):
    """The same of the program."""
    done = run(
        "train", kind, *data.files(form), "--model", folder, "--seed", 3, *flags(kind, options), code=None
    )
    if done.code == 0:
        return kept(folder)
    assert done.code == 2, done.err
    return done.message


def is_said(ours, theirs, data):
    """Whether we say what the program says is wrong. It knows the values of options before anything is read."""
    invalid = re.match(r"invalid value '(.*)' for '--(\S+) <.*>' \[possible values: (.*)\]", theirs)
    if invalid is None:
        return ours == spelled(theirs, data)
    value, name, values = invalid.groups()
    keyword = name.replace("-", "_").replace(".", "_")
    return isinstance(ours, str) and ours.startswith(f"{keyword} {value}: ") and all(v in ours for v in values.split(", "))


def spelled(message, data):
    """A message of the program as the package says it."""
    from xc._errors import keywords_in

    for path in data.folder.iterdir():
        message = message.replace(str(path), "training data")
    return keywords_in(message)


def pairs():
    """Kinds and keywords; one kind for each option unless all are asked for."""
    found = {}
    for kind in KINDS:
        for keyword, row in xc.settings(kind).items():
            found.setdefault(keyword, []).append(kind)
    for keyword, kinds in sorted(found.items()):
        if ALL:
            yield from ((kind, keyword) for kind in kinds)
        else:
            yield kinds[zlib.crc32(keyword.encode()) % len(kinds)], keyword


def chunks(n):
    """Pairs in ``n`` parts, each a test."""
    all_pairs = list(pairs())
    return [all_pairs[part::n] for part in range(n)]


EFFECTS, TRIED, TAKEN = {}, set(), set()


@pytest.mark.parametrize("part", range(8))
@pytest.mark.filterwarnings("ignore::xc.XcWarning")
def test_an_option_does_what_it_does_for_the_program(run, data, tmp_path, part):
    wrong = []
    for number, (kind, keyword) in enumerate(chunks(8)[part]):
        row, form = xc.settings(kind)[keyword], form_of(keyword, kind)
        # The program beside the package may be one without transformers; test_transformer.py has these options.
        if is_of_files(row) or row["heading"] == "Transformer options":
            continue
        TRIED.add(keyword)
        for at, choices in enumerate([{}, needed(kind, keyword)]):
            if at and not choices:
                continue
            base = without({**small(kind, form), **choices}, kind, keyword)
            if form == "texts" and keyword != "text_min_df":
                base = without({**base, "text_min_df": 1}, kind, keyword)
            now = holding(kind, form, data, base).get(row["name"])
            given = {**base, keyword: other_value(row, keyword, now)}
            said = f"{kind} {given}"
            folders = [tmp_path / f"{number}-{at}-{who}" for who in ("ours", "theirs", "base")]
            got, expected = ours(kind, form, data, given, folders[0]), theirs(run, kind, form, data, given, folders[1])
            if isinstance(expected, str):
                if not is_said(got, expected, data):
                    wrong.append(f"{said}:\n  we say    {got!r:.300}\n  xc says {expected}")
                continue
            if isinstance(got, str):
                wrong.append(f"{said}: refused by us alone: {got}")
                continue
            TAKEN.add(keyword)
            try:
                same(got, expected, said)
            except AssertionError as error:
                wrong.append(str(error))
            if keyword not in EFFECTS:
                before = ours(kind, form, data, base, folders[2])
                if isinstance(before, str) or before["config.json"] != got["config.json"]:
                    EFFECTS[keyword] = kind
    assert not wrong, f"{len(wrong)} wrong:\n" + "\n".join(wrong)


def test_every_option_has_changed_a_model(run):
    if len(TRIED) < 100:
        pytest.skip("only with the tests of all options")
    shown = set(EFFECTS)
    # Of one kind alone, an option may be one that this kind refuses.
    nothing = sorted((TRIED if ALL else TAKEN) - shown - set(UNSEEN))
    assert not nothing, f"never change anything: {nothing}"


def test_options_of_files_are_refused_where_there_is_none(data):
    for kind in KINDS:
        for keyword, row in xc.settings(kind).items():
            if is_of_files(row):
                value = {"switch": True, "name": "refuse"}.get(row["type"], "1")
                value = {"format": "tsv", "delimiter": ";"}.get(row["name"], value)
                with pytest.raises(xc.OptionError, match=rf"^{keyword} has no effect here: it needs a file"):
                    xc.plan(kind, *data.arrays(form_of(keyword, kind)), options={row["name"]: value})


def test_a_spelling_of_the_program_is_a_keyword(data, tmp_path):
    X, Y = data.arrays("sparse")
    by_keyword = xc.train("tree", X, Y, model=tmp_path / "a", tree_branching=2, cluster_max_leaf=3, trees=1, progress=False)
    for number, name in enumerate(["tree.branching", "tree_branching", "tree-branching"]):
        options = {name: 2, "cluster.max-leaf": "3"}
        given = xc.train("tree", X, Y, model=tmp_path / str(number), options=options, trees=1, progress=False)
        assert kept(tmp_path / str(number)) == kept(tmp_path / "a")
        assert given.report["settings"] == by_keyword.report["settings"]


def test_an_alias_is_the_option(data):
    X, Y = data.arrays("sparse")
    values = [
        {row["option"]: row["value"] for row in xc.plan("dense", X, Y, **{name: 7})["options"]}["batch"]
        for name in ("batch", "batch_size")
    ]
    assert values == ["7", "7"] or values[0] == values[1] != "256"
    with pytest.raises(xc.OptionError, match="given twice"):
        xc.plan("dense", X, Y, batch=7, batch_size=8)


def test_values_of_any_type_are_what_they_say(data):
    import numpy as np

    X, Y = data.arrays("sparse")

    def config(**options):
        found = without_input(xc.inspect(xc.train("dense", X, Y, progress=False, threads=1, epochs=1, **options).model))
        del found["model"]
        return found

    plain = config(network_widths=[8, 4], normalise=False, optimizer_rate=0.5, batch=16)
    for options in (
        {"network_widths": (8, 4), "normalise": "false", "optimizer_rate": np.float32(0.5), "batch": np.int64(16)},
        {"network_widths": "8,4", "normalise": np.bool_(False), "optimizer_rate": "0.5", "batch": 16.0},
        {"network_widths": [np.int32(8), 4.0], "normalise": False, "optimizer_rate": np.float64(0.5), "batch": "16"},
    ):
        assert config(**options) == plain
    # None, and a switch that is False, are as if they were not given.
    nothing = {"optimizer": None, "tfidf": False, "network_dropout": None}
    assert config(network_widths=[8, 4], normalise=False, optimizer_rate=0.5, batch=16, **nothing) == plain
    for wrong in (object(), {"a": 1}, b"8", np.array([8]), 1j):
        with pytest.raises(xc.OptionError, match="^batch"):
            xc.plan("dense", X, Y, batch=wrong)


@pytest.mark.parametrize(
    "kind, keyword, near",
    [
        ("tree", "tree_branchng", "tree_branching"), ("tree", "cluster_maxleaf", "cluster_max_leaf"),
        ("lns", "negative_sampled", "negatives_sampled"), ("dense", "network_width", "network_widths"),
        ("mach", "bucket", "buckets"), ("tree", "valdation", "validation"), ("dense", "max_mem", "max_memory"),
    ],
)
def test_an_unknown_keyword_is_refused_with_one_that_is_near(data, kind, keyword, near):
    for door in (xc.train, xc.plan, xc.tune):
        with pytest.raises(xc.OptionError, match=f"^{keyword}: .*did you mean .*{near}") as caught:
            door(kind, *data.arrays("sparse"), **{keyword: 3})
        assert caught.value.option == keyword


def test_an_unknown_kind_is_refused_with_one_that_is_near(data):
    with pytest.raises(xc.OptionError, match="kind 'tre': one of tree, .*did you mean 'tree'"):
        xc.train("tre", *data.arrays("sparse"))
    with pytest.raises(xc.OptionError, match="kind 'svm': one of"):
        xc.settings("svm")
