"""A mixture whose experts are spread over processes: rows come to all, or to the processes of their experts, and sums go back."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Optional

import torch
import torch.distributed as dist
from torch import Tensor, nn
from torch.distributed.device_mesh import DeviceMesh

from .._errors import InvalidArgument, Unsupported
from .._operators import refuse_grad, tensor
from .._routing import check_router
from ._agreement import must_agree, told
from ._collectives import all_reduced, gathered, reduce_scattered
from ._experts import _exchange

_AGREED = {
    "hidden_size": "experts.hidden_size",
    "intermediate_size": "experts.intermediate_size",
    "weights": "experts.weights",
    "router_weight_on_input": "experts.router_weight_on_input",
    "replicated": "replicated",
    "gather_up_to": "gather_up_to",
}
"""In what processes must not differ, and what an error calls it."""
_REFUSED = -1
"""In the place of a process's number of rows: it refused its arguments."""


def _group_of(group: Any) -> Any:
    if not isinstance(group, DeviceMesh):
        return group
    if group.ndim != 1:
        raise InvalidArgument("group", f"a mesh of {group.ndim} dimensions", "must have one; take a part of it by its name")
    return group.get_group()


def _format_of(experts: nn.Module) -> str:
    """What rows the weights are for."""
    down: Any = experts.down
    kinds = []
    for one in (experts, down):
        packed = getattr(one, "packed", None)
        kinds.append(f"{one.input_dtype}, {'codes' if packed is None else f'packed for {one.a_dtype}'}")
    return "; ".join(kinds)


def _message(*parts: Tensor) -> list[Tensor]:
    """Rows as bytes: not every backend moves every dtype. An empty tensor may have strides that view() does not take."""
    return [
        part.view(torch.uint8) if len(part) else part.new_empty((0, part.shape[1] * part.element_size()), dtype=torch.uint8)
        for part in parts
    ]


