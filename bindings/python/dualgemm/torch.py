"""The functions on torch tensors. Importing this registers torch.ops.dualgemm.* (torch >= 2.10).

Every function is forward only, works on the CPU and on CUDA (the current stream, any device index), under
torch.compile(fullgraph=True, dynamic=True), export and CUDA graphs, and raises DualGemmError with argument, observation and
rule, with nothing written. A direct call of torch.ops.dualgemm.* raises RuntimeError with the same text.
"""
from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, NamedTuple, Optional, Union

import torch
from torch import Tensor

from ._arguments import checked
from ._errors import InvalidArgument, translate
from ._names import Activation, OwnLayout, ScaleLayout, Strategy
from ._operators import check_no_grad, check_storage, refuse_grad, tensor, wants_derivative

if TYPE_CHECKING:
    from .weights import Weights

_ops = torch.ops.dualgemm
# The overloads themselves: torch.ops.dualgemm.glu would look for one on every call, 1 us.
_glu, _glu_out = _ops.glu.default, _ops.glu.out
_linear, _linear_out = _ops.linear.default, _ops.linear.out
_glu_nvfp4, _glu_nvfp4_out = _ops.glu_nvfp4.default, _ops.glu_nvfp4.out
_quantize, _quantize_out = _ops.quantize_nvfp4.default, _ops.quantize_nvfp4.out
_dequantize = _ops.dequantize_nvfp4.default
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


def _layers(weights: Tensor) -> int:
    """How many layers gate or w has."""
    return weights.shape[0] if isinstance(weights, Tensor) and weights.dim() == 3 else 1


def quantize(x: Tensor, *, global_scale: Scalar = None, scale_layout: OwnLayout = "linear", four_over_six: bool = False,
             per_row: bool = False, out: Optional[QuantizedTensor] = None) -> QuantizedTensor:
    """float16, bfloat16 or float32 [..., rows, K] to NVFP4; K % 16 == 0. The bits are those of `dualgemm quantize`.

    global_scale: dequantising multiplier, float32 [1] or a number > 0; None: amax / 2688, found on the device, of x or,
    per_row, of each row. A tensor on a GPU is not looked at. four_over_six: per block also try amax/4, keep the lower error.
    out: written in place. NaN or infinity in x: InvalidArgument on the CPU, NaN scales on CUDA (an error would have to
    synchronise).
    """
    refuse_grad(x=tensor("x", x), global_scale=global_scale)
    if global_scale is not None and not isinstance(global_scale, Tensor):
        # A number is checked here, on every device: once it is a tensor on a GPU its value is not read.
        if not 0 < (value := number("global_scale", global_scale)) < math.inf:
            raise InvalidArgument("global_scale", str(value), "must be finite and > 0")
    scale = scalar_tensor("global_scale", global_scale, x)
    _check_quantized_out(out)
    if out is not None:
        call(_quantize_out, x, scale, scale_layout=scale_layout, four_over_six=four_over_six, per_row=per_row,
             out_codes=out.codes, out_scales=out.scales, out_global_scale=out.global_scale)
        return out
    return QuantizedTensor(*call(_quantize, x, scale, scale_layout=scale_layout, four_over_six=four_over_six,
                                 per_row=per_row))


def _check_quantized_out(out: Any) -> None:
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


_FACTOR_NAMES = ("alpha_gate", "alpha_up", "a_row_scale", "bias_gate", "bias_up")


def _factors(a: Tensor, weights: Tensor, alpha_gate: Scalar, alpha_up: Scalar, a_row_scale: Optional[Tensor],
             bias_gate: Optional[Tensor], bias_up: Optional[Tensor]) -> tuple[Any, ...]:
    alphas: tuple[Any, ...] = alpha_gate, alpha_up
    if not (isinstance(alpha_gate, Tensor) and isinstance(alpha_up, Tensor) and isinstance(weights, Tensor) and
            weights.dim() == 2):
        layers = _layers(weights)
        alphas = scalar_tensor("alpha_gate", alpha_gate, a, layers), scalar_tensor("alpha_up", alpha_up, a, layers)
    if a_row_scale is None and bias_gate is None and bias_up is None:
        return alphas
    return (*alphas, a_row_scale, bias_gate, bias_up)


