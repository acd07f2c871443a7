"""Runs a program below `ptxsim exec` for some seconds of processor time, and says how it ended."""

from __future__ import annotations

import json
import os
import pathlib
import re
import resource
import signal
import subprocess
from typing import Any, NamedTuple

from programs import Program

WAIVED = 2  # what NVIDIA's samples end with where the GPU lacks what they show
OUT_OF_TIME = 128 + signal.SIGXCPU
WALL = 30  # times the processor's seconds: for a program that sleeps or waits for ever


class Outcome(NamedTuple):
    ends: str  # a key of programs.WORDS
    detail: str
    seconds: float  # of the processor
    findings: list[str]

    @property
    def is_well(self) -> bool:
        return self.ends in ("right", "0", "sampled")


def run(
    program: Program, command: list[str], folder: pathlib.Path, report: pathlib.Path, environment: dict[str, str], limit: float
) -> Outcome:
    """`command`: ptxsim exec with its options, --sample among them or not, and the program."""
    at = command.index("exec") + 1
    line = [*command[:at], "--device", program.device, "--json", "--report", str(report), *command[at:]]
    report.unlink(missing_ok=True)
    printed = report.with_suffix(".txt")
    before = resource.getrusage(resource.RUSAGE_CHILDREN)

    def limited() -> None:
        resource.setrlimit(resource.RLIMIT_CPU, (int(limit), int(limit) + 5))

    with printed.open("wb") as output:
        process = subprocess.Popen(
            line,
            cwd=folder,
            env={**os.environ, **environment},
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            preexec_fn=limited,
        )
        try:
            status = process.wait(timeout=limit * WALL)
        except subprocess.TimeoutExpired:
            process.send_signal(signal.SIGTERM)  # the report is written all the same
            process.wait()
            status = OUT_OF_TIME
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    seconds = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    told = json.loads(report.read_text(encoding="utf-8")) if report.exists() else {"findings": [], "kernels": []}
    if "--sample" in command[: at + command[at:].index("--")]:
        left_out = sum(kernel["clusters_left_out"] for kernel in told["kernels"])
        if left_out or status == OUT_OF_TIME:
            return sampled(status, told, seconds)
    return judged(program, status, printed.read_text(errors="replace"), told["findings"], seconds)


def is_true_of_program(finding: dict[str, Any]) -> bool:
    """A race, or unwritten bytes that a product of the stand-in of cuBLAS was given: neither a kernel that was under way when
    the time ended, nor a call that ptxsim does not model."""
    return bool(re.fullmatch(r"R\d+", finding["rule"])) or (
        finding["rule"] == "call" and "was never written" in finding["text"]
    )


def judged(program: Program, status: int, text: str, findings: list[dict[str, Any]], seconds: float) -> Outcome:
    errors = [one for one in findings if one["severity"] == "error"]
    races = [one for one in errors if is_true_of_program(one)]
    late = status == OUT_OF_TIME
    names = {f"{one['rule']} ({one['severity']})" for one in findings if one["severity"] != "advisory"}
    if late:
        names -= {"run (error)"}  # the kernel that was under way
    rules = sorted(names)
    if races:
        return Outcome("finding", races[0]["text"], seconds, rules)
    if late:
        return Outcome("time", f"not ready after {seconds:.0f} s", seconds, rules)
    if any(one["rule"] == "run" for one in errors):
        return Outcome("finding", errors[0]["text"], seconds, rules)
    if errors:
        return Outcome("limit", errors[0]["text"], seconds, rules)
    if status == WAIVED and program.ends == "waived":
        return Outcome("waived", "", seconds, rules)
    if status:
        return Outcome("wrong", f"ended with {status}: {last_line(text)}", seconds, rules)
    if program.says and not re.search(program.says, text):
        return Outcome("wrong", f"printed no '{program.says}', and must: {last_line(text)}", seconds, rules)
    return Outcome("right" if program.says else "0", "", seconds, rules)


def sampled(status: int, report: dict[str, Any], seconds: float) -> Outcome:
    """What a sample can tell where clusters were left out: findings of those that ran. Results are wrong, and with them what
    the program says and its exit status."""
    errors = [one for one in report["findings"] if one["severity"] == "error"]
    races = [one for one in errors if is_true_of_program(one)]
    rules = sorted({f"{one['rule']} ({one['severity']})" for one in report["findings"] if one["severity"] != "advisory"})
    if races:
        return Outcome("finding", races[0]["text"], seconds, rules)
    if status == OUT_OF_TIME:
        return Outcome("time", f"not ready after {seconds:.0f} s, with --sample", seconds, rules)
    if errors:
        return Outcome("limit" if errors[0]["rule"] == "call" else "finding", errors[0]["text"], seconds, rules)
    return Outcome("sampled", "", seconds, rules)


def together(outcomes: list[Outcome]) -> Outcome:
    """Runs of one program with several arguments: what is not well counts."""
    worst = next((one for one in outcomes if not one.is_well), outcomes[-1])
    rules = sorted({rule for one in outcomes for rule in one.findings})
    return worst._replace(seconds=sum(one.seconds for one in outcomes), findings=rules)


def last_line(text: str) -> str:
    lines = [line for line in text.splitlines() if line.strip()]
    return lines[-1][:200] if lines else "nothing was printed"
