"""What a float MLP is made of, and whether it computes a gated MLP at all: found out by computing, not by its class."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple, Optional

import torch
from torch import Tensor, nn
from torch.nn import functional

from . import _activations as activations
from . import _experts as experts
from . import _probes as probes
from ._activations import Act
from ._errors import InvalidArgument
from ._experts import is_experts

_FLOATS = (torch.float32, torch.bfloat16, torch.float16)
_SEPARATE = (("gate_proj", "up_proj", "down_proj"), ("w1", "w3", "w2"))
_STACKED = (("gate_up_proj", "down_proj"), ("input_linear", "output_linear"))


class FloatMLP(NamedTuple):
    """Gate and up [N, K] or [E, N, K], their biases [N] or [E, N], down as it is there, and the activation."""

    gate: Tensor
    up: Tensor
    down: Any
    activation: Act
    bias_gate: Optional[Tensor] = None
    bias_up: Optional[Tensor] = None


def linear_names(mlp: nn.Module) -> tuple[str, ...]:
    """Names of the matrices of a gated MLP, (gate, up, down) or (gate and up, down); none: it does not look like one."""
    for names in (*_SEPARATE, *_STACKED):
        if all(isinstance(getattr(mlp, name, None), nn.Module) for name in names):
            return names
    return ()


def _linear(mlp: nn.Module, name: str) -> nn.Linear:
    linear = getattr(mlp, name)
    if not isinstance(linear, nn.Linear) or linear.weight.dtype not in _FLOATS or linear.weight.dim() != 2:
        raise InvalidArgument(f"mlp.{name}", type(linear).__name__, "must be an nn.Linear of bfloat16, float16 or float32")
    return linear


def _halves(tensor: Optional[Tensor]) -> tuple[Optional[Tensor], Optional[Tensor]]:
    return (None, None) if tensor is None else (tensor[: tensor.shape[0] // 2], tensor[tensor.shape[0] // 2 :])


def _find(mlp: nn.Module, activation: Act) -> FloatMLP:
    names = linear_names(mlp)
    if len(names) == 3:
        gate, up = _linear(mlp, names[0]), _linear(mlp, names[1])
        return FloatMLP(gate.weight, up.weight, getattr(mlp, names[2]), activation, gate.bias, up.bias)
    if names:
        both = _linear(mlp, names[0])
        first, second = _halves(both.weight)
        assert first is not None and second is not None
        bias_gate, bias_up = _halves(both.bias)
        return FloatMLP(first, second, getattr(mlp, names[1]), activation, bias_gate, bias_up)
    raise InvalidArgument(
        "mlp", type(mlp).__name__, "must have gate_proj, up_proj and down_proj (or w1, w3, w2; or gate_up_proj)"
    )


def _nearest(mlp: nn.Module, tried: list[Act], distance_of: Callable[[Act], float]) -> Act:
    """The activation with which the formula comes nearest; InvalidArgument if that is not near."""
    distances = {act: distance_of(act) for act in tried}
    nearest = min(distances, key=lambda one: distances[one])
    probes.check(type(mlp).__name__, distances[nearest])
    return nearest


def _of_rows(mlp: nn.Module, x: Tensor) -> Any:
    """What ``mlp`` makes of rows, which it must make of them as a batch, too."""
    found = probes.foreign("forward", mlp, x)
    # Models hand over [batch, tokens, hidden]: a forward may mix or count batches and tokens.
    together = probes.foreign("forward", mlp, x[None])
    wanted = found[None] if isinstance(found, Tensor) else found
    probes.check(type(mlp).__name__, probes.distance(type(mlp).__name__, together, wanted))
    return found


def float_mlp(mlp: nn.Module, activation: Optional[str] = None, *, plain_down: bool = False) -> FloatMLP:
    """The parts of a gated MLP of nn.Linear. InvalidArgument unless rows of every magnitude go through it as through the
    formula. plain_down: down is held to x @ weight.T + bias, too, as it is to be quantised."""
    tried = activations.candidates(mlp, activation)
    parts = _find(mlp, tried[0])
    if parts.gate.shape != parts.up.shape or parts.gate.shape[1] % 16:
        raise InvalidArgument(
            "mlp", f"gate {list(parts.gate.shape)}, up {list(parts.up.shape)}", "must be one shape, [N, K], K a multiple of 16"
        )
    if parts.gate.device.type == "meta":
        raise InvalidArgument("mlp", "on the meta device", "must have its weights")
    if plain_down and (not isinstance(parts.down, nn.Linear) or parts.down.weight.dtype not in _FLOATS):
        raise InvalidArgument("mlp.down", type(parts.down).__name__, "must be an nn.Linear for quantize_down")
    with torch.no_grad(), probes.evaluated(mlp):
        x = probes.rows(parts.gate, parts.up)
        gate, up = functional.linear(x, parts.gate, parts.bias_gate), functional.linear(x, parts.up, parts.bias_up)
        found = _of_rows(mlp, x)
        nearest = _nearest(
            mlp,
            tried,
            lambda one: probes.distance(type(mlp).__name__, found, _through_down(parts.down, one.hidden(gate, up), plain_down)),
        )
    return parts._replace(activation=nearest)


class FloatUngated(NamedTuple):
    """The nn.Linear of down(act(up(x))) and the activation."""

    up: nn.Linear
    down: nn.Linear
    activation: Act


_UNGATED = (
    ("up_proj", "down_proj"),
    ("fc1", "fc2"),
    ("fc_in", "fc_out"),
    ("c_fc", "c_proj"),
    ("dense_h_to_4h", "dense_4h_to_h"),
    ("wi", "wo"),
)


def ungated_names(mlp: nn.Module) -> tuple[str, ...]:
    """Names of up and down of an MLP that has no gate; none: it does not look like one."""
    if linear_names(mlp) or getattr(mlp, "gate_proj", None) is not None:
        return ()
    for names in _UNGATED:
        if all(isinstance(getattr(mlp, name, None), nn.Module) for name in names):
            return names
    return ()


def float_ungated(mlp: nn.Module, activation: Optional[str] = None) -> FloatUngated:
    """As float_mlp(), of y = down(act(up(x)))."""
    names = ungated_names(mlp)
    if not names:
        shown = ", ".join(" and ".join(pair) for pair in _UNGATED)
        raise InvalidArgument("mlp", type(mlp).__name__, f"must have no gate, and {shown}")
    up, down = (_linear(mlp, name) for name in names)
    if up.weight.shape != down.weight.shape[::-1] or up.weight.shape[0] % 16 or up.weight.shape[1] % 16:
        shapes = f"up {list(up.weight.shape)}, down {list(down.weight.shape)}"
        raise InvalidArgument("mlp", shapes, "must be [N, K] and [K, N], multiples of 16")
    if up.weight.device.type == "meta":
        raise InvalidArgument("mlp", "on the meta device", "must have its weights")
    tried = [one for one in activations.candidates(mlp, activation) if one.name in activations.ACTIVATIONS]
    with torch.no_grad(), probes.evaluated(mlp):
        x = probes.rows(up.weight, up.weight)
        found = _of_rows(mlp, x)
        product = functional.linear(x, up.weight, up.bias)
        nearest = _nearest(
            mlp, tried, lambda one: probes.distance(type(mlp).__name__, found, _through_down(down, one.of(product), True))
        )
    return FloatUngated(up, down, nearest)


def _through_down(down: Any, h: Tensor, plain: bool) -> Any:
    return functional.linear(h, down.weight, down.bias) if plain else probes.foreign("down", down, h)


def float_experts(module: Any, activation: Optional[str] = None) -> tuple[experts.Parts, Act]:
    """The weights of transformers' experts and their activation; checked likewise."""
    form = experts.form_of(module)
    if form.n % 16 or form.k % 16:
        raise InvalidArgument("experts", f"N = {form.n}, K = {form.k}", "N and K must be multiples of 16")
    if module.gate_up_proj.device.type == "meta":
        raise InvalidArgument("experts", "on the meta device", "must have its weights")
    return experts.parts_of(module, form), experts.check(module, activations.candidates(module, activation))


