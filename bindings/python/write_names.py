#!/usr/bin/env python3
"""Writes dualgemm/_names.py, which type checkers read, from the tables of include/dualgemm/enums.h.
Usage: write_names.py [--check]     --check: writes nothing, and fails where the file is another one"""

import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
HEADER, NAMES = ROOT / "include/dualgemm/enums.h", ROOT / "bindings/python/dualgemm/_names.py"
# Name in Python -> table, names that Python takes besides, what it is.
TYPES = {
    "Activation": ("ACTIVATION", [], ""),
    "Strategy": ("STRATEGY", [], ""),
    "ScaleLayout": ("SCALE_LAYOUT", ["auto"], ""),
    "OwnLayout": ("SCALE_LAYOUT", [], "The layouts of scales that are made, not read."),
}


def names_of(text, table):
    """The names of the rows of one table."""
    rows = re.search(rf"#define DUALGEMM_{table}_TABLE\(X\) \\\n((?:  X\(.*\\\n)*  X\(.*)", text)
    if rows is None:
        raise SystemExit(f"{HEADER.name}: no table {table}")
    return re.findall(r'^  X\(k\w+, DUALGEMM_\w+, \d+, "([^"]*)"', rows.group(1), re.MULTILINE)


def written(text):
    lines = [
        '"""The names that arguments take, for type checkers. Made by write_names.py from enums.h; not to be edited."""',
        "",
        "from __future__ import annotations",
        "",
        "from typing import Literal",
        "",
    ]
    for name, (table, besides, meaning) in TYPES.items():
        values = ", ".join(f'"{value}"' for value in (*besides, *names_of(text, table)))
        line = f"{name} = Literal[{values}]"
        if len(line) > 128:  # as ruff has it
            one = values if len(values) <= 124 else values.replace(", ", ",\n    ") + ","
            line = f"{name} = Literal[\n    {one}\n]"
        lines.append(line)
        lines += [f'"""{meaning}"""'] if meaning else []
    return "\n".join(lines) + "\n"


def main():
    text = written(HEADER.read_text(encoding="utf-8"))
    if NAMES.read_text(encoding="utf-8") == text:
        return 0
    if sys.argv[1:] == ["--check"]:
        print(f"{NAMES.relative_to(ROOT)}: not what {HEADER.relative_to(ROOT)} has; make format writes it")
        return 1
    NAMES.write_text(text, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
