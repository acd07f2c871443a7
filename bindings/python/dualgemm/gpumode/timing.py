"""Rounds, when they end, and what is reported of them. Nanoseconds a call, unless said otherwise."""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass

MIB = 1 << 20


@dataclass(frozen=True)
class Rules:
    """The defaults are the server's for benchmarks; a round is every input once, timed together."""

    inputs: int = 50
    most_rounds: int = 200
    least_rounds: int = 3
    least_seconds: float = 0.1
    most_relative_error: float = 1e-3  # of the mean
    most_summed_seconds: float = 10.0  # of the rounds' times a call
    most_seconds: float = 120.0  # of everything, the emptying of the cache included
    clear_bytes: int = 16000 * MIB * 4  # written before each round, 62.5 GiB; cut to what the device has
    checks_rounds: bool = False  # the outputs of every round

    def are_done(self, times: Sequence[float], elapsed_seconds: float) -> bool:
        if len(times) >= self.most_rounds or elapsed_seconds >= self.most_seconds:
            return True
        if sum(times) >= self.most_summed_seconds * 1e9:
            return True
        if len(times) < max(self.least_rounds, 2) or elapsed_seconds < self.least_seconds:
            return False
        stats = Stats.of(times)
        return stats.err < self.most_relative_error * stats.mean


BENCHMARK = Rules()
LEADERBOARD = Rules(most_rounds=1000, most_summed_seconds=30.0, checks_rounds=True)


@dataclass(frozen=True)
class Stats:
    runs: int
    mean: float
    std: float  # of one round
    err: float  # of the mean
    best: float
    worst: float

    @classmethod
    def of(cls, times: Sequence[float]) -> Stats:
        std = statistics.stdev(times) if len(times) > 1 else 0.0
        return cls(len(times), statistics.fmean(times), std, std / math.sqrt(len(times)), min(times), max(times))


def geometric_mean(values: Sequence[float]) -> float:
    """What ranks: of the means of all shapes."""
    return math.exp(statistics.fmean(math.log(value) for value in values))
