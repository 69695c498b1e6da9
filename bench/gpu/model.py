#!/usr/bin/env python3
"""Times of kernels, from counts of what they do and rates of a card.

    model.py predict COUNTS                     writes predictions.json beside this file (COUNTS: of `rows count`)
    model.py compare PREDICTIONS TIMES [RATES]  prints times beside predictions (TIMES: of `rows time`), those by stated
                                                rates and, with RATES of `rows calibrate`, those by rates of the card

Counts at two small sizes are continued in a straight line to the size of a row (KEPT: not). A kernel takes as long as the slowest of
    issue     its warp instructions, at a share of the rate of fused multiply-adds
    l2        its sectors out of L2, as rows of 32 bytes where a load touches many sectors, of 64 otherwise
    memory    what it touches of memory, once
    latency   its blocks one after the other, as many at a time as fit on a multiprocessor; a block takes as long as a
              warp that waits for its instructions, its loads and its barriers
and each launch takes a while of its own.
"""
import json
import pathlib
import re
import sys

HERE = pathlib.Path(__file__).resolve().parent
PTX = HERE.parents[1] / "kernels" / "ptx"

# Read on an H100 SXM (80 GB HBM3) and an H200, driver 580.159.04, by kernels like those of calibrate.cu.
RATES = {
    "H100": {"copy_tb_s": 2.86, "gather_32_tb_s": 4.3, "gather_64_tb_s": 7.9, "fma_warps_per_ns_sm": 7.7, "l2_ns": 147},
    "H200": {"copy_tb_s": 3.96, "gather_32_tb_s": 5.1, "gather_64_tb_s": 9.3, "fma_warps_per_ns_sm": 7.7, "l2_ns": 146},
}
SOURCE = {card: f"read on an {card}" for card in RATES}
PROCESSORS = 132
# Microseconds of a launch between events; read as 3.2 to 3.4 in a row, of which some is hidden.
LAUNCH_US = 2.5
# Share of the rate of multiply-adds that other instructions reach: 80% was read of a kernel that is bound by it.
ISSUE = 0.75
# Nanoseconds that a warp alone takes for an instruction (4.5 clocks of 1.98 GHz) and for a barrier of its block.
INSTRUCTION_NS, BARRIER_NS = 2.3, 15
# Loads of a warp that are under way together.
TOGETHER = 3
# Kernels whose blocks and warps are uneven: how much longer a block takes than its mean warp, which waits at barriers for
# the slowest, and how many blocks' times a batch ends later than even ones would. Read of an earlier tree search: 55 and
# 75 us a block at batch 8,192, and 2.3 and 3.9 such times at 1,024, for two models.
UNEVEN = {"xc_tree_beam": (2.0, 1.0)}
# Kernels that work on what a screen leaves, which does not grow with a row: they are not continued.
KEPT = ("_rescore", "_narrow", "_gather", "_sums")
# Above this many sectors a load, lanes read places of their own.
SCATTERED = 12
# How far off a prediction may be, each way, by what bounds it.
RANGE = {"issue": 1.6, "l2": 1.7, "memory": 1.4, "latency": 2.0, "launch": 2.0}
FIELDS = ["warp_instructions", "sectors", "loads", "barriers", "flops", "footprint", "blocks", "warps"]


def registers():
    """Registers of a thread by kernel, on sm_90, as ptxas has them."""
    lines = (line for path in PTX.glob("*.ptx") for line in path.read_text().splitlines()[:40])
    found = (re.match(r"// (\w+): .*sm_90 (\d+) registers", line) for line in lines)
    return {match[1]: int(match[2]) for match in found if match}


