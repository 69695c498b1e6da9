#!/usr/bin/env python3
"""The crates of one tree beside those of another: `bench/house.py BEFORE [AFTER]`, folders of checkouts; a table in Markdown.

Lines are those of src/ as rustfmt writes them, without tests: what stands behind `#[cfg(test)]` at the beginning of a line, and
files that are named tests or are modules of tests. Names are public types, traits, aliases, functions outside of impl blocks and constants. Packages are
all that somebody compiles who depends on the crate without its default features.
"""
import pathlib
import re
import subprocess
import sys

ITEM = re.compile(r"^(?:pub )(?:unsafe )?(?:const )?(?:struct|enum|trait|type|union|fn|const|static) (\w+)", re.M)

# A file of tests beside the others.
OF_TESTS = re.compile(r"^#\[cfg\(test\)\]\nmod (\w+);\n", re.M)


def of(tree):
    out = {}
    for manifest in sorted(pathlib.Path(tree).glob("*/Cargo.toml")):
        name = re.search(r'^name = "(.*)"', manifest.read_text(), re.M).group(1)
        if not (manifest.parent / "src").is_dir() or manifest.parent.name in ("fuzz", "python"):
            continue
        lines, names, files = 0, set(), list((manifest.parent / "src").rglob("*.rs"))
        of_tests = {
            (file.parent if file.stem in ("mod", "lib", "main") else file.with_suffix("")) / f"{name}.rs"
            for file in files for name in OF_TESTS.findall(file.read_text())
        }
        for file in files:
            if file.stem == "tests" or "tests" in file.parts or file in of_tests:
                continue
            text = re.split(r"^#\[cfg\((?:all\()?test", OF_TESTS.sub("", file.read_text()), maxsplit=1, flags=re.M)[0]
            lines += text.count("\n")
            names |= set(ITEM.findall(text))
        done = subprocess.run(["cargo", "tree", "--locked", "-p", name, "--no-default-features", "--edges", "normal", "--prefix", "none"],
                              cwd=tree, capture_output=True, text=True, check=True)
        packages = {" ".join(line.split()[:2]) for line in done.stdout.splitlines()}
        out[name] = (lines, len(names), len(packages))
    return out


before = of(sys.argv[1])
after = of(sys.argv[2] if len(sys.argv) > 2 else ".")
print("| crate | lines | public names | packages |\n|---|---|---|---|")
for name in sorted({*before, *after}):
    pairs = zip(before.get(name, ("-",) * 3), after.get(name, ("-",) * 3))
    print(f"| {name} |", " | ".join(f"{old} -> {new}" for old, new in pairs), "|")
total = lambda of: f"{sum(lines for lines, *_ in of.values())} | {sum(names for _, names, _ in of.values())}"
print(f"\nIn all: {total(before)} before, {total(after)} after (lines, names).")
