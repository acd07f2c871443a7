#!/usr/bin/env python3
"""Compares the C interface with the recorded one: what the shared libraries export, and the layout of every C struct.

    c_interface_test.py SOURCE_FOLDER --cc CC LIBRARY...            compares; one line for each difference
    c_interface_test.py SOURCE_FOLDER --cc CC LIBRARY... --write    records

c_interface.txt holds the interface of revision 5060b04f. A program built against that revision must go on running:
- a recorded function is exported still;
- a recorded field has its offset and size still;
- a struct that begins with struct_size may grow at its end, as dualgemm.h says; every other struct has its size still.
New functions, and new fields at the end of a struct, are no difference.
"""

import argparse
import pathlib
import re
import subprocess
import sys
import tempfile

RECORD = pathlib.Path(__file__).with_name("c_interface.txt")


def structs(source):
    """{struct: [field, ...]} of the C headers, in their order."""
    found = {}
    for header in sorted((source / "include/dualgemm").glob("*.h")):
        text = re.sub(r"/\*.*?\*/", "", header.read_text(), flags=re.S)
        for body, name in re.findall(r"typedef struct \w+ \{(.*?)\} *(\w+);", text, flags=re.S):
            found[name] = [re.search(r"(\w+)(\[\w+\])?$", field.strip()).group(1) for field in body.split(";") if field.strip()]
    return found


def layouts(source, cc):
    """Lines 'struct NAME SIZE' and 'field NAME.FIELD OFFSET SIZE', as the compiler has them."""
    lines = ["#include <stdio.h>", "#include <stddef.h>"]
    lines += [f'#include "dualgemm/{h.name}"' for h in sorted((source / "include/dualgemm").glob("*.h"))]
    lines.append("int main(void) {")
    for name, fields in structs(source).items():
        lines.append(f'  printf("struct {name} %zu\\n", sizeof({name}));')
        for field in fields:
            lines.append(
                f'  printf("field {name}.{field} %zu %zu\\n", offsetof({name}, {field}), sizeof((({name}*)0)->{field}));'
            )
    lines += ["  return 0;", "}"]
    with tempfile.TemporaryDirectory() as folder:
        program = pathlib.Path(folder) / "layouts"
        program.with_suffix(".c").write_text("\n".join(lines) + "\n")
        subprocess.run(
            [cc, "-std=c99", "-I", str(source / "include"), "-o", str(program), str(program.with_suffix(".c"))], check=True
        )
        return subprocess.run([str(program)], check=True, capture_output=True, text=True).stdout.splitlines()


def exported(library):
    """Lines 'function NAME' for the C functions that the shared library exports."""
    out = subprocess.run(["nm", "-D", "--defined-only", library], check=True, capture_output=True, text=True).stdout
    return sorted(
        "function " + line.split()[-1].split("@")[0] for line in out.splitlines() if re.search(r" T dualgemm_\w+(@.*)?$", line)
    )


def compare(recorded, current):
    """What a program built against the recorded interface would trip over, a line each."""
    key = lambda line: line.split()[1]  # noqa: E731
    now = {key(line): line.split() for line in current}
    growing = {key(line).split(".")[0] for line in recorded if line.startswith("field ") and ".struct_size " in line}
    differences = []
    for line in recorded:
        was, name = line.split(), key(line)
        if name not in now:
            differences.append(f"{was[0]} {name}: gone; it was part of the C interface")
        elif was[0] == "struct" and name in growing:
            if int(now[name][2]) < int(was[2]):
                differences.append(f"struct {name}: {now[name][2]} bytes; must have at least {was[2]}")
        elif was != now[name]:
            differences.append(f"{was[0]} {name}: {' '.join(now[name][2:])}; must be {' '.join(was[2:])}")
    return differences


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("source", type=pathlib.Path)
    parser.add_argument("libraries", nargs="+")
    parser.add_argument("--cc", default="cc")
    parser.add_argument("--write", action="store_true")
    options = parser.parse_args()
    current = [line for library in options.libraries for line in exported(library)]
    current += layouts(options.source, options.cc)
    if options.write:
        RECORD.write_text("\n".join(current) + "\n")
        return 0
    recorded = RECORD.read_text().splitlines()
    differences = compare(recorded, current)
    # The comparison itself: each kind of difference is one.
    for broken, what in (
        (current[1:], current[0]),
        ([re.sub(r"^(field \S+) (\d+)", r"\1 1\2", line) for line in current], "offsets"),
        ([re.sub(r"^(struct \S+) \d+", r"\1 1", line) for line in current], "sizes"),
    ):
        if not compare(recorded, broken):
            differences.append(f"the comparison does not see a change of: {what}")
    print(*differences, sep="\n", end="\n" if differences else "")
    print(f"C interface: {len(recorded) - len(differences)} passed, {len(differences)} failed")
    return 1 if differences else 0


if __name__ == "__main__":
    sys.exit(main())
