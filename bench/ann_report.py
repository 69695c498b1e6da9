"""Tables and lines of JSON of `ann.py`."""
import json
import os

from ann_peers import TARGETS, at

# A figure, and whether more of it is better.
RATIOS = {"qps": True, "qps2": True, "p50_us": False}


def number(value, form=",.0f"):
    return format(value, form) if value is not None else "-"


def mean(values):
    values = [value for value in values if value is not None]
    return sum(values) / len(values) if values else None


class Report:
    def __init__(self, path):
        self.path, self.ratios = path, []

    def line(self, record):
        if self.path:
            with open(self.path, "a", encoding="utf-8") as f:
                print(json.dumps(self.about | record), file=f)

    def begin(self, name, metric, shape, ks):
        self.about = {"set": name, "metric": metric, "rows": int(shape[0]), "columns": int(shape[1])}
        self.ks, self.systems, self.curves = ks, [], {}
        print(f"{name}: load average {os.getloadavg()[0]:.1f}", flush=True)

    def system(self, name, about, rows, curves=None):
        self.systems.append((name, about, rows))
        self.curves[name] = curves or {}
        for (k, target), row in rows.items():
            self.line({"kind": "row", "system": name, "k": k, "target": target} | row | about)
        for k, curve in (curves or {}).items():
            self.line({"kind": "curve", "system": name, "k": k, "curve": curve})
        print(f"{self.about['set']}: {name} measured", flush=True)

    def left_out(self, name, why, ks):
        asked = "all" if ks == self.ks else " ".join(map(str, ks))
        print(f"{self.about['set']}: {name} left out, k {asked}: {why}", flush=True)
        self.line({"kind": "left out", "system": name, "k": ks, "why": why})

    def xc(self, k, target, key):
        return mean([rows.get((k, target), {}).get(key) for name, _, rows in self.systems if name.startswith("xc")])

    def ratio(self, k, target, key):
        """xc's mean over the best peer -> xc, the best peer's figure, its name, how many times better xc is."""
        ours, more = self.xc(k, target, key), RATIOS[key]
        theirs = [(rows[k, target][key], name) for name, _, rows in self.systems
                  if not name.startswith("xc") and rows.get((k, target), {}).get(key) is not None]
        if ours is None or not theirs:
            return ours, None, None, None
        best, name = max(theirs) if more else min(theirs)
        return ours, best, name, ours / best if more else best / ours

    def same_recall(self, k, target):
        """xc's mean over the best peer at the recall that xc reached, one thread."""
        recall = self.xc(k, target, "recall")
        theirs = [at(curves[k], recall, "qps") for curves in self.curves.values() if recall is not None and k in curves]
        best = max((qps for qps in theirs if qps is not None), default=None)
        return recall, self.xc(k, target, "qps") / best if best else None

    def end(self):
        self.builds()
        for k in self.ks:
            self.rows(k)
        for k in self.ks:
            for target in TARGETS:
                recall, same = self.same_recall(k, target)
                record = {"recall_of_xc": recall, "ratio_at_recall_of_xc": same}
                cells = [self.about["set"], str(k), f"{target:.2f}", number(recall, ".3f"), number(same, ".3g")]
                for key in RATIOS:
                    ours, best, name, ratio = self.ratio(k, target, key)
                    record[key] = {"xc": ours, "best": best, "peer": name, "ratio": ratio}
                    form = ",.0f" if RATIOS[key] else ".1f"
                    cells += [number(ours, form), f"{number(best, form)} ({name})" if name else "-", number(ratio, ".3g")]
                self.ratios.append(cells)
                self.line({"kind": "ratio", "k": k, "target": target} | record)

    def title(self):
        return f"{self.about['set']}, {self.about['rows']:,} x {self.about['columns']}"

    def builds(self):
        print(f"\n| {self.title()} | build, s | bytes per vector | emptiest call, us | version |\n|---|---|---|---|---|")
        for name, about, _ in self.systems:
            print(f"| {name} | {about['build_s']:.1f} | {about['bytes_per_vector']:,.0f} | {number(about['empty_us'], '.1f')} | "
                  f"{about['version'] or ''} |")
        said = {about["bytes_from"]: [] for _, about, _ in self.systems}
        for name, about, _ in self.systems:
            said[about["bytes_from"]].append(name)
        print("\nBytes: " + "; ".join(f"{how} ({', '.join(names)})" for how, names in said.items()) + ".")

    def rows(self, k):
        print(f"\n| {self.title()}, k {k} | target | recall | QPS, 1 thread | QPS, 2 threads | p50, us | p99, us | xc / it |")
        print("|---|---|---|---|---|---|---|---|")
        for target in TARGETS:
            ours = self.xc(k, target, "qps")
            for name, _, rows in self.systems:
                row = rows.get((k, target))
                if not row:
                    print(f"| {name} | {target:.2f} | not reached | | | | | |")
                    continue
                ratio = "" if name.startswith("xc") or not ours else f"{ours / row['qps']:.3g}"
                cells = [number(row["qps"]), number(row["qps2"]), number(row["p50_us"], ".1f"), number(row["p99_us"], ".1f")]
                print(f"| {name} | {target:.2f} | {row['recall']:.3f} | " + " | ".join(cells) + f" | {ratio} |")
        print(flush=True)

    def all_ratios(self):
        """xc, the mean of before and behind, beside the best peer of each column; above 1 xc is better."""
        print("\nRatios: xc over the best peer; above 1 xc is better. The first sets xc beside the peers at the recall that xc "
              "reached, one thread; the others beside the peers at the target.")
        print("\n| set | k | target | recall of xc | ratio there | QPS, 1 thread | best peer | ratio | QPS, 2 threads | "
              "best peer | ratio | p50, us | best peer | ratio |\n" + "|---" * 14 + "|")
        for cells in self.ratios:
            print("| " + " | ".join(cells) + " |")
