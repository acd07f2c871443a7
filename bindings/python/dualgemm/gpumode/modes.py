"""The modes test, benchmark, leaderboard and profile: which jobs in which order, and what is reported of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any, Protocol

from .cases import Case
from .process import Submission
from .timing import Rules, Stats, geometric_mean

MODES = ("test", "benchmark", "leaderboard", "profile")


class Report(Protocol):
    """Where results go while they come: a case is reported when it is over, never in halves."""

    def begin(self, mode: str, cases: Sequence[Case]) -> None: ...
    def tested(self, index: int, case: Case, error: str) -> None: ...
    def measured(self, index: int, case: Case, stats: Stats | None, error: str) -> None: ...
    def profiled(self, index: int, case: Case, table: str, error: str) -> None: ...
    def end(self, is_right: bool) -> None: ...


def run_mode(mode: str, cases: Sequence[Case], rules: Rules, submission: Submission, report: Report) -> list[Stats] | None:
    """The measured cases, in order; None if anything was wrong."""
    report.begin(mode, cases)
    measured: list[Stats] = []
    is_right = True
    if mode == "leaderboard":  # every shape once before the first is timed
        is_right = all("error" not in _ask(submission, "test", case) for case in cases)
    for index, case in enumerate(cases):
        if mode == "test":
            error = _ask(submission, "test", case).get("error", "")
            report.tested(index, case, error)
        elif mode == "profile":
            answer = _ask(submission, "profile", case)
            error = answer.get("error", "")
            report.profiled(index, case, answer.get("table", ""), error)
        else:
            answer = _ask(submission, "measure", case, rules=asdict(rules))
            error = answer.get("error", "")
            stats = None if error else Stats(**answer["stats"])
            report.measured(index, case, stats, error)
            measured += [stats] if stats is not None else []
        is_right = is_right and not error
    report.end(is_right)
    return measured if is_right else None


def _ask(submission: Submission, job: str, case: Case, **more: Any) -> dict[str, Any]:
    return submission.ask(job, case=asdict(case), **more)


def score_ns(measured: Sequence[Stats]) -> float:
    return geometric_mean([stats.mean for stats in measured])
