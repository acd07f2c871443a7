"""GatedExpertsParallel: what one process makes of all rows and experts, over several processes."""

from __future__ import annotations

from typing import Any

import pytest
import torch
import torch.distributed as dist
from torch import Tensor

import dualgemm as dg
from dualgemm import nn as dgnn
from dualgemm.distributed import GatedExpertsParallel

HIDDEN, N, TOP_K = 64, 48, 3


def experts_of(ids: list[int], gated: bool = True, **kw: Any) -> Any:
    """These of all; each has weights of its own, whatever the process."""
    parts: dict[str, list[Any]] = {"gate": [], "up": [], "down": []}
    for expert in ids:
        for at, (name, shape) in enumerate((("gate", (N, HIDDEN)), ("up", (N, HIDDEN)), ("down", (HIDDEN, N)))):
            generator = torch.Generator().manual_seed(10 * expert + at)
            parts[name].append(dg.quantize(torch.randn(shape, generator=generator)))
    stacked = {}
    for name, ones in parts.items():
        codes, scales = torch.stack([one.codes for one in ones]), torch.stack([one.scales for one in ones])
        stacked[name] = (codes, scales, torch.cat([one.global_scale.reshape(1) for one in ones]))
    (gate, gate_scales, alpha_gate), (up, up_scales, alpha_up) = stacked["gate"], stacked["up"]
    down_codes, down_scales, alpha_down = stacked["down"]
    down = dg.LinearWeights.from_tensors(down_codes, down_scales, alpha=alpha_down, prepare=False)
    if not gated:
        alone = dg.LinearWeights.from_tensors(up, up_scales, alpha=alpha_up, prepare=False)
        return dgnn.Experts.from_weights(alone, down, activation="relu2", **kw)
    both = dg.Weights.from_tensors(gate, gate_scales, up, up_scales, alpha_gate=alpha_gate, alpha_up=alpha_up, prepare=False)
    return dgnn.GatedExperts.from_weights(both, down, **kw)


def rows_of(rank: int, rows: int, num_experts: int) -> tuple[Tensor, Tensor, Tensor]:
    generator = torch.Generator().manual_seed(100 + rank)
    x = torch.randn(rows, HIDDEN, generator=generator).to(torch.bfloat16)
    weights, ids = torch.rand(rows, num_experts, generator=generator).topk(TOP_K)
    ids[1::3, 1] = -1
    return x, ids, weights


def close(found: Tensor, wanted: Tensor, world: int) -> None:
    """A sum of a process is rounded once, and so is each addition of two."""
    if not len(wanted):
        return
    allowed = (world + 1) * 2.0**-8 * float(wanted.float().abs().max())
    assert found.dtype == wanted.dtype and float((found.float() - wanted.float()).abs().max()) <= allowed


