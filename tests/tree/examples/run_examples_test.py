#!/usr/bin/env python3
"""run_examples.py notices every way in which an example can be wrong. Usage: run_examples_test.py <run_examples.py>
<options of it without the root>"""

import pathlib
import re
import subprocess
import sys
import tempfile

GOOD = "```sh\necho 1 > here\n```\ntext\n```sh\ntest -s here\n```\n"
HEADER = "// An example:\n//\n//   // prologue: operands\n//   {}\n#pragma once\n"
USE = (
    "if (!dualgemm::run({.m = m, .n = n, .k = k}, {.a = a, .a_scales = a_scales, .gate = gate, .gate_scales = "
    "gate_scales, .up = up, .up_scales = up_scales, .d = d}).ok()) return 1;"
)

AWAY = "<!-- not run: far away -->\n"
LEFT_OUT = AWAY + "```sh\n{}\n```\n" + GOOD

# (README, header, wanted exit status, a piece of the output, more options of the runner)
CASES = [
    (GOOD, HEADER.format(USE), 0, "3 ran, 0 not run"),
    (GOOD + "<!-- not run: needs root -->\n```sh\nfalse\n```\n", "", 0, "sh: needs root"),
    ("```cpp\nint main() { return 0; }\n```\n", "", 0, "1 ran"),
    ("```c\nint main(void) { return 0; }\n```\n", "", 0, "1 ran"),
    ("```sh\ndualgemm info --no-peaks > /dev/null\n```\n", "", 0, "1 ran"),
    ("~~~sh\necho '```'\n~~~\n", "", 0, "1 ran"),
    ("```sh\n$EDITOR absent\n```\n", "", 0, "1 ran"),
    ("```cpp\nint main() { return dualgemm; }\n```\n", "", 1, "FAILED   README.md:1 cpp"),
    ("```cpp\nint main() { return 1; }\n```\n", "", 1, "exit status 1"),
    ("```c\nint main(void) { return misspelt; }\n```\n", "", 1, "FAILED   README.md:1 c"),
    ("```sh\nfalse\ntrue\n```\n", "", 1, "FAILED   README.md:1 sh"),
    ("```sh\nfalse | cat\n```\n", "", 1, "FAILED   README.md:1 sh"),
    ("```sh\ndualgemm no-such-command\n```\n", "", 1, "FAILED   README.md:1 sh"),
    ("<!-- prologue: no_such -->\n```cpp\n;\n```\n", "", 1, "no prologues/no_such.cpp"),
    ("<!-- prologue: no_such -->\n```sh\ntrue\n```\n", "", 1, "no prologues/no_such.sh"),
    ("```bash\ntrue\n```\n" + GOOD, "", 1, "language 'bash'"),
    ("<!-- not run: -->\n```sh\nfalse\n```\n" + GOOD, "", 1, "says nothing"),
    ("<!-- not run: far away -->\n\nText.\n```sh\nfalse\n```\n" + GOOD, "", 1, "without a block"),
    (GOOD, HEADER.format("dualgemm::run(a);"), 1, "FAILED   include/dualgemm/x.hpp:3 cpp"),
    (GOOD, HEADER.format(""), 1, "d is wrong"),
    (GOOD, "// Forgotten:\n//\n//   auto status = dualgemm::run(p, b);\n", 1, "a statement in a comment"),
    (GOOD, "// Forgotten:\n//\n//   dualgemm_run_once(p, b);\n", 1, "a statement in a comment"),
    (GOOD, "// Forgotten:\n//\n//   dualgemm info\n", 1, "include/dualgemm/x.hpp:3: a command that no test runs"),
    ("```sh\ntrue\n", "", 1, "has no end"),
    ("Nothing here.\n", "", 1, "0 ran"),
    # What the markers say.
    ("```sh\ngrep -qx text a.txt\n```\n<!-- file: a.txt -->\n```text\ntext\n```\n", "", 0, "1 ran"),
    ("<!-- in: tree -->\n```sh\ntest -e scripts/good && touch new\n```\n```sh\ntest ! -e new\n```\n", "", 0, "2 ran"),
    ("<!-- in: bed -->\n```sh\ntrue\n```\n", "", 1, "must be tree"),
    ("<!-- exit status: 3 -->\n```sh\nsh -c 'exit 3'  # as it should be\n```\n", "", 0, "1 ran"),
    ("<!-- exit status: 3 -->\n```sh\ntrue\n```\n", "", 1, "exit status 0"),
    ("<!-- exit status: 1 -->\n```sh\ntrue\nfalse\n```\n", "", 1, "a block of its own"),
    ("<!-- exit status: bad -->\n```sh\ntrue\n```\n" + GOOD, "", 1, "must be a number"),
    (GOOD + "<!-- needs: sh, no-such-program -->\n```sh\nfalse\n```\n", "", 0, "2 ran, 1 not run"),
    ("<!-- needs: sh -->\n```sh\ntrue\n```\n", "", 0, "1 ran"),
    (GOOD + "<!-- needs: no-such-program -->\n```sh\ntrue\n```\n", "", 1, "should be here", "--has", "no-such-program"),
    # Commands in other places.
    (GOOD + "\n    dualgemm info\n", "", 1, "README.md:9: a command that no test runs: 'dualgemm info'"),
    (GOOD + "\n\tptxsim speed\n", "", 1, "README.md:9: a command"),
    (GOOD + "# Title\n    $ X=1 make all  # comment\n", "", 1, "README.md:9: a command"),
    (GOOD + "\n    text\n\n    scripts/good\n", "", 1, "README.md:11: a command"),
    (GOOD + "- item\n\n      source <(dualgemm man)\n", "", 1, "README.md:10: a command"),
    (GOOD + "-     ctest\n", "", 1, "README.md:8: a command"),
    (GOOD + ">     git log\n", "", 1, "README.md:8: a command"),
    (GOOD + "> ```sh\n> true\n> ```\n", "", 1, "README.md:8: a block that no test reads"),
    (GOOD + "<pre>\nmake\n</pre>\n", "", 1, "README.md:8: a block that no test reads"),
    (GOOD + "```\npkg-config --libs dualgemm\n```\n", "", 1, "README.md:8: a command"),
    (GOOD + "```text\n$ cmake --preset default\nmore\n```\n", "", 1, "README.md:8: a command"),
    (GOOD + "~~~\ncmake\n~~~\n", "", 1, "README.md:8: a command"),
    (GOOD + AWAY + "    make good\n    make good\n", "", 0, "2 ran, 1 not run"),
    (GOOD + AWAY + "    make good\n\nText.\n\n    make good\n", "", 1, "README.md:13: a command"),
    (GOOD + AWAY + "    make good\n    make bad\n", "", 1, "README.md:9: make bad: no such target"),
    (GOOD + AWAY + "```\nmake good\n```\n", "", 0, "2 ran, 1 not run"),
    (GOOD + "text\n    make sense of it\n\n    a = 1\n\n```\nmaker\ndualgemm: wrong\n```\n", "", 0, "2 ran, 0 not run"),
    # Commands that are only named.
    (GOOD + "`dualgemm info --no-such`\n", "", 1, "README.md:8: dualgemm info --no-such: no such option"),
    (GOOD + "`dualgemm\nnothing`\n", "", 1, "README.md:8: dualgemm nothing: no such command"),
    (GOOD + "| a | `X=1 dualgemm plan --act=none` |\n", "", 1, "README.md:8: dualgemm plan --act none: must be one of"),
    (GOOD + "`ptxsim run a.ptx --no-such`\n", "", 1, "README.md:8: ptxsim run --no-such: no such option"),
    (GOOD + "`ptxsim exec --device h200 -- ./a --no-such`\n", "", 0, "2 ran, 0 not run"),
    (GOOD + "`ptxsim exec -- dualgemm info --no-such`\n", "", 1, "README.md:8: dualgemm info --no-such: no such option"),
    (GOOD + "`ptxsim exec --no-such -- ./a`\n", "", 1, "README.md:8: ptxsim exec --no-such: no such option"),
    (GOOD + "`make bad`\n", "", 1, "README.md:8: make bad: no such target"),
    (GOOD + "`ctest --preset bad`\n", "", 1, "README.md:8: ctest --preset bad: no such test preset"),
    (GOOD + "`scripts/bad`\n", "", 1, "README.md:8: scripts/bad: no such file"),
    (GOOD + "`scripts/good --bad`\n", "", 1, "README.md:8: scripts/good --bad: no such option"),
    (GOOD + "With `--no-such`.\n", "", 1, "README.md:8: --no-such: no program has this option"),
    (LEFT_OUT.format("true && dualgemm run --no-such"), "", 1, "README.md:2: dualgemm run --no-such: no such option"),
    (LEFT_OUT.format("make \\\n  good bad"), "", 1, "README.md:2: make bad: no such target"),
    (
        GOOD + "`dualgemm plan -m 1 --act silu|relu2 | less`, `dualgemm COMMAND --help`, `dualgemm help --json`, "
        "`--good`, `--act silu`, `make good A=1`, `cmake --preset good && cmake --build --preset built`, "
        "`scripts/good --good`.\n",
        "",
        0,
        "8 commands and options named, 0 failed",
    ),
]

