"""dispatch() and combine(): bits equal to one process, row by row."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from problems import operand, same_bits
from torch import Tensor

import dualgemm
from dualgemm.distributed import combine, dispatch

K, N = 64, 32


def _rows(rank: int, rows: int, top_k: int, num_experts: int, favourite: int | None) -> tuple[Any, Tensor, Tensor]:
    generator = torch.Generator().manual_seed(100 + rank)
    x = (
        dualgemm.quantize(torch.randn(rows, K, generator=generator) * (rank + 1))
        if rows
        else dualgemm.QuantizedTensor(
            torch.empty(0, K // 2, dtype=torch.uint8), torch.empty(0, K // 16, dtype=torch.float8_e4m3fn), torch.ones(1)
        )
    )
    ids = torch.randint(-1, num_experts, (rows, top_k), generator=generator)
    if favourite is not None:
        ids.fill_(favourite)
    return x, ids, torch.rand(rows, top_k, generator=generator)


def _moe(x: Any, ids: Tensor, weights: Tensor | None, num_experts: int, rank: int, world: int, group: Any) -> Tensor:
    """Each expert: one product of its rows."""
    mine, offsets, handle = dispatch(x, ids, num_experts, group)
    local = num_experts // world
    assert offsets.dtype == torch.int32 and offsets.shape == (local + 1,) and int(offsets[0]) == 0
    assert int(offsets[-1]) == len(mine.codes) == len(mine.scales) == len(mine.global_scale)
    d = torch.empty(len(mine.codes), N, dtype=torch.bfloat16)
    for e in range(local):
        gate, gate_scales = operand(N, K, 10 + rank * local + e)
        up, up_scales = operand(N, K, 50 + rank * local + e)
        part = slice(int(offsets[e]), int(offsets[e + 1]))
        d[part] = dualgemm.glu(
            mine.codes[part],
            gate,
            up,
            a_scales=mine.scales[part],
            gate_scales=gate_scales,
            up_scales=up_scales,
            a_row_scale=mine.global_scale[part],
            alpha_gate=0.1,
            alpha_up=0.1,
            batch_invariant=True,
            out_dtype=torch.bfloat16,
        )
    assert same_bits(combine(d, handle, weights), combine(d, handle, weights))
    return combine(d, handle, weights)


def _expected(x: Any, ids: Tensor, weights: Tensor | None, num_experts: int) -> Tensor:
    """Without dispatch: every row by itself."""
    total = torch.zeros(len(ids), N)
    for row, place in ((row, place) for place in range(ids.shape[1]) for row in range(len(ids))):
        e = int(ids[row, place])
        if e < 0:
            continue
        (gate, gate_scales), (up, up_scales) = operand(N, K, 10 + e), operand(N, K, 50 + e)
        d = dualgemm.glu(
            x.codes[row : row + 1],
            gate,
            up,
            a_scales=x.scales[row : row + 1],
            gate_scales=gate_scales,
            up_scales=up_scales,
            a_row_scale=x.global_scale.expand(len(ids))[row : row + 1].contiguous(),
            alpha_gate=0.1,
            alpha_up=0.1,
            batch_invariant=True,
            out_dtype=torch.bfloat16,
        )[0].to(torch.float32)
        total[row] += d if weights is None else d * weights[row, place]
    return total.to(torch.bfloat16)


def _check(rank: int, world: int, rows: list[int], top_k: int, num_experts: int, favourite: int | None, weighted: bool) -> None:
    x, ids, weights = _rows(rank, rows[rank], top_k, num_experts, favourite)
    given = weights if weighted else None
    result = _moe(x, ids, given, num_experts, rank, world, None)
    assert same_bits(result, _expected(x, ids, given, num_experts))


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize(
    "world,rows,top_k,num_experts,favourite",
    [
        (2, [5, 7], 2, 4, None),
        (2, [0, 6], 3, 4, None),
        (2, [4, 4], 1, 2, 1),
        (2, [3, 3], 2, 4, -1),
        (2, [0, 0], 2, 4, None),
        (3, [2, 5, 1], 2, 6, None),
        (3, [1, 1, 1], 1, 3, 0),
        (3, [4, 0, 2], 4, 12, None),
    ],
)
def test_processes(
    processes: Any, world: int, rows: list[int], top_k: int, num_experts: int, favourite: int | None, weighted: bool
) -> None:
    processes(world).run(_check, rows, top_k, num_experts, favourite, weighted)


@pytest.mark.parametrize("rows,top_k,num_experts", [(1, 1, 1), (6, 2, 4), (0, 2, 4), (5, 3, 16)])
def test_one_process_without_a_group(rows: int, top_k: int, num_experts: int) -> None:
    _check(0, 1, [rows], top_k, num_experts, None, True)


def test_rows_of_an_expert_stay_in_order() -> None:
    x, _, _ = _rows(0, 6, 1, 3, None)
    ids = torch.tensor([[2, 0], [0, 1], [2, -1], [0, 2], [-1, -1], [1, 0]], dtype=torch.int32)
    mine, offsets, _ = dispatch(x, ids, 3)
    assert offsets.tolist() == [0, 4, 6, 9]
    assert torch.equal(mine.codes, x.codes[[0, 1, 3, 5, 1, 5, 0, 2, 3]])


def test_dtypes_come_back() -> None:
    x, ids, _ = _rows(0, 6, 2, 4, None)
    as_bytes = dualgemm.QuantizedTensor(x.codes, x.scales.view(torch.uint8), x.global_scale)
    as_pairs = dualgemm.QuantizedTensor(x.codes.view(torch.float4_e2m1fn_x2), x.scales, x.global_scale)
    assert dispatch(as_bytes, ids, 4)[0].scales.dtype == torch.uint8
    assert dispatch(as_pairs, ids, 4)[0].codes.dtype == torch.float4_e2m1fn_x2


@pytest.mark.parametrize(
    "change,argument",
    [
        (lambda x, ids: ((x.codes.float(), x.scales, x.global_scale), ids, 4), "x.codes"),
        (lambda x, ids: ((x.codes, dualgemm.swizzle_scales(x.scales), x.global_scale), ids, 4), "x.scales"),
        (lambda x, ids: ((x.codes, x.scales, torch.ones(2)), ids, 4), "x.global_scale"),
        (lambda x, ids: (x, ids[:-1], 4), "expert_ids"),
        (lambda x, ids: (x, ids.float(), 4), "expert_ids"),
        (lambda x, ids: (x, ids + 4, 4), "expert_ids"),
        (lambda x, ids: (x, ids - 3, 4), "expert_ids"),
        (lambda x, ids: (x, ids, 0), "num_experts"),
    ],
)
def test_refuses(change: Any, argument: str) -> None:
    x, ids, _ = _rows(0, 6, 2, 4, 1)
    changed, ids, num_experts = change(x, ids)
    with pytest.raises(dualgemm.InvalidArgument) as raised:
        dispatch(dualgemm.QuantizedTensor(*changed), ids, num_experts)
    assert raised.value.argument == argument


def test_combine_refuses() -> None:
    x, ids, weights = _rows(0, 6, 2, 4, 1)
    _, _, handle = dispatch(x, ids, 4)
    for d, w, argument in (
        (torch.zeros(11, 8), None, "d"),
        (torch.zeros(12, 8, dtype=torch.int32), None, "d"),
        (torch.zeros(12, 8), weights[:, :1], "weights"),
    ):
        with pytest.raises(dualgemm.InvalidArgument) as raised:
            combine(d, handle, w)
        assert raised.value.argument == argument


def _uneven_experts(rank: int, world: int) -> None:
    x, ids, _ = _rows(rank, 3, 1, 3, 0)
    with pytest.raises(dualgemm.InvalidArgument, match="num_experts: 3; .*2 processes"):
        dispatch(x, ids, 3)


def test_refuses_uneven_experts(processes: Any) -> None:
    processes(2).run(_uneven_experts)
