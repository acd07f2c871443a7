"""Rounds, when they end, and their statistics."""

from __future__ import annotations

import math

import pytest

from dualgemm.gpumode.timing import BENCHMARK, LEADERBOARD, Rules, Stats, geometric_mean


def test_statistics_of_known_values() -> None:
    stats = Stats.of([2.0, 4.0, 4.0, 4.0, 5.0, 5.0, 7.0, 9.0])
    assert (stats.runs, stats.mean, stats.best, stats.worst) == (8, 5.0, 2.0, 9.0)
    assert stats.std == pytest.approx(math.sqrt(32 / 7)) and stats.err == pytest.approx(stats.std / math.sqrt(8))
    assert Stats.of([3.0]) == Stats(1, 3.0, 0.0, 0.0, 3.0, 3.0)


def test_the_geometric_mean() -> None:
    assert geometric_mean([2.0, 8.0]) == pytest.approx(4.0)
    assert geometric_mean([4708.0, 8714.0, 2125.0, 6535.0]) == pytest.approx((4708.0 * 8714 * 2125 * 6535) ** 0.25)


def test_the_defaults_are_the_protocols() -> None:
    assert BENCHMARK == Rules(50, 200, 3, 0.1, 1e-3, 10.0, 120.0, 16000 * 2**20 * 4, False)
    assert (LEADERBOARD.most_rounds, LEADERBOARD.most_summed_seconds, LEADERBOARD.checks_rounds) == (1000, 30.0, True)
    assert BENCHMARK.clear_bytes == 62.5 * 2**30


def test_rounds_end_when_the_mean_is_known() -> None:
    calm, noisy = [1e5, 1e5, 1e5], [1e5, 2e5, 1e5]
    assert BENCHMARK.are_done(calm, 0.2)
    assert not BENCHMARK.are_done(calm, 0.05), "0.1 s at least"
    assert not BENCHMARK.are_done(calm[:2], 0.2), "three rounds at least"
    assert not BENCHMARK.are_done(noisy, 0.2)
    assert not BENCHMARK.are_done([], 0.2)


def test_rounds_end_by_their_number_and_by_time() -> None:
    noisy = [1e5, 2e5] * 100
    assert BENCHMARK.are_done(noisy, 1.0) and not BENCHMARK.are_done(noisy[1:], 1.0)
    assert BENCHMARK.are_done([4e9, 7e9], 11.0), "10 s of summed means"
    assert not LEADERBOARD.are_done([4e9, 7e9], 11.0)
    assert BENCHMARK.are_done([1e5], 120.0)
