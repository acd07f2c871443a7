"""The products of torch tensors: glu(), linear() and their forms that write NVFP4."""

from __future__ import annotations

from typing import Any, Optional, Union

import torch
from torch import Tensor

from ._errors import InvalidArgument
from ._names import Activation, OwnLayout, ScaleLayout, Strategy
from ._operators import check_no_grad, check_storage, refuse_grad, tensor, wants_derivative
from ._quantized import QuantizedTensor, Scalar, call, check_quantized_out, number, scalar_tensor

__all__ = ["glu", "glu_nvfp4", "linear", "linear_nvfp4"]

_ops = torch.ops.dualgemm
# The overloads themselves: torch.ops.dualgemm.glu would look for one on every call, 1 us.
_glu, _glu_out = _ops.glu.default, _ops.glu.out
_linear, _linear_out = _ops.linear.default, _ops.linear.out
_linear_nvfp4, _linear_nvfp4_out = _ops.linear_nvfp4.default, _ops.linear_nvfp4.out
_glu_nvfp4, _glu_nvfp4_out = _ops.glu_nvfp4.default, _ops.glu_nvfp4.out
_FACTOR_NAMES = ("alpha_gate", "alpha_up", "a_row_scale", "bias_gate", "bias_up")


def layers_of(weights: Tensor) -> int:
    """How many layers gate or w has."""
    return weights.shape[0] if isinstance(weights, Tensor) and weights.dim() == 3 else 1


def _factors(
    a: Tensor,
    weights: Tensor,
    alpha_gate: Scalar,
    alpha_up: Scalar,
    a_row_scale: Optional[Tensor],
    bias_gate: Optional[Tensor],
    bias_up: Optional[Tensor],
) -> tuple[Any, ...]:
    alphas: tuple[Any, ...] = alpha_gate, alpha_up
    if not (
        isinstance(alpha_gate, Tensor) and isinstance(alpha_up, Tensor) and isinstance(weights, Tensor) and weights.dim() == 2
    ):
        layers = layers_of(weights)
        alphas = scalar_tensor("alpha_gate", alpha_gate, a, layers), scalar_tensor("alpha_up", alpha_up, a, layers)
    if a_row_scale is None and bias_gate is None and bias_up is None:
        return alphas
    return (*alphas, a_row_scale, bias_gate, bias_up)


def glu(
    a: Tensor,
    gate: Tensor,
    up: Tensor,
    *,
    gate_scales: Tensor,
    up_scales: Tensor,
    a_scales: Optional[Tensor] = None,
    alpha_gate: Scalar = None,
    alpha_up: Scalar = None,
    a_row_scale: Optional[Tensor] = None,
    bias_gate: Optional[Tensor] = None,
    bias_up: Optional[Tensor] = None,
    activation: Activation = "silu",
    act_alpha: Optional[float] = None,
    act_beta: Optional[float] = None,
    act_limit: Optional[float] = None,
    out_dtype: Optional[torch.dtype] = None,
    scale_layout: ScaleLayout = "auto",
    batch_invariant: bool = False,
    strategy: Strategy = "auto",
    config: str = "",
    out: Optional[Tensor] = None,
) -> Tensor:
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
    gives_activation = not isinstance(activation, str) or activation != "silu"
    if gives_activation or act_alpha is not None or act_beta is not None or act_limit is not None:
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


def glu_nvfp4(
    a: Tensor,
    gate: Tensor,
    up: Tensor,
    *,
    d_global_scale: Union[Tensor, float],
    gate_scales: Tensor,
    up_scales: Tensor,
    a_scales: Optional[Tensor] = None,
    alpha_gate: Scalar = None,
    alpha_up: Scalar = None,
    a_row_scale: Optional[Tensor] = None,
    bias_gate: Optional[Tensor] = None,
    bias_up: Optional[Tensor] = None,
    d_scale_layout: OwnLayout = "linear",
    out: Optional[QuantizedTensor] = None,
    **like_glu: Any,
) -> QuantizedTensor:
    """glu() with D quantised on the way out, as the down projection wants it; N % 16 == 0.

    d_global_scale: dequantising multiplier of D, finite and > 0. A tensor on a GPU is read by the host: pass a number where
    that must not happen (CUDA graphs). d_scale_layout: "linear" [..., M, N/16], or "swizzled_128x4", flat.
    """
    scale = number("d_global_scale", d_global_scale)
    factors = _factors(a, gate, alpha_gate, alpha_up, a_row_scale, bias_gate, bias_up)
    refuse_grad(a=a, d_global_scale=d_global_scale, **dict(zip(_FACTOR_NAMES, factors)))
    arguments = (a, a_scales, gate, gate_scales, up, up_scales, None, 0, 0, scale, *factors)
    check_quantized_out(out)
    if out is not None:
        call(_glu_nvfp4_out, *arguments, d_scale_layout=d_scale_layout, **like_glu, out_codes=out.codes, out_scales=out.scales)
        return out
    codes, scales = call(_glu_nvfp4, *arguments, d_scale_layout=d_scale_layout, **like_glu)
    return QuantizedTensor(codes, scales, torch.full((1,), scale, dtype=torch.float32, device=a.device))


