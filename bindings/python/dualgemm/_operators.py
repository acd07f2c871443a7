"""torch.ops.dualgemm: schemas, tags and fakes. The kernels are in _torch.so, on torch's stable ABI.

Importing this module loads that library, once. Fakes derive shapes from shapes alone, so that M stays symbolic.
"""
from __future__ import annotations

from typing import Any, Optional

import torch
from torch import Tensor

from . import _vmap
from . import _library  # loads libdualgemm first: _torch.so then finds it by its soname
from ._errors import InvalidArgument

_TORCH = tuple(int(part) for part in torch.__version__.split("+")[0].split(".")[:2])
PATH = _library.file_of_package("_torch.so")

_FACTORS = ("Tensor? alpha_gate=None, Tensor? alpha_up=None, Tensor? a_row_scale=None, Tensor? bias_gate=None, "
            "Tensor? bias_up=None, *, str activation='silu', float? act_alpha=None, float? act_beta=None, "
            "float? act_limit=None")
_CHOICE = "str scale_layout='auto', bool batch_invariant=False, str strategy='auto', str config=''"
_A = "Tensor a, Tensor? a_scales"
_GATE_UP = "Tensor gate, Tensor gate_scales, Tensor up, Tensor up_scales"
_ANY_WEIGHTS = "Tensor? gate, Tensor? gate_scales, Tensor? up, Tensor? up_scales, Tensor? packed, SymInt n, SymInt l"
_LINEAR = ("Tensor? w, Tensor? w_scales, Tensor? packed, SymInt n, SymInt l, Tensor? offsets=None, Tensor? m_indices=None, "
           "Tensor? masked_m=None, Tensor? alpha=None, Tensor? bias=None, Tensor? residual=None, Tensor? a_row_scale=None, *")

# name -> arguments up to the output's; where a product's D is wide, there is an out_dtype and a form with out.
_WIDE = {
    "glu": (f"{_A}, {_GATE_UP}, {_FACTORS}", _CHOICE),
    "glu_packed": (f"{_A}, Tensor packed, SymInt n, SymInt l, {_FACTORS}", _CHOICE),
    "m_grouped_glu_contiguous": (f"{_A}, {_ANY_WEIGHTS}, Tensor? offsets, Tensor? m_indices, {_FACTORS}", _CHOICE),
    "m_grouped_glu_masked": (f"{_A}, {_ANY_WEIGHTS}, Tensor masked_m, {_FACTORS}", _CHOICE),
    "linear": (f"{_A}, {_LINEAR}", _CHOICE),
}
_QUANTIZE = ("Tensor x, Tensor? global_scale=None, *, str scale_layout='linear', bool four_over_six=False, "
             "bool per_row=False")
_NVFP4 = f"{_A}, {_ANY_WEIGHTS}, float d_global_scale, {_FACTORS}, str d_scale_layout='linear', {_CHOICE}"


def _schemas() -> list[str]:
    schemas = []
    for name, (first, last) in _WIDE.items():
        schemas.append(f"{name}({first}, ScalarType? out_dtype=None, {last}) -> Tensor")
        schemas.append(f"{name}.out({first}, {last}, Tensor(a!) out) -> ()")
    return schemas + [
        f"glu_nvfp4({_NVFP4}) -> (Tensor, Tensor)",
        f"glu_nvfp4.out({_NVFP4}, Tensor(a!) out_codes, Tensor(b!) out_scales) -> ()",
        f"pack_weights({_GATE_UP}, *, ScalarType a_dtype, str scale_layout='auto') -> Tensor",
        "pack_linear(Tensor w, Tensor w_scales, *, ScalarType a_dtype, str scale_layout='auto') -> Tensor",
        f"quantize_nvfp4({_QUANTIZE}) -> (Tensor, Tensor, Tensor)",
        f"quantize_nvfp4.out({_QUANTIZE}, Tensor(a!) out_codes, Tensor(b!) out_scales, Tensor(c!) out_global_scale) -> ()",
        "dequantize_nvfp4(Tensor codes, Tensor scales, Tensor global_scale, *, ScalarType dtype=float, "
        "str scale_layout='auto') -> Tensor",
    ]


_PACKED_CODES = (torch.uint8, torch.float4_e2m1fn_x2)


def _wide_dtype(a: Tensor, out_dtype: Optional[torch.dtype]) -> torch.dtype:
    if out_dtype is not None:
        return out_dtype
    return torch.float16 if a.dtype in _PACKED_CODES else a.dtype


def _swizzled_span(rows: int, blocks: int) -> int:
    return (rows + 127) // 128 * 128 * ((blocks + 3) // 4 * 4)


def _rows(x: Tensor) -> int:
    rows = 1
    for size in x.shape[:-1]:
        rows *= size
    return rows


def _register_fake(name: str, function: Any = None) -> Any:
    """register_fake, for tensors on one device."""

    def register(shapes: Any) -> Any:
        def checked(*arguments: Any, **named: Any) -> Any:
            devices = {value.device for value in (*arguments, *named.values()) if isinstance(value, Tensor)}
            if len(devices) > 1:
                raise InvalidArgument("tensors", f"on {sorted(map(str, devices))}", "must be on one device")
            return shapes(*arguments, **named)

        torch.library.register_fake(f"dualgemm::{name}", checked)
        return shapes

    return register if function is None else register(function)


