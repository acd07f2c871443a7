"""Sums over the GPUs of one host that read each other's memory: torch's symmetric memory, without multicast."""

from __future__ import annotations

import logging
import os
import platform
from typing import Any, Optional
from weakref import WeakKeyDictionary

import torch
import torch.distributed as dist
from torch import Tensor

from ._agreement import told

_log = logging.getLogger("dualgemm")

LIMIT_BYTES = 8 << 20
"""Larger summands go through NCCL. docs/performance/h200_distributed.md has the times of both."""
ONE_SHOT_BYTES = 1536 << 10
"""What a process reads from the others: up to here each sums everything itself, above its part alone (two-shot). On two and on four
H200 the first is quicker up to 1 MiB and 512 KiB of summands (docs/performance/h200_distributed_four.md)."""
_DTYPES = (torch.bfloat16, torch.float32)  # of torch's kernels
_WORLDS = (2, 4, 8)  # that torch's kernels are compiled for; others raise "Not implemented for world_size=3"
_SWITCH = "DUALGEMM_SYMMETRIC_MEMORY"


class SymmetricSums:
    """A buffer that every process of a group can read, and sums through it.

    All processes add in the order of their ranks, so all get the same bits. Calls of one process are put in order where they
    come from several streams; the ends of torch's kernels keep the next call from overwriting what others still read.
    """

    def __init__(self, group: Any, device: torch.device) -> None:
        import torch.distributed._symmetric_memory as symmetric

        self.name, self.world = group.group_name, group.size()
        with torch.inference_mode(False):  # calls outside of it cannot write to what was made inside, views included
            buffer = symmetric.empty(LIMIT_BYTES, dtype=torch.uint8, device=device)
            self._whole = {dtype: buffer.view(dtype) for dtype in _DTYPES}
        symmetric.rendezvous(buffer, self.name)
        self._parts: dict[tuple[torch.dtype, torch.Size], Tensor] = {}
        self._device, self._stream = device, torch.cuda.current_stream(device)

    def takes(self, summand: Tensor) -> bool:
        size = summand.numel() * summand.element_size()
        fits = 0 < size <= LIMIT_BYTES and size % (16 * self.world) == 0
        # torch's kernels have no derivative: what wants one goes as it went without them.
        return fits and summand.dtype in _DTYPES and summand.is_contiguous() and not summand.requires_grad

    def add(self, summand: Tensor) -> Tensor:
        """The sum of what the processes give, of a shape and dtype that takes() accepts in each of them."""
        stream = torch.cuda.current_stream(self._device)
        if stream != self._stream:
            if not torch.cuda.is_current_stream_capturing():
                stream.wait_stream(self._stream)
            self._stream = stream
        part = self._part(summand.dtype, summand.shape)
        ops = torch.ops.symm_mem
        if summand.numel() * summand.element_size() * (self.world - 1) <= ONE_SHOT_BYTES:
            total: Tensor = ops.one_shot_all_reduce_copy.default(part, summand, "sum", self.name)
            return total
        part.copy_(summand)
        total = torch.empty_like(summand)
        ops.two_shot_all_reduce_out.default(part, "sum", self.name, total)
        return total

    def _part(self, dtype: torch.dtype, shape: torch.Size) -> Tensor:
        """The beginning of the buffer; views cost the host 4 us, so those of the last sizes are kept."""
        part = self._parts.get((dtype, shape))
        if part is None:
            if len(self._parts) == 64:
                self._parts.clear()
            with torch.inference_mode(False):
                part = self._whole[dtype].narrow(0, 0, shape.numel()).view(shape)
            self._parts[dtype, shape] = part
        return part


_of_group: WeakKeyDictionary[Any, Optional[SymmetricSums]] = WeakKeyDictionary()


def sums_of(group: Any, device: torch.device) -> Optional[SymmetricSums]:
    """Those of a process group, None: without torch's symmetric memory, which one line in the log says.

    All processes call it at the same time, the first time outside of a CUDA graph: they set it up together."""
    group = dist.group.WORLD if group is None else group
    if device.type != "cuda" or group.size() == 1:
        return None
    try:
        return _of_group[group]
    except KeyError:
        if torch.cuda.is_current_stream_capturing():
            return None
    _of_group[group] = _set_up(group, device)
    return _of_group[group]


def summed(summand: Tensor, group: Any) -> Tensor:
    """The sum of what the processes of a group give, contiguous: by the way that was measured to be quicker. ``summand`` itself
    may be overwritten."""
    sums = sums_of(group, summand.device)
    if sums is not None and sums.takes(summand):
        return sums.add(summand)
    dist.all_reduce(summand, group=group)
    return summand


def _set_up(group: Any, device: torch.device) -> Optional[SymmetricSums]:
    places = told(group, (os.environ.get(_SWITCH, "1"), platform.node(), device.index))
    reason = _first(told(group, _why_not(places)))
    made = None
    if reason is None:
        try:
            made = SymmetricSums(group, device)
        except Exception as error:  # of torch's private modules, of drivers, of containers: whatever it is, NCCL goes on
            reason = f"{type(error).__name__}: {error}".splitlines()[0]
        reason = _first(told(group, reason))
    if reason is None:
        return made
    _log.warning("dualgemm: sums of small rows go through NCCL, without symmetric memory: %s", reason)
    return None


def _first(reasons: list[Optional[str]]) -> Optional[str]:
    return next((one for one in reasons if one is not None), None)


def _why_not(places: list[tuple[str, str, int]]) -> Optional[str]:
    switches, hosts, devices = zip(*places)
    if len(places) not in _WORLDS:
        return f"the group has {len(places)} processes, torch's kernels are for 2, 4 or 8"
    if "0" in switches:
        return f"{_SWITCH}=0 in process {switches.index('0')} of the group"
    if len(set(hosts)) > 1:
        return f"the group's processes are on {len(set(hosts))} hosts"
    if len(set(devices)) < len(devices) or max(devices) >= torch.cuda.device_count():
        return "a process does not see every GPU under a number of its own"
    for one in devices:
        for other in devices:
            if one != other and not torch.cuda.can_device_access_peer(one, other):
                return f"GPU {one} cannot read GPU {other}"
    return None
