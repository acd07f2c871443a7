"""Gathers and sums of rows, plain ones: the functional collectives, with wrappers around their results, cost the host more than a
small MLP's kernels. torch.compile traces those alone."""

from __future__ import annotations

import contextlib
from typing import Any, Union

import torch
import torch.distributed as dist
import torch.distributed._functional_collectives as functional
from torch import Tensor
from torch.distributed.device_mesh import DeviceMesh

from ._symmetric import summed

Where = Union[DeviceMesh, Any]
"""A mesh of one dimension, a process group, or None: the default group."""


def _group(where: Where) -> Any:
    return where.get_group() if isinstance(where, DeviceMesh) else where


def _traced(where: Where) -> Any:
    return dist.group.WORLD if where is None else where


def gathered(parts: list[Tensor], where: Where) -> list[Tensor]:
    """Each one's rows of all processes, in the order of their ranks; on GPUs in one launch."""
    sources = [part.contiguous() for part in parts]
    if torch.compiler.is_compiling():
        return [functional.wait_tensor(functional.all_gather_tensor(one, 0, _traced(where))) for one in sources]
    group = _group(where)
    world = dist.get_world_size(group)
    wholes = [part.new_empty((world * part.shape[0], *part.shape[1:])) for part in sources]
    coalescing = getattr(dist, "_coalescing_manager", None)
    together = coalescing(group) if sources[0].is_cuda and coalescing is not None else contextlib.nullcontext()
    with together:
        for whole, source in zip(wholes, sources):
            dist.all_gather_into_tensor(whole, source, group=group)
    return wholes


def reduce_scattered(summand: Tensor, where: Where) -> Tensor:
    """This process's rows of the sum of all."""
    source = summand.contiguous()
    if torch.compiler.is_compiling():
        waited: Tensor = functional.wait_tensor(functional.reduce_scatter_tensor(source, "sum", 0, _traced(where)))
        return waited
    group = _group(where)
    part = source.new_empty((source.shape[0] // dist.get_world_size(group), *source.shape[1:]))
    dist.reduce_scatter_tensor(part, source, group=group)
    return part


def all_reduced(summand: Tensor, where: Where) -> Tensor:
    """``summand`` itself may be overwritten."""
    if torch.compiler.is_compiling():
        waited: Tensor = functional.wait_tensor(functional.all_reduce(summand, "sum", _traced(where)))
        return waited
    return summed(summand.contiguous(), _group(where))
