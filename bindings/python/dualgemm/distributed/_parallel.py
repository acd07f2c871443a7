"""Tensor parallelism for GatedMLP, and for whatever has its buffers."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, NamedTuple, Optional

import torch
import torch.distributed as dist
import torch.distributed._functional_collectives as collectives
from torch import Tensor, nn
from torch.distributed.device_mesh import DeviceMesh
from torch.distributed.tensor import DTensor, Replicate, Shard
from torch.distributed.tensor.parallel import ParallelStyle

from .. import _container as container
from .._errors import InvalidArgument, Unsupported
from .._modules import NVFP4Linear, PackedModule
from .._operands import activation_kind
from .._quantized import QuantizedTensor, call, quantize, unswizzle_scales
from ._symmetric import summed
from ._wire import from_bytes, to_bytes

_CHUNKS = 4
"""Into how many chunks a rank's rows are divided where overlap is wanted; not tuned."""
_BUFFERS = ("gate_codes", "gate_scales", "up_codes", "up_scales")
_ALL_OF_N = ("bias_gate", "bias_up")


class RowParallelLinear(nn.Module):
    """A rank's columns of an nn.Linear: weight [out, in / processes]. forward() gives this rank's summand, without the
    bias: the caller that sums the ranks' summands adds it once.
    """

    def __init__(self, linear: nn.Linear, mesh: DeviceMesh) -> None:
        super().__init__()
        weight = _shard(linear.weight.detach(), 1, mesh)
        self.weight = nn.Parameter(weight, requires_grad=linear.weight.requires_grad)
        self.bias = linear.bias

    def forward(self, x: Tensor) -> Tensor:
        return nn.functional.linear(x, self.weight)


def _row_parallel(down: Any, mesh: DeviceMesh) -> nn.Module:
    if isinstance(down, nn.Linear):
        return RowParallelLinear(down, mesh)
    scales = _linear_scales(down.w_scales, down.w_codes)
    down.w_codes, down.w_scales = _shard(down.w_codes, 1, mesh), _shard(scales, 1, mesh)
    columns = down.w_codes.shape[1] * 2
    down.shape, down.in_features = down.shape._replace(k=columns), columns
    bias, down.bias = down.bias, None
    down.register_buffer("bias_of_sum", bias)
    return down


def _with_bias(down: Any, total: Tensor) -> Tensor:
    bias = down.bias if isinstance(down, RowParallelLinear) else down.bias_of_sum
    return total if bias is None else total + bias.to(total.dtype)


class _UnderWay(NamedTuple):
    """A collective that was begun. Plain ones: the functional ones, with wrappers around their results, cost the host more than
    a small MLP's kernels. torch.compile traces these alone."""

    result: Tensor
    source: Tensor
    """Kept until it has been read."""
    work: Any

    def wait(self) -> Tensor:
        if self.work is None:
            waited: Tensor = collectives.wait_tensor(self.result)
            return waited
        self.work.wait()
        return self.result


def _gather(part: Tensor, mesh: DeviceMesh) -> _UnderWay:
    source = part.contiguous()
    if torch.compiler.is_compiling():
        return _UnderWay(collectives.all_gather_tensor(source, 0, mesh), source, None)
    whole = source.new_empty((mesh.size() * source.shape[0], *source.shape[1:]))
    return _UnderWay(whole, source, dist.all_gather_into_tensor(whole, source, group=mesh.get_group(), async_op=True))


