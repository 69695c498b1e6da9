"""The Python of the user's page runs, block after block, as a reader would type it."""

import pathlib
import re

import pytest

PAGE = pathlib.Path(__file__).resolve().parents[2] / "docs" / "python.md"


def blocks(page):
    """The blocks of Python of a page, each with the number of its first line."""
    text = page.read_text(encoding="utf-8")
    return [(text[:found.start()].count("\n") + 2, found.group(1)) for found in re.finditer(r"```python\n(.*?)```", text, re.S)]


def executed(page, names):
    """Runs the blocks of a page in order; a failure names the line of the page."""
    found = blocks(page)
    for line, source in found:
        exec(compile("\n" * (line - 1) + source, str(page), "exec"), names)
    return len(found)


@pytest.mark.filterwarnings("ignore::xc.XcWarning")
def test_the_page_runs_as_it_is_typed(tmp_path, monkeypatch, capsys):
    pytest.importorskip("pandas", reason="no pandas: blocks of docs/python.md do not run")
    pytest.importorskip("sklearn", reason="no scikit-learn: blocks of docs/python.md do not run")
    monkeypatch.chdir(tmp_path)
    names = {}
    assert executed(PAGE, names) >= 6
    # What the page says of what it shows.
    import numpy as np
    import xc

    said = capsys.readouterr().out
    assert "nDCG" in said and "tree_branchng" in said and "did you mean tree_branching" in said
    assert names["report"]["P@1"] > 0.8 and names["report"]["intervals"] and names["t"].model.calibrated
    assert names["ids"].shape == (60, 4) and names["ranked"].ids.max() < 7 and (names["ids"] != 0).all()
    assert names["why"]["term"] in ("music", "codec")
    assert {row["option"]: row["value"] for row in names["plan"]["options"]}["trees"] == "3"
    assert names["found"].model.kind == "tree" and names["blend"].model.kind == "blend"
    assert names["lns"].model.folder == str(tmp_path / "lns.model")
    assert names["again"].predict(names["rows"]).names() == xc.load("rows.model").predict(names["rows"]).names()
    assert names["smaller"].n_bytes < names["t"].model.n_bytes and names["model"].has_index
    assert names["tags"].shape == (100, 5) and names["grid"].best_score_ > 0.3
    assert len(names["index"]) == 2010 and (np.asarray(names["near"].ids) % 2 == 0).all()


def test_the_readme_runs_as_it_is_typed(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    names = {}
    assert executed(PAGE.parents[1] / "python" / "README.md", names) == 1
    assert names["t"].model.predict_one("a library for audio")[0][0] == "audio"


def test_no_page_names_the_distribution_of_somebody_else():
    root = PAGE.parents[1]
    pages = [*root.glob("docs/**/*.md"), root / "README.md", root / "python" / "README.md"]
    assert len(pages) > 20
    wrong = [str(page) for page in pages if re.search(r"pip3? install (-\S+ )*xc(?![\w-])", page.read_text(encoding="utf-8"))]
    assert not wrong