class GatedExpertsParallel(nn.Module):
    """GatedExperts or Experts of which every process has a part.

        part = GatedExpertsParallel(experts)                  # this process's experts, in every process of the group
        y = part(x, topk_ids, topk_weights)                   # this process's rows in and out; ids name experts of all

    experts: this process's. expert_ids: which of all they are, in their order; None: those that follow the experts of the
    processes before. Processes may have unequal numbers; each expert must be in exactly one. group: a process group or a mesh
    of one dimension, None: the default group; without torch.distributed initialised, one process.

    replicated: x, ids and weights are the same in every process, as behind tensor-parallel attention, and so is the result: one
    all-reduce. Otherwise each process brings rows of its own, perhaps none, by one of two ways:

    - gather: rows, ids and weights of all come to all; each computes what its experts make of them, and the sums are
      reduce-scattered. Every process must bring equally many: fewer are filled up with rows of no expert.
    - exchange: each row goes once to every process that has some of its experts, and the sums come back. Processes tell each
      other how many, which on CUDA the host waits for, 1 ms in all: not in a CUDA graph.

    forward(tokens=T): gather, T rows of each process, promised to be the same everywhere: nothing waits, and a CUDA graph may
    hold it. tokens=None: the processes tell each other how many rows they bring (the host waits), and gather up to
    ``gather_up_to`` rows of each; None: as long as exchanging would save less of the wire's time than it costs, and the rows of
    all fit in GATHERED_BYTES.

    A row's sum over the experts of one process is added in float32 in the order of its ids and rounded to x's dtype; the
    processes' sums are added as collectives do it (gather, replicated: in x's dtype) or in float32 in the order of the
    processes (exchange).

    Built in every process at once: they compare what they have, and InvalidArgument names in all of them what does not fit.
    """

    SAVED_BYTES = 200 << 20
    """That a process does not send in 1 ms, what an exchange costs the host (0.8 to 1.7 ms more than the gather on two and four
    H200 up to 2048 tokens, docs/performance/h200_distributed.md), at 200 GB/s."""
    GATHERED_BYTES = 1 << 30

    expert_map: Tensor
    _owner: Tensor

    def __init__(
        self,
        experts: nn.Module,
        group: Any = None,
        *,
        expert_ids: Optional[Sequence[int]] = None,
        replicated: bool = False,
        gather_up_to: Optional[int] = None,
    ) -> None:
        super().__init__()
        self.group = _group_of(group)
        self.experts, self.replicated, self.gather_up_to = experts, replicated, gather_up_to
        count: Any = experts.num_experts
        mine = {
            "hidden_size": experts.hidden_size,
            "intermediate_size": experts.shape.n,  # type: ignore[union-attr]
            "weights": _format_of(experts),
            "router_weight_on_input": experts.router_weight_on_input,
            "replicated": replicated,
            "gather_up_to": gather_up_to,
            "count": count,
            "ids": None if expert_ids is None else [int(one) for one in expert_ids],
        }
        said = told(self.group, mine)
        self.rank = dist.get_rank(self.group) if dist.is_initialized() else 0
        self.world = len(said)
        self.hidden_size: int = mine["hidden_size"]
        owner = _owners(said)
        self.num_experts = len(owner)
        places = torch.full((len(owner),), -1, dtype=torch.int32)
        for expert, (rank, place) in enumerate(owner):
            if rank == self.rank:
                places[expert] = place
        device = next(experts.buffers()).device
        self.register_buffer("expert_map", places.to(device), persistent=False)
        ranks = torch.tensor([rank for rank, _ in owner], dtype=torch.int64)
        self.register_buffer("_owner", ranks.to(device), persistent=False)

    def extra_repr(self) -> str:
        return f"{self.num_experts} experts over {self.world} processes, replicated={self.replicated}"

    def forward(self, x: Tensor, topk_ids: Tensor, topk_weights: Tensor, *, tokens: Optional[int] = None) -> Tensor:
        """x [rows, hidden], topk_ids and topk_weights [rows, k]: [rows, hidden] of x's dtype. tokens: see the class.

        InvalidArgument where something does not fit: before anything is sent, in the process whose arguments are wrong; with
        tokens=None in all processes. Unsupported: tokens=None in a CUDA graph that is being recorded."""
        refuse_grad(x=tensor("x", x))
        if self.replicated or self.world == 1:
            ids, weights = self._checked(x, topk_ids, topk_weights)
            y = self._step(x, ids, weights)
            return all_reduced(y, self.group) if self.world > 1 else y
        if tokens is not None:
            ids, weights = self._checked(x, topk_ids, topk_weights)
            if x.shape[0] > tokens:
                raise InvalidArgument("x", f"{x.shape[0]} rows", f"must be at most tokens, {tokens}")
            return self._gather(x, ids, weights, tokens)
        if x.is_cuda and torch.cuda.is_current_stream_capturing():
            raise Unsupported("tokens", "None while a CUDA graph is recorded", "must be given there, the same in every process")
        try:
            ids, weights = self._checked(x, topk_ids, topk_weights)
        except Exception:
            self._counts(x, _REFUSED)
            raise
        counts, top_ks = self._counts(x, x.shape[0], ids.shape[1])
        if _REFUSED in counts:
            raise InvalidArgument("x", f"refused in process {counts.index(_REFUSED)}", "must fit in every process")
        must_agree({"k": "topk_ids.shape[1]"}, [{"k": one} for one in top_ks])
        most = max(counts)
        if most == 0:
            return torch.empty_like(x)
        limit = self._gather_limit(x, ids.shape[1]) if self.gather_up_to is None else self.gather_up_to
        if most <= limit:
            return self._gather(x, ids, weights, most)
        return self._exchanged(x, ids, weights)

    def _checked(self, x: Tensor, topk_ids: Tensor, topk_weights: Tensor) -> tuple[Tensor, Tensor]:
        if x.dim() != 2 or x.shape[1] != self.hidden_size:
            raise InvalidArgument("x", f"shape {list(x.shape)}", f"must be [rows, {self.hidden_size}]")
        return check_router(x.shape[0], topk_ids, topk_weights)

    def _step(self, x: Tensor, ids: Tensor, weights: Tensor) -> Tensor:
        y: Tensor = self.experts(x, ids, weights, self.expert_map)
        return y

    def _counts(self, x: Tensor, rows: int, top_k: int = 0) -> tuple[list[int], list[int]]:
        own = torch.tensor([rows, top_k], dtype=torch.int64, device=x.device)
        counts = own.new_empty(2 * self.world)
        dist.all_gather_into_tensor(counts, own, group=self.group)
        everybody: list[int] = counts.tolist()
        return everybody[::2], everybody[1::2]

    def _gather_limit(self, x: Tensor, top_k: int) -> int:
        """Rows of each process that are better gathered, by the wire: an exchanged row goes to each of the others with the
        chance that it has one of the row's experts, a gathered one to all, and as much comes back."""
        row = self.hidden_size * x.element_size()
        saved = 2 * row * (self.world - 1) * (1 - 1 / self.world) ** top_k
        return int(min(self.SAVED_BYTES / saved, self.GATHERED_BYTES / (row * self.world)))

    def _gather(self, x: Tensor, ids: Tensor, weights: Tensor, tokens: int) -> Tensor:
        own = x.shape[0]
        parts = [x, ids.to(torch.int32), weights.to(torch.float32)]
        if own < tokens:
            fills = (0, -1, 0)  # an id of -1 is that of no expert
            parts = [nn.functional.pad(part, (0, 0, 0, tokens - own), value=fill) for part, fill in zip(parts, fills)]
        return reduce_scattered(self._step(*gathered(parts, self.group)), self.group)[:own]

    def _exchanged(self, x: Tensor, ids: Tensor, weights: Tensor) -> Tensor:
        known = (ids >= 0) & (ids < self.num_experts)
        ranks = torch.where(known, self._owner[ids.long().clamp(0, self.num_experts - 1)], self.world)
        goes = torch.zeros((x.shape[0], self.world + 1), dtype=torch.bool, device=x.device).scatter_(1, ranks, True)
        goes = goes[:, : self.world].t()
        to_send = goes.sum(1)
        each = [1] * self.world
        to_receive = _exchange(to_send, each, each, self.group)
        sent, received = torch.stack((to_send, to_receive)).tolist()
        row = goes.nonzero()[:, 1]  # by process, then in order
        message = _message(x, ids.to(torch.int32), weights.to(torch.float32))
        sizes = [one.shape[1] for one in message]
        came = _exchange(torch.cat(message, 1).index_select(0, row), sent, received, self.group)
        rows, their_ids, their_weights = (part.contiguous() for part in came.split(sizes, 1))
        partial = self._step(rows.view(x.dtype), their_ids.view(torch.int32), their_weights.view(torch.float32))
        (as_bytes,) = _message(partial)
        sums = _exchange(as_bytes, received, sent, self.group).view(x.dtype)
        y = torch.zeros(x.shape, dtype=torch.float32, device=x.device)
        for part, at in zip(sums.split(sent), row.split(sent)):  # no row twice in a part: its order is one
            y.index_add_(0, at, part.float())
        return y.to(x.dtype)


def _owners(said: list[dict[str, Any]]) -> list[tuple[int, int]]:
    """The process and the place there of each expert. InvalidArgument, in every process the same, where they do not agree."""
    must_agree(_AGREED, said)
    owner: dict[int, tuple[int, int]] = {}
    first = 0
    for rank, one in enumerate(said):
        ids = list(range(first, first + one["count"])) if one["ids"] is None else one["ids"]
        first += one["count"]
        if len(ids) != one["count"]:
            raise InvalidArgument(
                "expert_ids", f"{len(ids)} in process {rank}", f"must be as many as its experts, {one['count']}"
            )
        for place, expert in enumerate(ids):
            if expert in owner:
                raise InvalidArgument(
                    "expert_ids", f"{expert} in processes {owner[expert][0]} and {rank}", "must be in exactly one process"
                )
            owner[expert] = (rank, place)
    missing = sorted(set(range(len(owner))) - set(owner))
    if missing:
        raise InvalidArgument(
            "expert_ids", f"no process has expert {missing[0]}", f"must be 0 to {len(owner) - 1}, for {len(owner)} experts"
        )
    return [owner[expert] for expert in range(len(owner))]
