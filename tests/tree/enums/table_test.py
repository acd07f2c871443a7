#!/usr/bin/env python3
"""The tables of include/dualgemm/enums.h keep the format that it promises, and one more of what CONTRIBUTING.md has
recipes for (activations, CUDA architectures, strategies ...) touches no other file than it says. Usage: table_test.py <root>

tables(text) is how a program of another language reads them; it stands here to be copied."""
import pathlib
import re
import sys

ROW = re.compile(r'  X\((k\w+), (DUALGEMM_\w+), (\d+), "([^"\\]*)", "([^"\\]*)"\)( \\)?')


def tables(text):
    """{"ACTIVATION": [(C++ name, C name, number, name, meaning), ...], ...}; ValueError where the format is broken."""
    found, lines = {}, iter(text.split("\n"))
    for line in lines:
        begin = re.fullmatch(r"#define DUALGEMM_(\w+)_TABLE\(X\) \\", line)
        if not begin:
            continue
        rows, more = [], True
        while more:
            line = next(lines)
            row = ROW.fullmatch(line)
            if not row or int(row.group(3)) != len(rows):
                raise ValueError(f"{begin.group(1)}: '{line}'")
            rows.append((row.group(1), row.group(2), int(row.group(3)), row.group(4), row.group(5)))
            more = row.group(6) is not None
        found[begin.group(1)] = rows
    return found


# Heading of a recipe, with a blank behind it where it has a second example -> what names the example in code, and
# where that is looked for: folders and suffixes.
C_FAMILY = (".h", ".hpp", ".c", ".cpp", ".cu", ".cuh")
RECIPES = {
    "Adding an activation": (r"\b(kRelu2|DUALGEMM_RELU2)\b",
                             ("include", "src", "tools", "bench", "fuzz", "examples", "tests", "bindings"), C_FAMILY),
    "Adding an activation ": (r"\"relu2\"", ("bindings", "python"), (".py",)),
    "Adding a strategy": (r"\b(kFusedSequential|fused_sequential_strategy)\b",
                          ("include", "src", "tools", "bench", "bindings", "tests"), C_FAMILY),
    "Adding a strategy ": (r"\"fused_sequential\"", ("bindings",), (".py",)),
    "Adding a CPU instruction set": (r"\b(kAvx2|avx2_table|avx2_(dot|block)_gops)\b|\(avx2 -|namespace avx2\b",
                                     ("include", "src", "tools/cli", "tools/measure", "bench", "cmake"),
                                     (*C_FAMILY, ".cmake")),
    "Adding a PTX instruction": (r"@handles\('popc'\)|\bdecode_bit_count\b|^sm_100a popc\.|^\| `popc`",
                                 ("ptxsim", "docs"), (*C_FAMILY, ".py", ".txt", ".md")),
    "Adding a checkpoint convention": (r"\bkTorchao\b|\"torchao\"",
                                       ("include", "src", "tools", "tests/unit"), C_FAMILY),
    "Adding a Python operator": (r"\bdequantize_nvfp4\b", ("bindings", "tests/python"), (*C_FAMILY, ".py")),
}

# `Statement::root` compared with a mnemonic, or looked up among several.
MNEMONIC = re.compile(r'\broot\s*[!=]=\s*"|"\s*[!=]=\s*\w+(\.|->)root\b|(,\s*|(count|contains)\()\w+(\.|->)root\)')


def recipe(text, heading):
    """The files that CONTRIBUTING.md lists under the heading."""
    section = text.split("## " + heading.strip() + "\n")[1].split("\n## ")[0]
    return set(re.findall(r"^\| `([^`]+)` \|", section, re.MULTILINE))


def architecture_recipe(text):
    """The files and folders, these with a slash at the end, that "Adding a CUDA architecture" names; for sm90a."""
    section = text.split("## Adding a CUDA architecture")[1].split("\n## ")[0].replace("sm120a", "sm90a")
    return re.findall(r"`((?:include|src|tests|cmake)/[^`*]+)`", section)


