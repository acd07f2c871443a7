"""What a float MLP is made of, and whether it computes a gated MLP at all: found out by computing, not by its class."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple, Optional

import torch
from torch import Tensor, nn
from torch.nn import functional

from . import _gpt_oss as gpt_oss
from . import _probes as probes
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
_STACKED = (("gate_up_proj", "down_proj"), ("input_linear", "output_linear"))
_ACTIVATION_NAMES = ("act_fn", "activation_fn", "act", "activation")


class Act(NamedTuple):
    """An activation of the library and its numbers; None: its default."""

    name: str
    alpha: Optional[float] = None
    limit: Optional[float] = None

    def options(self) -> dict[str, Any]:
        """As modules and products take them."""
        numbers = {"act_alpha": self.alpha, "act_limit": self.limit}
        return {"activation": self.name} | {name: value for name, value in numbers.items() if value is not None}

    def __str__(self) -> str:
        return ", ".join([self.name, *(f"{one} {getattr(self, one):g}" for one in ("alpha", "limit") if getattr(self, one))])

    def hidden(self, gate: Tensor, up: Tensor) -> Tensor:
        """act(gate) * up, as the library defines it."""
        if self.name in ("swiglu_oai", "clamped_swiglu"):
            oai = self.name == "swiglu_oai"
            alpha, beta = self.alpha or (1.702 if oai else 1.0), 1.0 if oai else 0.0
            limit = self.limit or (7.0 if oai else float("inf"))
            gate, up = gate.clamp(max=limit), up.clamp(-limit, limit)
            return gate * torch.sigmoid(alpha * gate) * (up + beta)
        function = ACTIVATIONS.get(self.name)
        if function is None:
            known = ", ".join((*ACTIVATIONS, "swiglu_oai"))
            raise InvalidArgument("activation", repr(self.name), f"must be one of {known} here")
        return function(gate) * up


def clamped(module: nn.Module) -> list[Act]:
    """The clamped SwiGLUs that numbers of the module may mean: attributes called ...limit..., and ...alpha... beside them."""
    numbers = {
        name: float(value)
        for name, value in getattr(module, "__dict__", {}).items()
        if isinstance(value, (int, float)) and not isinstance(value, bool) and 0 < value < float("inf")
    }
    limits = sorted({value for name, value in numbers.items() if "limit" in name})
    alphas = sorted({value for name, value in numbers.items() if "alpha" in name})
    return [
        made
        for limit in limits
        for made in (Act("clamped_swiglu", None, limit), *(Act("swiglu_oai", alpha, limit) for alpha in (*alphas, None)))
    ]


class FloatMLP(NamedTuple):
    """Gate and up [N, K] or [E, N, K], their biases [N] or [E, N], down as it is there, and the activation."""

    gate: Tensor
    up: Tensor
    down: Any
    activation: Act
    bias_gate: Optional[Tensor] = None
    bias_up: Optional[Tensor] = None


def activation_name(function: Any) -> str:
    """The library's name of an activation, a module or a function: the one whose values it has."""
    points = torch.cat([torch.linspace(-8, 8, 65, dtype=torch.float64), torch.tensor([-1000.0, -50.0, 50.0, 1000.0]).double()])
    try:
        with torch.no_grad():
            values = function(points)
        for name, known in ACTIVATIONS.items():
            if torch.allclose(values, known(points), rtol=1e-6, atol=1e-8):
                return name
    except Exception:  # a foreign function may raise anything
        pass
    name = getattr(function, "__name__", type(function).__name__)
    raise InvalidArgument("activation", name, f"must compute one of {', '.join(ACTIVATIONS)}")


def activation_of(mlp: nn.Module) -> str:
    for name in _ACTIVATION_NAMES:
        function = getattr(mlp, name, None)
        if callable(function):
            return activation_name(function)
    raise InvalidArgument("mlp", f"{type(mlp).__name__} without {', '.join(_ACTIVATION_NAMES)}", "pass activation=...")


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


def _activations(mlp: nn.Module, given: Optional[str]) -> list[Act]:
    """What to try: the one that was given; the module's own, or, where a forward calls a function, all of them; and what its
    numbers may clamp."""
    if given is not None:
        return [Act(given)]
    has_own = any(callable(getattr(mlp, name, None)) for name in _ACTIVATION_NAMES)
    return [*map(Act, [activation_of(mlp)] if has_own else ACTIVATIONS), *clamped(mlp)]


def _nearest(mlp: nn.Module, tried: list[Act], distance_of: Callable[[Act], float]) -> Act:
    """The activation with which the formula comes nearest; InvalidArgument if that is not near."""
    distances = {act: distance_of(act) for act in tried}
    nearest = min(distances, key=lambda one: distances[one])
    probes.check(type(mlp).__name__, distances[nearest])
    return nearest


def float_mlp(mlp: nn.Module, activation: Optional[str] = None, *, plain_down: bool = False) -> FloatMLP:
    """The parts of a gated MLP of nn.Linear. InvalidArgument unless rows of every magnitude go through it as through the
    formula. plain_down: down is held to x @ weight.T + bias, too, as it is to be quantised."""
    tried = _activations(mlp, activation)
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
        found = probes.foreign("forward", mlp, x)
        # Models hand over [batch, tokens, hidden]: a forward may mix or count batches and tokens.
        together = probes.foreign("forward", mlp, x[None])
        wanted = found[None] if isinstance(found, Tensor) else found
        probes.check(type(mlp).__name__, probes.distance(type(mlp).__name__, together, wanted))
        nearest = _nearest(
            mlp,
            tried,
            lambda one: probes.distance(type(mlp).__name__, found, _through_down(parts.down, one.hidden(gate, up), plain_down)),
        )
    return parts._replace(activation=nearest)


