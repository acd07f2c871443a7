"""Fakes of torch.ops.dualgemm: shapes from shapes alone, so that M stays symbolic.

They refuse what a kernel would refuse of shapes and dtypes, so that meta tensors and compilers learn of it, too.
"""

from __future__ import annotations

from typing import Any, Optional

import torch
from torch import Tensor

from ._errors import InvalidArgument

_PACKED_CODES = (torch.uint8, torch.float4_e2m1fn_x2)
_WIDE_TYPES = (torch.float16, torch.bfloat16, torch.float32)


def _swizzled_span(rows: int, blocks: int) -> int:
    return (rows + 127) // 128 * 128 * ((blocks + 3) // 4 * 4)


def _row_count(x: Tensor) -> int:
    rows = 1
    for size in x.shape[:-1]:
        rows *= size
    return rows


def _register(name: str, shapes: Any) -> None:
    """register_fake, for tensors on one device."""

    def checked(*arguments: Any, **named: Any) -> Any:
        devices = {value.device for value in (*arguments, *named.values()) if isinstance(value, Tensor)}
        if len(devices) > 1:
            raise InvalidArgument("tensors", f"on {sorted(map(str, devices))}", "must be on one device")
        return shapes(*arguments, **named)

    torch.library.register_fake(f"dualgemm::{name}", checked)


def _check(holds: Any, name: str, observed: str, rule: str) -> None:
    """InvalidArgument as the kernel would raise it; of symbolic sizes, a guard."""
    if not isinstance(holds, bool):
        torch._check(holds, lambda: f"dualgemm: invalid_argument: {name}: {observed}; {rule}")
    elif not holds:
        raise InvalidArgument(name, observed, rule)


def _columns(a: Tensor) -> Any:
    """The columns of A, in values."""
    _check(
        a.dtype in (*_PACKED_CODES, *_WIDE_TYPES),
        "a",
        str(a.dtype),
        "must be uint8, float4_e2m1fn_x2, float16, bfloat16 or float32",
    )
    _check(a.dim() >= 2, "a", f"shape {list(a.shape)}", "must have rows")
    return a.shape[-1] * (2 if a.dtype in _PACKED_CODES else 1)


def _check_matrix(name: str, w: Optional[Tensor], columns: Any, like: Optional[Tensor] = None) -> None:
    if w is None:  # packed, or refused when it runs
        return
    _check(w.dtype in _PACKED_CODES, name, str(w.dtype), "must be uint8 or float4_e2m1fn_x2")
    _check(w.dim() in (2, 3), name, f"shape {list(w.shape)}", "must be [N, K/2] or [L, N, K/2]")
    _check(w.shape[-1] * 2 == columns, name, f"{w.shape[-1] * 2} columns", f"must be the {columns} of a")
    if like is not None:
        _check(w.dim() == like.dim(), name, f"shape {list(w.shape)}", f"must be that of gate: {list(like.shape)}")
        _check(w.shape[-2] == like.shape[-2], name, f"shape {list(w.shape)}", f"must be that of gate: {list(like.shape)}")


def _new_d(a: Tensor, columns: Any, out_dtype: Optional[torch.dtype]) -> Tensor:
    dtype = out_dtype or (torch.float16 if a.dtype in _PACKED_CODES else a.dtype)
    _check(dtype in _WIDE_TYPES, "out_dtype", str(dtype), "must be float16, bfloat16 or float32")
    return a.new_empty((*a.shape[:-1], columns), dtype=dtype)


def _glu(a, a_scales, gate, gate_scales, up, up_scales, *factors, out_dtype=None, **choice):  # type: ignore[no-untyped-def]
    columns = _columns(a)
    _check_matrix("gate", gate, columns)
    _check_matrix("up", up, columns, gate)
    return _new_d(a, gate.shape[-2], out_dtype)


def _glu_packed(a, a_scales, packed, n, l, *factors, out_dtype=None, **choice):  # type: ignore[no-untyped-def]
    _columns(a)
    return _new_d(a, n, out_dtype)


def _grouped(  # type: ignore[no-untyped-def]
    a, a_scales, gate, gate_scales, up, up_scales, packed, n, l, *rest, out_dtype=None, **choice
):
    columns = _columns(a)
    _check_matrix("gate", gate, columns)
    _check_matrix("up", up, columns, gate)
    return _new_d(a, n if gate is None else gate.shape[-2], out_dtype)