def by_kernel(launches):
    kernels = {}
    for launch in launches:
        of = kernels.setdefault(launch["kernel"], dict.fromkeys(FIELDS, 0) | {"launches": 0, "threads": 0})
        blocks = launch["grid"][0] * launch["grid"][1] * launch["grid"][2]
        threads = launch["block"][0] * launch["block"][1] * launch["block"][2]
        launch = launch | {"blocks": blocks, "warps": blocks * -(-threads // 32)}
        for field in FIELDS:
            of[field] += launch[field]
        of["launches"] += 1
        of["threads"] = max(of["threads"], threads)
    return kernels


def at_size(row):
    """What each kernel does at the size of the row."""
    small, large = (by_kernel(counted["launches"]) for counted in row["counted"])
    sizes = [counted["size"] for counted in row["counted"]]
    by = (row["size"] - sizes[1]) / (sizes[1] - sizes[0])
    out = {}
    for kernel, of in large.items():
        before = of if kernel.endswith(KEPT) else small.get(kernel, {})
        out[kernel] = {field: max(of[field] + by * (of[field] - before.get(field, of[field])), of[field]) for field in FIELDS}
        out[kernel] |= {"launches": of["launches"], "threads": of["threads"]}
        out[kernel]["footprint"] = min(out[kernel]["footprint"], max(row["most_bytes"], of["footprint"]))
    return out


def bounds(kernel, of, rates, n_registers):
    """Microseconds of a kernel by each bound."""
    slowest, tail = next((uneven for name, uneven in UNEVEN.items() if kernel.startswith(name)), (1, 0))
    per_load = of["sectors"] / max(of["loads"], 1)
    gather = rates["gather_32_tb_s"] if per_load > SCATTERED else rates["gather_64_tb_s"]
    at_once = max(1, min(65536 // (-(-n_registers // 8) * 8 * of["threads"]), 2048 // of["threads"], 32)) * PROCESSORS
    warps = max(of["warps"], 1)
    block_ns = (of["warp_instructions"] * INSTRUCTION_NS + of["loads"] * rates["l2_ns"] / TOGETHER) / warps
    block_ns += of["barriers"] / max(of["blocks"], 1) * BARRIER_NS
    waves = max(1, of["blocks"] / of["launches"] / at_once)
    return {
        "issue": of["warp_instructions"] / (PROCESSORS * rates["fma_warps_per_ns_sm"] * ISSUE) / 1e3,
        "l2": of["sectors"] * 32 / gather / 1e6,
        "memory": of["footprint"] / rates["copy_tb_s"] / 1e6,
        "latency": of["launches"] * (waves + tail) * slowest * block_ns / 1e3,
        "launch": of["launches"] * LAUNCH_US,
    }


def predicted(row, rates, has):
    total, kernels = 0, []
    for kernel, of in at_size(row).items():
        each = bounds(kernel, of, rates, has[kernel])
        bound = max((name for name in each if name != "launch"), key=each.get)
        us = each[bound] + each["launch"]
        total += us
        kernels.append({"kernel": kernel, "us": us, "bound": bound, "by": each})
    largest = max(kernels, key=lambda of: of["us"])
    bound = largest["bound"] if largest["by"][largest["bound"]] > largest["by"]["launch"] else "launch"
    out = {"us": total, "low_us": total / RANGE[bound], "high_us": total * RANGE[bound], "bound": bound}
    out["us_a_query"] = total / row["queries"]
    if row["flops"]:
        out["tflop_s"] = row["flops"] / total / 1e6
    return rounded(out | {"kernels": [{k: v for k, v in of.items() if k != "by"} for of in kernels]})


def rounded(value):
    if isinstance(value, float):
        return float(f"{value:.4g}")
    if isinstance(value, dict):
        return {key: rounded(of) for key, of in value.items()}
    return [rounded(of) for of in value] if isinstance(value, list) else value


def predict(counts):
    rows, has = [], registers()
    for row in json.loads(pathlib.Path(counts).read_text()):
        rows.append({
            "row": row["row"], "size": row["size"], "queries": row["queries"], "flops": row["flops"],
            "most_bytes": row["most_bytes"], "counts": rounded(at_size(row)),
            "predicted": {card: predicted(row, rates, has) for card, rates in RATES.items()},
            "counted": [{"size": of["size"], "launches": by_kernel(of["launches"])} for of in row["counted"]],
        })
    out = {"rates": RATES, "source": SOURCE, "launch_us": LAUNCH_US, "range": RANGE, "registers": {
        kernel: has[kernel] for row in rows for kernel in row["counts"]}, "rows": rows}
    (HERE / "predictions.json").write_text(json.dumps(out, indent=1) + "\n")
    for row in rows:
        on = row["predicted"]["H100"]
        print(f"{row['row']:70} {on['us']:11.1f} us  {on['us_a_query']:10.3f} a query  {on.get('tflop_s', 0):6.1f} TFLOP/s  {on['bound']}")


def by_card(row, rates, has):
    """The prediction of a row from counts that are continued already."""
    return sum(
        max(us for name, us in each.items() if name != "launch") + each["launch"]
        for each in (bounds(kernel, of, rates, has[kernel]) for kernel, of in row["counts"].items()))


def compare(predictions, times, calibrated=None):
    predictions, times = (json.loads(pathlib.Path(path).read_text()) for path in (predictions, times))
    card = "H200" if "H200" in times["card"] else "H100"
    rates = None
    if calibrated:
        read = json.loads(pathlib.Path(calibrated).read_text())["rates"]
        rates = {
            "copy_tb_s": read["copy_tb_s"], "gather_32_tb_s": read["gather_32_bytes_8_mb_tb_s"],
            "gather_64_tb_s": read["gather_64_bytes_8_mb_tb_s"], "l2_ns": read["l2_ns"],
            "fma_warps_per_ns_sm": read["fma_warps_per_ns_sm"],
        }
    timed = {row["row"]: row for row in times["rows"]}
    print(f"{times['card']}: kernels by events; stated rates of an {card}")
    n_within = n = 0
    for row in predictions["rows"]:
        of = timed.get(row["row"])
        if not of or "kernels_ms" not in of or of["size"] != row["size"]:
            print(f"{row['row']:70} not timed at this size{' ' + of['failed'] if of and 'failed' in of else ''}")
            continue
        us, stated = of["kernels_ms"] * 1e3, row["predicted"][card]
        own = by_card(row, rates, predictions["registers"]) if rates else stated["us"]
        is_within = 0.5 <= us / own <= 2
        n, n_within = n + 1, n_within + is_within
        print(f"{row['row']:70} {us:11.1f} us, stated {stated['us']:11.1f} ({us / stated['us']:5.2f}x), "
              f"calibrated {own:11.1f} ({us / own:5.2f}x){'' if is_within else '  beyond 2x'}, "
              f"{us / row['queries']:.3f} us a query, whole call {of['whole_ms'] * 1e3:.1f} us"
              + (f", {row['flops'] / us / 1e6:.1f} TFLOP/s" if row["flops"] else "") + ("" if of["equal"] else "  BYTES DIFFER"))
    print(f"{n_within} of {n} rows within 2x of the prediction")


if __name__ == "__main__":
    match sys.argv[1:]:
        case ["predict", counts]:
            predict(counts)
        case ["compare", *paths] if len(paths) in (2, 3):
            compare(*paths)
        case _:
            sys.exit(__doc__)
