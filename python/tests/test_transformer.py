"""Networks over a transformer, and vectors of texts, from a folder that is made here."""

import concurrent.futures
import json
import pickle
import re
import shutil
import warnings

import numpy as np
import pytest
import xc

WORDS = "audio mail library reader client window server editor".split()
SPECIAL = ["[PAD]", "[UNK]", "[CLS]", "[SEP]"]
VOCABULARY = {word: number for number, word in enumerate(SPECIAL + WORDS + ["##s", "of"])}
WIDTH, UNITS, LAYERS, POSITIONS = 16, 32, 2, 24


def shapes():
    """Names and shapes of a BERT's weights."""
    yield "embeddings.word_embeddings.weight", (len(VOCABULARY), WIDTH)
    yield "embeddings.position_embeddings.weight", (POSITIONS, WIDTH)
    yield "embeddings.token_type_embeddings.weight", (2, WIDTH)
    layers = [f"encoder.layer.{number}" for number in range(LAYERS)]
    for norm in ["embeddings", *(f"{layer}.{of}output" for layer in layers for of in ("attention.", ""))]:
        yield f"{norm}.LayerNorm.weight", (WIDTH,)
        yield f"{norm}.LayerNorm.bias", (WIDTH,)
    square = ["attention.self.query", "attention.self.key", "attention.self.value", "attention.output.dense"]
    for layer in layers:
        of_layer = [(of, WIDTH, WIDTH) for of in square]
        for name, n_out, n_in in [*of_layer, ("intermediate.dense", UNITS, WIDTH), ("output.dense", WIDTH, UNITS)]:
            yield f"{layer}.{name}.weight", (n_out, n_in)
            yield f"{layer}.{name}.bias", (n_out,)


@pytest.fixture(scope="module")
def bert(tmp_path_factory):
    """A folder with a small BERT of drawn weights."""
    folder, draw = tmp_path_factory.mktemp("bert"), np.random.default_rng(1)
    header, data = {}, b""
    for name, shape in shapes():
        values = draw.normal(0, 0.2, shape).astype("<f4") + np.float32(name.endswith("LayerNorm.weight"))
        header[name] = {"dtype": "F32", "shape": shape, "data_offsets": [len(data), len(data) + values.nbytes]}
        data += values.tobytes()
    text = json.dumps(header).encode()
    (folder / "model.safetensors").write_bytes(len(text).to_bytes(8, "little") + text + data)
    config = {
        "model_type": "bert", "vocab_size": len(VOCABULARY), "hidden_size": WIDTH, "num_hidden_layers": LAYERS,
        "num_attention_heads": 2, "intermediate_size": UNITS, "hidden_act": "gelu", "max_position_embeddings": POSITIONS,
        "type_vocab_size": 2, "layer_norm_eps": 1e-12,
    }
    (folder / "config.json").write_text(json.dumps(config))
    shared = {"single_word": False, "lstrip": False, "rstrip": False, "normalized": False, "special": True}
    tokenizer = {
        "version": "1.0", "truncation": None, "padding": None, "decoder": None,
        "added_tokens": [{"id": number, "content": word, **shared} for number, word in enumerate(SPECIAL)],
        "normalizer": {
            "type": "BertNormalizer", "clean_text": True, "handle_chinese_chars": True, "strip_accents": None, "lowercase": True,
        },
        "pre_tokenizer": {"type": "BertPreTokenizer"},
        "post_processor": {"type": "BertProcessing", "sep": ["[SEP]", 3], "cls": ["[CLS]", 2]},
        "model": {
            "type": "WordPiece", "unk_token": "[UNK]", "continuing_subword_prefix": "##", "max_input_chars_per_word": 100,
            "vocab": VOCABULARY,
        },
    }
    (folder / "tokenizer.json").write_text(json.dumps(tokenizer))
    return folder


@pytest.fixture(scope="module")
def texts():
    return [f"{WORDS[i % 8]} of {WORDS[i // 3 % 8]}s" for i in range(160)]


