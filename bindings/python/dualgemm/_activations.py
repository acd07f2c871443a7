"""Activations as the library has them, found in the modules of others."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple, Optional

import torch
from torch import Tensor, nn
from torch.nn import functional

from ._errors import InvalidArgument

ACTIVATIONS: dict[str, Callable[[Tensor], Tensor]] = {
    "silu": functional.silu,
    "gelu_erf": functional.gelu,
    "gelu_tanh": lambda x: functional.gelu(x, approximate="tanh"),
    "relu2": lambda x: functional.relu(x).square(),
    "sigmoid": torch.sigmoid,
    "identity": lambda x: x,
}
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
        return self.of(gate) * up

    def of(self, x: Tensor) -> Tensor:
        """The activation alone, without a factor beside it."""
        function = ACTIVATIONS.get(self.name)
        if function is None:
            known = ", ".join((*ACTIVATIONS, "swiglu_oai"))
            raise InvalidArgument("activation", repr(self.name), f"must be one of {known} here")
        return function(x)


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


def candidates(mlp: nn.Module, given: Optional[str]) -> list[Act]:
    """What to try: the one that was given; the module's own, or, where a forward calls a function, all of them; and what its
    numbers may clamp."""
    if given is not None:
        return [Act(given)]
    has_own = any(callable(getattr(mlp, name, None)) for name in _ACTIVATION_NAMES)
    # In this order, so that of equals the first is taken: a clamp that no row reaches is none, numbers come before defaults.
    return [
        *map(Act, [activation_of(mlp)] if has_own else ACTIVATIONS),
        *clamped(mlp),
        *([] if has_own else [Act("swiglu_oai")]),
    ]
