"""Compiles kernels with Triton's compiler, without a GPU, and runs each in ptxsim under every schedule: results and findings.

    python ptxsim/tests/peers --ptxsim build/default/bin/ptxsim [--only TEXT] [--table FILE] [--keep FOLDER]

A kernel fails by a wrong number, a fault, or a report of severity error. Exit status: 0; 1 something failed; 2 wrong arguments.
"""

from __future__ import annotations

import argparse
import collections
import concurrent.futures
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import time
from typing import NamedTuple

import peers

SCHEDULES, SEEDS, LIMIT_SECONDS = 3, 2, 120


class Result(NamedTuple):
    name: str
    target: int
    failure: str  # nothing: passed
    findings: str
    seconds: float


def run_one(ptxsim: str, name: str, target: int, folder: pathlib.Path) -> Result:
    peer = next(peer for peer in peers.all_of_them() if peer.name == name)
    try:
        peer.write(target, folder)
    except Exception as error:  # the compiler's; its text is long
        return Result(name, target, f"not compiled: {(str(error).splitlines() or [type(error).__name__])[0][:200]}", "", 0.0)
    start = time.monotonic()
    command = [
        ptxsim,
        "run",
        str(folder / "kernel.ptx"),
        "--case",
        str(folder / "case.json"),
        "--schedule",
        "all",
        "--seeds",
        str(SEEDS),
        "--json",
    ]
    try:
        done = subprocess.run(command, text=True, capture_output=True, timeout=LIMIT_SECONDS, check=False)
    except subprocess.TimeoutExpired:
        return Result(name, target, f"not ready after {LIMIT_SECONDS} s", "", LIMIT_SECONDS)
    seconds = time.monotonic() - start
    if done.returncode == 2 or not done.stdout:
        return Result(name, target, (done.stderr.strip() or f"exit status {done.returncode}")[:300], "", seconds)
    return Result(name, target, *judged(json.loads(done.stdout)), seconds)


def judged(runs: list[dict]) -> tuple[str, str]:
    """Why it failed, and the rules that were reported with their severities."""
    failures = [
        f"{run['schedule']}: {(run.get('error') or {}).get('message') or '; '.join(run['mismatches'][:1])}"
        for run in runs
        if run.get("error") or run["mismatches"]
    ]
    found = collections.Counter((report["severity"], report["rule"]) for run in runs for report in run["reports"])
    errors = [report for run in runs for report in run["reports"] if report["severity"] == "error"]
    if errors and not failures:
        failures = [f"{errors[0]['rule']}: {errors[0]['place']['ptx']}:{errors[0]['place']['line']} {errors[0]['message']}"]
    if not failures and not all(run["passed"] for run in runs):
        failures = ["a run did not pass"]
    words = [f"{rule} ({severity})" for severity, rule in sorted(found)]
    return (failures[0][:300] if failures else ""), ", ".join(words) or "none"


def spoken(target: int) -> str:
    return f"sm_{target}{'a' if target >= 90 else ''}"


def table(results: list[Result]) -> str:
    by_name: dict[str, list[Result]] = {}
    for result in results:
        by_name.setdefault(result.name, []).append(result)
    lines = ["| kernel | for | result | findings | seconds |", "|---|---|---|---|---|"]
    for name, of in by_name.items():
        wrong = [f"{spoken(one.target)}: {one.failure}" for one in of if one.failure]
        findings = sorted({word for one in of for word in one.findings.split(", ") if word and word != "none"})
        lines.append(
            f"| {name} | {' '.join(spoken(one.target) for one in of)} | {'; '.join(wrong) or 'right'} | "
            f"{', '.join(findings) or 'none'} | {sum(one.seconds for one in of):.1f} |"
        )
    return "\n".join(lines) + "\n"


def main() -> int:
    parser = argparse.ArgumentParser(prog="peers", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--ptxsim", required=True, help="the command")
    parser.add_argument("--only", default="", help="kernels with this text in their names")
    parser.add_argument("--table", type=pathlib.Path, help="write what was found there, as Markdown")
    parser.add_argument("--keep", type=pathlib.Path, help="folder for PTX and cases; else they are deleted")
    options = parser.parse_args()
    work = [(peer.name, target) for peer in peers.all_of_them() for target in peer.targets if options.only in peer.name]
    if not work:
        print(f"peers: --only: {options.only}; must be part of a kernel's name", file=sys.stderr)
        return 2
    with tempfile.TemporaryDirectory() as temporary:
        folder = options.keep or pathlib.Path(temporary)
        with concurrent.futures.ProcessPoolExecutor(os.cpu_count()) as pool:
            futures = [
                pool.submit(
                    run_one, options.ptxsim, name, target, folder / f"{name.replace(' ', '_').replace(',', '')}_{target}"
                )
                for name, target in work
            ]
            results = []
            for future in futures:
                one = future.result()
                results.append(one)
                print(
                    f"{'FAILED' if one.failure else 'passed'}  {one.name}, {spoken(one.target)}: {one.failure or one.findings} "
                    f"({one.seconds:.1f} s)",
                    flush=True,
                )
    if options.table:
        options.table.write_text(table(results), encoding="utf-8")
    failed = sum(bool(one.failure) for one in results)
    print(f"{len(results) - failed} passed, {failed} failed; {len({name for name, _ in work})} kernels")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
