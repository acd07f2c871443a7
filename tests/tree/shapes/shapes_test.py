"""The shapes that C++ programs have by default are those of bench/shapes.json, which scripts read. Usage: shapes_test.py TREE"""

import json
import pathlib
import re
import sys

# File, the text before the list, what the file calls it in shapes.json (parts follow each other), numbers of a shape.
LISTS = [
    ("tools/cli/commands/cmd_bench.cpp", "if (command.shapes.empty())", [("challenge", "benchmark")], 3),
    ("tests/kernels/submission/submitted.hpp", "kChallenge[] =", [("challenge", "test"), ("challenge", "benchmark")], 3),
    ("bench/cuda/arguments.hpp", "shapes{", [("layers", "benchmark")], 2),
]


def shapes_in(text: str, before: str, numbers: int) -> list[list[int]]:
    """The shapes of the braces behind ``before``, without a trailing batch of 1."""
    rest = text[text.index(before) + len(before) :]
    found = [[int(number) for number in one.split(",")] for one in re.findall(r"\{(\d[\d, ]*)\}", rest[: rest.index(";")])]
    return [shape[:numbers] if shape[numbers:] in ([], [1]) else shape for shape in found]


def main(tree: pathlib.Path) -> int:
    shapes = json.loads((tree / "bench" / "shapes.json").read_text())
    wrong = 0
    for file, before, names, numbers in LISTS:
        wanted = [shape for group, name in names for shape in shapes[group][name]]
        found = shapes_in((tree / file).read_text(), before, numbers)
        if found != wanted:
            print(f"{file}: {found}; must be {wanted}, as in bench/shapes.json")
            wrong += 1
    print(f"shapes: {len(LISTS) - wrong} passed, {wrong} failed")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main(pathlib.Path(sys.argv[1])))