def _through_down(down: Any, h: Tensor, plain: bool) -> Any:
    return functional.linear(h, down.weight, down.bias) if plain else probes.foreign("down", down, h)


def float_experts(experts: nn.Module, activation: Optional[str] = None) -> FloatMLP:
    """The weights of transformers' experts: gate_up_proj [E, 2N, K] and down_proj [E, K, N], forward(x, ids, weights);
    checked likewise."""
    both, down = getattr(experts, "gate_up_proj", None), getattr(experts, "down_proj", None)
    if not isinstance(both, Tensor) or not isinstance(down, Tensor) or both.dim() != 3 or down.dim() != 3:
        raise InvalidArgument("experts", type(experts).__name__, "must have gate_up_proj [E, 2N, K] and down_proj [E, K, N]")
    count, rows, k = both.shape
    if rows % 2 or list(down.shape) != [count, k, rows // 2] or both.dtype not in _FLOATS or k % 16 or rows % 32:
        raise InvalidArgument(
            "experts",
            f"gate_up_proj {list(both.shape)}, down_proj {list(down.shape)}",
            "must be [E, 2N, K] and [E, K, N], N and K multiples of 16, of bfloat16, float16 or float32",
        )
    for name in ("gate_up_proj_bias", "down_proj_bias"):
        if getattr(experts, name, None) is not None:
            raise InvalidArgument("experts", name, "experts with biases are not quantised here")
    if both.device.type == "meta":
        raise InvalidArgument("experts", "on the meta device", "must have its weights")
    tried = _activations(experts, activation)

    parts = FloatMLP(both[:, : rows // 2], both[:, rows // 2 :], down, tried[0])
    with torch.no_grad(), probes.evaluated(experts):
        nearest = _nearest(experts, tried, lambda one: _distance_of_experts(experts, parts._replace(activation=one)))
    return parts._replace(activation=nearest)


def _distance_of_experts(experts: nn.Module, parts: FloatMLP) -> float:
    """Every row goes to two experts, if there are as many, with unequal weights: rows of every magnitude, of few experts."""
    count = parts.gate.shape[0]
    x = probes.rows(parts.gate[0], parts.up[0])
    ids = torch.arange(x.shape[0], device=x.device)[:, None] % min(count, 4)
    weights = torch.full(ids.shape, 0.75, dtype=x.dtype, device=x.device)
    if count > 1:
        ids, weights = torch.cat([ids, (ids + 1) % count], 1), torch.cat([weights, weights / 3], 1)
    wanted = torch.zeros((x.shape[0], parts.down.shape[1]), dtype=torch.float32, device=x.device)
    for row, (of_row, factors) in enumerate(zip(ids.tolist(), weights.tolist())):
        for expert, factor in zip(of_row, factors):
            h = parts.activation.hidden(x[row : row + 1] @ parts.gate[expert].T, x[row : row + 1] @ parts.up[expert].T)
            wanted[row] += factor * (h @ parts.down[expert].T)[0].float()
    found = probes.foreign("forward", lambda rows: experts(rows, ids, weights), x)
    return probes.distance(type(experts).__name__, found, wanted)


def is_experts(module: nn.Module) -> bool:
    return isinstance(getattr(module, "gate_up_proj", None), Tensor)


def check_shape(module: nn.Module, n: int, k: int) -> None:
    """Refuses matrices of a gated MLP or of experts that are not n x k; they are float, or not there yet."""
    if is_experts(module) and gpt_oss.is_gpt_oss(module):
        if gpt_oss.extents(module) != (n, k):
            raise InvalidArgument("model", f"{list(gpt_oss.extents(module))}", f"must be {n} x {k} as in the checkpoint")
        return
    names = () if is_experts(module) else linear_names(module)
    both = 1 if len(names) == 3 else 2
    first: Any = getattr(module, names[0]).weight if names else module.gate_up_proj
    if tuple(first.shape[-2:]) != (n * both, k):
        raise InvalidArgument(
            "model", f"{[first.shape[-2] // both, first.shape[-1]]}", f"must be {n} x {k} as in the checkpoint"
        )


def check_forward(module: nn.Module) -> Act:
    """The activation of a gated MLP or of experts, which must compute that and nothing else. For a module on the meta device a
    small copy with random weights is probed."""
    if is_experts(module) and gpt_oss.is_gpt_oss(module):
        return gpt_oss.check(module, clamped(module) or [Act("swiglu_oai")])
    read = float_experts if is_experts(module) else float_mlp
    if any(parameter.device.type == "meta" for parameter in module.parameters()):
        names = () if is_experts(module) else linear_names(module)
        if not names and not is_experts(module):
            raise InvalidArgument("mlp", type(module).__name__, "must have gate_proj, up_proj and down_proj")
        try:
            module = probes.small_copy(module, names)
        except (AttributeError, TypeError, ValueError, RuntimeError) as error:
            raise InvalidArgument("mlp", f"{type(module).__name__}: {error}", "must be a gated MLP of nn.Linear") from error
    return read(module).activation
