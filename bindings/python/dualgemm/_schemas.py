"""The operators of torch.ops.dualgemm: each one's schema, and the shapes of its results from shapes alone.

Schemas are read by torch, so that names say which argument is meant wherever Python looks at one. The shape functions serve
fake and meta tensors, M stays symbolic; they refuse what a kernel would refuse of shapes and dtypes, so that compilers learn
of it, too. The kernels are in src/, argument by argument in the schema's order.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple, Optional

import torch
from torch import Tensor

from ._errors import InvalidArgument

_PACKED_CODES = (torch.uint8, torch.float4_e2m1fn_x2)
_WIDE_TYPES = (torch.float16, torch.bfloat16, torch.float32)
_Shapes = Callable[..., Any]


class Operator(NamedTuple):
    """shapes: takes the arguments by name and returns new tensors. outputs: names of the results in the form ``.out``, which
    has no out_dtype; none: there is no such form. rows: the arguments that vmap may fold into the rows of one call, the rows
    themselves first."""

    schema: str
    shapes: _Shapes
    outputs: tuple[str, ...]
    rows: tuple[str, ...]

    @property
    def name(self) -> str:
        return self.schema.split("(", 1)[0]

    def forms(self) -> Iterator[str]:
        """The schemas to define: the operator's and that of its form ``.out``."""
        yield self.schema
        if self.outputs:
            arguments = self.schema[len(self.name) :].rpartition(") -> ")[0].replace("ScalarType? out_dtype=None, ", "")
            written = (f"Tensor({mark}!) {name}" for mark, name in zip("abc", self.outputs))
            yield f"{self.name}.out{arguments}, {', '.join(written)}) -> ()"

    def bind(self, arguments: Sequence[Any], named: dict[str, Any]) -> dict[str, Any]:
        """The arguments that were passed, by their names in the schema."""
        return {**dict(zip(self.argument_names(), arguments)), **named}

    def argument_names(self) -> list[str]:
        return [argument.name for argument in overload(self.name)._schema.arguments]


def overload(name: str, form: str = "default") -> Any:
    return getattr(getattr(torch.ops.dualgemm, name), form)


OPERATORS: dict[str, Operator] = {}


def _operator(schema: str, *, outputs: tuple[str, ...] = (), rows: tuple[str, ...] = ()) -> Callable[[_Shapes], _Shapes]:
    def add(shapes: _Shapes) -> _Shapes:
        made = Operator(schema, shapes, outputs, rows)
        OPERATORS[made.name] = made
        return shapes

    return add


# ---- what several schemas have --------------------------------------------------------------------------------------------

_A = "Tensor a, Tensor? a_scales"
_GATE_UP = "Tensor gate, Tensor gate_scales, Tensor up, Tensor up_scales"
_ANY_WEIGHTS = "Tensor? gate, Tensor? gate_scales, Tensor? up, Tensor? up_scales, Tensor? packed, SymInt n, SymInt l"
_ANY_EXPERTS = (
    "Tensor? gate, Tensor? gate_scales, Tensor? up, Tensor? up_scales, Tensor? packed, "
    "Tensor? down, Tensor? down_scales, Tensor? packed_down"
)
_FACTORS = (
    "Tensor? alpha_gate=None, Tensor? alpha_up=None, Tensor? a_row_scale=None, Tensor? bias_gate=None, "
    "Tensor? bias_up=None, *, str activation='silu', float? act_alpha=None, float? act_beta=None, "
    "float? act_limit=None"
)
_ONE_WEIGHT = "Tensor? w, Tensor? w_scales, Tensor? packed, SymInt n, SymInt l"
_GROUPS = "Tensor? offsets=None, Tensor? m_indices=None, Tensor? masked_m=None"
_CHOICE = "str scale_layout='auto', bool batch_invariant=False, str strategy='auto', str config=''"
_WIDE = f"ScalarType? out_dtype=None, {_CHOICE}"
_ROWS = ("a", "a_scales", "a_row_scale")


# ---- what several shape functions have ------------------------------------------------------------------------------------


def _swizzled_span(rows: int, blocks: int) -> int:
    return (rows + 127) // 128 * 128 * ((blocks + 3) // 4 * 4)


def _row_count(x: Tensor) -> int:
    rows = 1
    for size in x.shape[:-1]:
        rows *= size
    return rows


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


