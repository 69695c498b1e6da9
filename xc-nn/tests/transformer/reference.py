"""States, vectors and gradients of small transformers as HuggingFace computes them: `python reference.py` writes a file
FAMILY.json beside this script for each family. Needs torch and transformers; written with the versions in the files.

Weights follow from the name and shape of each array, so that no file holds any."""

import json
import pathlib

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


def main() -> None:
    torch.set_num_threads(1)
    for family, model in models():
        model.eval()
        model.set_attn_implementation("eager")
        named = dict(model.named_parameters())
        with torch.no_grad():
            for name, parameter in named.items():
                parameter.copy_(value(name, parameter.numel()).view(parameter.shape))
        states, loss = [], 0.0
        for i, ids in enumerate(tokens()):
            ids = torch.tensor([ids])
            of_one = model(input_ids=ids, attention_mask=torch.ones_like(ids)).last_hidden_state[0]
            states.append([round(x, 7) for x in of_one.mean(0).tolist()])
            form = torch.tensor([((j * 31 + i * 5) % 17 - 8) / 8 for j in range(WIDTH)])
            loss = loss + (of_one.mean(0) * form).sum()
        loss.backward()
        arrays = [
            {"name": name, "shape": list(p.shape), "norm": float(f"{p.grad.double().norm().item():.7g}")}
            for name, p in named.items()
        ]
        out = {
            "versions": {"torch": torch.__version__, "transformers": transformers.__version__},
            "config": json.loads(model.config.to_json_string(use_diff=False)),
            "tokens": tokens(),
            "vectors": states,
            "gradients": arrays,
        }
        text = json.dumps(out, indent=None, separators=(",", ":"))
        # A line an array or list.
        for cut in ('"config"', '"tokens"', '"vectors"', '"gradients"', '{"name"'):
            text = text.replace(cut, "\n" + cut)
        pathlib.Path(__file__).with_name(f"{family}.json").write_text(text + "\n")


main()