MAKEFILE = "A := 1\n.PHONY: good\ngood: other\n\t@true\n"
PRESETS = '{"configurePresets": [{"name": "good"}], "buildPresets": [{"name": "built"}]}'


def make_tree(root, readme, header, source):
    for folder in ("docs", "scripts", "include/dualgemm"):
        (root / folder).mkdir(parents=True)
    (root / "README.md").write_text(readme)
    (root / "CONTRIBUTING.md").write_text("")
    (root / "Makefile").write_text(MAKEFILE)
    (root / "CMakePresets.json").write_text(PRESETS)
    (root / "scripts" / "good").write_text("#!/bin/sh\n# takes --good\n")
    for real in (source / "include" / "dualgemm").iterdir():
        if header and real.suffix in (".h", ".hpp"):
            # Without its examples: in C++ every comment of //, in C what is indented further in a comment.
            lines = real.read_text().split("\n")
            kept = [line for line in lines if not line.startswith("//") and not re.match(r" \*   (?!.*\*/)", line)]
            (root / "include" / "dualgemm" / real.name).write_text("\n".join(kept))
    (root / "include" / "dualgemm" / "x.hpp").write_text(header)


def main():
    runner, options = sys.argv[1], sys.argv[2:]
    source = pathlib.Path(runner).resolve().parents[3]
    failed = 0
    for readme, header, status, piece, *more in CASES:
        with tempfile.TemporaryDirectory() as folder:
            root = pathlib.Path(folder)
            make_tree(root, readme, header, source)
            done = subprocess.run(
                [sys.executable, runner, str(root), *options, *more],
                text=True,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
            )
            if done.returncode == status and piece in done.stdout:
                continue
            failed += 1
            print(f"FAILED: wanted {status} and '{piece}' of\n{readme}{header}\ngot {done.returncode}:\n{done.stdout}")
    print(f"run_examples: {len(CASES) - failed} passed, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