def _reduce_scatter(summand: Tensor, mesh: DeviceMesh) -> _UnderWay:
    source = summand.contiguous()
    if torch.compiler.is_compiling():
        return _UnderWay(collectives.reduce_scatter_tensor(source, "sum", 0, mesh), source, None)
    part = source.new_empty((source.shape[0] // mesh.size(), *source.shape[1:]))
    return _UnderWay(part, source, dist.reduce_scatter_tensor(part, source, group=mesh.get_group(), async_op=True))


def _all_reduced(summand: Tensor, mesh: DeviceMesh) -> Tensor:
    """``summand`` itself may be overwritten."""
    if torch.compiler.is_compiling():
        waited: Tensor = collectives.wait_tensor(collectives.all_reduce(summand, "sum", mesh))
        return waited
    return summed(summand.contiguous(), mesh.get_group())


def _shard(x: Tensor, dim: int, mesh: DeviceMesh) -> Tensor:
    """A copy, so that the whole can be freed."""
    size = x.shape[dim] // mesh.size()
    return x.narrow(dim, mesh.get_local_rank() * size, size).clone(memory_format=torch.contiguous_format)


def _linear_scales(scales: Tensor, codes: Tensor) -> Tensor:
    """Swizzled scales have no rows that could be taken out."""
    return unswizzle_scales(scales, codes.shape[0], codes.shape[1] // 8) if scales.dim() == 1 else scales


class GatedMLPParallel(ParallelStyle):
    """Column parallel gate and up, row parallel down, for torch.distributed.tensor.parallel.parallelize_module().

        parallelize_module(model, mesh, {"layers.*.mlp": GatedMLPParallel()})

    For a module with buffers gate_codes and up_codes [N, K/2], gate_scales and up_scales (linear or flat swizzled) and
    ``down``, an nn.Linear or NVFP4Linear: GatedMLP before finalize(). N must be a multiple of the mesh's size, with an
    NVFP4Linear of 16 times that; no padding is needed. The mesh has one dimension. Buffers and down's weight are replaced by
    copies of this rank's part.

    sequence_parallel=False: x is the same on every rank, and so is the result: one all-reduce, as RowwiseParallel's.
    sequence_parallel=True: x is this rank's rows, [..., K], as many as every other rank has (a DTensor of Shard(dim), dim not
    the last, may be uneven); the result is this rank's rows. x is quantised row by row and gathered in NVFP4, 0.5625 bytes a
    value and 4 a row, whatever the module's input_dtype: activations are NVFP4 then, each row with a global scale of its own,
    or all with the module's input_scale. A finalize() afterwards packs gate and up for NVFP4 whatever its a_dtype, and down for
    a_dtype (torch.uint8, as None: bfloat16). The results are reduce-scattered.
    overlap: in chunks, so that gathers and reductions go on while other chunks are multiplied; what that gains has not been
    measured. batch_invariant of the module makes a row's product independent of the chunk that it is in.

    An NVFP4Linear that quantises its rows without a static scale finds their global scales in this rank's columns.

    A DTensor x gives a DTensor. The sum over ranks is rounded as collectives round it: bits are those of one process only where
    down's partial sums are exact.
    """

    def __init__(self, *, sequence_parallel: bool = False, overlap: bool = True) -> None:
        self.sequence_parallel = sequence_parallel
        self.overlap = overlap

    def __repr__(self) -> str:
        return f"{type(self).__name__}(sequence_parallel={self.sequence_parallel}, overlap={self.overlap})"

    def _apply(self, module: nn.Module, device_mesh: DeviceMesh) -> nn.Module:
        _check(module, device_mesh)
        for codes, scales in (("gate_codes", "gate_scales"), ("up_codes", "up_scales")):
            linear = _linear_scales(getattr(module, scales), getattr(module, codes))
            setattr(module, codes, _shard(getattr(module, codes), 0, device_mesh))
            setattr(module, scales, _shard(linear, 0, device_mesh))
        for bias in _ALL_OF_N:
            if isinstance(getattr(module, bias, None), Tensor):
                setattr(module, bias, _shard(getattr(module, bias), 0, device_mesh))
        rows: int = module.gate_codes.shape[0]  # type: ignore[assignment,index]
        if isinstance(getattr(module, "intermediate_size", None), int):
            module.intermediate_size = rows  # type: ignore[assignment]
        if isinstance(getattr(module, "shape", None), tuple):  # what finalize() packs
            module.shape = module.shape._replace(n=rows)  # type: ignore[operator,union-attr]
        module.down = _row_parallel(module.down, device_mesh)
        if self.sequence_parallel:
            if isinstance(module, PackedModule):
                module.gets_quantized_rows = True
            forward = functools.partial(_forward_rows, module, device_mesh, _CHUNKS if self.overlap else 1)
        else:
            forward = functools.partial(_forward_replicated, module, module.forward, device_mesh)
        module.forward = forward
        return module


def _check(module: nn.Module, mesh: DeviceMesh) -> None:
    if mesh.ndim != 1:
        raise InvalidArgument("device_mesh", f"{mesh.ndim} dimensions", "must have one; take a part of it by its name")
    name = type(module).__name__
    missing = [buffer for buffer in _BUFFERS if not isinstance(getattr(module, buffer, None), Tensor)]
    if missing:
        raise InvalidArgument("module", f"{name} without {', '.join(missing)}", "must be a GatedMLP, before finalize()")
    down: Any = getattr(module, "down", None)
    is_nvfp4 = all(isinstance(getattr(down, buffer, None), Tensor) for buffer in ("w_codes", "w_scales"))
    if not isinstance(down, nn.Linear) and not is_nvfp4:
        raise InvalidArgument("module.down", type(down).__name__, "must be an nn.Linear, or an NVFP4Linear before finalize()")
    if any(getattr(one, "pre_quant_scale", None) is not None or getattr(one, "hadamard", 0) for one in (module, down)):
        raise Unsupported("module", f"{name} with a pre_quant_scale or a Hadamard transform", "is not taken apart")
    codes: Any = module.gate_codes
    if codes.dim() != 2 or codes.shape[0] % mesh.size():
        raise InvalidArgument(
            "module.gate_codes",
            f"shape {list(codes.shape)}",
            f"must be [N, K/2], N a multiple of the mesh's {mesh.size()} processes",
        )
    if down.in_features != codes.shape[0]:
        raise InvalidArgument("module.down", f"{down.in_features} columns", f"must have {codes.shape[0]}")
    if is_nvfp4 and codes.shape[0] % (16 * mesh.size()):
        raise InvalidArgument(
            "module.down", f"{down.in_features} columns", f"must be a multiple of 16 for each of {mesh.size()} processes"
        )


def _forward_replicated(module: Any, forward: Callable[[Tensor], Tensor], mesh: DeviceMesh, x: Tensor) -> Tensor:
    local = x.redistribute(mesh, [Replicate()]).to_local() if isinstance(x, DTensor) else x
    result = _with_bias(module.down, _all_reduced(forward(local), mesh))
    return DTensor.from_local(result, mesh, [Replicate()], run_check=False) if isinstance(x, DTensor) else result


def _forward_rows(module: Any, mesh: DeviceMesh, chunks: int, x: Tensor) -> Tensor:
    if not isinstance(x, DTensor):
        return _product_of_rows(module, mesh, chunks, x)
    (placement,) = x.placements
    if not isinstance(placement, Shard) or placement.dim % x.dim() == x.dim() - 1:
        raise InvalidArgument("x", f"placement {placement}", "must be Shard(dim), dim not the last")
    # Every rank must bring as many rows as the others: the first has the most.
    local = x.to_local()
    own = local.shape[placement.dim]
    most = -(-x.shape[placement.dim] // mesh.size())
    padding = [0, 0] * (x.dim() - 1 - placement.dim) + [0, most - own]
    result = _product_of_rows(module, mesh, chunks, nn.functional.pad(local, padding)).narrow(placement.dim, 0, own)
    shape = (*x.shape[:-1], result.shape[-1])
    strides = torch.empty(shape, device="meta").stride()
    return DTensor.from_local(result.contiguous(), mesh, [placement], run_check=False, shape=torch.Size(shape), stride=strides)


def _product_of_rows(module: Any, mesh: DeviceMesh, chunks: int, x: Tensor) -> Tensor:
    rows = x.reshape(-1, x.shape[-1])
    # A static scale is a factor of the alphas already.
    static = getattr(module, "input_scale", None)
    message = to_bytes(quantize(rows, global_scale=static, per_row=static is None))
    # The collectives are under way when they return. Chunk by chunk, each rank's rows stay together.
    gathers = [_gather(part, mesh) for part in message.chunk(chunks)]
    sums = []
    for gather in gathers:
        a = from_bytes(gather.wait(), torch.uint8, torch.float8_e4m3fn)
        wide = _rows_of_down(module.down, x.dtype)
        hidden = _hidden(module, a, a.global_scale if static is None else None, wide)
        part = module.down(hidden) if wide == x.dtype else module.down.product(hidden, None, None, x.dtype)
        sums.append(_reduce_scatter(part, mesh))
    total = torch.cat([part.wait() for part in sums])
    return _with_bias(module.down, total).reshape(*x.shape[:-1], total.shape[-1])


def _rows_of_down(down: Any, dtype: torch.dtype) -> torch.dtype:
    """In which dtype down is to get its rows: that of x, unless it is packed for others alone."""
    if not isinstance(down, NVFP4Linear) or down.input_dtype != "bf16" or down.packed is None or down.w_codes is not None:
        return dtype
    takes_any = not container.packs_by_rows(down.packed.device) or activation_kind(down.a_dtype) == activation_kind(dtype)
    return dtype if takes_any or not down.a_dtype.is_floating_point else down.a_dtype


def _hidden(module: Any, a: QuantizedTensor, row_scale: Optional[Tensor], dtype: torch.dtype) -> Any:
    """The module's own product, of rows that are NVFP4 already."""
    activation: dict[str, Any] = getattr(module, "_act", None) or {"activation": getattr(module, "activation", "silu")}
    factors = (module.alpha_gate, module.alpha_up, row_scale, *(getattr(module, bias, None) for bias in _ALL_OF_N))
    choice = dict(activation, out_dtype=dtype, batch_invariant=getattr(module, "batch_invariant", False))
    packed = getattr(module, "packed", None)
    if packed is not None:  # finalize() has been called since
        return call(torch.ops.dualgemm.glu_packed, a.codes, a.scales, packed, module.intermediate_size, 1, *factors, **choice)
    return call(
        torch.ops.dualgemm.glu,
        a.codes,
        a.scales,
        module.gate_codes,
        module.gate_scales,
        module.up_codes,
        module.up_scales,
        *factors,
        **choice,
    )
