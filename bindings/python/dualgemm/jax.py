"""JAX: the gated product under jit and vmap, through XLA's foreign function interface.

Needs jax >= 0.6 and a package that was built where jaxlib's headers are. Platforms: "cpu", and "CUDA", whose handler enqueues
on XLA's stream. The CUDA handler has been compiled, not run.
"""

from __future__ import annotations

import ctypes
import functools
import math
import pathlib
import re
from collections.abc import Callable
from typing import Any, NamedTuple, Optional

import jax
import jax.numpy as jnp
import numpy as np

from . import _library as library  # loads libdualgemm: _jax.so finds it by its soname
from ._errors import InvalidArgument, Unsupported
from ._names import Activation, ScaleLayout, Strategy
from ._plan import activation_numbers
from ._structs import Problem

Array = Any
_PATH = library.file_of_package("_jax.so")
_TARGET = "dualgemm_glu"
_WIDE = ("float16", "bfloat16", "float32")
_SCALES = ("uint8", "float8_e4m3fn")
# The handler's operands, in its order.
_OPERANDS = (
    "a",
    "a_scales",
    "gate",
    "gate_scales",
    "up",
    "up_scales",
    "alpha_gate",
    "alpha_up",
    "a_row_scale",
    "bias_gate",
    "bias_up",
)
_OF_ROWS = ("a", "a_scales", "a_row_scale")


def _interface_version() -> Optional[tuple[int, int]]:
    """The version of jaxlib's FFI, from its headers; None: it has no headers."""
    header = pathlib.Path(jax.ffi.include_dir()) / "xla/ffi/api/c_api.h"
    found = dict(re.findall(r"#define XLA_FFI_API_(MAJOR|MINOR) (\d+)", header.read_text())) if header.is_file() else {}
    return (int(found["MAJOR"]), int(found["MINOR"])) if len(found) == 2 else None


def _load() -> None:
    if not _PATH.exists():
        raise ImportError(
            f"dualgemm.jax: {_PATH} is missing; the package was built without jaxlib's headers: install jax and build it again"
        )
    handlers = ctypes.CDLL(str(_PATH))
    # A registration that XLA refuses would leave the process without any JAX.
    built_with = (handlers.dualgemm_jax_interface_major(), handlers.dualgemm_jax_interface_minor())
    if (offered := _interface_version()) is not None and (built_with[0] != offered[0] or built_with[1] > offered[1]):
        raise ImportError(
            f"dualgemm.jax: built for version {built_with} of XLA's foreign function interface, jaxlib offers "
            f"{offered}: install a newer jax, or build the package with this one"
        )
    for platform, symbol in (("cpu", handlers.dualgemm_jax_glu_cpu), ("CUDA", handlers.dualgemm_jax_glu_cuda)):
        capsule = jax.ffi.pycapsule(symbol)
        jax.ffi.register_ffi_target(_TARGET, capsule, platform=platform)
    globals()["_KEPT"] = handlers


_load()


class _Choice(NamedTuple):
    """What is not an array. Numbers as text: JAX compares attributes, and NaN, which means not given, equals nothing."""

    activation: int
    act_alpha: str
    act_beta: str
    act_limit: str
    batch_invariant: int
    strategy: int
    config: str
    out_dtype: str


def _rows(x: Array) -> int:
    rows = 1
    for size in x.shape[:-1]:
        rows *= size
    return rows


