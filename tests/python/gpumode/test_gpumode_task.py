"""The task: inputs, the reference and the check, against a definition that is written out element by element."""
from __future__ import annotations

import json
import math

import pytest
import torch
from harness import ROOT

from python import task

VALUES = [0.0, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 6.0, -0.0, -0.5, -1.0, -1.5, -2.0, -3.0, -4.0, -6.0]


def value(codes: torch.Tensor, scales: torch.Tensor, row: int, k: int, batch: int) -> float:
    byte = int(codes.view(torch.uint8)[row, k // 2, batch])
    return VALUES[byte >> 4 if k % 2 else byte & 15] * float(scales[row, k // 16, batch])


def test_shapes_types_and_memory() -> None:
    a, b1, b2, sfa, sfb1, sfb2, pa, p1, p2, c = task.generate_input(130, 48, 80, 2, 3, "cpu")
    assert [tuple(t.shape) for t in (a, b1, b2)] == [(130, 40, 2), (48, 40, 2), (48, 40, 2)]
    assert [tuple(t.shape) for t in (sfa, sfb1, sfb2)] == [(130, 5, 2), (48, 5, 2), (48, 5, 2)]
    assert [tuple(t.shape) for t in (pa, p1, p2)] == [(32, 4, 2, 4, 2, 2), (32, 4, 1, 4, 2, 2), (32, 4, 1, 4, 2, 2)]
    assert tuple(c.shape) == (130, 48, 2) and c.dtype == torch.float16 and bool(c.isnan().all())
    assert a.dtype == torch.float4_e2m1fn_x2 and sfa.dtype == p2.dtype == torch.float8_e4m3fn
    assert all(t.permute(2, 0, 1).is_contiguous() for t in (a, b1, b2, sfa, sfb1, sfb2, c))
    assert all(t.permute(5, 2, 4, 0, 1, 3).is_contiguous() for t in (pa, p1, p2))


def test_the_permuted_scales_are_those_of_the_linear_ones_and_zero() -> None:
    data = task.generate_input(130, 48, 80, 2, 3, "cpu")
    linear, permuted = data[3].view(torch.uint8), data[6].view(torch.uint8)
    for batch in range(2):
        for i in range(256):
            for j in range(8):
                found = int(permuted[i % 32, i % 128 // 32, i // 128, j % 4, j // 4, batch])
                assert found == (int(linear[i, j, batch]) if i < 130 and j < 5 else 0), (i, j, batch)


def test_inputs_follow_the_seed() -> None:
    first, again, other = (task.generate_input(16, 16, 64, 1, seed, "cpu") for seed in (5, 5, 6))
    same = [torch.equal(x.view(torch.uint8), y.view(torch.uint8)) for x, y in zip(first[:9], again)]
    assert all(same) and not torch.equal(first[0].view(torch.uint8), other[0].view(torch.uint8))
    codes = task.generate_input(64, 64, 256, 1, 1, "cpu")[0].view(torch.uint8)
    assert int((codes & ~torch.tensor(0xBB, dtype=torch.uint8)).max()) == 0 and len(codes.unique()) == 64


def test_every_code_and_scale_is_decoded() -> None:
    codes = torch.arange(256, dtype=torch.uint8).view(256, 1).expand(256, 8).contiguous()
    for scale in range(256):
        scales = torch.full((256, 1), scale, dtype=torch.uint8).view(torch.float8_e4m3fn)
        expected = torch.tensor([[VALUES[b & 15], VALUES[b >> 4]] * 8 for b in range(256)]).double() * scales.double()
        assert torch.equal(task._values(codes, scales).nan_to_num(9e9), expected.nan_to_num(9e9))


def test_the_reference_is_the_definition() -> None:
    data = task.generate_input(3, 4, 48, 2, 11, "cpu")
    a, b1, b2, sfa, sfb1, sfb2 = data[:6]
    out = task.ref_kernel(data)
    for batch in range(2):
        for i in range(3):
            for j in range(4):
                gate, up = (sum(value(a, sfa, i, k, batch) * value(b, sf, j, k, batch) for k in range(48))
                            for b, sf in ((b1, sfb1), (b2, sfb2)))
                expected = torch.tensor(gate / (1 + math.exp(-gate)) * up, dtype=torch.float64).half()
                assert out[i, j, batch] == expected
    assert bool(data[-1].isnan().all()), "c is not the reference's to write"


@pytest.fixture
def right() -> torch.Tensor:
    return torch.tensor([[1.0, -200.0, 0.0], [math.inf, -math.inf, math.nan]], dtype=torch.float16)


def changed(tensor: torch.Tensor, at: tuple[int, int], to: float) -> torch.Tensor:
    tensor = tensor.clone()
    tensor[at] = to
    return tensor


def test_the_check_passes_what_it_should(right: torch.Tensor) -> None:
    assert task.compare(right.clone(), right) == ""
    assert task.compare(changed(right, (0, 1), -200.125), right) == ""  # 1e-3 + 0.2
    assert task.compare(changed(right, (0, 2), 0.0009), right) == ""


@pytest.mark.parametrize("at,to", [((0, 0), 1.003), ((0, 1), -200.375), ((0, 2), 0.0011), ((0, 0), math.nan), ((1, 2), 0.0),
                                   ((1, 0), 65504.0), ((1, 0), -math.inf), ((0, 0), math.inf), ((1, 2), math.inf)])
def test_one_wrong_element_fails(right: torch.Tensor, at: tuple[int, int], to: float) -> None:
    message = task.compare(changed(right, at, to), right)
    assert message.startswith(f"output: 1 of 6 elements differ, first {list(at)}: ")


@pytest.mark.parametrize("output,message", [
    (None, "NoneType; must be a tensor"), (torch.zeros(2, 3), "dtype torch.float32; must be torch.float16"),
    (torch.zeros(3, 2, dtype=torch.float16), r"shape \(\[3, 2\]\); must be \(\[2, 3\]\)"),
    (torch.zeros(2, 3, dtype=torch.float16, device="meta"), "device meta; must be cpu")])
def test_other_outputs_are_named(right: torch.Tensor, output: object, message: str) -> None:
    with pytest.raises(AssertionError, match=message):
        assert task.compare(output, right) == ""


def test_check_implementation() -> None:
    data = task.generate_input(16, 16, 64, 1, 5, "cpu")
    assert task.check_implementation(data, task.ref_kernel(data)) == (True, "")
    is_right, message = task.check_implementation(data, data[-1])
    assert not is_right and "256 of 256" in message


def test_the_cases_are_the_challenges() -> None:
    lists = json.loads((ROOT / "bench" / "shapes.json").read_text())["challenge"]
    assert len(task.TEST_CASES) == 10 and len(task.BENCHMARK_CASES) == 4
    for cases, shapes in ((task.TEST_CASES, lists["test"]), (task.BENCHMARK_CASES, lists["benchmark"])):
        assert [[c["m"], c["n"], c["k"]] for c in cases] == shapes