def _register_fakes() -> None:
    fake = _register_fake

    @fake("glu")
    def _(a, a_scales, gate, gate_scales, up, up_scales, *factors, out_dtype=None, **choice):  # type: ignore[no-untyped-def]
        return a.new_empty((*a.shape[:-1], gate.shape[-2]), dtype=_wide_dtype(a, out_dtype))

    @fake("glu_packed")
    def _(a, a_scales, packed, n, l, *factors, out_dtype=None, **choice):  # type: ignore[no-untyped-def]
        return a.new_empty((*a.shape[:-1], n), dtype=_wide_dtype(a, out_dtype))

    def grouped(a, a_scales, gate, gate_scales, up, up_scales, packed, n, l, *rest,  # type: ignore[no-untyped-def]
                out_dtype=None, **choice):
        columns = n if gate is None else gate.shape[-2]
        return a.new_empty((*a.shape[:-1], columns), dtype=_wide_dtype(a, out_dtype))

    fake("m_grouped_glu_contiguous", grouped)
    fake("m_grouped_glu_masked", grouped)

    @fake("linear")
    def _(a, a_scales, w, w_scales, packed, n, l, *rest, out_dtype=None, **choice):  # type: ignore[no-untyped-def]
        columns = n if w is None else w.shape[-2]
        return a.new_empty((*a.shape[:-1], columns), dtype=_wide_dtype(a, out_dtype))

    @fake("glu_nvfp4")
    def _(a, a_scales, gate, gate_scales, up, up_scales, packed, n, l, d_global_scale, *factors,  # type: ignore[no-untyped-def]
          d_scale_layout="linear", **choice):
        columns = n if gate is None else gate.shape[-2]
        codes = a.new_empty((*a.shape[:-1], columns // 2), dtype=torch.uint8)
        batches = 1 if gate is None or gate.dim() == 2 else gate.shape[0]
        shape = ((*a.shape[:-1], columns // 16) if d_scale_layout == "linear" else
                 (batches * _swizzled_span(_rows(a) // batches, columns // 16),))
        return codes, a.new_empty(shape, dtype=torch.float8_e4m3fn)

    # Bytes depend on the device's plan: known when it runs.
    @fake("pack_weights")
    def _(gate, gate_scales, up, up_scales, *, a_dtype, scale_layout="auto"):  # type: ignore[no-untyped-def]
        return gate.new_empty((torch.library.get_ctx().new_dynamic_size(),), dtype=torch.uint8)

    @fake("pack_linear")
    def _(w, w_scales, *, a_dtype, scale_layout="auto"):  # type: ignore[no-untyped-def]
        return w.new_empty((torch.library.get_ctx().new_dynamic_size(),), dtype=torch.uint8)

    @fake("quantize_nvfp4")
    def _(x, global_scale=None, *, scale_layout="linear", four_over_six=False, per_row=False):  # type: ignore[no-untyped-def]
        shape, blocks = x.shape[:-1], x.shape[-1] // 16
        scales = (*shape, blocks) if scale_layout == "linear" else (_swizzled_span(_rows(x), blocks),)
        return (x.new_empty((*shape, x.shape[-1] // 2), dtype=torch.uint8), x.new_empty(scales, dtype=torch.float8_e4m3fn),
                x.new_empty(shape if per_row else (1,), dtype=torch.float32))

    @fake("dequantize_nvfp4")
    def _(codes, scales, global_scale, *, dtype=torch.float32, scale_layout="auto"):  # type: ignore[no-untyped-def]
        return codes.new_empty((*codes.shape[:-1], codes.shape[-1] * 2), dtype=dtype)

    for name in (*_WIDE, "glu_nvfp4", "quantize_nvfp4"):
        fake(f"{name}.out", lambda *arguments, **choice: None)


def _load() -> None:
    if _TORCH < (2, 10):
        raise ImportError(f"dualgemm.torch: torch {torch.__version__}; must be 2.10 or newer")
    if not PATH.exists():
        raise ImportError(f"dualgemm.torch: {PATH} is missing; the package was built without torch's headers: install torch "
                          "and build it again")
    library = torch.library.Library("dualgemm", "DEF")
    for schema in _schemas():
        library.define(schema, tags=(torch.Tag.pt2_compliant_tag, torch.Tag.needs_fixed_stride_order))
    torch.ops.load_library(str(PATH))
    globals()["_KEPT"] = library  # its end would take the schemas away
    _register_fakes()
    _vmap.register()


def check_no_grad(**tensors: Optional[Tensor]) -> None:
    """Forward only: InvalidArgument for a tensor that wants a gradient."""
    for name, tensor in tensors.items():
        if tensor is not None and tensor.requires_grad:
            raise InvalidArgument(name, "requires_grad", "must not: the product has no backward; use torch.no_grad() or .detach()")


def refuse_grad(**tensors: Optional[Tensor]) -> None:
    """check_no_grad() where a gradient would be recorded."""
    if torch.is_grad_enabled():
        check_no_grad(**tensors)


_load()
