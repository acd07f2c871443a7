#!/usr/bin/env python3
"""The example of README.md prints what README.md shows: its files are written, its commands run, in order.

Usage: readme_test.py README.md PTXSIM NVCC
What depends on the compiler's version is not compared: lines of the PTX, names of registers, and the folder of a source."""

import os
import pathlib
import re
import subprocess
import sys
import tempfile


def without_versions(text, folder=""):
    text = text.replace(folder + "/", "") if folder else text
    text = re.sub(r"%[a-z]+\d+", "%register", text)
    text = re.sub(r"(\.ptx):\d+", r"\1:LINE", text)
    return re.sub(r"lines from \d+ to \d+", "lines from A to B", text).strip()


def blocks(section):
    """(language, text, name of the file or None) of each fenced block."""
    for match in re.finditer(r"((?:<!-- [^\n]* -->\n)*)```(\w+)\n(.*?)```\n", section, re.S):
        name = re.search(r"<!-- file: (\S+) -->", match[1])
        yield match[2], match[3], name and name[1]


def main():
    readme, ptxsim, nvcc = (pathlib.Path(name).resolve() for name in sys.argv[1:4])
    section = readme.read_text().split("## What it finds\n")[1].split("\n## ")[0]
    path = f"{ptxsim.parent}:{nvcc.parent}:{os.environ['PATH']}"
    said, shown = "", []
    with tempfile.TemporaryDirectory() as folder:
        for language, text, name in blocks(section):
            if name:
                (pathlib.Path(folder) / name).write_text(text)
            elif language == "sh":
                done = subprocess.run(
                    ["bash", "-uc", text],
                    cwd=folder,
                    text=True,
                    env={**os.environ, "PATH": path},
                    stdout=subprocess.PIPE,
                    stderr=subprocess.STDOUT,
                )
                said += done.stdout
            else:
                shown.append(text)
        folder = os.path.realpath(folder)
    said = without_versions(said, folder)
    missing = [text for text in shown if without_versions(text) not in said]
    for text in missing:
        print(f"README.md shows\n{text}\nand its commands print\n{said}")
    print(f"readme: {len(shown) - len(missing)} passed, {len(missing)} failed")
    return 1 if missing or not shown else 0


if __name__ == "__main__":
    sys.exit(main())