def glu(a: Tensor, gate: Tensor, up: Tensor, *, gate_scales: Tensor, up_scales: Tensor, a_scales: Optional[Tensor] = None,
        alpha_gate: Scalar = None, alpha_up: Scalar = None, a_row_scale: Optional[Tensor] = None,
        bias_gate: Optional[Tensor] = None, bias_up: Optional[Tensor] = None, activation: Activation = "silu",
        act_alpha: Optional[float] = None, act_beta: Optional[float] = None, act_limit: Optional[float] = None,
        out_dtype: Optional[torch.dtype] = None, scale_layout: ScaleLayout = "auto", batch_invariant: bool = False,
        strategy: Strategy = "auto", config: str = "", out: Optional[Tensor] = None) -> Tensor:
    """D [..., M, N] = act(alpha_gate * a @ gate.T + bias_gate) * (alpha_up * a @ up.T + bias_up).

    a: NVFP4 codes [..., M, K/2] with a_scales, or float16/bfloat16/float32 [..., M, K] without. gate, up: codes [N, K/2], and
    then all leading dimensions of ``a`` are rows; or [L, N, K/2] with a [L, M, ...]. alphas: numbers or float32 [1] or [L].
    a_row_scale: float32, one factor for each row. biases: float32 or bfloat16 [N] or [L, N]. out_dtype: that of a 16- or
    32-bit a; float16 for NVFP4. out: written in place. batch_invariant: bits of a row depend on neither M nor other rows.
    Forward only: requires_grad raises InvalidArgument.
    """
    factors = _factors(a, gate, alpha_gate, alpha_up, a_row_scale, bias_gate, bias_up)
    if wants_derivative():
        check_no_grad(a=a, out=out, **dict(zip(_FACTOR_NAMES, factors)))
    # Arguments that have their default are not passed: torch takes half a microsecond to unpack each that is.
    named = _choice(scale_layout, batch_invariant, strategy, config)
    if not isinstance(activation, str) or activation != "silu" or act_alpha is not None or act_beta is not None or act_limit is not None:
        named.update(activation=activation, act_alpha=act_alpha, act_beta=act_beta, act_limit=act_limit)
    if out_dtype is not None and out is None:
        named["out_dtype"] = out_dtype
    if out is None:
        return call(_glu, a, a_scales, gate, gate_scales, up, up_scales, *factors, **named)
    check_out_dtype(out, out_dtype)
    call(_glu_out, a, a_scales, gate, gate_scales, up, up_scales, *factors, **named, out=out)
    return out


def _choice(scale_layout: str, batch_invariant: bool, strategy: str, config: str) -> dict[str, Any]:
    named: dict[str, Any] = {}
    # What is no text and no flag is passed, too: the operator refuses it. Arrays are not to be compared.
    if not isinstance(scale_layout, str) or scale_layout != "auto":
        named["scale_layout"] = scale_layout
    if batch_invariant is not False:
        named["batch_invariant"] = batch_invariant
    if not isinstance(strategy, str) or strategy != "auto":
        named["strategy"] = strategy
    if not isinstance(config, str) or config:
        named["config"] = config
    return named


def check_out_dtype(out: Tensor, out_dtype: Optional[torch.dtype]) -> None:
    if out_dtype is not None and tensor("out", out).dtype != out_dtype:
        raise InvalidArgument("out", str(out.dtype), f"must be of out_dtype, {out_dtype}")


def glu_nvfp4(a: Tensor, gate: Tensor, up: Tensor, *, d_global_scale: Union[Tensor, float], gate_scales: Tensor,
              up_scales: Tensor, a_scales: Optional[Tensor] = None, alpha_gate: Scalar = None, alpha_up: Scalar = None,
              a_row_scale: Optional[Tensor] = None, bias_gate: Optional[Tensor] = None, bias_up: Optional[Tensor] = None,
              d_scale_layout: OwnLayout = "linear", out: Optional[QuantizedTensor] = None, **like_glu: Any) -> QuantizedTensor:
    """glu() with D quantised on the way out, as the down projection wants it; N % 16 == 0.

    d_global_scale: dequantising multiplier of D, finite and > 0. A tensor on a GPU is read by the host: pass a number where
    that must not happen (CUDA graphs). d_scale_layout: "linear" [..., M, N/16], or "swizzled_128x4", flat.
    """
    scale = number("d_global_scale", d_global_scale)
    factors = _factors(a, gate, alpha_gate, alpha_up, a_row_scale, bias_gate, bias_up)
    refuse_grad(a=a, d_global_scale=d_global_scale, **dict(zip(_FACTOR_NAMES, factors)))
    arguments = (a, a_scales, gate, gate_scales, up, up_scales, None, 0, 0, scale, *factors)
    _check_quantized_out(out)
    if out is not None:
        call(_glu_nvfp4_out, *arguments, d_scale_layout=d_scale_layout, **like_glu, out_codes=out.codes, out_scales=out.scales)
        return out
    codes, scales = call(_glu_nvfp4, *arguments, d_scale_layout=d_scale_layout, **like_glu)
    return QuantizedTensor(codes, scales, torch.full((1,), scale, dtype=torch.float32, device=a.device))


