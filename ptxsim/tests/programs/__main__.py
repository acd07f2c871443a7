"""Compiles programs with CUTLASS's kernels and runs each, host code included, below ``ptxsim exec`` under every schedule.

    python ptxsim/tests/programs --ptxsim build/default/bin/ptxsim --nvcc nvcc --cutlass FOLDER --cache FOLDER
                                 [--all] [--only TEXT] [--jobs N] [--table FILE]

A program fails by a wrong number, a status that is not 0, a fault, or a report of severity error that is not among the
true findings that programs.py lists. Exit status: 0; 1 something failed; 2 wrong arguments.
"""

from __future__ import annotations

import argparse
import collections
import concurrent.futures
import hashlib
import json
import os
import pathlib
import re
import resource
import subprocess
import sys
import tempfile
from typing import NamedTuple

import programs
from programs import Program

HERE = pathlib.Path(__file__).parent
SCHEDULES = ("eager", "lazy", "random")
COMPILE_SECONDS, RUN_SECONDS = 3600, 600  # of machines that others keep busy
# PTX alone: ptxas is not run. The host code is not what is measured, so it is not optimised much.
FLAGS = ("-std=c++17", "-O1", "--expt-relaxed-constexpr", "-w")


class Result(NamedTuple):
    program: Program
    failure: str  # nothing: passed
    findings: str
    seconds: float  # of processor time, which other work on the machine does not change


def used() -> float:
    children = resource.getrusage(resource.RUSAGE_CHILDREN)
    return children.ru_utime + children.ru_stime


def compile_one(program: Program, nvcc: str, cutlass: pathlib.Path, cache: pathlib.Path) -> tuple[pathlib.Path, str]:
    """The program, and what the compiler said where there is none. Kept under the hash of what goes in."""
    source = HERE / program.source if program.ours else cutlass / program.source
    flags = [*FLAGS, f"-gencode=arch=compute_{program.target},code=compute_{program.target}"]
    folders = [source.parent, cutlass / "include", cutlass / "tools/util/include"]
    version = subprocess.run([nvcc, "--version"], text=True, capture_output=True, check=True).stdout
    key = hashlib.sha256("\n".join([version, (cutlass / "sha256").read_text(), *flags, *program.edit]).encode())
    for file in [source, *(sorted(HERE.glob("*.hpp")) if program.ours else [])]:
        key.update(file.read_bytes())
    kept = source.stem + ("-edited" if program.edit else "")
    made = cache / f"{kept}-{key.hexdigest()[:24]}"
    if made.exists():
        return made, ""
    cache.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=cache) as work:
        if program.edit:
            text = source.read_text()
            if text.count(program.edit[0]) != 1:
                return made, f"'{program.edit[0]}' must stand in {program.source} once"
            source = pathlib.Path(work) / "edited.cu"
            source.write_text(text.replace(*program.edit))
        flags += [f"-I{folder}" for folder in folders]
        try:
            done = subprocess.run(
                [nvcc, *flags, "-o", f"{work}/program", str(source)],
                text=True,
                capture_output=True,
                check=False,
                timeout=COMPILE_SECONDS,
            )
        except subprocess.TimeoutExpired:
            return made, f"not compiled after {COMPILE_SECONDS} s"
        if done.returncode != 0:
            said = next((line for line in done.stderr.splitlines() if "error" in line), done.stderr)
            return made, f"not compiled: {said.strip()[:200]}"
        for older in cache.glob(f"{kept}-{'?' * 24}"):
            older.unlink()
        os.replace(f"{work}/program", made)
    return made, ""


def run_one(program: Program, binary: pathlib.Path, ptxsim: str, schedule: str) -> Result:
    start = used()
    with tempfile.TemporaryDirectory() as work:
        report = pathlib.Path(work) / "report.json"
        command = [
            ptxsim,
            "exec",
            "--device",
            program.device,
            "--schedule",
            schedule,
            "--json",
            "--report",
            str(report),
            "--",
            str(binary),
            *program.arguments.split(),
        ]
        try:
            done = subprocess.run(command, text=True, capture_output=True, timeout=RUN_SECONDS, check=False)
        except subprocess.TimeoutExpired:
            return Result(program, f"{schedule}: not ready after {RUN_SECONDS} s", "", RUN_SECONDS)
        seconds = used() - start
        if not report.exists():
            return Result(program, f"{schedule}: {done.stderr.strip()[:300]}", "", seconds)
        failure, findings = judged(program, json.loads(report.read_text()), done.stdout)
    return Result(program, f"{schedule}: {failure}" if failure else "", findings, seconds)


