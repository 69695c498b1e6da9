"""Hashing beside public SLIDE and Intel's version of it: same K, L, bins and widths, one thread, hashing alone.

Fetches both (or takes clones that are there), mends what keeps them from running, builds them with g++ -O3
-march=native, times them with lsh-driver/slide.cpp, times `hash_speed` of xc-lsh, in turns, and prints a table. Two
lines of theirs are changed: shuffles take a generator (not the slow random_device), and Intel's aligned
loads are unaligned ones, since g++ aligns no arrays for them.
"""

import argparse, json, pathlib, re, subprocess

PEERS = {
    "SLIDE": ("https://github.com/keroro824/HashingDeepLearning", []),
    "SLIDE_opt_ia": ("https://github.com/IntelLabs/SLIDE_opt_ia", ["-DOPT_IA=1", "-DOPT_AVX512=1"]),
}
HERE = pathlib.Path(__file__).resolve().parent


def run(*command, **options):
    return subprocess.run([str(part) for part in command], check=True, text=True, stdout=subprocess.PIPE, **options).stdout


def build(name, url, flags, folder):
    clone = folder / name
    if not clone.exists():
        run("git", "clone", "--depth", "1", url, clone)
    source = clone / "SLIDE"
    hashing, header = source / "DensifiedWtaHash.cpp", source / "Bfloat16.h"
    hashing.write_text(hashing.read_text().replace("_rangePow, rd);", "_rangePow, gen);").replace("_mm512_load_", "_mm512_loadu_"))
    if header.exists():
        header.write_text(re.sub(r"_mm512_load_ps\b", "_mm512_loadu_ps", header.read_text()))
    program = folder / f"{name}-hashing"
    sources = [HERE / "lsh-driver/slide.cpp", hashing, source / "srp.cpp"]
    run("g++", "-O3", "-march=native", "-std=c++14", "-w", "-include", "cstring", f'-DPROGRAM="{name}"', *flags, "-I", source, *sources, "-o", program)
    return program


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--folder", type=pathlib.Path, required=True, help="where peers are fetched to and built")
    parser.add_argument("--turns", type=int, default=3, help="how often each program runs; the least time counts")
    args = parser.parse_args()
    ours = "cargo bench -q -p xc-lsh --bench hash_speed".split()
    programs = {name: build(name, url, flags, args.folder) for name, (url, flags) in PEERS.items()}
    best = {}
    for _ in range(args.turns):
        for name, program in [*((name, [program]) for name, program in programs.items()), ("xc-lsh", ours)]:
            for line in run(*program).splitlines():
                record = json.loads(line)
                # The functions alike: SLIDE's projections are sparse ones, of a third of the coordinates.
                case = {"sim-hash Hadamard": "sim-hash"}.get(record["case"].split(",")[0], record["case"].split(",")[0])
                if "rows together" in record["case"] or "Gaussian" in case or "min-hash" in case:
                    continue
                case = "dwta of 75 features" if case == "dwta" else case
                key = (case, record["width"])
                best.setdefault(key, {})
                best[key][name] = min(record["ns_per_row"], best[key].get(name, float("inf")))
    print("| hashes | width | SLIDE | SLIDE_opt_ia | xc-lsh | SLIDE / xc-lsh | SLIDE_opt_ia / xc-lsh |\n|---|---|---|---|---|---|---|")
    for (case, width), ns in best.items():
        us = " | ".join(f"{ns[name] / 1e3:.2f} us" for name in ["SLIDE", "SLIDE_opt_ia", "xc-lsh"])
        print(f"| {case} | {width} | {us} | {ns['SLIDE'] / ns['xc-lsh']:.0f} | {ns['SLIDE_opt_ia'] / ns['xc-lsh']:.0f} |")


if __name__ == "__main__":
    main()
