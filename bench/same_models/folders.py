"""Data of every form, and the folder of a small transformer, for the cases. Standard library and numpy."""

import json
import struct

import numpy as np

import fixtures

WORDS = 160
WIDTH, UNITS, POSITIONS = 8, 16, 64

# What a program without transformers says of what needs them.
WITHOUT_FEATURES = [
    "train lns --train d/train.jsonl --encoder transformer --transformer.from d/bert --model m",
    "train mach --train d/train.jsonl --encoder frozen --model m",
    "embed --from d/bert --input d/test.jsonl --output v.npy",
]


def make(xc, scratch):
    """The folder of data that every case finds as `d`."""
    place = scratch / "data"
    fixtures.make_data(xc, place)
    data = place / "d"
    rows = [json.loads(line) for line in (data / "train.jsonl").read_text().splitlines()]
    names = (data / "labels.txt").read_text().splitlines()
    (data / "named.csv").write_text(
        "id,text,tags\n" + "".join(f'r{at},"{row["text"]}",{";".join(names[l] for l in row["labels"])}\n'
                                   for at, row in enumerate(rows)))
    order = np.random.default_rng(7).permutation(len(rows))
    (data / "ids.jsonl").write_text("".join(
        json.dumps({"id": f"r{at}", "labels": rows[at]["labels"]}) + "\n" for at in order))
    (data / "some.txt").write_text("1\n3\n5\n7\n9\n")
    (data / "label-texts.jsonl").write_text("".join(json.dumps({"text": f"{name} {name[:4]}"}) + "\n" for name in names))
    (data / "requests.jsonl").write_text("".join(
        json.dumps({"id": at, "text": row["text"], "top_k": 3, "exclude": row["labels"]}) + "\n"
        for at, row in enumerate(rows[:12])))
    transformer(data / "bert", sorted({word for row in rows for word in row["text"].split()})[:WORDS])
    return data


def transformer(folder, words):
    """A BERT of one layer whose vocabulary are these words."""
    folder.mkdir()
    special = ["[PAD]", "[UNK]", "[CLS]", "[SEP]"]
    vocabulary = {word: at for at, word in enumerate(special + words)}
    config = {"architectures": ["BertModel"], "model_type": "bert", "hidden_size": WIDTH, "num_hidden_layers": 1,
              "num_attention_heads": 2, "intermediate_size": UNITS, "hidden_act": "gelu", "vocab_size": len(vocabulary),
              "max_position_embeddings": POSITIONS, "type_vocab_size": 2, "layer_norm_eps": 1e-12, "pad_token_id": 0}
    of_special = {word: {"id": word, "ids": [vocabulary[word]], "tokens": [word]} for word in special[2:]}
    sequence = [{"SpecialToken": {"id": "[CLS]", "type_id": 0}}, {"Sequence": {"id": "A", "type_id": 0}},
                {"SpecialToken": {"id": "[SEP]", "type_id": 0}}]
    tokenizer = {
        "version": "1.0", "truncation": None, "padding": None, "decoder": None,
        "added_tokens": [{"id": vocabulary[word], "content": word, "single_word": False, "lstrip": False, "rstrip": False,
                          "normalized": False, "special": True} for word in special],
        "normalizer": {"type": "BertNormalizer", "clean_text": True, "handle_chinese_chars": True, "strip_accents": None,
                       "lowercase": True},
        "pre_tokenizer": {"type": "BertPreTokenizer"},
        "post_processor": {"type": "TemplateProcessing", "single": sequence,
                           "pair": sequence[:2] + [{"Sequence": {"id": "B", "type_id": 1}}], "special_tokens": of_special},
        "model": {"type": "WordPiece", "unk_token": "[UNK]", "continuing_subword_prefix": "##",
                  "max_input_chars_per_word": 100, "vocab": vocabulary},
    }
    (folder / "config.json").write_text(json.dumps(config))
    (folder / "tokenizer.json").write_text(json.dumps(tokenizer))
    rng = np.random.default_rng(3)
    arrays = {}

    def put(name, *shape):
        scale = "LayerNorm.weight" in name
        arrays[name] = np.ones(shape, "f4") if scale else rng.normal(0, 0.1, shape).astype("f4")

    for name, rows in (("word", len(vocabulary)), ("position", POSITIONS), ("token_type", 2)):
        put(f"embeddings.{name}_embeddings.weight", rows, WIDTH)
    layer = "encoder.layer.0."
    products = {f"attention.self.{name}": (WIDTH, WIDTH) for name in ("query", "key", "value")}
    products |= {"attention.output.dense": (WIDTH, WIDTH), "intermediate.dense": (UNITS, WIDTH), "output.dense": (WIDTH, UNITS)}
    for name, shape in products.items():
        put(f"{layer}{name}.weight", *shape)
        put(f"{layer}{name}.bias", shape[0])
    for name in ("embeddings.", f"{layer}attention.output.", f"{layer}output."):
        put(f"{name}LayerNorm.weight", WIDTH)
        put(f"{name}LayerNorm.bias", WIDTH)
    header, at = {}, 0
    for name, values in arrays.items():
        header[name] = {"dtype": "F32", "shape": list(values.shape), "data_offsets": [at, at + values.nbytes]}
        at += values.nbytes
    head = json.dumps(header).encode()
    head += b" " * (-len(head) % 8)
    with open(folder / "model.safetensors", "wb") as file:
        file.write(struct.pack("<Q", len(head)) + head + b"".join(values.tobytes() for values in arrays.values()))
