"""Tensor parallelism for GatedMLP, and for whatever has its buffers."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, Optional

import torch
from torch import Tensor, nn
from torch.distributed.device_mesh import DeviceMesh
from torch.distributed.tensor import DTensor, Replicate, Shard
from torch.distributed.tensor.parallel import ParallelStyle

from .. import _container as container
from .._errors import DualGemmError, InvalidArgument, Unsupported
from .._modules import NVFP4Linear, PackedModule
from .._operands import activation_kind
from .._quantized import QuantizedTensor, call, quantize, unswizzle_scales
from ._agreement import must_agree, told
from ._collectives import all_reduced, gathered, reduce_scattered

_BUFFERS = ("gate_codes", "gate_scales", "up_codes", "up_scales")
_ALL_OF_N = ("bias_gate", "bias_up")
_AGREED = {
    "style": "style",
    "shape": "module.gate_codes.shape",
    "down": "module.down",
    "rows": "module.down, rows",
    "bias": "module.down.bias",
}
"""In what processes must not differ, and what an error calls it."""


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

    An NVFP4Linear that quantises its rows without a static scale finds their global scales in this rank's columns.

    A DTensor x gives a DTensor. The sum over ranks is rounded as collectives round it: bits are those of one process only where
    down's partial sums are exact.
    """

    def __init__(self, *, sequence_parallel: bool = False) -> None:
        self.sequence_parallel = sequence_parallel

    def __repr__(self) -> str:
        return f"{type(self).__name__}(sequence_parallel={self.sequence_parallel})"

    def _apply(self, module: nn.Module, device_mesh: DeviceMesh) -> nn.Module:
        _check_everywhere(module, device_mesh, {"style": repr(self)})
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
            forward = functools.partial(_forward_rows, module, device_mesh)
        else:
            forward = functools.partial(_forward_replicated, module, module.forward, device_mesh)
        module.forward = forward
        return module


def _check_everywhere(module: nn.Module, mesh: DeviceMesh, mine: dict[str, Any]) -> None:
    """Refuses in every process what one of them refuses, and in what they differ."""
    if mesh.ndim != 1:
        raise InvalidArgument("device_mesh", f"{mesh.ndim} dimensions", "must have one; take a part of it by its name")
    refused: Optional[DualGemmError] = None
    try:
        _check(module, mesh)
        mine = mine | _described(module)
    except DualGemmError as error:
        refused = error
    said = told(mesh.get_group(), mine | {"refused": None if refused is None else str(refused)})
    if refused is not None:
        raise refused
    for rank, one in enumerate(said):
        if one["refused"] is not None:
            raise InvalidArgument("module", f"refused in process {rank}: {one['refused']}", "must fit in every process")
    must_agree(_AGREED, said)


def _described(module: Any) -> dict[str, Any]:
    down = module.down
    return {
        "shape": tuple(module.gate_codes.shape),
        "down": f"{type(down).__name__}, {down.in_features} columns",
        "rows": (down.weight if isinstance(down, nn.Linear) else down.w_codes).shape[0],
        "bias": getattr(down, "bias", None) is not None,
    }


def _check(module: nn.Module, mesh: DeviceMesh) -> None:
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
    result = _with_bias(module.down, all_reduced(forward(local), mesh))
    return DTensor.from_local(result, mesh, [Replicate()], run_check=False) if isinstance(x, DTensor) else result


def _forward_rows(module: Any, mesh: DeviceMesh, x: Tensor) -> Tensor:
    if not isinstance(x, DTensor):
        return _product_of_rows(module, mesh, x)
    (placement,) = x.placements
    if not isinstance(placement, Shard) or placement.dim % x.dim() == x.dim() - 1:
        raise InvalidArgument("x", f"placement {placement}", "must be Shard(dim), dim not the last")
    # Every rank must bring as many rows as the others: the first has the most.
    local = x.to_local()
    own = local.shape[placement.dim]
    most = -(-x.shape[placement.dim] // mesh.size())
    padding = [0, 0] * (x.dim() - 1 - placement.dim) + [0, most - own]
    result = _product_of_rows(module, mesh, nn.functional.pad(local, padding)).narrow(placement.dim, 0, own)
    shape = (*x.shape[:-1], result.shape[-1])
    strides = torch.empty(shape, device="meta").stride()
    return DTensor.from_local(result.contiguous(), mesh, [placement], run_check=False, shape=torch.Size(shape), stride=strides)


def _product_of_rows(module: Any, mesh: DeviceMesh, x: Tensor) -> Tensor:
    rows = x.reshape(-1, x.shape[-1])
    # A static scale is a factor of the alphas already.
    static = getattr(module, "input_scale", None)
    a = quantize(rows, global_scale=static, per_row=static is None)
    parts = [a.codes.view(torch.uint8), a.scales.view(torch.uint8)]  # not every backend moves every dtype
    if static is None:
        parts.append(a.global_scale.reshape(-1))
    # Tried and lost on two H200: four chunks of rows, whose gathers and sums go on behind products (2026-11-28, us in a graph:
    # (14336, 4096) 253 for 126 at 256 rows, 1415 for 1195 at 4096; (28672, 8192) 525 for 322, 4806 for 4785).
    codes, scales, *factor = gathered(parts, mesh)
    a = QuantizedTensor(codes, scales.view(torch.float8_e4m3fn), factor[0] if factor else a.global_scale)
    wide = _rows_of_down(module.down, x.dtype)
    hidden = _hidden(module, a, a.global_scale if factor else None, wide)
    part = module.down(hidden) if wide == x.dtype else module.down.product(hidden, None, None, x.dtype)
    total = reduce_scattered(part, mesh)
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