def rule_of(text: str) -> str:
    """R1 and so on; of a call that was refused, and of a leak, the first words."""
    rule = re.search(r"\[(R\d+)\]", text)
    return rule[1] if rule else "leak" if "never freed" in text else text.splitlines()[0][:120]


def judged(program: Program, report: dict, out: str) -> tuple[str, str]:
    """Why it failed, and the rules that were reported with their severities."""
    found = collections.Counter((rule_of(finding["text"]), finding["severity"]) for finding in report["findings"])
    findings = (
        ", ".join(
            f"{rule} ({severity}{': true' if severity == 'error' and rule in program.true_findings else ''})"
            for rule, severity in sorted(found)
        )
        or "none"
    )
    errors = [
        finding["text"]
        for finding in report["findings"]
        if finding["severity"] == "error" and rule_of(finding["text"]) not in program.true_findings
    ]
    unseen = [rule for rule in sorted(program.true_findings) if (rule, "error") not in found]
    if errors:
        return f"{len(errors)} errors, the first: {' '.join(errors[0].split())[:300]}", findings
    if program.says not in out:
        return f"'{program.says}' was not printed, but: {' '.join(out.split())[-200:]}", findings
    if report["status"] != 0 or not report["ended"]:
        return f"exit status {report['status']}", findings
    if not any(program.kernel in kernel["name"] for kernel in report["kernels"]):
        return f"no kernel {program.kernel} was launched", findings
    if unseen:
        return f"{unseen[0]} is a true finding, and was not reported", findings
    return "", findings


def of_all_schedules(results: list[Result]) -> Result:
    words = sorted({word for result in results for word in result.findings.split(", ") if word and word != "none"})
    return Result(
        results[0].program,
        "; ".join(result.failure for result in results if result.failure),
        ", ".join(words) or "none",
        sum(result.seconds for result in results),
    )


def table(results: list[Result]) -> str:
    lines = ["| kernel | source | for | result | findings | seconds |", "|---|---|---|---|---|---|"]
    for program, failure, findings, seconds in results:
        source = f"`{program.source}`" if program.ours else f"`{program.source.removeprefix('examples/')}`, CUTLASS's"
        source += " and edited" if program.edit else ""
        lines.append(f"| {program.name} | {source} | sm_{program.target} | {failure or 'right'} | {findings} | {seconds:.1f} |")
    return "\n".join(lines) + "\n"


def main() -> int:
    parser = argparse.ArgumentParser(prog="programs", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--ptxsim", required=True, help="the command")
    parser.add_argument("--nvcc", required=True, help="the compiler")
    parser.add_argument("--cutlass", type=pathlib.Path, required=True, help="what scripts/get_cutlass made")
    parser.add_argument("--cache", type=pathlib.Path, required=True, help="folder that keeps compiled programs")
    parser.add_argument(
        "--all", action="store_true", help="also CUTLASS's own programs, which take a minute or more to compile"
    )
    parser.add_argument("--only", default="", help="programs with this text in their names or sources")
    parser.add_argument("--jobs", type=int, default=os.cpu_count(), help="at the same time; default: the cores")
    parser.add_argument("--table", type=pathlib.Path, help="write what was found there, as Markdown")
    options = parser.parse_args()
    work = [
        program
        for program in programs.all_of_them()
        if (options.all or not program.slow) and (options.only in program.name or options.only in program.source)
    ]
    if not work:
        print(f"programs: --only: {options.only}; must be part of a program's name or source", file=sys.stderr)
        return 2
    results = []
    with concurrent.futures.ProcessPoolExecutor(options.jobs) as pool:
        builds = {}
        for program in work:  # programs of one source are one binary
            if program.build not in builds:
                builds[program.build] = pool.submit(compile_one, program, options.nvcc, options.cutlass, options.cache)
        runs = {}
        for program in work:
            binary, failure = builds[program.build].result()
            runs[program] = failure or [
                pool.submit(run_one, program, binary, options.ptxsim, schedule) for schedule in SCHEDULES
            ]
        for program, futures in runs.items():
            if isinstance(futures, str):
                results.append(Result(program, futures, "", 0.0))
            else:
                results.append(of_all_schedules([future.result() for future in futures]))
            _, failure, findings, seconds = results[-1]
            print(
                f"{'FAILED' if failure else 'passed'}  {program.name}, sm_{program.target}: {failure or findings} "
                f"({seconds:.1f} s of processor time)",
                flush=True,
            )
    if options.table:
        options.table.write_text(table(results), encoding="utf-8")
    failed = sum(bool(result.failure) for result in results)
    print(f"{len(results) - failed} passed, {failed} failed; {len(results)} programs of CUTLASS's kernels")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