def main():
    root = pathlib.Path(sys.argv[1])
    text = (root / "include/dualgemm/enums.h").read_text()
    failures = []
    found = tables(text)
    wanted = {"STATUS", "DATA_TYPE", "SCALE_LAYOUT", "ACTIVATION", "COMBINE", "GROUPING", "STRATEGY", "DEVICE", "ISA", "REGIME",
              "PREPARATION", "PREPARED_FORMAT", "BIAS",
              "GLOBAL_SCALING"}
    if set(found) != wanted:
        failures.append(f"tables {sorted(found)}; want {sorted(wanted)}")
    # What is made of every table, each in one place: rows as values, C constants, the proof that both numbers are one.
    for user in ("src/core/enum_table.hpp", "include/dualgemm/constants.h", "src/capi/names.cpp"):
        used = set(re.findall(r"DUALGEMM_(\w+)_TABLE\b", (root / user).read_text()))
        for left_out in sorted(set(found) - used):
            failures.append(f"{user} leaves {left_out} out")
    if sum(len(rows) for rows in found.values()) != len(re.findall(r"^  X\(", text, re.MULTILINE)):
        failures.append("a row stands outside of the tables")
    names = [row[1] for rows in found.values() for row in rows]
    if len(names) != len(set(names)):
        failures.append("a C name stands twice")
    for broken in ('  X(kA, DUALGEMM_A, 1, "a", "b")', '  X(kA, DUALGEMM_A, 0, "a")', '  X(kA, DUALGEMM_A, 0, "a", "\\"")'):
        try:
            tables("#define DUALGEMM_T_TABLE(X) \\\n" + broken + "\n")
            failures.append(f"a broken row passes: {broken}")
        except ValueError:
            pass

    # Examples that have nothing special: a file that names one would have to be edited for a new one, too.
    contributing, named = (root / "CONTRIBUTING.md").read_text(), 0
    for heading, (pattern, folders, suffixes) in RECIPES.items():
        listed = recipe(contributing, heading)
        naming = {str(path.relative_to(root)) for folder in folders for path in (root / folder).rglob("*")
                  if path.suffix in suffixes and re.search(pattern, path.read_text(), re.MULTILINE)}
        named += len(naming)
        if not naming & listed:
            failures.append(f"no file of '{heading.strip()}' has {pattern}; choose another example for this test")
        for extra in sorted(naming - listed):
            failures.append(f"{extra} has {pattern} and is not in CONTRIBUTING.md, '{heading.strip()}'")
        for gone in sorted(path for path in listed if not (root / path).exists()):
            failures.append(f"CONTRIBUTING.md, '{heading.strip()}': there is no {gone}")

    # What a PTX instruction is stands in its row: nothing but the parser and the decoders compares mnemonics.
    for path in sorted((root / "ptxsim/src").rglob("*.[ch]pp")):
        compares = MNEMONIC.search(path.read_text())
        if compares and path.relative_to(root / "ptxsim/src").parts[0] not in ("parse", "insn"):
            failures.append(f"{path.relative_to(root)}: '{compares.group()}'; the traits of an instruction's row say it")
    if not all(MNEMONIC.search(text) for text in ('s.root == "ld"', "find(begin, end, s.root) != end")):
        failures.append("a comparison of mnemonics is not seen")

    # Tests name one as an example, and a benchmark tunes it; the library and its tools must not, but for the folders of
    # the architecture's kernels, sm90a/ and sm90a_skinny/.
    places = architecture_recipe(contributing)
    sources = [path for folder in ("include", "src", "tools") for path in (root / folder).rglob("*")
               if path.suffix in C_FAMILY]
    for path in sources:
        name = str(path.relative_to(root))
        if re.search(r"\bkSm90a\b", path.read_text()):
            if not any(name == place or place.endswith("/") and name.startswith((place, place[:-1] + "_")) for place in places):
                failures.append(f"{name} names kSm90a and is not in CONTRIBUTING.md, 'Adding a CUDA architecture'")
    for gone in sorted(place for place in places if not (root / place).exists()):
        failures.append(f"CONTRIBUTING.md, 'Adding a CUDA architecture': there is no {gone}")

    for failure in failures:
        print(failure)
    print(f"enum tables: {len(found)} tables, {named} files of recipes, {len(failures)} failed")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
