"""NVFP4 tensors of torch: made, read, and their scales from one layout to the other; and how an operator is called."""

from __future__ import annotations

import math
from typing import Any, NamedTuple, Optional, Union

import torch
from torch import Tensor

from ._errors import InvalidArgument, translate
from ._names import OwnLayout, ScaleLayout
from ._operators import check_storage, refuse_grad, tensor

__all__ = ["QuantizedTensor", "dequantize", "quantize", "swap_nibbles", "swizzle_scales", "transform_rows", "unswizzle_scales"]

_ops = torch.ops.dualgemm
# The overloads themselves: torch.ops.dualgemm.quantize_nvfp4 would look for one on every call, 1 us.
_quantize, _quantize_out = _ops.quantize_nvfp4.default, _ops.quantize_nvfp4.out
_dequantize = _ops.dequantize_nvfp4.default
_transform_rows = _ops.transform_rows.default
_is_compiling = torch.compiler.is_compiling
Scalar = Union[Tensor, float, None]


class QuantizedTensor(NamedTuple):
    """x = e2m1 * e4m3 * global_scale. A NamedTuple, not a tensor subclass: it goes through compile, export and DTensor."""

    codes: Tensor
    """uint8 [..., rows, K/2]"""
    scales: Tensor
    """float8_e4m3fn: linear [..., rows, K/16], or swizzled, flat"""
    global_scale: Tensor
    """float32 [1]; of quantize(per_row=True): one for each row, for glu's ``a_row_scale``"""


def number(name: str, value: Any) -> float:
    """``value``, a number or a tensor of one, as a float."""
    if isinstance(value, Tensor):
        check_storage(name, value)
    try:
        return float(value)
    except (TypeError, ValueError, OverflowError, RuntimeError):
        seen = f"shape {list(value.shape)}" if isinstance(value, Tensor) else repr(value)
        raise InvalidArgument(name, seen, "must be one number") from None


def scalar_tensor(name: str, value: Scalar, like: Tensor, count: int = 1) -> Optional[Tensor]:
    """An alpha as the operators want it: None, or float32 [count] on the device of ``like``."""
    if value is None:
        return None
    if not isinstance(value, Tensor):
        return torch.full((count,), number(name, value), dtype=torch.float32, device=getattr(like, "device", None))
    if count > 1 and value.numel() == 1:
        return check_storage(name, value).reshape(1).expand(count).contiguous()
    return value


def call(operator: Any, *arguments: Any, **named: Any) -> Any:
    """The operator's result; what it reports as a DualGemmError."""
    if _is_compiling():
        return operator(*arguments, **named)
    try:
        return operator(*arguments, **named)
    except RuntimeError as error:
        translate(error)


def quantize(
    x: Tensor,
    *,
    global_scale: Scalar = None,
    scale_layout: OwnLayout = "linear",
    four_over_six: bool = False,
    per_row: bool = False,
    column_factors: Optional[Tensor] = None,
    hadamard: int = 0,
    out: Optional[QuantizedTensor] = None,
) -> QuantizedTensor:
    """float16, bfloat16 or float32 [..., rows, K] to NVFP4; K % 16 == 0. The bits are those of `dualgemm quantize`.

    global_scale: dequantising multiplier, float32 [1] or a number > 0; None: amax / 2688, found on the device, of x or,
    per_row, of each row. A tensor on a GPU is not looked at. four_over_six: per block also try amax/4, keep the lower error.
    column_factors, hadamard: x as transform_rows() makes it is quantised, in the same launch.
    out: written in place. NaN or infinity in x: InvalidArgument on the CPU, NaN scales on CUDA (an error would have to
    synchronise).
    """
    refuse_grad(x=tensor("x", x), global_scale=global_scale)
    if global_scale is not None and not isinstance(global_scale, Tensor):
        # A number is checked here, on every device: once it is a tensor on a GPU its value is not read.
        if not 0 < (value := number("global_scale", global_scale)) < math.inf:
            raise InvalidArgument("global_scale", str(value), "must be finite and > 0")
    scale = scalar_tensor("global_scale", global_scale, x)
    check_quantized_out(out)
    check_transform(column_factors, hadamard)
    transform = {"column_factors": column_factors, "hadamard": hadamard}
    if out is not None:
        call(
            _quantize_out,
            x,
            scale,
            scale_layout=scale_layout,
            four_over_six=four_over_six,
            per_row=per_row,
            **transform,
            out_codes=out.codes,
            out_scales=out.scales,
            out_global_scale=out.global_scale,
        )
        return out
    return QuantizedTensor(
        *call(_quantize, x, scale, scale_layout=scale_layout, four_over_six=four_over_six, per_row=per_row, **transform)
    )


