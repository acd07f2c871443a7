"""Every strategy of python/ through test and benchmark: the notes' table, and a ranking as bars."""

from __future__ import annotations

import os
import sys
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path

from . import STRATEGIES, file_of
from .bars import svg_of, text_bars
from .cases import Case
from .modes import run_mode, score_ns
from .process import Submission
from .timing import Rules, Stats

# What the project's notes say of one B200, in microseconds; those with a > were hopes.
NOTES = {"baseline": "~38", "cached": "~70", "graph": "~30", "streams": "~39", "triton": "> 15-18", "fused": "> 13"}


@dataclass(frozen=True)
class Entry:
    """stats: of each case, where the strategy was right; else `reason` says why there is none."""

    strategy: str
    stats: tuple[Stats, ...] = ()
    reason: str = ""
    is_skipped: bool = False

    def file(self) -> str:
        return f"python/{STRATEGIES[self.strategy]}.py"

    def microseconds(self) -> float:
        return score_ns(self.stats) / 1e3


class Silent:
    """A Report that keeps the first error."""

    def __init__(self) -> None:
        self.error = ""

    def begin(self, mode: str, cases: Sequence[Case]) -> None: ...

    def tested(self, index: int, case: Case, error: str) -> None:
        self.error = self.error or (f"{case.shape()}: {error}" if error else "")

    def measured(self, index: int, case: Case, stats: Stats | None, error: str) -> None:
        self.tested(index, case, error)

    def profiled(self, index: int, case: Case, table: str, error: str) -> None: ...
    def end(self, is_right: bool) -> None: ...


def reason_to_skip(strategy: str, device: str) -> str:
    """Why a strategy cannot run here, or nothing."""
    if strategy == "triton" and device == "cpu":
        return "Triton needs a GPU"
    if strategy == "triton" and find_spec("triton") is None:
        return "Triton is not installed"
    if strategy == "fused":
        try:
            import_module("dualgemm.torch")
        except ImportError as error:
            return f"no library: {' '.join(str(error).split())}"
    return ""


def measured(strategy: str, cases: Mapping[str, Sequence[Case]], rules: Rules, device: str, limit: float) -> Entry:
    reason = reason_to_skip(strategy, device)
    if reason:
        return Entry(strategy, reason=reason, is_skipped=True)
    for mode in ("test", "benchmark"):
        report = Silent()
        with Submission(file_of(strategy), device, limit) as submission:
            stats = run_mode(mode, cases[mode], rules, submission, report)
        if stats is None:
            return Entry(strategy, reason=f"{mode}: {report.error}")
    return Entry(strategy, tuple(stats or ()))


def table(entries: Sequence[Entry], cases: Sequence[Case]) -> str:
    right = [entry for entry in entries if entry.stats]
    best = min((entry.microseconds() for entry in right), default=0.0)
    head = ["strategy", "file", *(case.shape() for case in cases), "geometric mean", "to the best", "notes, B200"]
    rows = [head, ["---"] * len(head)]
    for entry in sorted(right, key=Entry.microseconds):
        times = [f"{stats.mean / 1e3:.1f}" for stats in entry.stats]
        score = entry.microseconds()
        rows.append([entry.strategy, f"`{entry.file()}`", *times, f"{score:.1f}", f"{score / best:.2f}", NOTES[entry.strategy]])
    for entry in entries:
        if not entry.stats:
            what = f"{'skipped' if entry.is_skipped else 'FAILED'}: {entry.reason}".replace("|", "/")
            rows.append([entry.strategy, f"`{entry.file()}`", what, *[""] * len(cases), "", NOTES[entry.strategy]])
    return "\n".join("| " + " | ".join(row) + " |" for row in rows)


def rank(cases: Mapping[str, Sequence[Case]], rules: Rules, device: str, limit: float, svg: Path | None) -> bool:
    """Prints the table and the bars, writes the picture; whether a strategy failed."""
    entries = []
    for strategy in STRATEGIES:
        print(f"gpumode: {strategy} ...", file=sys.stderr, flush=True)
        entries.append(measured(strategy, cases, rules, device, limit))
    print(f"microseconds a call, M x N x K, {rules.inputs} inputs, device {device}\n")
    print(table(entries, cases["benchmark"]))
    bars = sorted(((e.strategy, e.microseconds()) for e in entries if e.stats), key=lambda bar: bar[1])
    print("\n" + text_bars(bars))
    if svg is not None:
        write_whole(svg, svg_of(bars, f"Geometric mean of {len(cases['benchmark'])} shapes, {rules.inputs} inputs, {device}"))
    return any(not entry.stats and not entry.is_skipped for entry in entries)


def write_whole(path: Path, text: str) -> None:
    """The file is there with all of the text, or as it was."""
    with tempfile.NamedTemporaryFile("w", encoding="utf-8", dir=path.parent, delete=False) as file:
        file.write(text)
    os.chmod(file.name, 0o644)
    os.replace(file.name, path)
