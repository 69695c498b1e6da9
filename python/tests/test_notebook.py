"""The notebook runs from its first cell to its last, and shows what it is about."""

import pathlib

import pytest

NOTEBOOK = pathlib.Path(__file__).resolve().parent.parent / "examples" / "tags.ipynb"


def outputs(cell, kind):
    """What a cell shows in a form."""
    return [output["data"][kind] for output in cell.get("outputs", []) if kind in output.get("data", {})]


def test_the_notebook_runs_and_shows_a_table_curves_and_an_explanation():
    for name in ("nbclient", "nbformat", "ipykernel", "matplotlib", "pandas"):
        pytest.importorskip(name, reason=f"no {name}: python/examples/tags.ipynb does not run")
    import nbclient
    import nbformat

    notebook = nbformat.read(NOTEBOOK, as_version=4)
    assert not any(cell.get("outputs") for cell in notebook.cells if cell.cell_type == "code"), "outputs are not kept"
    nbclient.NotebookClient(notebook, timeout=300, kernel_name="python3").execute()
    code = [cell for cell in notebook.cells if cell.cell_type == "code"]
    by_source = {start: next(cell for cell in code if start in cell.source) for start in (
        "answers.to_frame", "xc.evaluate(test[\"tags\"], answers", "t.report.plot", "fitted.report.plot", "why = ",
    )}
    assert "<table" in outputs(by_source["answers.to_frame"], "text/html")[0]
    judged = outputs(by_source["xc.evaluate(test[\"tags\"], answers"], "text/html")[0]
    assert "P@1" in judged and " to " in judged and "PSP@5" in judged
    for start in ("t.report.plot", "fitted.report.plot"):
        assert outputs(by_source[start], "image/png"), f"{start} draws nothing"
    why = outputs(by_source["why = "], "text/html")[0]
    assert "effect" in why and "term" in why
    # The page of the training in the notebook is the library's picture.
    assert "<svg" in outputs(next(cell for cell in code if cell.source.rstrip().endswith("\nt")), "image/svg+xml")[0]