def _swizzled_span(rows: int, blocks: int) -> int:
    return -(-rows // 128) * 128 * -(-blocks // 4) * 4


def _unswizzle(scales: Array, rows: int, blocks: int) -> Array:
    """[..., span] to linear [..., rows, blocks]."""
    lead = scales.shape[:-1]
    tiles = scales.reshape(*lead, -(-rows // 128), -(-blocks // 4), 32, 4, 4)
    axes = len(lead)
    tiles = tiles.transpose(*range(axes), axes, axes + 3, axes + 2, axes + 1, axes + 4)
    return tiles.reshape(*lead, -(-rows // 128) * 128, -(-blocks // 4) * 4)[..., :rows, :blocks]


@functools.cache
def _product(choice: _Choice) -> Callable[..., Array]:
    """The product with fixed choices, as a function of the operands in _OPERANDS's order, None where not given."""

    @jax.custom_batching.custom_vmap
    def product(*operands: Optional[Array]) -> Array:
        given: dict[str, Any] = dict(zip(_OPERANDS, operands))
        shape = (*given["a"].shape[:-1], given["gate"].shape[-2])
        d = jax.ShapeDtypeStruct(shape, jnp.dtype(choice.out_dtype))
        # Not given: no elements.
        call = jax.ffi.ffi_call(_TARGET, d)
        return call(
            *(jnp.zeros((0,), jnp.float32) if operand is None else operand for operand in operands),
            activation=np.int32(choice.activation),
            act_alpha=choice.act_alpha,
            act_beta=choice.act_beta,
            act_limit=choice.act_limit,
            batch_invariant=np.int32(choice.batch_invariant),
            strategy=np.int32(choice.strategy),
            config=choice.config,
        )

    @product.def_vmap
    def batched(axis_size: int, in_batched: list[Any], *operands: Optional[Array]) -> tuple[Array, bool]:
        is_batched = dict(zip(_OPERANDS, in_batched))
        # Weights that all of the new dimension shares need not be copied: it becomes more rows.
        shares_weights = not any(is_batched[name] for name in _OPERANDS if name not in _OF_ROWS)
        given = {
            name: value
            if value is None or is_batched[name] or (shares_weights and name not in _OF_ROWS)
            else jnp.broadcast_to(value, (axis_size, *value.shape))
            for name, value in zip(_OPERANDS, operands)
        }
        return (_as_rows if shares_weights else _as_layers)(product, axis_size, given), True

    # Around the batching rule: vmap must find what is inside, and a derivative must not get there.
    differentiable = jax.custom_jvp(product)

    @differentiable.defjvp
    def refuse(primals: Any, tangents: Any) -> Any:
        raise Unsupported(
            "glu", "differentiated", "has no derivative; jax.lax.stop_gradient() on what goes in says that none is wanted"
        )

    return differentiable


def _linear_rows(given: dict[str, Any]) -> Any:
    """a_scales with a leading dimension of vmap, linear."""
    a, scales = given["a"], given["a_scales"]
    if scales is None or scales.ndim == a.ndim:
        return scales
    layers = a.shape[1:2] if scales.ndim == 3 else ()
    rows = _rows(a) // a.shape[0] // (layers[0] if layers else 1)
    return _unswizzle(scales, rows, a.shape[-1] // 8).reshape(*a.shape[:-1], a.shape[-1] // 8)


def _as_rows(product: Callable[..., Array], size: int, given: dict[str, Any]) -> Array:
    a, scales, row_scale = given["a"], _linear_rows(given), given["a_row_scale"]
    is_layered = given["gate"].ndim == 3
    if is_layered:  # [size, L, M, ...] to [L, size * M, ...]
        layers, rows = a.shape[1:3]
        a, scales = (None if x is None else jnp.moveaxis(x, 0, 1).reshape(layers, size * rows, -1) for x in (a, scales))
        row_scale = None if row_scale is None else jnp.moveaxis(row_scale.reshape(size, layers, rows), 0, 1)
    row_scale = None if row_scale is None else row_scale.reshape(-1)
    merged = given | {"a": a, "a_scales": scales, "a_row_scale": row_scale}
    d = product(*(merged[name] for name in _OPERANDS))
    return jnp.moveaxis(d.reshape(layers, size, rows, -1), 1, 0) if is_layered else d


def _as_layers(product: Callable[..., Array], size: int, given: dict[str, Any]) -> Array:
    a, gate = given["a"], given["gate"]
    layers = size if gate.ndim == 3 else size * gate.shape[1]
    merged: dict[str, Any] = {}
    for name, value in given.items():
        if value is None:
            merged[name] = None
        elif name in ("alpha_gate", "alpha_up", "a_row_scale"):
            merged[name] = value.reshape(-1)
        elif name == "a_scales":
            linear = _linear_rows(given)
            merged[name] = linear.reshape(layers, -1, linear.shape[-1])
        elif name in ("gate_scales", "up_scales", "bias_gate", "bias_up") and value.ndim < gate.ndim:  # swizzled; biases
            merged[name] = value.reshape(layers, -1)
        else:
            merged[name] = value.reshape(layers, -1, value.shape[-1])
    return product(*(merged[name] for name in _OPERANDS)).reshape(*a.shape[:-1], -1)


def _array(name: str, value: Any, dtypes: tuple[str, ...]) -> Array:
    dtype = getattr(value, "dtype", None)
    if dtype is None or not hasattr(value, "shape") or str(dtype) not in dtypes:
        raise InvalidArgument(
            name, type(value).__name__ if dtype is None else str(dtype), f"must be an array of {' or '.join(dtypes)}"
        )
    return jnp.asarray(value)


def _alpha(name: str, value: Any, layers: int) -> Optional[Array]:
    if value is None:
        return None
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        return jnp.full((layers,), value, jnp.float32)
    value = _array(name, value, ("float32",)).reshape(-1)
    if value.shape[0] not in (1, layers):
        raise InvalidArgument(name, f"{value.shape[0]} elements", f"must be 1 or {layers}")
    return jnp.broadcast_to(value, (layers,))


def _vector(name: str, value: Any, dtypes: tuple[str, ...], elements: int, shape: tuple[int, ...]) -> Optional[Array]:
    if value is None:
        return None
    value = _array(name, value, dtypes)
    if value.size != elements:
        raise InvalidArgument(name, f"shape {list(value.shape)}", f"must have {elements} elements")
    return value.reshape(shape)


def _scales(name: str, value: Any, codes: Array, is_layered: bool, scale_layout: str) -> Array:
    """Linear, of the dimensions of the codes; or swizzled, [span] or [L, span]."""
    value = _array(name, value, _SCALES)
    layers = codes.shape[0] if is_layered else 1
    rows, blocks = _rows(codes) // max(layers, 1), codes.shape[-1] // 8
    is_swizzled = (
        scale_layout == "swizzled_128x4"
        or value.ndim == 6
        or (scale_layout == "auto" and value.ndim == (2 if is_layered else 1))
    )
    if not is_swizzled:
        if tuple(value.shape) != (*codes.shape[:-1], blocks):
            raise InvalidArgument(
                name,
                f"shape {list(value.shape)}",
                f"linear scales must be {[*codes.shape[:-1], blocks]}; say "
                'scale_layout="swizzled_128x4" or flatten if they are swizzled',
            )
        return value
    if value.ndim == 6 and scale_layout != "linear":  # [32, 4, row tiles, 4, block tiles, L], as bytes lie
        value = value.transpose(5, 2, 4, 0, 1, 3)
    span = _swizzled_span(rows, blocks)
    if value.size != layers * span:
        raise InvalidArgument(name, f"shape {list(value.shape)}", f"swizzled_128x4 must have {layers * span} scales here")
    return value.reshape((layers, span) if is_layered else (span,))


def _activation(kind: str, alpha: Any, beta: Any, limit: Any) -> tuple[int, str, str, str]:
    """As _Choice has them: texts, empty where not given."""
    for name, value in (("act_alpha", alpha), ("act_beta", beta), ("act_limit", limit)):
        if value is not None and (isinstance(value, bool) or not isinstance(value, (int, float))):
            raise InvalidArgument(name, type(value).__name__, "must be a number, known when it is traced")
    number, values = activation_numbers(kind, alpha, beta, limit)
    texts = ["" if math.isnan(value) else repr(value) for value in values]
    return number, texts[0], texts[1], texts[2]


def _validate(given: dict[str, Any], choice: _Choice) -> None:
    """The library's own rules, for what shapes and choices decide: before anything runs."""
    types = {"uint8": 0} | {
        name: library.parse("data_type", short)
        for name, short in (("float16", "f16"), ("bfloat16", "bf16"), ("float32", "f32"))
    }
    a, gate = given["a"], given["gate"]
    problem = library.new(Problem, "problem")
    problem.l = gate.shape[0] if gate.ndim == 3 else 1
    problem.m, problem.n, problem.k = _rows(a) // problem.l, gate.shape[-2], gate.shape[-1] * 2
    problem.a.type, problem.d.type = types[str(a.dtype)], types[choice.out_dtype]
    problem.act.kind = choice.activation
    for name in ("alpha", "beta", "limit"):
        text = getattr(choice, f"act_{name}")
        setattr(problem.act, name, float(text) if text else float("nan"))
    problem.batch_invariant = choice.batch_invariant
    library.check(library.c.dualgemm_validate(ctypes.byref(problem), None))


def glu(
    a: Array,
    gate: Array,
    up: Array,
    *,
    gate_scales: Array,
    up_scales: Array,
    a_scales: Optional[Array] = None,
    alpha_gate: Any = None,
    alpha_up: Any = None,
    a_row_scale: Optional[Array] = None,
    bias_gate: Optional[Array] = None,
    bias_up: Optional[Array] = None,
    activation: Activation = "silu",
    act_alpha: Optional[float] = None,
    act_beta: Optional[float] = None,
    act_limit: Optional[float] = None,
    out_dtype: Any = None,
    scale_layout: ScaleLayout = "auto",
    batch_invariant: bool = False,
    strategy: Strategy = "auto",
    config: str = "",
) -> Array:
    """D [..., M, N] = act(alpha_gate * a @ gate.T + bias_gate) * (alpha_up * a @ up.T + bias_up).

    a: NVFP4 codes, uint8 [..., M, K/2], with a_scales; or float16, bfloat16 or float32 [..., M, K] without. gate, up: codes,
    uint8 [N, K/2], and then all leading dimensions of ``a`` are rows; or [L, N, K/2] with a [L, M, ...]. Scales: uint8 or
    float8_e4m3fn, linear or swizzled (see the package's docstring). alphas: numbers, or float32 of 1 or L elements, which may
    be traced. a_row_scale: float32, one a row. biases: both float32 or both bfloat16, [N] or [L, N]. out_dtype: float16,
    bfloat16 or float32; default: that of a wide a, float16 for NVFP4. Everything else as dualgemm.glu().

    Under jit everything by name that is no array is static. vmap over rows alone makes them more rows of one product; over
    weights, alphas or biases it makes layers. Not differentiable: Unsupported. Broken rules of shapes, dtypes and names:
    InvalidArgument, when traced; what only the run finds out: XLA's error with the library's text.
    """
    a = _array("a", a, ("uint8", *_WIDE))
    gate, up = _array("gate", gate, ("uint8",)), _array("up", up, ("uint8",))
    is_nvfp4 = str(a.dtype) == "uint8"
    is_layered = gate.ndim == 3
    if scale_layout not in ("auto", "linear", "swizzled_128x4"):
        raise InvalidArgument("scale_layout", repr(scale_layout), "must be auto, linear or swizzled_128x4")
    if gate.ndim not in (2, 3):
        raise InvalidArgument("gate", f"shape {list(gate.shape)}", "must be [N, K/2] or [L, N, K/2]")
    if up.shape != gate.shape:
        raise InvalidArgument("up", f"shape {list(up.shape)}", f"must be that of gate: {list(gate.shape)}")
    if (a.ndim != 3 or a.shape[0] != gate.shape[0]) if is_layered else a.ndim < 2:
        raise InvalidArgument(
            "a", f"shape {list(a.shape)}", f"must be [{gate.shape[0]}, M, K]" if is_layered else "must have rows"
        )
    k = gate.shape[-1] * 2
    if a.shape[-1] * (2 if is_nvfp4 else 1) != k:
        raise InvalidArgument("a", f"{a.shape[-1] * (2 if is_nvfp4 else 1)} columns", f"must be the {k} of gate")
    if (a_scales is not None) != is_nvfp4:
        raise InvalidArgument(
            "a_scales",
            "None" if a_scales is None else "given",
            "must be given for a in NVFP4" if is_nvfp4 else "must be None for a of 16 or 32 bits",
        )
    if out_dtype is None:
        out_dtype = "float16" if is_nvfp4 else a.dtype
    if str(jnp.dtype(out_dtype)) not in _WIDE:
        raise InvalidArgument("out_dtype", str(jnp.dtype(out_dtype)), f"must be {', '.join(_WIDE)}")
    if (bias_gate is None) != (bias_up is None):
        raise InvalidArgument("bias_gate" if bias_gate is None else "bias_up", "None", "must be given where the other bias is")
    if bias_gate is not None and getattr(bias_gate, "dtype", 0) != getattr(bias_up, "dtype", 0):
        raise InvalidArgument("bias_up", "another dtype than the other bias", "must be the same")

    layers, columns = (gate.shape[0] if is_layered else 1), gate.shape[-2]
    bias_shape = (layers, columns) if is_layered else (columns,)
    given = {
        "a": a,
        "a_scales": None if a_scales is None else _scales("a_scales", a_scales, a, is_layered, scale_layout),
        "gate": gate,
        "gate_scales": _scales("gate_scales", gate_scales, gate, is_layered, scale_layout),
        "up": up,
        "up_scales": _scales("up_scales", up_scales, up, is_layered, scale_layout),
        "alpha_gate": _alpha("alpha_gate", alpha_gate, layers),
        "alpha_up": _alpha("alpha_up", alpha_up, layers),
        "a_row_scale": _vector("a_row_scale", a_row_scale, ("float32",), _rows(a), (_rows(a),)),
        "bias_gate": _vector("bias_gate", bias_gate, ("float32", "bfloat16"), layers * columns, bias_shape),
        "bias_up": _vector("bias_up", bias_up, ("float32", "bfloat16"), layers * columns, bias_shape),
    }
    choice = _Choice(
        *_activation(activation, act_alpha, act_beta, act_limit),
        int(bool(batch_invariant)),
        library.parse("strategy", strategy),
        config,
        str(jnp.dtype(out_dtype)),
    )
    if a.size == 0:
        return jnp.zeros((*a.shape[:-1], columns), choice.out_dtype)
    _validate(given, choice)
    return _product(choice)(*(given[name] for name in _OPERANDS))
