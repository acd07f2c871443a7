"""What a float MLP is made of, and whether it computes a gated MLP at all: found out by computing, not by its class."""
from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple, Optional

import torch
from torch import Tensor, nn
from torch.nn import functional

from ._errors import InvalidArgument

_FLOATS = (torch.float32, torch.bfloat16, torch.float16)
ACTIVATIONS: dict[str, Callable[[Tensor], Tensor]] = {
    "silu": functional.silu,
    "gelu_erf": functional.gelu,
    "gelu_tanh": lambda x: functional.gelu(x, approximate="tanh"),
    "relu2": lambda x: functional.relu(x).square(),
    "sigmoid": torch.sigmoid,
    "identity": lambda x: x,
}
_SEPARATE = (("gate_proj", "up_proj", "down_proj"), ("w1", "w3", "w2"))
_STACKED = (("gate_up_proj", "down_proj"),)
_ACTIVATION_NAMES = ("act_fn", "activation_fn", "act", "activation")


class FloatMLP(NamedTuple):
    """Gate and up [N, K] or [E, N, K], their biases [N] or [E, N], down as it is there, and the name of the activation."""
    gate: Tensor
    up: Tensor
    down: Any
    activation: str
    bias_gate: Optional[Tensor] = None
    bias_up: Optional[Tensor] = None


def activation_name(function: Any) -> str:
    """The library's name of an activation, a module or a function: the one whose values it has."""
    points = torch.linspace(-8, 8, 65, dtype=torch.float64)
    try:
        with torch.no_grad():
            values = function(points)
        for name, known in ACTIVATIONS.items():
            if torch.allclose(values, known(points), rtol=1e-6, atol=1e-8):
                return name
    except (RuntimeError, TypeError, ValueError, AttributeError):
        pass
    name = getattr(function, "__name__", type(function).__name__)
    raise InvalidArgument("activation", name, f"must compute one of {', '.join(ACTIVATIONS)}")


def activation_of(mlp: nn.Module) -> str:
    for name in _ACTIVATION_NAMES:
        function = getattr(mlp, name, None)
        if callable(function):
            return activation_name(function)
    raise InvalidArgument("mlp", f"{type(mlp).__name__} without {', '.join(_ACTIVATION_NAMES)}", "pass activation=...")


def _linear(mlp: nn.Module, name: str) -> nn.Linear:
    linear = getattr(mlp, name)
    if not isinstance(linear, nn.Linear) or linear.weight.dtype not in _FLOATS or linear.weight.dim() != 2:
        raise InvalidArgument(f"mlp.{name}", type(linear).__name__, "must be an nn.Linear of bfloat16, float16 or float32")
    return linear


