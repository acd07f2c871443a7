"""Every strategy of python/ on the ten test shapes, on the CPU and, where there is one, on the GPU."""

from __future__ import annotations

from collections.abc import Iterator
from importlib import import_module

import pytest
import torch

from dualgemm import gpumode
from dualgemm.gpumode.rank import reason_to_skip
from python import task

DEVICES = ["cpu"] + ["cuda"] * torch.cuda.is_available()
# Rows that fill no tile, more than one batch, one block of 16: what the challenge's shapes do not have.
ODD = [{"m": 5, "n": 48, "k": 80, "l": 3, "seed": 3}, {"m": 257, "n": 17, "k": 16, "l": 1, "seed": 4}]
Judged = tuple[task.input_t, torch.Tensor]


def name_of(case: dict[str, int]) -> str:
    return "x".join(str(case[name]) for name in "mnkl")


@pytest.fixture(scope="module", params=DEVICES)
def device(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture(scope="module", params=task.TEST_CASES, ids=name_of)
def shape(request: pytest.FixtureRequest, device: str) -> Iterator[Judged]:
    data = task.generate_input(**request.param, device=device)
    yield data, task.ref_kernel(data)


@pytest.fixture(scope="module", params=ODD, ids=name_of)
def odd_shape(request: pytest.FixtureRequest, device: str) -> Iterator[Judged]:
    data = task.generate_input(**request.param, device=device)
    yield data, task.ref_kernel(data)


def check(strategy: str, judged: Judged) -> None:
    data, expected = judged
    reason = reason_to_skip(strategy, data[-1].device.type)
    if reason:
        pytest.skip(f"{strategy}: {reason}")
    for _ in range(3 if data[-1].is_cuda else 2):  # graphs: recorded at the first call, replayed at the others
        data[-1].fill_(float("nan"))
        output = gpumode.custom_kernel(data, strategy)
        assert task.compare(output, expected) == ""
        assert output.data_ptr() == data[-1].data_ptr()


@pytest.mark.parametrize("strategy", gpumode.STRATEGIES)
def test_a_test_shape(strategy: str, shape: Judged) -> None:
    check(strategy, shape)


@pytest.mark.parametrize("strategy", [name for name in gpumode.STRATEGIES if name != "triton"])
def test_an_odd_shape(strategy: str, odd_shape: Judged, device: str) -> None:
    check(strategy, odd_shape)


def test_as_the_notes_call_it() -> None:
    from python.submission_best import custom_kernel

    data = task.generate_input(128, 64, 128, 1, 1, "cpu")
    result = custom_kernel(data)
    assert task.check_implementation(data, result) == (True, "")


def test_the_graph_strategy_works_where_there_is_no_library(monkeypatch: pytest.MonkeyPatch) -> None:
    best = import_module("python.submission_best")

    def absent(*_: int) -> None:
        raise ImportError("dualgemm")

    monkeypatch.setattr(best, "plan_of", absent)
    data = task.generate_input(128, 64, 128, 2, 1, "cpu")
    assert task.check_implementation(data, best.custom_kernel(data)) == (True, "")


def test_ready_weights_serve_many_a() -> None:
    from python.submission_v2 import ReadyWeights

    data = task.generate_input(128, 64, 128, 2, 1, "cpu")
    weights = ReadyWeights(data[1], data[2], data[4], data[5], data[7], data[8])
    for seed in (2, 3):
        other = task.generate_input(40, 64, 128, 2, seed, "cpu")
        mixed = (other[0], *data[1:3], other[3], *data[4:6], other[6], *data[7:9], other[9])
        assert task.check_implementation(mixed, weights(other[0], other[3], other[6], other[9])) == (True, "")


def test_unknown_strategies_are_named() -> None:
    with pytest.raises(ValueError, match="strategy: best; must be one of baseline, cached, graph"):
        gpumode.custom_kernel(task.generate_input(16, 16, 16, 1, 1, "cpu"), "best")