def _check(rank: int, world: int, rows: list[int], owned: list[list[int]] | None, way: str, gated: bool, final: bool) -> None:
    num_experts = 6
    mine = owned[rank] if owned else list(range(rank * 6 // world, (rank + 1) * 6 // world))
    experts = experts_of(mine, gated)
    if final:
        experts.finalize()
    part = GatedExpertsParallel(
        experts,
        expert_ids=mine if owned else None,
        replicated=way == "replicated",
        gather_up_to=0 if way == "exchange" else 1000,
    )
    assert part.num_experts == num_experts
    x, ids, weights = rows_of(0 if way == "replicated" else rank, rows[rank], num_experts)
    with torch.no_grad():
        wanted = experts_of(list(range(num_experts)), gated)(x, ids, weights)
        found = part(x, ids, weights, tokens=max(rows) + 3 if way == "fixed" else None)
        again = part(x, ids, weights, tokens=max(rows) + 3 if way == "fixed" else None)
    close(found, wanted, world)
    assert torch.equal(found, again)


@pytest.mark.parametrize("way", ["gather", "exchange", "fixed", "replicated"])
@pytest.mark.parametrize(
    "world,rows,owned,gated,final",
    [
        (2, [5, 7], None, True, False),
        (2, [5, 5], None, True, True),
        (2, [0, 6], None, True, False),
        (2, [4, 4], [[5, 0, 2, 4], [3, 1]], True, False),
        (3, [2, 0, 9], None, False, False),
        (3, [8, 8, 8], [[1], [0, 5, 4, 3], [2]], True, True),
    ],
)
def test_processes(
    processes: Any, world: int, rows: list[int], owned: list[list[int]] | None, gated: bool, final: bool, way: str
) -> None:
    processes(world).run(_check, [max(rows)] * world if way == "replicated" else rows, owned, way, gated, final)


def test_no_rows_anywhere(processes: Any) -> None:
    processes(2).run(_check, [0, 0], None, "gather", True, False)


def test_one_process() -> None:
    _check(0, 1, [9], None, "gather", True, False)


def _disagree(rank: int, world: int, what: str) -> None:
    kw: dict[str, Any] = {}
    experts: Any = experts_of([2 * rank, 2 * rank + 1])
    rule = ""
    if what == "twice":
        kw["expert_ids"], rule = [0, 1], "expert_ids: 0 in processes 0 and 1"
    elif what == "missing":
        kw["expert_ids"], rule = [3 * rank, 3 * rank + 1], "expert_ids: no process has expert 2; must be 0 to 3"
    elif what == "count":
        kw["expert_ids"], rule = [2 * rank], "expert_ids: 1 in process 0; must be as many as its experts, 2"
    elif what == "format":
        rule = "experts.weights: bf16, packed for torch.bfloat16.* in process 0, .*; must be the same"
        if rank == 0:
            experts.finalize()
    elif what == "hidden":
        rule = "experts.hidden_size: 64 in process 0, 128 in process 1"
        if rank == 1:
            experts = dgnn.GatedExperts(2, 128, N)
    elif what == "replicated":
        kw["replicated"], rule = rank == 1, "replicated"
    with pytest.raises(dg.InvalidArgument, match=rule):
        GatedExpertsParallel(experts, **kw)


@pytest.mark.parametrize("what", ["twice", "missing", "count", "format", "hidden", "replicated"])
def test_every_process_refuses_what_does_not_agree(processes: Any, what: str) -> None:
    processes(2).run(_disagree, what)


def _wrong_rows(rank: int, world: int) -> None:
    part = GatedExpertsParallel(experts_of([2 * rank, 2 * rank + 1]))
    x, ids, weights = rows_of(rank, 4, 4)
    if rank == 1:
        with pytest.raises(dg.InvalidArgument, match="x: shape .*4, 32.*; must be .rows, 64"):
            part(x[:, :32], ids, weights)
    else:
        with pytest.raises(dg.InvalidArgument, match="x: refused in process 1; must fit in every process"):
            part(x, ids, weights)
    with pytest.raises(dg.InvalidArgument, match="x: 4 rows; must be at most tokens, 3"):
        part(x, ids, weights, tokens=3)
    with torch.no_grad():
        part(x, ids, weights)  # the processes still agree on what comes next
    mesh = dist.device_mesh.init_device_mesh("cpu", (1, world)) if hasattr(dist, "device_mesh") else None
    if mesh is not None:
        with pytest.raises(dg.InvalidArgument, match="group: a mesh of 2 dimensions; must have one"):
            GatedExpertsParallel(experts_of([0]), mesh)


def test_refuses_rows(processes: Any) -> None:
    processes(2).run(_wrong_rows)


def _other_k(rank: int, world: int) -> None:
    part = GatedExpertsParallel(experts_of([2 * rank, 2 * rank + 1]))
    x, ids, weights = rows_of(rank, 4, 4)
    with pytest.raises(dg.InvalidArgument, match=r"topk_ids.shape\[1\]: 2 in process 0, 3 in process 1; must be the same"):
        part(x, ids[:, : 2 + rank].contiguous(), weights[:, : 2 + rank].contiguous())
    with torch.no_grad():
        part(x, ids, weights)


def test_another_number_of_ids(processes: Any) -> None:
    processes(2).run(_other_k)


def test_way_is_chosen_by_what_an_exchange_saves() -> None:
    """Two processes and 8 experts a row: nearly every row goes to both. 32 processes: a fourth of them."""
    part = GatedExpertsParallel(experts_of([0, 1]))
    part.hidden_size = 7168
    x = torch.empty(0, 7168, dtype=torch.bfloat16)
    limits = {}
    for part.world in (2, 8, 32):
        limits[part.world] = part._gather_limit(x, 8)
    assert limits[2] == 2**30 // (7168 * 2 * 2)  # what is gathered at most
    row = 2 * 7168 * 2
    assert limits[8] == int((200 << 20) / (row * 7 * (7 / 8) ** 8)) and limits[32] < limits[8] < limits[2]
