"""Vectors and gradients of transformers as HuggingFace computes them: `python reference.py` writes a file FAMILY.json
beside this script for each family of small ones, `python reference.py FOLDER` a file NAME.json for weights that were
trained, where NAME is that of the folder. Needs torch and transformers; written with the versions in the files.

Weights of small ones follow from the name and shape of each array, so that no file holds any."""

import json
import pathlib
import sys

import torch
import transformers
from transformers import (
    BertConfig, BertModel, DistilBertConfig, DistilBertModel, MPNetConfig, MPNetModel, RobertaConfig, RobertaModel,
    XLMRobertaConfig, XLMRobertaModel,
)

WIDTH, HEADS, UNITS, LAYERS, VOCABULARY, POSITIONS = 16, 2, 40, 2, 50, 64
# Lengths of the instances: one token, few, and so many that distances share buckets.
LENGTHS = [5, 1, 40]


def value(name: str, n: int) -> torch.Tensor:
    """The values of an array: an integer recurrence that starts from its name, in +-0.25; gains lie around 1."""
    state = 0
    for byte in name.encode():
        state = (state * 131 + byte) % 65521
    out = []
    for _ in range(n):
        state = (state * 75 + 74) % 65537
        out.append((state / 65537.0 - 0.5) / 2)
    is_gain = name.lower().endswith("norm.weight")
    return torch.tensor(out, dtype=torch.float32) + (1.0 if is_gain else 0.0)


def tokens() -> list[list[int]]:
    return [[3 + (i * i * 7 + 11 * at * at + 5 * at) % (VOCABULARY - 3) for at in range(n)] for i, n in enumerate(LENGTHS)]


def models():
    common = dict(vocab_size=VOCABULARY, max_position_embeddings=POSITIONS)
    usual = dict(hidden_size=WIDTH, num_attention_heads=HEADS, intermediate_size=UNITS, num_hidden_layers=LAYERS)
    of_roberta = dict(**common, **usual, type_vocab_size=1, pad_token_id=1, layer_norm_eps=1e-5)
    yield "bert", BertModel(BertConfig(**common, **usual), add_pooling_layer=False)
    distil = DistilBertConfig(**common, dim=WIDTH, n_heads=HEADS, hidden_dim=UNITS, n_layers=LAYERS)
    yield "distilbert", DistilBertModel(distil)
    yield "mpnet", MPNetModel(MPNetConfig(**common, **usual), add_pooling_layer=False)
    yield "roberta", RobertaModel(RobertaConfig(**of_roberta), add_pooling_layer=False)
    yield "xlm-roberta", XLMRobertaModel(XLMRobertaConfig(**of_roberta), add_pooling_layer=False)


TEXTS = [
    "A small library for audio, written in plain C; it needs no more than a few kilobytes of memory.",
    "Café au lait & naïve Überraschungen: 3.14159 (approximately) http://example.org/path?q=1",
    "mail",
    "The lazy dogs of the village were sleeping, although the brown fox jumped over each of them again and again. " * 3,
]


def form(i: int, width: int) -> torch.Tensor:
    """What the vector of instance i is multiplied with."""
    return torch.tensor([((j * 31 + i * 5) % 17 - 8) / 8 for j in range(width)])


def write(name: str, model, tokens: list[list[int]], more: dict) -> None:
    """The mean of the tokens' states of each instance, and the gradient of a linear form of all of them."""
    model.eval()
    model.set_attn_implementation("eager")
    vectors, firsts, loss = [], [], 0.0
    for i, ids in enumerate(tokens):
        ids = torch.tensor([ids])
        of_one = model(input_ids=ids, attention_mask=torch.ones_like(ids)).last_hidden_state[0]
        vectors.append([round(x, 7) for x in of_one.mean(0).tolist()])
        firsts.append([round(x, 7) for x in of_one[0].tolist()])
        loss = loss + (of_one.mean(0) * form(i, of_one.shape[1])).sum()
    loss.backward()
    out = {"versions": {"torch": torch.__version__, "transformers": transformers.__version__}}
    if "texts" in more:
        out |= more | {"firsts": firsts}
    else:
        out["config"] = json.loads(model.config.to_json_string(use_diff=False))
    out |= {
        "tokens": tokens,
        "vectors": vectors,
        "gradients": [
            {"name": name, "shape": list(p.shape), "norm": float(f"{p.grad.double().norm().item():.7g}")}
            for name, p in model.named_parameters()
        ],
    }
    text = json.dumps(out, indent=None, separators=(",", ":"))
    # A line an array or list.
    for cut in ('"config"', '"texts"', '"tokens"', '"firsts"', '"vectors"', '"gradients"', '{"name"'):
        text = text.replace(cut, "\n" + cut)
    pathlib.Path(__file__).with_name(f"{name}.json").write_text(text + "\n")


def of_weights(folder: pathlib.Path) -> None:
    tokenizer = transformers.AutoTokenizer.from_pretrained(folder, local_files_only=True)
    model = transformers.AutoModel.from_pretrained(folder, local_files_only=True, add_pooling_layer=False)
    # Cut as `--transformer.max-tokens 48` cuts.
    tokens = [tokenizer(text, truncation=True, max_length=48)["input_ids"] for text in TEXTS]
    write(folder.name, model.float(), tokens, {"texts": TEXTS})


def main() -> None:
    torch.set_num_threads(1)
    for folder in sys.argv[1:]:
        of_weights(pathlib.Path(folder))
    for family, model in models() if len(sys.argv) == 1 else []:
        with torch.no_grad():
            for name, parameter in model.named_parameters():
                parameter.copy_(value(name, parameter.numel()).view(parameter.shape))
        write(family, model, tokens(), {})


main()
