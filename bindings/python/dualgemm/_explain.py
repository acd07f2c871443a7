"""What glu() with its arguments will run, and why; how many plans the operators hold."""

from __future__ import annotations

import ctypes
from typing import Any, Optional, Union

import torch
from torch import Tensor

from ._arguments import checked
from ._errors import InvalidArgument
from ._names import Activation, ScaleLayout, Strategy
from ._operators import PATH, tensor
from ._plan import BIAS_TYPES, make_plan
from ._products import layers_of
from ._quantized import Scalar, number
from .weights import Weights

__all__ = ["explain", "plans_kept"]

_PLAN_TYPES = {
    torch.uint8: "e2m1",
    torch.float4_e2m1fn_x2: "e2m1",
    torch.float16: "f16",
    torch.bfloat16: "bf16",
    torch.float32: "f32",
}


@checked
def explain(
    a: Tensor,
    gate: Union[Tensor, Weights],
    up: Optional[Tensor] = None,
    *,
    scale_layout: ScaleLayout = "auto",
    strategy: Strategy = "auto",
    activation: Activation = "silu",
    act_alpha: Optional[float] = None,
    act_beta: Optional[float] = None,
    act_limit: Optional[float] = None,
    bias_gate: Optional[Tensor] = None,
    bias_up: Optional[Tensor] = None,
    batch_invariant: bool = False,
    out_dtype: Optional[torch.dtype] = None,
    out: Optional[Tensor] = None,
    config: str = "",
    gate_scales: Optional[Tensor] = None,
    up_scales: Optional[Tensor] = None,
    a_scales: Optional[Tensor] = None,
    alpha_gate: Scalar = None,
    alpha_up: Scalar = None,
    a_row_scale: Optional[Tensor] = None,
) -> str:
    """What glu() with these arguments will run here and why, and what was rejected and why. ``gate`` may be Weights.

    Only the shapes, dtypes and device of tensors count. Raises what glu() would raise for those.
    """
    if scale_layout not in ("auto", "linear", "swizzled_128x4"):
        raise InvalidArgument("scale_layout", repr(scale_layout), "must be auto, linear or swizzled_128x4")
    for name, given in (
        ("gate_scales", gate_scales),
        ("up_scales", up_scales),
        ("a_scales", a_scales),
        ("a_row_scale", a_row_scale),
    ):
        if given is not None:
            tensor(name, given)
    for name, factor in (("alpha_gate", alpha_gate), ("alpha_up", alpha_up)):
        if factor is not None and not isinstance(factor, Tensor):
            number(name, factor)
    if tensor("a", a).dtype not in _PLAN_TYPES or a.dim() < 2 or a.shape[-1] == 0:
        raise InvalidArgument(
            "a", f"{a.dtype} {list(a.shape)}", "must be [..., M, K] of uint8, float4_e2m1fn_x2, float16, bfloat16 or float32"
        )
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
        return make_plan(
            rows,
            n,
            k,
            l=layers,
            a_type=a_type,
            d_type=d_type,
            device="cuda" if a.is_cuda else "cpu",
            strategy=strategy,
            activation=activation,
            act_alpha=act_alpha,
            act_beta=act_beta,
            act_limit=act_limit,
            batch_invariant=batch_invariant,
            prepared=prepared,
            config=config,
            bias=BIAS_TYPES[str(next(iter(biases.values())).dtype)] if biases else 0,
            scale_layout="swizzled_128x4" if scale_layout == "swizzled_128x4" else "linear",
        ).explain()


def _extents_of(a: Tensor, gate: Any, up: Any, strategy: str, biases: dict[str, Tensor]) -> tuple[int, int, int, bool]:
    """n, k, layers, and whether packed bytes are used; the biases of Weights are added."""
    if isinstance(gate, Tensor):
        if gate.dtype not in (torch.uint8, torch.float4_e2m1fn_x2) or gate.dim() not in (2, 3) or gate.numel() == 0:
            raise InvalidArgument(
                "gate",
                f"{gate.dtype} {list(gate.shape)}",
                "must be uint8 or float4_e2m1fn_x2 [N, K/2] or [L, N, K/2], or Weights",
            )
        if up is not None and tensor("up", up).shape != gate.shape:
            raise InvalidArgument("up", f"shape {list(up.shape)}", f"must be that of gate: {list(gate.shape)}")
        return gate.shape[-2], gate.shape[-1] * 2, layers_of(gate), False
    if not isinstance(gate, Weights):
        raise InvalidArgument("gate", type(gate).__name__, "must be a tensor of codes, or Weights")
    own = {"bias_gate": gate.bias_gate, "bias_up": gate.bias_up}
    biases.update({name: bias for name, bias in own.items() if bias is not None})
    return gate.n, gate.k, gate.num_experts, gate._operands_for(a, strategy)[1] is not None


def plans_kept() -> int:
    """How many plans the operators hold; at most 512."""
    counter = ctypes.CDLL(str(PATH)).dualgemm_python_plans_kept
    counter.restype = ctypes.c_longlong
    return int(counter())