def _new_nvfp4(a: Tensor, weight: Optional[Tensor], n: Any, d_scale_layout: str) -> tuple[Tensor, Tensor]:
    """Codes and scales of D; weight: gate or w, None where it is packed."""
    columns = n if weight is None else weight.shape[-2]
    codes = a.new_empty((*a.shape[:-1], columns // 2), dtype=torch.uint8)
    batches = 1 if weight is None or weight.dim() == 2 else weight.shape[0]
    shape = (
        (*a.shape[:-1], columns // 16)
        if d_scale_layout == "linear"
        else (batches * _swizzled_span(_row_count(a) // batches, columns // 16),)
    )
    return codes, a.new_empty(shape, dtype=torch.float8_e4m3fn)


# ---- the operators --------------------------------------------------------------------------------------------------------


@_operator(
    f"m_grouped_glu_contiguous({_A}, {_ANY_WEIGHTS}, Tensor? offsets, Tensor? m_indices, {_FACTORS}, {_WIDE}) -> Tensor",
    outputs=("out",),
)
@_operator(f"m_grouped_glu_masked({_A}, {_ANY_WEIGHTS}, Tensor masked_m, {_FACTORS}, {_WIDE}) -> Tensor", outputs=("out",))
@_operator(f"glu({_A}, {_GATE_UP}, {_FACTORS}, {_WIDE}) -> Tensor", outputs=("out",), rows=_ROWS)
def _glu(
    a: Tensor, gate: Optional[Tensor], up: Optional[Tensor], n: Any = 0, out_dtype: Optional[torch.dtype] = None, **_: Any
) -> Tensor:
    columns = _columns(a)
    _check_matrix("gate", gate, columns)
    _check_matrix("up", up, columns, gate)
    return _new_d(a, n if gate is None else gate.shape[-2], out_dtype)


@_operator(f"glu_packed({_A}, Tensor packed, SymInt n, SymInt l, {_FACTORS}, {_WIDE}) -> Tensor", outputs=("out",), rows=_ROWS)
def _glu_packed(a: Tensor, n: Any, out_dtype: Optional[torch.dtype] = None, **_: Any) -> Tensor:
    _columns(a)
    return _new_d(a, n, out_dtype)


@_operator(
    f"linear({_A}, {_ONE_WEIGHT}, {_GROUPS}, Tensor? alpha=None, Tensor? bias=None, Tensor? residual=None, "
    f"Tensor? a_row_scale=None, *, str activation='identity', {_WIDE}) -> Tensor",
    outputs=("out",),
    rows=_ROWS,
)
def _linear(a: Tensor, w: Optional[Tensor], n: Any, out_dtype: Optional[torch.dtype] = None, **_: Any) -> Tensor:
    _check_matrix("w", w, _columns(a))
    return _new_d(a, n if w is None else w.shape[-2], out_dtype)


@_operator(
    f"glu_nvfp4({_A}, {_ANY_WEIGHTS}, float d_global_scale, {_FACTORS}, str d_scale_layout='linear', {_CHOICE})"
    " -> (Tensor, Tensor)",
    outputs=("out_codes", "out_scales"),
)
def _glu_nvfp4(
    a: Tensor, gate: Optional[Tensor], up: Optional[Tensor], n: Any, d_scale_layout: str = "linear", **_: Any
) -> tuple[Tensor, Tensor]:
    in_a = _columns(a)
    _check_matrix("gate", gate, in_a)
    _check_matrix("up", up, in_a, gate)
    return _new_nvfp4(a, gate, n, d_scale_layout)


@_operator(
    f"linear_nvfp4({_A}, {_ONE_WEIGHT}, float d_global_scale, {_GROUPS}, Tensor? alpha=None, Tensor? bias=None, "
    f"Tensor? a_row_scale=None, *, str activation='identity', str d_scale_layout='linear', {_CHOICE}) -> (Tensor, Tensor)",
    outputs=("out_codes", "out_scales"),
)
def _linear_nvfp4(
    a: Tensor,
    w: Optional[Tensor],
    n: Any,
    offsets: Optional[Tensor] = None,
    m_indices: Optional[Tensor] = None,
    d_scale_layout: str = "linear",
    **_: Any,
) -> tuple[Tensor, Tensor]:
    _check_matrix("w", w, _columns(a))
    has_experts = offsets is not None or m_indices is not None
    _check(
        not has_experts or d_scale_layout == "linear",
        "d_scale_layout",
        repr(d_scale_layout),
        "must be linear for rows that have experts",
    )
    return _new_nvfp4(a, w, n, d_scale_layout)


@_operator(
    "quantize_nvfp4(Tensor x, Tensor? global_scale=None, Tensor? column_factors=None, *, str scale_layout='linear', "
    "bool four_over_six=False, bool per_row=False, int hadamard=0) -> (Tensor, Tensor, Tensor)",
    outputs=("out_codes", "out_scales", "out_global_scale"),
    rows=("x",),
)
def _quantize(x: Tensor, scale_layout: str = "linear", per_row: bool = False, **_: Any) -> tuple[Tensor, Tensor, Tensor]:
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


@_operator(
    f"experts(Tensor x, Tensor topk_ids, Tensor? topk_weights, Tensor? expert_map, {_ANY_EXPERTS}, SymInt n, SymInt l, "
    "Tensor? alpha_gate=None, Tensor? alpha_up=None, Tensor? alpha_down=None, Tensor? bias_gate=None, Tensor? bias_up=None, "
    "Tensor? bias_down=None, Tensor? residual=None, Tensor? x_factors=None, Tensor? h_factors=None, "
    "Tensor? x_global_scale=None, *, bool gated=True, str activation='silu', float? act_alpha=None, float? act_beta=None, "
    "float? act_limit=None, bool quantize_x=False, bool quantize_h=False, float? h_global_scale=None, int x_hadamard=0, "
    "int h_hadamard=0, bool weights_on_input=False, str scale_layout='auto', bool batch_invariant=False) -> Tensor",
    outputs=("out",),
)
def _experts(x: Tensor, topk_ids: Tensor, topk_weights: Optional[Tensor], **_: Any) -> Tensor:
    _check(x.dtype in _WIDE_TYPES, "x", str(x.dtype), "must be float16, bfloat16 or float32")
    _check(x.dim() == 2, "x", f"shape {list(x.shape)}", "must be [tokens, hidden]")
    _check(topk_ids.dim() == 2, "topk_ids", f"shape {list(topk_ids.shape)}", "must be [tokens, k]")
    _check(topk_ids.shape[0] == x.shape[0], "topk_ids", f"shape {list(topk_ids.shape)}", f"must be [{x.shape[0]}, k]")
    return x.new_empty(x.shape)


@_operator("transform_rows(Tensor x, Tensor? column_factors=None, *, int hadamard=0) -> Tensor", rows=("x",))
def _transform_rows(x: Tensor, **_: Any) -> Tensor:
    _check(x.dtype in _WIDE_TYPES, "x", str(x.dtype), "must be float16, bfloat16 or float32")
    _check(x.dim() >= 2, "x", f"shape {list(x.shape)}", "must have rows")
    _check(x.shape[-1] % 16 == 0, "x", f"{x.shape[-1]} columns", "must be a positive multiple of 16")
    return x.new_empty(x.shape)


@_operator(
    "dequantize_nvfp4(Tensor codes, Tensor scales, Tensor global_scale, *, ScalarType dtype=float, "
    "str scale_layout='auto') -> Tensor"
)
def _dequantize(codes: Tensor, dtype: torch.dtype = torch.float32, **_: Any) -> Tensor:
    _check(codes.dtype in _PACKED_CODES, "codes", str(codes.dtype), "must be uint8 or float4_e2m1fn_x2")
    _check(codes.dim() >= 2, "codes", f"shape {list(codes.shape)}", "must have rows")
    return codes.new_empty((*codes.shape[:-1], codes.shape[-1] * 2), dtype=dtype)


@_operator(f"pack_weights({_GATE_UP}, *, ScalarType a_dtype, str scale_layout='auto') -> Tensor")
def _pack_weights(gate: Tensor, **_: Any) -> Tensor:
    """How many bytes depends on the device's plan: known when it runs."""
    return gate.new_empty((torch.library.get_ctx().new_dynamic_size(),), dtype=torch.uint8)


@_operator("pack_linear(Tensor w, Tensor w_scales, *, ScalarType a_dtype, str scale_layout='auto') -> Tensor")
def _pack_linear(w: Tensor, **_: Any) -> Tensor:
    return _pack_weights(w)


# ---- fakes ----------------------------------------------------------------------------------------------------------------


def _check_one_device(values: dict[str, Any]) -> None:
    devices = {value.device for value in values.values() if isinstance(value, Tensor)}
    if len(devices) > 1:
        raise InvalidArgument("tensors", f"on {sorted(map(str, devices))}", "must be on one device")


def _check_out(operator: Operator, values: dict[str, Any]) -> None:
    """Checks the shape of one wide result; several are left to the kernel."""
    if operator.outputs != ("out",):
        return
    out = values.pop("out")
    d = operator.shapes(**values, out_dtype=out.dtype)
    text, wanted = f"shape {list(out.shape)}", f"must be {list(d.shape)}"
    _check(out.dim() == d.dim(), "out", text, wanted)
    for size, right in zip(out.shape, d.shape):
        _check(size == right, "out", text, wanted)


def _register_fakes(operator: Operator) -> None:
    def shapes(*arguments: Any, **named: Any) -> Any:
        values = operator.bind(arguments, named)
        _check_one_device(values)
        return operator.shapes(**values)

    def check_out(*arguments: Any, **named: Any) -> None:
        values = operator.bind(arguments, named)
        _check_one_device(values)
        _check_out(operator, values)

    torch.library.register_fake(f"dualgemm::{operator.name}", shapes)
    if operator.outputs:
        torch.library.register_fake(f"dualgemm::{operator.name}.out", check_out)


def register_fakes() -> None:
    for operator in OPERATORS.values():
        _register_fakes(operator)
