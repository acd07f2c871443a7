"""Expert parallelism: rows go to the ranks of their experts in NVFP4, products come back."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Optional

import torch
import torch.distributed as dist
from torch import Tensor

from .._errors import InvalidArgument
from .._quantized import QuantizedTensor
from ._wire import from_bytes, to_bytes

_PACKED = (torch.uint8, torch.float4_e2m1fn_x2)
_SCALES = (torch.uint8, torch.float8_e4m3fn)


@dataclass(frozen=True)
class Handle:
    """What combine() must know of a dispatch(). Belongs to its process; good for any number of combine()s."""

    group: Any
    rows: int
    top_k: int
    sent: Tensor
    """int64 [rows sent]: which of the rows * top_k places each row sent belongs to, in the order of sending"""
    by_expert: Tensor
    """int64 [rows received]: the place, in the order of receiving, of each row as dispatch() returns them"""
    send_counts: list[int]
    receive_counts: list[int]


def _world(group: Any) -> int:
    return dist.get_world_size(group) if dist.is_initialized() else 1


def _exchange(x: Tensor, send_counts: list[int], receive_counts: list[int], group: Any) -> Tensor:
    """all_to_all_single along rows of [rows, ...]."""
    if len(send_counts) == 1:
        return x
    received = x.new_empty((sum(receive_counts), *x.shape[1:]))
    dist.all_to_all_single(received, x.contiguous(), receive_counts, send_counts, group=group)
    return received


def _check(x: QuantizedTensor, expert_ids: Tensor, num_experts: int, world: int) -> None:
    if x.codes.dtype not in _PACKED or x.codes.dim() != 2:
        raise InvalidArgument(
            "x.codes", f"{x.codes.dtype} {list(x.codes.shape)}", "must be uint8 or float4_e2m1fn_x2 [rows, K/2]"
        )
    rows, blocks = x.codes.shape[0], x.codes.shape[1] // 8
    if x.scales.dtype not in _SCALES or tuple(x.scales.shape) != (rows, blocks):
        raise InvalidArgument(
            "x.scales",
            f"{x.scales.dtype} {list(x.scales.shape)}",
            f"must be linear, float8_e4m3fn or uint8 [{rows}, {blocks}]; unswizzle_scales() makes them so",
        )
    if x.global_scale.dtype != torch.float32 or x.global_scale.numel() not in (1, rows):
        raise InvalidArgument(
            "x.global_scale", f"{x.global_scale.dtype} {list(x.global_scale.shape)}", f"must be float32 [1] or [{rows}]"
        )
    if expert_ids.dtype not in (torch.int32, torch.int64) or expert_ids.dim() != 2 or expert_ids.shape[0] != rows:
        raise InvalidArgument(
            "expert_ids", f"{expert_ids.dtype} {list(expert_ids.shape)}", f"must be int32 or int64 [{rows}, top k]"
        )
    if num_experts < 1 or num_experts % world:
        raise InvalidArgument("num_experts", str(num_experts), f"must be a positive multiple of the group's {world} processes")
    if not expert_ids.is_cuda and expert_ids.numel() and not -1 <= int(expert_ids.min()) <= int(expert_ids.max()) < num_experts:
        raise InvalidArgument(
            "expert_ids",
            f"{int(expert_ids.min())} to {int(expert_ids.max())}",
            f"must be experts, 0 to {num_experts - 1}, or -1 for none",
        )


def dispatch(
    x: QuantizedTensor, expert_ids: Tensor, num_experts: int, group: Any = None
) -> tuple[QuantizedTensor, Tensor, Handle]:
    """Sends every row to the ranks of its experts; returns this rank's rows by expert, their offsets, a handle for combine().

    x: codes [rows, K/2] with linear scales [rows, K/16], global_scale float32 [1] or [rows]; rows may differ from rank to rank
    and may be 0. expert_ids: int32 or int64 [rows, top k], -1 for none (on CUDA, where looking would synchronise, any number
    that is no expert counts as -1). Rank r of ``group`` (None: the default group; without torch.distributed initialised, one
    process) has experts r * E .. (r + 1) * E - 1, E = num_experts / processes.

    Returned: codes and scales of the rows received, expert after expert, within an expert by rank, row and place in expert_ids,
    with global_scale float32 [rows received], for ``a_row_scale``: ranks need not agree on one; offsets, int32 [E + 1].

    One all_to_all_single of counts, one of bytes: 0.5625 a value and 4 a row. The counts are read by the host in between, which
    on CUDA waits for the current stream: split sizes are host numbers in torch.distributed. So not in a CUDA graph.

    InvalidArgument is raised before anything is sent, by the rank whose arguments are wrong; the others wait for it.
    """
    world = _world(group)
    _check(x, expert_ids, num_experts, world)
    rows, top_k = expert_ids.shape
    local = num_experts // world
    device = x.codes.device

    # Places sorted by expert, those of no expert last; a stable sort keeps the order of rows.
    ids = expert_ids.reshape(-1).to(torch.int64)
    ids = torch.where((ids >= 0) & (ids < num_experts), ids, num_experts)
    order = torch.argsort(ids, stable=True)
    counts = torch.zeros(num_experts + 1, dtype=torch.int64, device=device).scatter_add_(0, ids, torch.ones_like(ids))
    to_send = counts[:num_experts].reshape(world, local)
    to_receive = _exchange(to_send, [1] * world, [1] * world, group)  # [rank it comes from, expert here]
    send_counts, receive_counts = torch.stack((to_send.sum(1), to_receive.sum(1))).tolist()

    sent = order[: sum(send_counts)]
    row = torch.div(sent, max(top_k, 1), rounding_mode="floor")
    received = _exchange(to_bytes(x).index_select(0, row), send_counts, receive_counts, group)

    expert = torch.arange(local, device=device).repeat(world)
    by_expert = torch.argsort(expert.repeat_interleave(to_receive.reshape(-1), output_size=sum(receive_counts)), stable=True)
    quantized = from_bytes(received.index_select(0, by_expert), x.codes.dtype, x.scales.dtype)
    offsets = torch.nn.functional.pad(to_receive.sum(0).cumsum(0), (1, 0)).to(torch.int32)
    return quantized, offsets, Handle(group, rows, top_k, sent, by_expert, send_counts, receive_counts)


def combine(d: Tensor, handle: Handle, weights: Optional[Tensor] = None) -> Tensor:
    """[rows, N] of d's dtype: what the experts made of each row dispatched, times its weight, added up.

    d: float16, bfloat16 or float32 [rows received, N], in dispatch()'s order. weights: [rows, top k], any floating dtype;
    None: 1. Added in float32 in the order of expert_ids' columns, so that bits depend on no number of processes; places of -1
    add nothing. No synchronisation.
    """
    if d.dim() != 2 or d.shape[0] != len(handle.by_expert):
        raise InvalidArgument(
            "d", f"shape {list(d.shape)}", f"must be [{len(handle.by_expert)}, N], the rows that dispatch() returned"
        )
    if not d.is_floating_point():
        raise InvalidArgument("d", str(d.dtype), "must be float16, bfloat16 or float32")
    if weights is not None and (tuple(weights.shape) != (handle.rows, handle.top_k) or not weights.is_floating_point()):
        raise InvalidArgument(
            "weights", f"{weights.dtype} {list(weights.shape)}", f"must be a floating dtype [{handle.rows}, {handle.top_k}]"
        )
    as_received = torch.empty_like(d, memory_format=torch.contiguous_format).index_copy_(0, handle.by_expert, d)
    # As bytes: not every backend moves every dtype.
    returned = _exchange(as_received.view(torch.uint8), handle.receive_counts, handle.send_counts, handle.group).view(d.dtype)
    places = d.new_zeros((handle.rows * handle.top_k, d.shape[1])).index_copy_(0, handle.sent, returned)
    places = places.reshape(handle.rows, handle.top_k, d.shape[1])
    total = torch.zeros((handle.rows, d.shape[1]), dtype=torch.float32, device=d.device)
    for place in range(handle.top_k):
        part = places[:, place].to(torch.float32)
        total += part if weights is None else part * weights[:, place, None].to(torch.float32)
    return total.to(d.dtype)
