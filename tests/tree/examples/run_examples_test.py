#!/usr/bin/env python3
"""run_examples.py notices every way in which an example can be wrong. Usage: run_examples_test.py <run_examples.py>
<options of it without the root>"""
import pathlib
import subprocess
import sys
import tempfile

GOOD = "```sh\necho 1 > here\n```\ntext\n```sh\ntest -s here\n```\n"
HEADER = "// An example:\n//\n//   // prologue: operands\n//   {}\n#pragma once\n"
USE = "if (!dualgemm::run({.m = m, .n = n, .k = k}, {.a = a, .a_scales = a_scales, .gate = gate, .gate_scales = " \
      "gate_scales, .up = up, .up_scales = up_scales, .d = d}).ok()) return 1;"

# (README, header, wanted exit status, a piece of the output)
CASES = [
    (GOOD, HEADER.format(USE), 0, "3 ran, 0 not run, 0 failed"),
    (GOOD + "<!-- not run: needs root -->\n```sh\nfalse\n```\n", "", 0, "sh: needs root"),
    ("```cpp\nint main() { return 0; }\n```\n", "", 0, "1 ran"),
    ("```c\nint main(void) { return 0; }\n```\n", "", 0, "1 ran"),
    ("```sh\ndualgemm info --no-peaks > /dev/null\n```\n", "", 0, "1 ran"),
    ("```cpp\nint main() { return dualgemm; }\n```\n", "", 1, "FAILED   README.md:1 cpp"),
    ("```cpp\nint main() { return 1; }\n```\n", "", 1, "exit status 1"),
    ("```c\nint main(void) { return misspelt; }\n```\n", "", 1, "FAILED   README.md:1 c"),
    ("```sh\nfalse\ntrue\n```\n", "", 1, "FAILED   README.md:1 sh"),
    ("```sh\nfalse | cat\n```\n", "", 1, "FAILED   README.md:1 sh"),
    ("```sh\ndualgemm no-such-command\n```\n", "", 1, "FAILED   README.md:1 sh"),
    ("<!-- prologue: no_such -->\n```cpp\n;\n```\n", "", 1, "no prologues/no_such.cpp"),
    ("```bash\ntrue\n```\n" + GOOD, "", 1, "language 'bash'"),
    ("<!-- not run: -->\n```sh\nfalse\n```\n" + GOOD, "", 1, "says nothing"),
    ("<!-- not run: far away -->\n\nText.\n```sh\nfalse\n```\n" + GOOD, "", 1, "without a block"),
    (GOOD, HEADER.format("dualgemm::run(a);"), 1, "FAILED   include/dualgemm/x.hpp:3 cpp"),
    (GOOD, HEADER.format(""), 1, "d is wrong"),
    (GOOD, "// Forgotten:\n//\n//   auto status = dualgemm::run(p, b);\n", 1, "a statement in a comment"),
    ("```sh\ntrue\n", "", 1, "has no end"),
    ("Nothing here.\n", "", 1, "0 ran"),
]


def main():
    runner, options = sys.argv[1], sys.argv[2:]
    source = pathlib.Path(runner).resolve().parents[3]
    failed = 0
    for readme, header, status, piece in CASES:
        with tempfile.TemporaryDirectory() as folder:
            root = pathlib.Path(folder)
            (root / "README.md").write_text(readme)
            (root / "CONTRIBUTING.md").write_text("")
            (root / "docs").mkdir()
            (root / "include" / "dualgemm").mkdir(parents=True)
            for real in (source / "include" / "dualgemm").iterdir():
                if header and real.suffix in (".h", ".hpp"):
                    lines = real.read_text().split("\n")
                    kept = [line for line in lines if not line.startswith("//")]
                    (root / "include" / "dualgemm" / real.name).write_text("\n".join(kept))
            (root / "include" / "dualgemm" / "x.hpp").write_text(header)
            done = subprocess.run([sys.executable, runner, str(root), *options], text=True, stdout=subprocess.PIPE,
                                  stderr=subprocess.STDOUT)
            if done.returncode == status and piece in done.stdout:
                continue
            failed += 1
            print(f"FAILED: wanted {status} and '{piece}' of\n{readme}{header}\ngot {done.returncode}:\n{done.stdout}")
    print(f"run_examples: {len(CASES) - failed} passed, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
