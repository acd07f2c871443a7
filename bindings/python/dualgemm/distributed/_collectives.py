"""Gathers and sums of rows, plain ones: the functional collectives, with wrappers around their results, cost the host more than a
small MLP's kernels. torch.compile traces those alone."""

from __future__ import annotations

from typing import Any, NamedTuple, Union

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


class UnderWay(NamedTuple):
    """Collectives that were begun."""

    results: list[Tensor]
    sources: list[Tensor]
    """Kept until they have been read."""
    works: list[Any]
    traced: bool = False

    def wait(self) -> list[Tensor]:
        if self.traced:
            return [functional.wait_tensor(one) for one in self.results]
        for work in self.works:
            work.wait()
        return self.results


def gather(parts: list[Tensor], where: Where, *, begin: bool = False) -> UnderWay:
    """Each one's rows of all processes, in the order of their ranks; on GPUs in one launch. begin: on a stream of its own, until
    wait(); else in turn with the caller's kernels."""
    sources = [part.contiguous() for part in parts]
    if torch.compiler.is_compiling():
        return UnderWay([functional.all_gather_tensor(one, 0, where) for one in sources], sources, [], True)
    group = _group(where)
    world = dist.get_world_size(group)
    wholes = [part.new_empty((world * part.shape[0], *part.shape[1:])) for part in sources]
    works = []
    coalescing = getattr(dist, "_coalescing_manager", None)
    if sources[0].is_cuda and len(sources) > 1 and coalescing is not None:
        with coalescing(group, async_ops=begin) as work:
            for whole, source in zip(wholes, sources):
                dist.all_gather_into_tensor(whole, source, group=group)
        works = [work] if begin else []
    else:
        for whole, source in zip(wholes, sources):
            work = dist.all_gather_into_tensor(whole, source, group=group, async_op=begin)
            works += [work] if begin else []
    return UnderWay(wholes, sources, works)


def reduce_scatter(summand: Tensor, where: Where, *, begin: bool = False) -> UnderWay:
    """This process's rows of the sum of all, one result."""
    source = summand.contiguous()
    if torch.compiler.is_compiling():
        return UnderWay([functional.reduce_scatter_tensor(source, "sum", 0, where)], [source], [], True)
    group = _group(where)
    part = source.new_empty((source.shape[0] // dist.get_world_size(group), *source.shape[1:]))
    work = dist.reduce_scatter_tensor(part, source, group=group, async_op=begin)
    return UnderWay([part], [source], [work] if begin else [])


def all_reduced(summand: Tensor, where: Where) -> Tensor:
    """``summand`` itself may be overwritten."""
    if torch.compiler.is_compiling():
        waited: Tensor = functional.wait_tensor(functional.all_reduce(summand, "sum", where))
        return waited
    return summed(summand.contiguous(), _group(where))