def check_shape(module: nn.Module, n: int, k: int) -> None:
    """Refuses matrices of a gated MLP or of experts that are not n x k; they are float, or not there yet."""
    if is_experts(module):
        found = experts.form_of(module)[1:3]
    else:
        names = linear_names(module)
        rows, columns = getattr(module, names[0]).weight.shape[-2:]
        found = (rows if len(names) == 3 else rows // 2, columns)
    if tuple(found) != (n, k):
        raise InvalidArgument("model", f"{list(found)}", f"must be {n} x {k} as in the checkpoint")


def check_forward(module: nn.Module) -> Act:
    """The activation of an MLP or of experts, which must compute that and nothing else. For a module on the meta device a
    small copy with random weights is probed."""
    if is_experts(module):
        return experts.check(module, activations.candidates(module, None))
    if experts.is_ungated(module):
        return experts.check_ungated(module, [Act(activations.activation_of(module))])
    names = ungated_names(module)
    is_gated = not names
    names = names or linear_names(module)
    if any(parameter.device.type == "meta" for parameter in module.parameters()):
        if not names:
            raise InvalidArgument("mlp", type(module).__name__, "must have gate_proj, up_proj and down_proj")
        try:
            module = probes.small_copy(module, names, is_gated)
        except (AttributeError, TypeError, ValueError, RuntimeError) as error:
            raise InvalidArgument("mlp", f"{type(module).__name__}: {error}", "must be an MLP of nn.Linear") from error
    return (float_mlp(module) if is_gated else float_ungated(module)).activation
