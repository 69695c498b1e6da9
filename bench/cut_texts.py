#!/usr/bin/env python3
"""A set whose texts end where a transformer's tokens do, to compare kinds on the same cut texts.

    cut_texts.py --data DIR --out OUT --tokenizer MODEL/tokenizer.json [--tokens 48] [--fields title,text]

Writes OUT/train.jsonl and OUT/test.jsonl: {"text", "labels"} of DIR's files, the fields joined by a space, cut where the last of the tokens
ends, special tokens counted. Read again by the same tokenizer, a text has the tokens that the whole text has after truncation.
"""
import argparse
import json
import os

from tokenizers import Tokenizer

BATCH = 4096


def cut(source, target, tokenizer, fields):
    part = f"{target}.part"
    with open(source, encoding="utf-8") as rows, open(part, "w", encoding="utf-8") as out:
        while batch := [json.loads(line) for _, line in zip(range(BATCH), rows)]:
            texts = [" ".join(row.get(field) or "" for field in fields).strip() for row in batch]
            for row, text, tokens in zip(batch, texts, tokenizer.encode_batch(texts)):
                kept = text[: max((end for _, end in tokens.offsets), default=0)] if tokens.overflowing else text
                out.write(json.dumps({"text": kept, "labels": row["labels"]}, ensure_ascii=False) + "\n")
    os.replace(part, target)


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--data", required=True)
    p.add_argument("--out", required=True)
    p.add_argument("--tokenizer", required=True)
    p.add_argument("--tokens", type=int, default=48)
    p.add_argument("--fields", default="text")
    a = p.parse_args()
    tokenizer = Tokenizer.from_file(a.tokenizer)
    tokenizer.no_padding()
    tokenizer.enable_truncation(a.tokens)
    os.makedirs(a.out, exist_ok=True)
    for name in ("train.jsonl", "test.jsonl"):
        cut(os.path.join(a.data, name), os.path.join(a.out, name), tokenizer, a.fields.split(","))


if __name__ == "__main__":
    main()
