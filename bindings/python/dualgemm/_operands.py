"""NVFP4 operands as the containers keep them: codes uint8, scales float8_e4m3fn, linear or flat; and prepared bytes."""

from __future__ import annotations

import struct
from typing import NamedTuple, Optional, Union

import torch
from torch import Tensor

from ._errors import InvalidArgument
from ._operators import check_storage, tensor
from ._quantized import number, unswizzle_scales

Scalar = Union[Tensor, float]
_CODES = (torch.uint8, torch.float4_e2m1fn_x2)
_SCALES = (torch.uint8, torch.float8_e4m3fn)
_HEADER_BYTES = 256


class Shape(NamedTuple):
    """The shape of one matrix, or of ``experts`` of them (0: one, without that dimension)."""

    n: int
    k: int
    experts: int

    @property
    def layers(self) -> int:
        return max(self.experts, 1)

    @property
    def span(self) -> int:
        """Scales of one matrix, swizzled."""
        return -(-self.n // 128) * -(-self.k // 64) * 512


def codes_of(name: str, codes: Tensor) -> tuple[Tensor, Shape]:
    """[N, K/2] or [E, N, K/2] as uint8, not copied."""
    if tensor(name, codes).dtype not in _CODES or codes.dim() not in (2, 3) or 0 in codes.shape or codes.shape[-1] % 8:
        raise InvalidArgument(
            name,
            f"{codes.dtype} {list(codes.shape)}",
            "must be uint8 or float4_e2m1fn_x2 [N, K/2] or [E, N, K/2], K a multiple of 16",
        )
    if codes.stride(-1) != 1:
        raise InvalidArgument(name, f"stride {codes.stride(-1)} of the last dimension", "must be 1; use .contiguous()")
    if codes.dtype != torch.uint8:
        codes = codes.view(torch.uint8)
    return codes, Shape(codes.shape[-2], codes.shape[-1] * 2, codes.shape[0] if codes.dim() == 3 else 0)


def scales_of(name: str, scales: Tensor, shape: Shape, scale_layout: str) -> Tensor:
    """float8_e4m3fn: linear [N, K/16] or [E, N, K/16] as it lies, swizzled as [span] or [E, span]."""
    if scale_layout not in ("auto", "linear", "swizzled_128x4"):
        raise InvalidArgument("scale_layout", repr(scale_layout), "must be auto, linear or swizzled_128x4")
    if tensor(name, scales).dtype not in _SCALES:
        raise InvalidArgument(name, str(scales.dtype), "must be float8_e4m3fn or uint8")
    check_storage(name, scales)
    if scales.dtype == torch.uint8:
        scales = scales.view(torch.float8_e4m3fn)
    dims = 3 if shape.experts else 2
    is_flat = scales.dim() == 6 or scales.dim() < dims
    if scale_layout == "linear" or (scale_layout == "auto" and not is_flat):
        wanted = [shape.n, shape.k // 16]
        wanted = [shape.experts, *wanted] if shape.experts else wanted
        if list(scales.shape) != wanted:
            raise InvalidArgument(
                name, f"shape {list(scales.shape)}", f"linear scales must be {wanted}; name or flatten swizzled ones"
            )
        return scales if scales.stride(-1) == 1 else scales.contiguous()
    if scales.dim() == 6:
        scales = scales.permute(5, 2, 4, 0, 1, 3)
    if scales.numel() != shape.layers * shape.span:
        raise InvalidArgument(
            name, f"shape {list(scales.shape)}", f"swizzled_128x4 must be {shape.layers * shape.span} scales here"
        )
    return scales.reshape((shape.experts, shape.span) if shape.experts else (shape.span,))


def is_linear(scales: Tensor, shape: Shape) -> bool:
    return scales.dim() == (3 if shape.experts else 2)


def linear_scales(scales: Tensor, shape: Shape) -> Tensor:
    return scales if is_linear(scales, shape) else unswizzle_scales(scales, shape.n, shape.k // 16)


def slice_rows(scales: Tensor, shape: Shape, rows: slice) -> Tensor:
    """The scales of these rows: a view; swizzled ones that do not start and end between tiles become linear, a copy."""
    parts_tiles = rows.step in (None, 1) and rows.start % 128 == 0 and (rows.stop - rows.start) % 128 == 0
    if parts_tiles and not is_linear(scales, shape):
        tile = -(-shape.k // 64) * 512
        return scales[..., rows.start // 128 * tile : rows.stop // 128 * tile].contiguous()  # of experts: a copy
    return linear_scales(scales, shape)[..., rows, :]


def factor_of(name: str, value: Scalar, device: torch.device, layers: int) -> Tensor:
    """float32 [layers] on ``device``."""
    if isinstance(value, Tensor):
        if value.numel() not in (1, layers):
            raise InvalidArgument(name, f"shape {list(value.shape)}", f"must be one number or {layers}, one for each expert")
        value = check_storage(name, value).detach().to(device=device, dtype=torch.float32).reshape(-1)
        return value.expand(layers).contiguous()
    return torch.full((layers,), number(name, value), dtype=torch.float32, device=device)


def bias_of(name: str, bias: Optional[Tensor], shape: Shape) -> Optional[Tensor]:
    """float32 or bfloat16 [N] or [E, N]; other dtypes become float32."""
    if bias is None:
        return None
    wanted = [shape.experts, shape.n] if shape.experts else [shape.n]
    if list(tensor(name, bias).shape) != wanted:
        raise InvalidArgument(name, f"shape {list(bias.shape)}", f"must be {wanted}")
    bias = check_storage(name, bias).detach()
    return (bias if bias.dtype in (torch.float32, torch.bfloat16) else bias.float()).contiguous()


def shard_range(size: int, rank: int, world_size: int, what: str, multiple: int = 1) -> slice:
    if any(isinstance(value, bool) or not isinstance(value, int) for value in (rank, world_size)):
        raise InvalidArgument("rank", f"{rank!r} of {world_size!r}", "must be integers")
    if world_size < 1 or not 0 <= rank < world_size:
        raise InvalidArgument("rank", f"{rank} of {world_size}", "must be from 0 to world_size - 1")
    if size % (world_size * multiple):
        factor = f"{multiple} * {world_size}" if multiple > 1 else str(world_size)
        raise InvalidArgument("world_size", f"{world_size} for {size} {what}", f"{what} must be a multiple of {factor}")
    part = size // world_size
    return slice(rank * part, (rank + 1) * part)


# ---- prepared bytes ---------------------------------------------------------------------------------------------------------


def activation_kind(dtype: torch.dtype) -> str:
    """Activations for which a GPU prepares the same bytes."""
    if dtype in (torch.uint8, torch.float4_e2m1fn_x2, torch.float16):
        return "float16 or NVFP4"
    if dtype in (torch.bfloat16, torch.float32):
        return str(dtype).removeprefix("torch.")
    raise InvalidArgument("a_dtype", str(dtype), "must be bfloat16, float16, float32, or uint8 for NVFP4")


class PackedHeader(NamedTuple):
    """The first 256 bytes of each expert's part (docs/formats.md, "Prepared weights")."""

    format: int
    version: int
    n: int
    k: int
    expert_bytes: int
    columns: int  # of a matrix that was cut into halves; 0: gate and up


def read_header(packed: Tensor) -> PackedHeader:
    """The header of prepared bytes on any device; on a GPU this synchronises."""
    check_storage("packed", packed)
    if packed.dtype != torch.uint8 or packed.dim() != 1 or packed.numel() < _HEADER_BYTES:
        raise InvalidArgument("packed", f"{packed.dtype} {list(packed.shape)}", "must be uint8 [bytes] as prepare() makes it")
    header = bytes(packed[:_HEADER_BYTES].cpu().tolist())
    if header[:8] != b"DUALGEMM":
        raise InvalidArgument("packed", "other bytes", "must begin with DUALGEMM")
    return PackedHeader(*struct.unpack_from("<iiqqqq", header, 8))


def aligned(packed: Tensor) -> Tensor:
    """At an address that prepared bytes may have; what was mapped from a file may lie anywhere."""
    return packed if packed.data_ptr() % (256 if packed.is_cuda else 64) == 0 else packed.clone()


def compact(tensor: Tensor) -> Tensor:
    """Without the rest of a storage that it is a view of: what is saved is what is used."""
    used = tensor.numel() * tensor.element_size()
    return tensor if tensor.is_contiguous() and tensor.untyped_storage().nbytes() == used else tensor.contiguous().clone()