def linear(a: Tensor, w: Tensor, *, w_scales: Tensor, a_scales: Optional[Tensor] = None, alpha: Scalar = None,
           bias: Optional[Tensor] = None, residual: Optional[Tensor] = None, a_row_scale: Optional[Tensor] = None,
           out_dtype: Optional[torch.dtype] = None, scale_layout: ScaleLayout = "auto", batch_invariant: bool = False,
           strategy: Strategy = "auto", config: str = "", out: Optional[Tensor] = None) -> Tensor:
    """One product, D [..., M, N] = alpha * a @ w.T + bias + residual; what is not said here as in glu().

    residual: of D's shape, dtype and strides, added in float32 and last; may be ``out`` itself.
    """
    refuse_grad(a=a, alpha=alpha, bias=bias, residual=residual, a_row_scale=a_row_scale, out=out)
    arguments = (a, a_scales, w, w_scales, None, 0, 0, None, None, None, scalar_tensor("alpha", alpha, a, _layers(w)), bias,
                 residual, a_row_scale)
    named = _choice(scale_layout, batch_invariant, strategy, config)
    if out_dtype is not None and out is None:
        named["out_dtype"] = out_dtype
    if out is None:
        return call(_linear, *arguments, **named)
    check_out_dtype(out, out_dtype)
    call(_linear_out, *arguments, **named, out=out)
    return out


def offsets_of(offsets: Tensor, layers: int) -> Tensor:
    """int32 [E+1] from [E+1], or from torch's ``offs`` [E] of ends."""
    if tensor("offsets", offsets).dtype != torch.int32 or offsets.dim() != 1:
        raise InvalidArgument("offsets", f"{offsets.dtype} {list(offsets.shape)}", "must be int32 [E+1], or [E] of ends")
    check_storage("offsets", offsets)
    return torch.nn.functional.pad(offsets, (1, 0)) if offsets.shape[0] == layers else offsets


_PLAN_TYPES = {torch.uint8: "e2m1", torch.float4_e2m1fn_x2: "e2m1", torch.float16: "f16", torch.bfloat16: "bf16",
               torch.float32: "f32"}