@pytest.fixture(scope="module")
def labels():
    return [[WORDS[i % 8], "of " + WORDS[i // 3 % 8]] for i in range(160)]


def test_a_network_over_a_transformer_is_trained_saved_and_explained(bert, texts, labels, tmp_path):
    options = {
        "encoder": "transformer", "transformer_from": bert, "transformer_max_tokens": 8, "transformer_rate": 0.005,
        "epochs": 30, "batch": 16, "loss": "bce", "seed": 3,
    }
    one = xc.train("dense", texts, labels, threads=1, **options)
    two = xc.train("dense", texts, labels, model=tmp_path / "model", threads=2, **options)
    assert xc.evaluate(labels, one.model.predict(texts))["P@1"] > 0.9
    again = xc.load(tmp_path / "model")
    assert again.takes == "text"
    for model in (two.model, again, pickle.loads(pickle.dumps(one.model))):
        np.testing.assert_array_equal(model.predict(texts).scores, one.model.predict(texts).scores)
    assert again.predict_one(texts[5]) == again.predict(texts[5:6])[0]
    why = again.explain(texts[5], labels[5][0])
    assert {effect["term"] for effect in why["effects"]} <= set(VOCABULARY) and why["effects"][0]["term"] == WORDS[5]
    plan = xc.plan("dense", texts, labels, **options)
    assert {row["option"]: row["value"] for row in plan["options"]}["transformer.max-tokens"] == "8"


def test_a_wide_term_reads_all_words_where_tokens_are_cut(bert, texts, labels, tmp_path):
    options = {
        "encoder": "transformer", "transformer_from": bert, "transformer_max_tokens": 3, "transformer_rate": 0.005,
        "epochs": 20, "batch": 16, "loss": "bce", "seed": 3,
    }
    alone = xc.train("dense", texts, labels, **options).model
    wide = xc.train("dense", texts, labels, model=tmp_path / "wide", wide="on", text_ngrams=2, **options).model
    at_3 = [xc.evaluate(labels, model.predict(texts))["P@3"] for model in (alone, wide)]
    assert at_3[1] > at_3[0] + 0.1, at_3
    for model in (xc.load(tmp_path / "wide"), pickle.loads(pickle.dumps(wide))):
        np.testing.assert_array_equal(model.predict(texts).scores, wide.predict(texts).scores)
    why = wide.explain(texts[5], labels[5][1])
    assert len(why["effects"]) == 3 and why["wide"]["parts"][0]["term"].endswith(labels[5][1][3:] + "s"), why


def test_what_is_wrong_with_a_transformer_names_its_keyword(bert, texts, labels, tmp_path):
    with pytest.raises(xc.OptionError, match="transformer_from"):
        xc.train("dense", texts, labels, encoder="transformer")
    with pytest.raises(xc.OptionError, match="transformer_max_tokens 25: .* has 24 positions"):
        xc.train("dense", texts, labels, encoder="transformer", transformer_from=bert, transformer_max_tokens=25)
    with pytest.raises(xc.XcError, match="config.json: cannot be read"):
        xc.Embedder(tmp_path)
    with pytest.raises(xc.OptionError, match="max_tokens 25: .* has 24 positions") as raised:
        xc.Embedder(bert, max_tokens=25)
    assert raised.value.option == "max_tokens"
    with pytest.raises(xc.OptionError, match='prefix "audio mail": it takes all of at most 4 tokens') as raised:
        xc.Embedder(bert, max_tokens=4, prefix="audio mail")
    assert raised.value.option == "prefix"
    with pytest.raises(xc.OptionError, match="expected f32 or bf16"):
        xc.Embedder(bert, max_tokens=8, precision="f64")


def test_a_text_has_the_same_vector_alone_and_among_others(bert, texts):
    embedder = xc.Embedder(bert, max_tokens=8)
    vectors = embedder.embed(texts * 4, threads=2)
    assert vectors.shape == (640, WIDTH) == (640, embedder.width) and vectors.dtype == np.float32
    np.testing.assert_allclose(np.linalg.norm(vectors, axis=1), 1, rtol=1e-5)
    for at in (0, 15, 16, 639):
        np.testing.assert_array_equal(vectors[at], embedder.embed([(texts * 4)[at]], threads=1)[0])
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(embedder)).embed(texts[:9]), vectors[:9])
    assert embedder.embed([]).shape == (0, WIDTH)


def test_a_prefix_and_a_limit_change_vectors_as_the_texts_would(bert, texts):
    plain, prefixed = xc.Embedder(bert, max_tokens=8), xc.Embedder(bert, max_tokens=8, prefix="mail ")
    np.testing.assert_array_equal(prefixed.embed(texts), plain.embed(["mail " + text for text in texts]))
    long = ["audio mail library reader client window server editor"]
    np.testing.assert_array_equal(plain.embed(long), plain.embed(["audio mail library reader client window"]))
    loose = xc.Embedder(bert, max_tokens=8, normalise=False).embed(texts)
    np.testing.assert_allclose(loose / np.linalg.norm(loose, axis=1, keepdims=True), plain.embed(texts), rtol=1e-5, atol=1e-6)


def test_several_threads_embed_at_a_time(bert, texts):
    embedder = xc.Embedder(bert, max_tokens=8)
    with concurrent.futures.ThreadPoolExecutor(4) as threads:
        several = list(threads.map(lambda _: embedder.embed(texts, threads=1), range(8)))
    for vectors in several:
        np.testing.assert_array_equal(vectors, several[0])


def test_features_are_no_texts(bert):
    with pytest.raises(TypeError, match="a list of texts is expected"):
        xc.Embedder(bert, max_tokens=8).embed(np.zeros((3, 4), np.float32))


def test_a_frozen_transformer_is_a_models_pipeline(bert, texts, labels, tmp_path):
    frozen = {"encoder": "frozen", "transformer_from": bert, "transformer_max_tokens": 8}
    options = {"epochs": 9, "batch": 16, "loss": "bce", "seed": 3}
    vectors = xc.Embedder(bert, max_tokens=8, normalise=False).embed(texts)
    for kind, more in [("dense", {}), ("mach", {"repetitions": 6, "buckets": 8})]:
        run = xc.train(kind, texts, labels, model=tmp_path / kind, **frozen, **options, **more)
        assert run.model.takes == "text"
        of_vectors = xc.train(kind, vectors, labels, **options, **more).model.predict(vectors)
        for model in (run.model, xc.load(tmp_path / kind), pickle.loads(pickle.dumps(run.model))):
            np.testing.assert_array_equal(model.predict(texts).scores, of_vectors.scores)
        why = run.model.explain(texts[5], labels[5][0])
        assert {effect["term"] for effect in why["effects"]} <= set(VOCABULARY)
    with pytest.raises(xc.OptionError, match="encoder"):
        xc.train("mach", texts, labels, encoder="transformer", transformer_from=bert)


def test_texts_that_are_cut_are_counted(bert, texts, labels, tmp_path):
    of = {"transformer_from": bert, "progress": False, "threads": 1, "wide": "off", "epochs": 1}
    long = "audio mail library reader client window server editor " * 3
    some = [*texts[:20], long, long]
    made = {"embedder": xc.Embedder(bert, max_tokens=8)}
    for kind, encoder in (("dense", "transformer"), ("mach", "frozen")):
        given = {**of, "encoder": encoder, "transformer_max_tokens": 8}
        if kind == "mach":
            del given["wide"]
        trained = xc.train(kind, [*texts, long], [*labels, labels[0]], **given)
        [line] = [line for line in trained.report["notes"] if "cut" in line]
        assert re.search(r"of 161 texts 1 is cut at 8 tokens", line)
        made[kind] = trained.model
    made["blend"] = xc.load(made["dense"].folder)
    for name, asked in made.items():
        ask = asked.embed if name == "embedder" else asked.predict
        # Each call counts its own texts.
        for _ in range(2):
            with pytest.warns(xc.XcWarning, match=r"^(texts|X): of 22 texts 2 are cut at 8 tokens$"):
                ask(some)
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            ask(texts[:20])
            if name != "embedder":
                asked.predict_one(texts[0])
        if name != "embedder":
            with pytest.warns(xc.XcWarning, match="^query: of 1 texts 1 is cut at 8 tokens$"):
                asked.predict_one(long)


def test_a_default_prompt_is_said(bert, texts, labels, tmp_path):
    folder = tmp_path / "prompted"
    shutil.copytree(bert, folder)
    prompts = {"prompts": {"query": "mail "}, "default_prompt_name": "query"}
    (folder / "config_sentence_transformers.json").write_text(json.dumps(prompts))
    said = "default prompt .mail . stands before every text"
    with pytest.warns(xc.XcWarning, match=said):
        embedder = xc.Embedder(folder, max_tokens=8)
    expected = xc.Embedder(bert, max_tokens=8, prefix="mail ").embed(texts[:5])
    assert embedder.embed(texts[:5]).tobytes() == expected.tobytes()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        xc.Embedder(folder, max_tokens=8, prefix="")
        xc.Embedder(bert, max_tokens=8)
    of = {"encoder": "frozen", "transformer_from": folder, "transformer_max_tokens": 8, "epochs": 1, "progress": False}
    assert any(re.search(said, line) for line in xc.train("mach", texts, labels, **of).report["notes"])