def check_transform(column_factors: Any, hadamard: Any) -> None:
    """Types alone; the library checks the rest."""
    if column_factors is not None:
        check_storage("column_factors", tensor("column_factors", column_factors))
    if isinstance(hadamard, bool) or not isinstance(hadamard, int):
        raise InvalidArgument("hadamard", repr(hadamard), "must be 0, 16, 32, 64, 128 or 256")


def transform_rows(x: Tensor, *, column_factors: Optional[Tensor] = None, hadamard: int = 0) -> Tensor:
    """float16, bfloat16 or float32 [..., rows, K], changed as checkpoints want it in front of a layer; new, of the same dtype.

    column_factors: float32 [K], by which the columns are multiplied (AWQ's pre_quant_scale), rounded to the dtype of x. Then
    hadamard, 16, 32, 64, 128 or 256: each so many columns times Sylvester's Hadamard matrix over the square root of it, in
    float32 and rounded once (compressed-tensors' online transforms of type "hadamard"). 0: none.
    """
    refuse_grad(x=tensor("x", x))
    check_transform(column_factors, hadamard)
    y: Tensor = call(_transform_rows, x, column_factors, hadamard=hadamard)
    return y


def check_quantized_out(out: Any) -> None:
    if out is not None and not isinstance(out, QuantizedTensor):
        raise InvalidArgument("out", type(out).__name__, "must be a QuantizedTensor")


def dequantize(x: QuantizedTensor, *, dtype: torch.dtype = torch.float32, scale_layout: ScaleLayout = "auto") -> Tensor:
    """[..., rows, K] of float32, float16 or bfloat16: e2m1 * e4m3 * global_scale, rounded once to float32, then to dtype."""
    if not isinstance(x, QuantizedTensor):
        raise InvalidArgument("x", type(x).__name__, "must be a QuantizedTensor")
    refuse_grad(global_scale=x.global_scale)
    return call(_dequantize, x.codes, x.scales, x.global_scale, dtype=dtype, scale_layout=scale_layout)


def _as_bytes(scales: Tensor) -> Tensor:
    check_storage("scales", scales)
    if scales.dtype not in (torch.uint8, torch.float8_e4m3fn):
        raise InvalidArgument("scales", str(scales.dtype), "must be float8_e4m3fn or uint8")
    return scales.view(torch.uint8)


def swizzle_scales(scales: Tensor) -> Tensor:
    """Linear [rows, K/16] to flat 128x4 of the same dtype; padding is 0. [L, rows, K/16] gives [L, span]."""
    if tensor("scales", scales).dim() not in (2, 3):
        raise InvalidArgument("scales", f"shape {list(scales.shape)}", "must be [rows, K/16] or [L, rows, K/16]")
    linear = _as_bytes(scales).reshape(-1, *scales.shape[-2:])
    batches, rows, blocks = linear.shape
    padded = torch.nn.functional.pad(linear, (0, -blocks % 4, 0, -rows % 128))
    # row = (row tile, 4, 32), block = (block tile, 4) -> (row tile, block tile, 32, 4, 4)
    tiles = padded.reshape(batches, -1, 4, 32, padded.shape[-1] // 4, 4).permute(0, 1, 4, 3, 2, 5)
    flat = tiles.reshape(batches, -1).contiguous().view(scales.dtype)
    return flat if scales.dim() == 3 else flat[0]


def unswizzle_scales(scales: Tensor, rows: int, sf_cols: int) -> Tensor:
    """The inverse: flat 128x4 to linear [rows, sf_cols] (of [L, span]: [L, rows, sf_cols])."""
    batches = scales.shape[0] if tensor("scales", scales).dim() == 2 else 1
    if any(isinstance(size, bool) or not isinstance(size, int) for size in (rows, sf_cols)):
        raise InvalidArgument("rows", f"{rows!r}, sf_cols {sf_cols!r}", "must be integers")
    row_tiles, block_tiles = -(-rows // 128), -(-sf_cols // 4)
    if rows < 1 or sf_cols < 1 or scales.numel() != batches * row_tiles * block_tiles * 512:
        raise InvalidArgument("scales", f"{scales.numel()} scales", f"must be those of {rows} x {sf_cols} blocks, swizzled")
    tiles = _as_bytes(scales).reshape(batches, row_tiles, block_tiles, 32, 4, 4).permute(0, 1, 4, 3, 2, 5)
    linear = tiles.reshape(batches, row_tiles * 128, block_tiles * 4)[:, :rows, :sf_cols].contiguous().view(scales.dtype)
    return linear if scales.dim() == 2 else linear[0]


def swap_nibbles(codes: Tensor) -> Tensor:
    """For files with high nibble = even k: uint8 of the same shape."""
    if tensor("codes", codes).dtype not in (torch.uint8, torch.float4_e2m1fn_x2):
        raise InvalidArgument("codes", str(codes.dtype), "must be uint8 or float4_e2m1fn_x2")
    packed = check_storage("codes", codes).view(torch.uint8)
    return ((packed >> 4) | (packed << 4)).view(codes.dtype)
