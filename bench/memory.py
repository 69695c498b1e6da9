#!/usr/bin/env python3
"""How much memory does training take, and is that what was foreseen?

Trains every kind on every set and compares the estimate of `xc train` with the peak that the system reports.

    bench/memory.py --xc target/release/xc --data DIR --out bench/runs/DATE-MACHINE [--kinds tree ...] [--sets ...]

DIR holds debian-debtags, debian-depends, git-files and syn500k, each with train.txt or train.jsonl (syn500k:
`xc generate --preset syn500k --seed 1`). Networks train for one epoch, on the first rows where a set has more than
--rows: their memory follows from labels, units and batch, not from the number of rows. MACH and the trees of an
ensemble are trained one after the other. Models are removed again.
"""

import argparse
import json
import pathlib
import shutil
import subprocess
import tempfile

SETS = ["debian-debtags", "debian-depends", "git-files", "syn500k"]
KINDS = ["tree", "mach", "dense", "uniform", "lns", "astra"]
MIB = 1 << 20


def train_file(folder):
    for name in ["train.txt", "train.jsonl"]:
        if (folder / name).exists():
            return folder / name
    raise SystemExit(f"{folder}: no train.txt or train.jsonl")


def first_rows(path, n_rows, into):
    """The first rows of a file, or the file itself where it has no more; and how many."""
    with path.open("rb") as file:
        header = file.readline() if path.suffix == ".txt" else b""
        lines = []
        for line in file:
            if len(lines) == n_rows:
                break
            lines.append(line)
        else:
            return path, len(lines)
    if header:
        _, features, labels = header.split()
        header = b"%d %s %s\n" % (n_rows, features, labels)
    part = into / f"part{path.suffix}"
    part.write_bytes(header + b"".join(lines))
    return part, n_rows


def runs(kinds):
    """Kind, options and what they are called."""
    for kind in kinds:
        if kind == "tree":
            yield kind, ["--trees", "1"], "1 tree"
            yield kind, ["--trees", "16"], "16 trees"
        elif kind == "mach":
            yield kind, ["--epochs", "1", "--repetitions", "1"], "1 repetition"
            yield kind, ["--epochs", "1", "--repetitions", "16"], "16 repetitions"
        else:
            yield kind, ["--epochs", "1"], ""


def measure(args, kind, options, path, threads, into):
    model = into / "model"
    command = [args.xc, "train", kind, "--train", str(path), "--model", str(model), "--threads", str(threads)]
    command += ["--json", "--quiet", "--max-memory", args.limit, *options]
    done = subprocess.run(command, capture_output=True, text=True)
    shutil.rmtree(model, ignore_errors=True)
    shutil.rmtree(into / "model.log", ignore_errors=True)
    shutil.rmtree(into / "model.checkpoint", ignore_errors=True)
    if done.returncode != 0:
        return {"error": done.stderr.strip().splitlines()[-1] if done.stderr.strip() else f"rc {done.returncode}"}
    report = json.loads(done.stdout)
    estimate, peak = report["memory"]["total_bytes"], report["peak_rss_bytes"]
    return {"estimate": estimate, "peak": peak, "ratio": estimate / peak, "wall_s": report["wall_s"]}


def table(rows):
    lines = ["| kind | set | | rows | threads | estimate MiB | peak MiB | ratio | s |", "|---|---|---|---|---|---|---|---|---|"]
    for row in rows:
        head = f"| {row['kind']} | {row['set']} | {row['what']} | {row['rows']} | {row['threads']} |"
        if "error" in row:
            lines.append(f"{head} {row['error']} | | | |")
        else:
            lines.append(
                f"{head} {row['estimate'] / MIB:.0f} | {row['peak'] / MIB:.0f} | {row['ratio']:.2f} | {row['wall_s']:.0f} |"
            )
    return "\n".join(lines) + "\n"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--xc", default="target/release/xc")
    parser.add_argument("--data", type=pathlib.Path, required=True)
    parser.add_argument("--out", type=pathlib.Path, required=True, help="folder for memory.jsonl and memory.md")
    parser.add_argument("--kinds", nargs="+", default=KINDS, choices=KINDS)
    parser.add_argument("--sets", nargs="+", default=SETS)
    parser.add_argument("--threads", nargs="+", type=int, default=[1, 2])
    parser.add_argument("--rows", type=int, default=4000, help="rows that networks are trained on, at most")
    parser.add_argument("--tree-rows", type=int, default=1 << 40, help="rows that trees are trained on, at most")
    parser.add_argument("--limit", default="20GiB", help="--max-memory of the trainings")
    args = parser.parse_args()
    args.out.mkdir(parents=True, exist_ok=True)
    log = args.out / "memory.jsonl"
    for name in args.sets:
        whole = train_file(args.data / name)
        for kind, options, what in runs(args.kinds):
            with tempfile.TemporaryDirectory(dir=args.data) as into:
                into = pathlib.Path(into)
                path, n_rows = first_rows(whole, args.tree_rows if kind == "tree" else args.rows, into)
                for threads in args.threads:
                    row = {"kind": kind, "set": name, "what": what, "rows": n_rows, "threads": threads}
                    row.update(measure(args, kind, options, path, threads, into))
                    print(json.dumps(row), flush=True)
                    with log.open("a") as file:
                        file.write(json.dumps(row) + "\n")
    rows = {}
    for line in log.read_text().splitlines():
        row = json.loads(line)
        # A run that was repeated counts once, with its last outcome.
        rows[tuple(row[key] for key in ["kind", "set", "what", "rows", "threads"])] = row
    order = sorted(rows.values(), key=lambda row: (KINDS.index(row["kind"]), SETS.index(row["set"]), row["what"]))
    (args.out / "memory.md").write_text(table(order))


if __name__ == "__main__":
    main()