def _linear(a, a_scales, w, w_scales, packed, n, l, *rest, out_dtype=None, **choice):  # type: ignore[no-untyped-def]
    _check_matrix("w", w, _columns(a))
    return _new_d(a, n if w is None else w.shape[-2], out_dtype)


def _glu_nvfp4(  # type: ignore[no-untyped-def]
    a, a_scales, gate, gate_scales, up, up_scales, packed, n, l, d_global_scale, *factors, d_scale_layout="linear", **choice
):
    in_a = _columns(a)
    _check_matrix("gate", gate, in_a)
    _check_matrix("up", up, in_a, gate)
    columns = n if gate is None else gate.shape[-2]
    codes = a.new_empty((*a.shape[:-1], columns // 2), dtype=torch.uint8)
    batches = 1 if gate is None or gate.dim() == 2 else gate.shape[0]
    shape = (
        (*a.shape[:-1], columns // 16)
        if d_scale_layout == "linear"
        else (batches * _swizzled_span(_row_count(a) // batches, columns // 16),)
    )
    return codes, a.new_empty(shape, dtype=torch.float8_e4m3fn)


def _quantize(  # type: ignore[no-untyped-def]
    x, global_scale=None, *, scale_layout="linear", four_over_six=False, per_row=False
):
    _check(x.dtype in _WIDE_TYPES, "x", str(x.dtype), "must be float16, bfloat16 or float32")
    _check(x.dim() >= 2, "x", f"shape {list(x.shape)}", "must have rows")
    _check(x.shape[-1] % 16 == 0, "x", f"{x.shape[-1]} columns", "must be a positive multiple of 16")
    shape, blocks = x.shape[:-1], x.shape[-1] // 16
    scales = (*shape, blocks) if scale_layout == "linear" else (_swizzled_span(_row_count(x), blocks),)
    return (
        x.new_empty((*shape, x.shape[-1] // 2), dtype=torch.uint8),
        x.new_empty(scales, dtype=torch.float8_e4m3fn),
        x.new_empty(shape if per_row else (1,), dtype=torch.float32),
    )


def _dequantize(codes, scales, global_scale, *, dtype=torch.float32, scale_layout="auto"):  # type: ignore[no-untyped-def]
    _check(codes.dtype in _PACKED_CODES, "codes", str(codes.dtype), "must be uint8 or float4_e2m1fn_x2")
    _check(codes.dim() >= 2, "codes", f"shape {list(codes.shape)}", "must have rows")
    return codes.new_empty((*codes.shape[:-1], codes.shape[-1] * 2), dtype=dtype)


def _pack(first, *rest, a_dtype, scale_layout="auto"):  # type: ignore[no-untyped-def]
    """Bytes depend on the device's plan: known when it runs."""
    return first.new_empty((torch.library.get_ctx().new_dynamic_size(),), dtype=torch.uint8)


def _out_of(shapes: Any) -> Any:
    def check_out(*arguments: Any, out: Tensor, **choice: Any) -> None:
        d = shapes(*arguments, out_dtype=out.dtype, **choice)
        text, wanted = f"shape {list(out.shape)}", f"must be {list(d.shape)}"
        _check(out.dim() == d.dim(), "out", text, wanted)
        for size, right in zip(out.shape, d.shape):
            _check(size == right, "out", text, wanted)

    return check_out


def register() -> None:
    wide = {
        "glu": _glu,
        "glu_packed": _glu_packed,
        "m_grouped_glu_contiguous": _grouped,
        "m_grouped_glu_masked": _grouped,
        "linear": _linear,
    }
    for name, shapes in wide.items():
        _register(name, shapes)
        _register(f"{name}.out", _out_of(shapes))
    for name, shapes in (("glu_nvfp4", _glu_nvfp4), ("quantize_nvfp4", _quantize)):
        _register(name, shapes)
        _register(f"{name}.out", lambda *arguments, **choice: None)
    for name, shapes in (("dequantize_nvfp4", _dequantize), ("pack_weights", _pack), ("pack_linear", _pack)):
        _register(name, shapes)
