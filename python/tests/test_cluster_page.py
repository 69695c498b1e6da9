"""The Python of docs/cluster.md, with a loop in place of Ray and Dask."""

import json
import pathlib
import re
import types

import pytest

import xc

PAGE = pathlib.Path(__file__).parents[2] / "docs" / "cluster.md"


class Parts:
    """What both engines call: a function over parts, and a place for what it gives."""

    def __init__(self, parts, written):
        self.parts, self.written = parts, written

    def map_batches(self, kind, concurrency):
        workers = [kind() for _ in range(concurrency)]
        return Parts([workers[at % concurrency](part) for at, part in enumerate(self.parts)], self.written)

    def map_partitions(self, function, meta):
        return Parts([function(part) for part in self.parts], self.written)

    def write_json(self, folder):
        self.written[folder] = [labels for part in self.parts for labels in part["labels"]]

    to_json = write_json


class Frame(dict):
    def assign(self, **columns):
        return Frame(self, **columns)


def test_the_recipes_answer_as_the_model_does(tmp_path, monkeypatch):
    if not PAGE.exists():
        pytest.skip("docs are not here")
    texts = ["audio library", "sound library", "mail reader", "mail client"] * 5
    labels = [["audio"], ["audio"], ["mail"], ["mail"]] * 5
    monkeypatch.chdir(tmp_path)
    xc.train("tree", texts, labels, model="my.model", text_min_df=1)
    model = xc.load("my.model")
    pathlib.Path("queries.jsonl").write_text("".join(json.dumps({"text": text}) + "\n" for text in texts))
    expected = [[label for label, _ in model.predict_one(text)] for text in texts]
    assert expected[0] == ["audio", "mail"]
    blocks = [block for block in re.findall(r"```python\n(.*?)```", PAGE.read_text(), re.S) if "pipe(" not in block]
    assert len(blocks) == 2

    written = {}

    def read(path, **options):
        rows = [json.loads(line)["text"] for line in pathlib.Path(path).read_text().splitlines()]
        return Parts([Frame(text=rows[at : at + 7]) for at in range(0, len(rows), 7)], written)

    names = {
        "ray": types.SimpleNamespace(data=types.SimpleNamespace(read_json=read)),
        "dask": types.SimpleNamespace(dataframe=types.SimpleNamespace(read_json=read)),
        "meta": None,
    }
    for block in blocks:
        written.clear()
        exec(block, names)
        assert written == {"answers": expected}