@checked
def explain(a: Tensor, gate: Union[Tensor, Weights], up: Optional[Tensor] = None, *, scale_layout: ScaleLayout = "auto",
            strategy: Strategy = "auto", activation: Activation = "silu", act_alpha: Optional[float] = None,
            act_beta: Optional[float] = None, act_limit: Optional[float] = None, bias_gate: Optional[Tensor] = None,
            bias_up: Optional[Tensor] = None, batch_invariant: bool = False, out_dtype: Optional[torch.dtype] = None,
            out: Optional[Tensor] = None, config: str = "", gate_scales: Optional[Tensor] = None,
            up_scales: Optional[Tensor] = None, a_scales: Optional[Tensor] = None, alpha_gate: Scalar = None,
            alpha_up: Scalar = None, a_row_scale: Optional[Tensor] = None) -> str:
    """What glu() with these arguments will run here and why, and what was rejected and why. ``gate`` may be Weights.

    Only the shapes, dtypes and device of tensors count. Raises what glu() would raise for those.
    """
    from ._plan import BIAS_TYPES, make_plan

    if scale_layout not in ("auto", "linear", "swizzled_128x4"):
        raise InvalidArgument("scale_layout", repr(scale_layout), "must be auto, linear or swizzled_128x4")
    for name, given in (("gate_scales", gate_scales), ("up_scales", up_scales), ("a_scales", a_scales),
                        ("a_row_scale", a_row_scale)):
        if given is not None:
            tensor(name, given)
    for name, factor in (("alpha_gate", alpha_gate), ("alpha_up", alpha_up)):
        if factor is not None and not isinstance(factor, Tensor):
            number(name, factor)
    if tensor("a", a).dtype not in _PLAN_TYPES or a.dim() < 2 or a.shape[-1] == 0:
        raise InvalidArgument("a", f"{a.dtype} {list(a.shape)}",
                              "must be [..., M, K] of uint8, float4_e2m1fn_x2, float16, bfloat16 or float32")
    a_type = _PLAN_TYPES[a.dtype]
    wide = tensor("out", out).dtype if out is not None else out_dtype
    if wide is not None and _PLAN_TYPES.get(wide, "e2m1") == "e2m1":
        raise InvalidArgument("out_dtype", str(wide), "must be float16, bfloat16 or float32")
    biases = {name: bias for name, bias in (("bias_gate", bias_gate), ("bias_up", bias_up)) if bias is not None}
    n, k, layers, prepared = _extents_of(a, gate, up, strategy, biases)
    for name, bias in biases.items():
        if str(tensor(name, bias).dtype) not in BIAS_TYPES:
            raise InvalidArgument(name, str(bias.dtype), "must be float32 or bfloat16")
    columns = a.shape[-1] * (2 if a_type == "e2m1" else 1)
    if columns != k:
        raise InvalidArgument("a", f"{columns} columns", f"must be the {k} of the weights")
    d_type = _PLAN_TYPES[wide or (torch.float16 if a_type == "e2m1" else a.dtype)]
    rows = a.numel() // a.shape[-1] // (layers if layers > 1 and a.dim() == 3 else 1)
    with torch.cuda.device(a.device) if a.is_cuda else torch.no_grad():
        return make_plan(rows, n, k, l=layers, a_type=a_type, d_type=d_type,
                         device="cuda" if a.is_cuda else "cpu", strategy=strategy, activation=activation, act_alpha=act_alpha,
                         act_beta=act_beta, act_limit=act_limit, batch_invariant=batch_invariant, prepared=prepared,
                         config=config, bias=BIAS_TYPES[str(next(iter(biases.values())).dtype)] if biases else 0,
                         scale_layout="swizzled_128x4" if scale_layout == "swizzled_128x4" else "linear").explain()


def _extents_of(a: Tensor, gate: Any, up: Any, strategy: str, biases: dict[str, Tensor]) -> tuple[int, int, int, bool]:
    """n, k, layers, and whether packed bytes are used; the biases of Weights are added."""
    if isinstance(gate, Tensor):
        if gate.dtype not in (torch.uint8, torch.float4_e2m1fn_x2) or gate.dim() not in (2, 3) or gate.numel() == 0:
            raise InvalidArgument("gate", f"{gate.dtype} {list(gate.shape)}",
                                  "must be uint8 or float4_e2m1fn_x2 [N, K/2] or [L, N, K/2], or Weights")
        if up is not None and tensor("up", up).shape != gate.shape:
            raise InvalidArgument("up", f"shape {list(up.shape)}", f"must be that of gate: {list(gate.shape)}")
        return gate.shape[-2], gate.shape[-1] * 2, _layers(gate), False
    from .weights import Weights

    if not isinstance(gate, Weights):
        raise InvalidArgument("gate", type(gate).__name__, "must be a tensor of codes, or Weights")
    own = {"bias_gate": gate.bias_gate, "bias_up": gate.bias_up}
    biases.update({name: bias for name, bias in own.items() if bias is not None})
    return gate.n, gate.k, gate.num_experts, gate._operands_for(a, strategy)[1] is not None


def plans_kept() -> int:
    """How many plans the operators hold; at most 512."""
    import ctypes

    from ._operators import PATH

    counter = ctypes.CDLL(str(PATH)).dualgemm_python_plans_kept
    counter.restype = ctypes.c_longlong
    return int(counter())


def __getattr__(name: str) -> Any:
    if name in ("Weights", "LinearWeights", "m_grouped_glu_contiguous", "m_grouped_glu_masked"):
        from . import weights

        return getattr(weights, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
