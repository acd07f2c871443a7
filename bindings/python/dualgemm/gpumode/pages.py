"""The same for people: Markdown on the terminal. Times in microseconds."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TextIO

from .cases import Case
from .timing import Stats, geometric_mean


class Page:
    """A Report."""

    def __init__(self, out: TextIO) -> None:
        self._out = out
        self._means: list[float] = []

    def _line(self, text: str = "") -> None:
        self._out.write(text + "\n")
        self._out.flush()

    def begin(self, mode: str, cases: Sequence[Case]) -> None:
        self._means = []
        self._line(f"{mode}, {len(cases)} case{'s' if len(cases) != 1 else ''}")
        if mode in ("benchmark", "leaderboard"):
            self._line("\n| M x N x K | us | +- | best | worst | rounds |\n|---|---|---|---|---|---|")

    def tested(self, index: int, case: Case, error: str) -> None:
        self._line(f"{'FAIL' if error else 'pass'}  {case.spec()}{'  ' if error else ''}{error}")

    def measured(self, index: int, case: Case, stats: Stats | None, error: str) -> None:
        if stats is None:
            self._line(f"| {case.shape()} | FAIL: {error} |")
            return
        times = " | ".join(f"{ns / 1e3:.2f}" for ns in (stats.mean, stats.err, stats.best, stats.worst))
        self._line(f"| {case.shape()} | {times} | {stats.runs} |")
        self._means.append(stats.mean)

    def profiled(self, index: int, case: Case, table: str, error: str) -> None:
        self._line(f"{case.spec()}\n{table}" if not error else f"FAIL  {case.spec()}  {error}")

    def end(self, is_right: bool) -> None:
        if is_right and self._means:
            self._line(f"\ngeometric mean: {geometric_mean(self._means) / 1e3:.2f} us")
        self._line(f"check: {'pass' if is_right else 'fail'}")
