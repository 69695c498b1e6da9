"""Types that editors and checkers see are those of the package, and the options those of the table of settings."""

import ast
import importlib.util
import inspect
import json
import pathlib
import subprocess
import sys
import textwrap

import numpy as np
import pytest
import xc

INSTALLED = pathlib.Path(xc.__file__).resolve().parent
SOURCE = pathlib.Path(__file__).resolve().parent.parent


def generator():
    """`generate.py`, as a module."""
    spec = importlib.util.spec_from_file_location("generate", SOURCE / "generate.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def stub(name):
    return ast.parse((INSTALLED / name).read_text(encoding="utf-8"))


def test_the_stub_of_options_is_what_the_table_says():
    expected = generator().text()
    for place in (INSTALLED, SOURCE / "xc"):
        for name, written in generator().FILES.items():
            assert (place / name).read_text(encoding="utf-8") == written(), f"{place}: run python/generate.py"
    classes = {node.name: node for node in ast.parse(expected).body if isinstance(node, ast.ClassDef)}
    for kind in xc._native.kinds():
        fields = {node.target.id: node for node in classes[f"{kind.capitalize()}Options"].body if isinstance(node, ast.AnnAssign)}
        of_files = {name for name, row in xc.settings(kind).items() if row["heading"] == "Input options"}
        assert set(fields) == set(xc.settings(kind)) - of_files and len(fields) > 30
    said = " ".join(expected.split())
    assert "Literal[\"balanced\", \"unbalanced\"]" in said and "Needs cluster_method unbalanced" in said
    assert "[default: 10; 2000 with sampler uniform, log-uniform or frequency; 500 with negatives_shared false]" in said
    # Nothing that a user gives or gets is of any type.
    assert "Any" not in (INSTALLED / "__init__.pyi").read_text(encoding="utf-8") + expected


def test_the_package_says_that_it_has_types():
    for name in ("py.typed", "__init__.pyi", "_native.pyi", "_options.pyi"):
        assert (INSTALLED / name).exists(), name


def parameters(node):
    """Names of parameters, and which of them have a default."""
    arguments = node.args
    plain = arguments.posonlyargs + arguments.args
    defaults = [None] * (len(plain) - len(arguments.defaults)) + list(arguments.defaults)
    given = [(argument.arg, default is not None) for argument, default in zip(plain, defaults)]
    given += [(argument.arg, default is not None) for argument, default in zip(arguments.kwonlyargs, arguments.kw_defaults)]
    return [pair for pair in given if pair[0] != "self"], arguments.kwarg.arg if arguments.kwarg else None


def of_runtime(function):
    found = inspect.signature(function).parameters.values()
    names = [(p.name, p.default is not p.empty) for p in found if p.kind not in (p.VAR_KEYWORD, p.VAR_POSITIONAL)]
    keywords = [p.name for p in found if p.kind is p.VAR_KEYWORD]
    return [pair for pair in names if pair[0] != "self"], keywords[0] if keywords else None


def test_the_stubs_have_the_names_and_parameters_of_the_package():
    tree, options = stub("__init__.pyi"), stub("_options.pyi")
    functions = {node.name: node for node in tree.body if isinstance(node, ast.FunctionDef)}
    functions.update({node.name: node for node in options.body if isinstance(node, ast.FunctionDef)})
    # Types that exist for checkers alone.
    of_types = {"Protocol", "TypedDict"}
    classes = {node.name: node for node in tree.body if isinstance(node, ast.ClassDef)}
    classes = {name: node for name, node in classes.items() if not of_types & {ast.unparse(base) for base in node.bases}}
    assert {*functions, *classes, "__version__"} == set(xc.__all__)
    for name, node in functions.items():
        expected, keywords = of_runtime(getattr(xc, name))
        got, own = parameters(node)
        assert (sorted(got), own) == (sorted(expected), keywords), name
    for name, node in classes.items():
        whole = getattr(xc, name)
        public = {member for member in dir(whole) if not member.startswith("_")}
        inherited = {member for base in whole.__mro__[1:] for member in vars(base) if base.__module__ != "xc._report"}
        methods = {member.name: member for member in node.body if isinstance(member, ast.FunctionDef)}
        fields = {member.target.id for member in node.body if isinstance(member, ast.AnnAssign)}
        bases = {member for base in node.bases if ast.unparse(base) == "Report" for member in ("plot",)}
        assert public - inherited <= {*methods, *fields, *bases}, f"{name}: {public - inherited - set(methods) - fields}"
        for member, function in methods.items():
            found = getattr(whole, member, None)
            if member == "__iter__" or isinstance(found, property):
                continue
            assert found is not None, f"{name}.{member}"
            if inspect.isfunction(found):
                assert parameters(function) == of_runtime(found), f"{name}.{member}"


def test_the_stub_of_the_extension_has_its_names():
    tree = stub("_native.pyi")
    names = {node.name: node for node in tree.body if isinstance(node, (ast.FunctionDef, ast.ClassDef))}
    public = {name for name in dir(xc._native) if not name.startswith("_")}
    assert public == set(names)
    for name, node in names.items():
        if isinstance(node, ast.FunctionDef):
            # `with` is no name in Python.
            got = [parameter.rstrip("_") for parameter, _ in parameters(node)[0]]
            written = getattr(xc._native, name).__text_signature__.strip("()")
            assert got == [part.split("=")[0].strip() for part in written.split(",") if part.strip()], name
            continue
        members = {member.name for member in node.body if isinstance(member, ast.FunctionDef)}
        found = {member for member in vars(getattr(xc._native, name)) if not member.startswith("_") or member == "__len__"}
        assert members == found, name


def typed(name):
    """Fields of a dict that the stubs describe, and the code of their types."""
    node = next(node for node in stub("__init__.pyi").body if isinstance(node, ast.ClassDef) and node.name == name)
    return {member.target.id: ast.unparse(member.annotation) for member in node.body if isinstance(member, ast.AnnAssign)}


def test_the_stubs_have_the_options_of_a_search(tmp_path):
    rows, labels = np.eye(6, dtype=np.float32), [[row % 3] for row in range(6)]
    model = xc.train("tree", rows, labels, model=tmp_path / "m", tree_branching=2).model
    with pytest.raises(xc.OptionError, match="post_processor: a search has no such option"):
        model.predict(rows, post_processor="sigmoid")
    for name in xc.settings("search"):
        # Each is an option: a wrong value is what is wrong with it.
        with pytest.raises(xc.OptionError, match=name.replace("_", "[_-]")):
            model.predict(rows, **{name: object()})


def test_the_stubs_have_the_fields_of_what_calls_return(tmp_path):
    rng = np.random.default_rng(1)
    rows, labels = rng.random((60, 8), dtype=np.float32), [[row % 5] for row in range(60)]
    tuned = xc.tune("tree", rows, labels, trials=2, train_model=False, progress=False)
    index = xc.index(rows, "l2", tmp_path / "i", degree=8)
    model = xc.train("uniform", rows, labels, model=tmp_path / "m", epochs=1).model
    for name, got in {
        "Found": tuned.found,
        "Run": tuned.runs[0],
        "Refreshed": index.refresh(rows, policy="codes"),
        "IndexReport": model.build_index(rows, labels),
    }.items():
        assert set(got) == set(typed(name)), name
        for field, annotation in typed(name).items():
            of = {"int": int, "float": float, "str": str}.get(annotation)
            assert of is None or isinstance(got[field], of), f"{name}.{field}: {got[field]!r} for {annotation}"


RIGHT = """
    import numpy as np
    import xc
    from xc.sklearn import LnsClassifier, TreeClassifier

    X, Y = np.zeros((3, 4), np.float32), [[0], [1], [0]]
    t = xc.train("tree", X, Y, model="m", tree_branching=2, cluster_method="unbalanced", tfidf=True, linear_cost=0.5)
    d = xc.train("dense", X, Y, network_widths=[8, 4], epochs=3, wide="off", callbacks=[print], validation=(X, Y))
    kind: str = t.model.kind
    r = t.model.predict(X, top_k=3, beam=4)
    pairs: list[tuple[str | int, float]] = r[0]
    report: xc.Evaluation = xc.evaluate(Y, r, k=(1, 3), intervals=True)
    plan: xc.Report = xc.plan("lns", X, Y, negatives_uniform=3)
    tuned: xc.Tuned = xc.tune("mach", X, Y, trials=2, buckets=8)
    near: xc.Ranked = xc.index(X, "l2", top_k=3).search(X)
    metrics = t.report.metrics
    share: float = metrics["P@1"] if metrics else 0.0
    m = xc.load("m", repetitions=[0], use_index=False)
    one = m.predict_one({3: 1.0}, top_k=2, beam=4)
    why = m.explain("a text", label="b")
    built = m.build_index(X, Y, max_loss=0.1, degree=16)
    i = xc.index(X, "cosine", "i", degree=16, fit_queries=X)
    changed = i.refresh(X, policy="codes")
    gone = i.delete([1, 2]), i.insert(X), i.search(X, filter=np.array([True, False, True]))
    j: xc.Index = xc.load_index("i")
    b = xc.blend([m, t.model], X, Y, rule="net", folds=2)
    c = xc.calibrate(b.model, X, Y, method="platt")
    c.model.save("c")
    d2: xc.Model = xc.convert(m, "half", precision="f16")
    e: xc.Model = xc.merge(["part-0", "part-1"], "whole")
    v = xc.Embedder("bert", precision="bf16").embed(["a text"])
    about = xc.inspect(m), xc.settings("tree")
    words = xc.train("skipgram", ["a text"], model="w", window=3)
    scores: xc.Evaluation = xc.evaluate([["a"], ["b"]], ([["a"], ["b"]], [[1.0], [0.5]]), compare=r)
    best = scores["P@1"], t.report["wall_s"], tuned.found["value"], tuned.runs[0]["options"]
    csr, frame = r.to_csr(), tuned.to_frame()
    t2: xc.Trained = xc.train("tree", ["a"], [{"x"}, ("y",)])
    estimators = TreeClassifier(trees=2, cluster_method="balanced"), LnsClassifier(sampler="uniform", wide=False, top_k=5)
    f: xc.Fitted = b
    s: xc.SparseIndex | None = j if isinstance(j, xc.SparseIndex) else None
    tr: xc.TrainingReport = t2.report
    for kind_of in (xc.DataError, xc.DefectError, xc.MemoryLimitError, xc.ModelError, xc.OptionError, xc.XcError, xc.XcWarning):
        named: str = kind_of.__name__ + xc.__version__
"""

REVEALED = {
    "one": "list[tuple[str | int, float]]",
    'built["lost"]': "TypedDict(xc.Lost, {'P@1': float, 'P@3': float, 'P@5': float}) | None",
    'changed["after"]': "float",
    "v": "numpy.ndarray[tuple[Any, ...], numpy.dtype[numpy.floating[numpy._typing._nbit_base._32Bit]]]",
    "best": "tuple[float, float, float, dict[str, str]]",
    "gone[0]": "int",
    "i": "xc.Index",
    "metrics": "dict[str, float] | None",
    "c.model": "xc.Model",
    "why": "dict[str, None | bool | int | float | str | list[...] | dict[str, ...]]",
}

WRONG = [
    ('xc.train("tree", X, Y, tree_branchng=2)', "tree_branchng|No overload"),
    ('xc.train("tree", X, Y, epochs=2)', "epochs|No overload"),
    ('xc.train("tree", X, Y, cluster_method="round")', "cluster_method|No overload"),
    ('xc.train("dense", X, Y, network_widths="wide")', "network_widths|incompatible|No overload"),
    ('xc.load(3)', "arg-type"),
    ('xc.load("m").predictt(X)', "predictt"),
    ('m.predict(3)', "arg-type"),
    ('m.predict(X, beams=3)', "beams"),
    ('xc.index(X, "l2", degrees=8)', "degrees"),
    ('xc.convert(m, "half", precisoin="f16")', "precisoin"),
    ('xc.convert(m, "half", precision="f8")', "arg-type"),
    ('xc.Embedder("bert", max_token=3)', "max_token"),
    ('m.predict(X, decoder="mode")', "arg-type"),
    ('TreeClassifier(treees=2)', "treees"),
    ('LnsClassifier(sampler="none")', "arg-type"),
    ('xc.train("tree", X, 5)', "No overload|arg-type|call-overload"),
    ('scores["P@1"].upper()', "upper"),
]


def right_calls():
    """The right calls, and what their results are."""
    return textwrap.dedent(RIGHT) + "".join(f"reveal_type({value})\n" for value in REVEALED)


def test_pyright_accepts_right_calls_and_knows_their_results(tmp_path):
    pytest.importorskip("basedpyright", reason="no pyright: the stubs are not checked by it")
    (tmp_path / "calls.py").write_text(right_calls(), encoding="utf-8")
    config = {"typeCheckingMode": "strict", "pythonVersion": f"{max((3, 10), sys.version_info[:2])[0]}.{max((3, 10), sys.version_info[:2])[1]}"}
    (tmp_path / "pyrightconfig.json").write_text(json.dumps(config), encoding="utf-8")
    checked = subprocess.run(
        [sys.executable, "-m", "basedpyright", "--outputjson", "--pythonpath", sys.executable, "calls.py"],
        capture_output=True, text=True, cwd=tmp_path,
    )
    said = json.loads(checked.stdout)["generalDiagnostics"]
    assert [one["message"] for one in said if one["severity"] == "error"] == []
    types = [one["message"] for one in said if one["severity"] == "information"]
    assert len(types) == len(REVEALED) and not any("Unknown" in one for one in types), types


def test_a_checker_of_types_accepts_right_calls_and_no_wrong_ones(tmp_path):
    pytest.importorskip("mypy", reason="no mypy: the stubs are not checked by one")
    file = tmp_path / "calls.py"
    right = right_calls()
    for name in xc.__all__:
        assert f"xc.{name}" in right, f"{name} is not among the right calls"
    file.write_text(right + "\n".join(call for call, _ in WRONG) + "\n", encoding="utf-8")
    first = len(right.splitlines()) + 1
    checked = subprocess.run(
        [sys.executable, "-m", "mypy", "--strict", "--python-version", f"{max((3, 10), sys.version_info[:2])[0]}."
         f"{max((3, 10), sys.version_info[:2])[1]}", "--cache-dir", str(tmp_path / "cache"), str(file)],
        capture_output=True, text=True, cwd=tmp_path,
    )
    notes = [line.partition(": note: ")[2] for line in checked.stdout.splitlines() if "Revealed type" in line]
    assert notes == [f'Revealed type is "{expected}"' for expected in REVEALED.values()], checked.stdout
    lines = [line for line in checked.stdout.splitlines() if "error:" in line]
    found = {}
    for line in lines:
        place, _, said = line.partition(": error: ")
        assert place.split(":")[0].endswith("calls.py"), checked.stdout
        found.setdefault(int(place.split(":")[1]), []).append(said)
    import re

    assert set(found) == set(range(first, first + len(WRONG))), checked.stdout
    for number, (call, expected) in enumerate(WRONG, first):
        assert any(re.search(expected, said) for said in found[number]), f"{call}: {found[number]}"
