"""Compiles strangers' programs as they are, runs each below `ptxsim exec`, and compares with how it is known to end.

    python ptxsim/tests/strangers SOURCES --ptxsim build/default/bin/ptxsim [--only TEXT] [--limit SECONDS] [--longer SECONDS]
        [--python PYTHON] [--document FILE]

SOURCES has a checkout of each repository under its own name; programs are built there, below build/. Seconds are those of
the processor: --limit, or the program's own, for a run with the sanitizer and for one without, then --longer for one that was not ready and runs
again with --once, then --longer once more with --sample besides, which compares no results. --document: rows of programs
that do not run this time stay. PYTHON has Triton, PyTorch, NumPy and pytest; without it what is written in Python, or
reads what Python writes, is left out. Exit
status: 0; 1 a program ended otherwise than listed; 2 wrong arguments; 77 no nvcc.
"""

from __future__ import annotations

import argparse
import os
import pathlib
import subprocess
import sys

import build
import judge
import programs
import table

SAMPLE = 4  # clusters of a launch


def run_one(program: programs.Program, options: argparse.Namespace) -> table.Row:
    sources = options.sources.resolve()
    ptxsim = options.ptxsim.resolve()
    driver = ptxsim.parent.parent / "lib" / "ptxsim"
    folder = sources / program.checkout / program.folder
    output = sources / "build" / program.checkout / program.file_name
    environment, extra = {}, []
    if program.python:
        cache = output.with_suffix(".cache")
        cache.mkdir(parents=True, exist_ok=True)
        command, extra = (
            [options.python, *(word.replace("TESTS", str(programs.HERE)) for word in program.python)],
            ["--ptx", str(cache)],
        )
        modules = [programs.HERE, programs.HERE.parents[1] / "python"]
        environment = {
            "PYTHONPATH": os.pathsep.join(map(str, modules)),
            "PYTHONDONTWRITEBYTECODE": "1",
            "TRITON_CACHE_DIR": str(cache),
            "HOME": str(cache),  # the cache of tests that set Triton's options back
            "TRITON_LIBCUDA_PATH": str(driver),
        }
    else:
        if program.files:
            folder = output.with_suffix(".files")
            folder.mkdir(parents=True, exist_ok=True)
            subprocess.run([options.python, "-B", str(programs.HERE / program.files), str(folder)], check=True)
        wrong = "" if output.exists() else build.compiled(program, sources / program.checkout, driver, output)
        if wrong:
            return table.Row(program, judge.Outcome("not compiled", wrong, 0, []), None, None, None)
        command = [str(output), *program.arguments]

    def run(name: str, limit: float, *more: str) -> judge.Outcome:
        outcomes: list[judge.Outcome] = []
        for number, arguments in enumerate(program.runs):
            line = [str(ptxsim), "exec", *extra, *more, "--", *command, *arguments]
            report = output.with_suffix(f".{name}{number or ''}.json")
            outcomes.append(judge.run(program, line, folder, report, environment, limit))
            if outcomes[-1].ends == "time":
                break
        return judge.together(outcomes)

    limit = program.limit or options.limit
    first = run("first", limit)
    if first.ends == "time" or (first.ends == "finding" and "not ready" in first.detail):
        again = run("once", options.longer, "--once")
        late = again.ends == "time"
        sample = run("sample", options.longer, "--once", "--sample", str(SAMPLE)) if late else None
        return table.Row(program, first, None, again, sample)
    return table.Row(program, first, run("plain", limit, "--no-sanitizer"), None, None)


def main() -> int:
    parser = argparse.ArgumentParser(
        prog="strangers", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("sources", type=pathlib.Path)
    parser.add_argument("--ptxsim", type=pathlib.Path, required=True)
    parser.add_argument("--only", nargs="+", default=[""], help="programs with one of these texts in 'family/name'")
    parser.add_argument("--limit", type=float, default=40)
    parser.add_argument("--longer", type=float, default=200)
    parser.add_argument("--python")
    parser.add_argument("--document", type=pathlib.Path, help="the table in this page becomes what was found")
    options = parser.parse_args()
    families = programs.families()
    known = [one for family in families for one in family.programs]
    chosen = [one for one in known if any(text in f"{one.family}/{one.name}, {one.target}" for text in options.only)]
    if not chosen:
        print(f"strangers: --only: {options.only}; must be part of 'family/name' of a program", file=sys.stderr)
        return 2
    if not build.nvcc():
        print("strangers: no nvcc")
        return 77
    rows = []
    for program in chosen:
        needs_python = program.python or program.files
        if not (program.sources or program.python) or (needs_python and not options.python):
            print(
                f"SKIPPED {program.family}/{program.name}, {program.target}: {'no --python' if needs_python else 'not tried yet'}"
            )
            continue
        row = run_one(program, options)
        rows.append(row)
        print(f"{'passed' if row.as_listed else 'FAILED'}  {row.line}", flush=True)
    if options.document:
        table.write(options.document, families, rows)
    failed = sum(not row.as_listed for row in rows)
    print(f"{len(rows) - failed} passed, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