def linear(
    a: Tensor,
    w: Tensor,
    *,
    w_scales: Tensor,
    a_scales: Optional[Tensor] = None,
    alpha: Scalar = None,
    bias: Optional[Tensor] = None,
    residual: Optional[Tensor] = None,
    a_row_scale: Optional[Tensor] = None,
    activation: Activation = "identity",
    out_dtype: Optional[torch.dtype] = None,
    scale_layout: ScaleLayout = "auto",
    batch_invariant: bool = False,
    strategy: Strategy = "auto",
    config: str = "",
    out: Optional[Tensor] = None,
) -> Tensor:
    """One product, D [..., M, N] = act(alpha * a @ w.T + bias) + residual; what is not said here as in glu().

    residual: of D's shape, dtype and strides, added in float32 and last; may be ``out`` itself. activation: one that has no
    numbers; the two SwiGLUs are of two products.
    """
    refuse_grad(a=a, alpha=alpha, bias=bias, residual=residual, a_row_scale=a_row_scale, out=out)
    arguments = (
        a,
        a_scales,
        w,
        w_scales,
        None,
        0,
        0,
        None,
        None,
        None,
        scalar_tensor("alpha", alpha, a, layers_of(w)),
        bias,
        residual,
        a_row_scale,
    )
    named = _choice(scale_layout, batch_invariant, strategy, config)
    if not isinstance(activation, str) or activation != "identity":
        named["activation"] = activation
    if out_dtype is not None and out is None:
        named["out_dtype"] = out_dtype
    if out is None:
        return call(_linear, *arguments, **named)
    check_out_dtype(out, out_dtype)
    call(_linear_out, *arguments, **named, out=out)
    return out


def linear_nvfp4(
    a: Tensor,
    w: Tensor,
    *,
    d_global_scale: Union[Tensor, float],
    w_scales: Tensor,
    a_scales: Optional[Tensor] = None,
    alpha: Scalar = None,
    bias: Optional[Tensor] = None,
    a_row_scale: Optional[Tensor] = None,
    activation: Activation = "identity",
    d_scale_layout: OwnLayout = "linear",
    scale_layout: ScaleLayout = "auto",
    batch_invariant: bool = False,
    strategy: Strategy = "auto",
    config: str = "",
    out: Optional[QuantizedTensor] = None,
) -> QuantizedTensor:
    """linear() with D quantised on the way out, as glu_nvfp4() does it; N % 16 == 0, no residual."""
    scale = number("d_global_scale", d_global_scale)
    refuse_grad(a=a, alpha=alpha, bias=bias, a_row_scale=a_row_scale, d_global_scale=d_global_scale)
    alpha = scalar_tensor("alpha", alpha, a, layers_of(w))
    arguments = (a, a_scales, w, w_scales, None, 0, 0, scale, None, None, None, alpha, bias, a_row_scale)
    named = _choice(scale_layout, batch_invariant, strategy, config) | {
        "activation": activation,
        "d_scale_layout": d_scale_layout,
    }
    check_quantized_out(out)
    if out is not None:
        call(_linear_nvfp4_out, *arguments, **named, out_codes=out.codes, out_scales=out.scales)
        return out
    codes, scales = call(_linear_nvfp4, *arguments, **named)
    return QuantizedTensor(codes, scales, torch.full((1,), scale, dtype=torch.float32, device=a.device))


def offsets_of(offsets: Tensor, layers: int) -> Tensor:
    """int32 [E+1] from [E+1], or from torch's ``offs`` [E] of ends."""
    if tensor("offsets", offsets).dtype != torch.int32 or offsets.dim() != 1:
        raise InvalidArgument("offsets", f"{offsets.dtype} {list(offsets.shape)}", "must be int32 [E+1], or [E] of ends")
    check_storage("offsets", offsets)
    return torch.nn.functional.pad(offsets, (1, 0)) if offsets.shape[0] == layers else offsets
