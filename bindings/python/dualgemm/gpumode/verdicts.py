"""The lines `key: value` that a caller of the protocol reads from POPCORN_FD. Times in nanoseconds."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TextIO

from .cases import Case
from .timing import Stats


class Verdicts:
    """A Report. One line a key: what a submission puts into a message cannot make another line."""

    def __init__(self, out: TextIO, talk: TextIO) -> None:
        self._out, self._talk = out, talk

    def _line(self, key: str, value: object) -> None:
        self._out.write(f"{key}: {' '.join(str(value).split())}\n")
        self._out.flush()

    def _status(self, key: str, error: str) -> None:
        self._line(f"{key}.status", "fail" if error else "pass")
        if error:
            self._line(f"{key}.error", error)

    def begin(self, mode: str, cases: Sequence[Case]) -> None:
        self._line("test-count" if mode == "test" else "benchmark-count", len(cases))

    def tested(self, index: int, case: Case, error: str) -> None:
        self._line(f"test.{index}.spec", case.spec())
        self._status(f"test.{index}", error)

    def measured(self, index: int, case: Case, stats: Stats | None, error: str) -> None:
        key = f"benchmark.{index}"
        self._line(f"{key}.spec", case.spec())
        if stats is None:
            self._status(key, error)
            return
        for name in ("runs", "mean", "std", "err", "best", "worst"):
            self._line(f"{key}.{name}", getattr(stats, name))

    def profiled(self, index: int, case: Case, table: str, error: str) -> None:
        self._line(f"benchmark.{index}.spec", case.spec())
        self._status(f"benchmark.{index}", error)
        self._talk.write(table)

    def end(self, is_right: bool) -> None:
        self._line("check", "pass" if is_right else "fail")