def _halves(tensor: Optional[Tensor]) -> tuple[Optional[Tensor], Optional[Tensor]]:
    return (None, None) if tensor is None else (tensor[:tensor.shape[0] // 2], tensor[tensor.shape[0] // 2:])


def _find(mlp: nn.Module, activation: Optional[str]) -> FloatMLP:
    for gate_name, up_name, down_name in _SEPARATE:
        if all(isinstance(getattr(mlp, name, None), nn.Module) for name in (gate_name, up_name, down_name)):
            gate, up = _linear(mlp, gate_name), _linear(mlp, up_name)
            return FloatMLP(gate.weight, up.weight, getattr(mlp, down_name), activation or activation_of(mlp), gate.bias,
                            up.bias)
    for stacked_name, down_name in _STACKED:
        if all(isinstance(getattr(mlp, name, None), nn.Module) for name in (stacked_name, down_name)):
            both = _linear(mlp, stacked_name)
            first, second = _halves(both.weight)
            assert first is not None and second is not None
            bias_gate, bias_up = _halves(both.bias)
            return FloatMLP(first, second, getattr(mlp, down_name), activation or activation_of(mlp), bias_gate, bias_up)
    raise InvalidArgument("mlp", type(mlp).__name__,
                          "must have gate_proj, up_proj and down_proj (or w1, w3, w2; or gate_up_proj)")


def _check_values(what: str, found: Any, wanted: Tensor) -> None:
    # 16-bit roundings in another order stay far below; another formula, or gate for up, does not.
    if not isinstance(found, Tensor) or found.shape != wanted.shape:
        raise InvalidArgument("mlp", f"{what} gives {type(found).__name__}", f"must give one tensor {list(wanted.shape)}")
    worst = (found.float() - wanted.float()).abs().max()
    if not bool(worst <= 0.02 * wanted.float().abs().max()):
        raise InvalidArgument("mlp", f"{what} computes something else", "must compute down(act(gate(x)) * up(x))")


def _probe_rows(rows: int, k: int, like: Tensor) -> Tensor:
    return torch.sin(torch.arange(rows * k, device=like.device, dtype=torch.float32) * 0.7).reshape(rows, k).to(like.dtype)


def float_mlp(mlp: nn.Module, activation: Optional[str] = None) -> FloatMLP:
    """The parts of a gated MLP of nn.Linear. InvalidArgument unless two rows go through it as through the formula."""
    parts = _find(mlp, activation)
    if parts.gate.shape != parts.up.shape or parts.gate.shape[1] % 16:
        raise InvalidArgument("mlp", f"gate {list(parts.gate.shape)}, up {list(parts.up.shape)}",
                              "must be one shape, [N, K], K a multiple of 16")
    if parts.gate.device.type == "meta":
        raise InvalidArgument("mlp", "on the meta device", "must have its weights")
    function = ACTIVATIONS.get(parts.activation)
    if function is not None:
        with torch.no_grad():
            x = _probe_rows(2, parts.gate.shape[1], parts.gate)
            h = function(functional.linear(x, parts.gate, parts.bias_gate)) * functional.linear(x, parts.up, parts.bias_up)
            _check_values(type(mlp).__name__, mlp(x), parts.down(h))
    return parts


def float_experts(experts: nn.Module, activation: Optional[str] = None) -> FloatMLP:
    """The weights of transformers' experts: gate_up_proj [E, 2N, K] and down_proj [E, K, N], forward(x, ids, weights);
    checked likewise."""
    both, down = getattr(experts, "gate_up_proj", None), getattr(experts, "down_proj", None)
    if not isinstance(both, Tensor) or not isinstance(down, Tensor) or both.dim() != 3 or down.dim() != 3:
        raise InvalidArgument("experts", type(experts).__name__, "must have gate_up_proj [E, 2N, K] and down_proj [E, K, N]")
    count, rows, k = both.shape
    if rows % 2 or list(down.shape) != [count, k, rows // 2] or both.dtype not in _FLOATS or k % 16 or rows % 32:
        raise InvalidArgument("experts", f"gate_up_proj {list(both.shape)}, down_proj {list(down.shape)}",
                              "must be [E, 2N, K] and [E, K, N], N and K multiples of 16, of bfloat16, float16 or float32")
    for name in ("gate_up_proj_bias", "down_proj_bias"):
        if getattr(experts, name, None) is not None:
            raise InvalidArgument("experts", name, "experts with biases are not quantised here")
    if both.device.type == "meta":
        raise InvalidArgument("experts", "on the meta device", "must have its weights")
    parts = FloatMLP(both[:, :rows // 2], both[:, rows // 2:], down, activation or activation_of(experts))
    with torch.no_grad():
        x = _probe_rows(1, k, both)
        ids = torch.zeros((1, 1), dtype=torch.int64, device=both.device)
        h = ACTIVATIONS[parts.activation](x @ parts.gate[0].T) * (x @ parts.up[0].T)
        ones = torch.ones((1, 1), dtype=both.dtype, device=both.device)
        _check_values(type(experts).__name__, experts(x, ids, ones), h @ down[0].T)
    return parts
