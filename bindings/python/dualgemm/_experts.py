"""transformers' experts in stacked parameters: how the matrices lie in them, and what their forward computes.

gate_up_proj is [E, 2N, K] (Qwen-MoE, Mixtral, DeepSeek), [E, K, 2N] with Gate's columns first (Llama-4, Aria), or [E, K, 2N] whose
columns alternate, with biases (gpt-oss). A forward takes (rows, ids, weights), or the rows of all experts in turn (Llama-4).
Experts without a gate have up_proj [E, N, K] and down_proj [E, K, N] (Nemotron-H).
"""

from __future__ import annotations

import copy
import inspect
from collections.abc import Callable
from typing import Any, NamedTuple, Optional

import torch
from torch import Tensor, nn

from . import _probes as probes
from ._activations import Act
from ._errors import InvalidArgument

_FLOATS = (torch.float32, torch.bfloat16, torch.float16)


class Form(NamedTuple):
    """How experts' parameters lie, and their forward's arguments."""

    experts: int
    n: int
    k: int
    k_outer: bool  # [E, K, 2N] and [E, N, K]
    biased: bool  # and columns alternate
    by_rows: bool  # forward(x [E * rows, K]), x sorted by expert


class Parts(NamedTuple):
    """Gate and up [E, N, K], down [E, K, N], and their biases."""

    gate: Tensor
    up: Tensor
    down: Tensor
    bias_gate: Optional[Tensor] = None
    bias_up: Optional[Tensor] = None
    bias_down: Optional[Tensor] = None

    def of(self, expert: int) -> Parts:
        return Parts(*(None if one is None else one[expert] for one in self))  # type: ignore[arg-type]


def is_experts(module: nn.Module) -> bool:
    return isinstance(getattr(module, "gate_up_proj", None), Tensor)


def _takes_rows_alone(module: nn.Module) -> bool:
    try:
        wanted = inspect.signature(module.forward).parameters.values()
    except (TypeError, ValueError):
        return False
    return len([one for one in wanted if one.kind == one.POSITIONAL_OR_KEYWORD]) == 1


def form_of(experts: nn.Module) -> Form:
    """By names and shapes; InvalidArgument where they are none of the known ones."""
    both, down = getattr(experts, "gate_up_proj", None), getattr(experts, "down_proj", None)
    if not isinstance(both, Tensor) or not isinstance(down, Tensor) or both.dim() != 3 or down.dim() != 3:
        raise InvalidArgument("experts", type(experts).__name__, "must have gate_up_proj [E, 2N, K] and down_proj [E, K, N]")
    count, first, second = both.shape
    biases = [getattr(experts, name, None) for name in ("gate_up_proj_bias", "down_proj_bias")]
    rule = "must be [E, 2N, K] and [E, K, N], or [E, K, 2N] and [E, N, K], of bfloat16, float16 or float32"
    shown = f"gate_up_proj {list(both.shape)}, down_proj {list(down.shape)}"
    if list(down.shape) == [count, second, first // 2]:
        n, k, k_outer = first // 2, second, False
    elif list(down.shape) == [count, second // 2, first]:
        n, k, k_outer = second // 2, first, True
    else:
        raise InvalidArgument("experts", shown, rule)
    if both.dtype not in _FLOATS or n < 1 or k < 1:
        raise InvalidArgument("experts", f"{shown}, {both.dtype}", rule)
    biased = any(bias is not None for bias in biases)
    if biased:
        shapes = [list(bias.shape) if isinstance(bias, Tensor) else None for bias in biases]
        if not k_outer or shapes != [[count, 2 * n], [count, k]]:
            raise InvalidArgument(
                "experts", f"biases {shapes}", "are read beside [E, K, 2N] whose columns alternate, as gpt-oss's"
            )
    return Form(count, n, k, k_outer, biased, _takes_rows_alone(experts))


def parts_of(experts: Any, form: Form) -> Parts:
    """Views of the parameters."""
    both, down = experts.gate_up_proj, experts.down_proj
    if not form.k_outer:
        return Parts(both[:, : form.n], both[:, form.n :], down)
    both, down = both.transpose(1, 2), down.transpose(1, 2)
    if not form.biased:
        return Parts(both[:, : form.n], both[:, form.n :], down)
    bias = experts.gate_up_proj_bias
    return Parts(both[:, ::2], both[:, 1::2], down, bias[:, ::2], bias[:, 1::2], experts.down_proj_bias)


def _small_copy(experts: nn.Module, form: Form) -> nn.Module:
    """On the CPU in float32, of few rows and columns, with random weights; the class and all else as it is."""
    generator = torch.Generator("cpu").manual_seed(0)
    sizes = probes.small_sizes(form.n, form.k)
    n, k = sizes[form.n], sizes[form.k]
    made: Any = copy.deepcopy(experts)

    def set_parameter(name: str, *shape: int) -> None:
        value = torch.randn(form.experts, *shape, generator=generator, device="cpu") / k**0.5
        setattr(made, name, nn.Parameter(value, requires_grad=False))

    set_parameter("gate_up_proj", *((k, 2 * n) if form.k_outer else (2 * n, k)))
    set_parameter("down_proj", *((n, k) if form.k_outer else (k, n)))
    if form.biased:
        set_parameter("gate_up_proj_bias", 2 * n)
        set_parameter("down_proj_bias", k)
    probes.shrink(made, sizes)
    return made


def _linear(x: Tensor, weight: Tensor, bias: Optional[Tensor]) -> Tensor:
    return x @ weight.T if bias is None else x @ weight.T + bias


def _mlp(parts: Parts, act: Act, x: Tensor) -> Tensor:
    """One expert's."""
    h = act.hidden(_linear(x, parts.gate, parts.bias_gate), _linear(x, parts.up, parts.bias_up))
    return _linear(h, parts.down, parts.bias_down).float()


_One = Callable[[int, Act, Tensor], Tensor]
"""What an expert makes of rows, with an activation."""


def _routed(experts: Any, count: int, one: _One, acts: list[Act], x: Tensor) -> dict[Act, float]:
    """Every row goes to two experts, if there are as many, with unequal weights: rows of every magnitude, of few experts."""
    ids = torch.arange(x.shape[0], device=x.device)[:, None] % min(count, 4)
    weights = torch.full(ids.shape, 0.75, dtype=x.dtype, device=x.device)
    if count > 1:
        ids, weights = torch.cat([ids, (ids + 1) % count], 1), torch.cat([weights, weights / 3], 1)
    name = type(experts).__name__
    found = probes.foreign("forward", lambda rows: experts(rows, ids, weights), x)
    distances = {}
    for act in acts:
        wanted = torch.zeros(x.shape, dtype=torch.float32, device=x.device)
        for row, (of_row, factors) in enumerate(zip(ids.tolist(), weights.tolist())):
            for expert, factor in zip(of_row, factors):
                wanted[row] += factor * one(expert, act, x[row : row + 1])[0]
        distances[act] = probes.distance(name, found, wanted)
    return distances


def _in_turn(experts: Any, count: int, one: _One, acts: list[Act], x: Tensor) -> dict[Act, float]:
    """The same rows for every expert, one expert's after the other's."""
    found = probes.foreign("forward", experts, x.repeat(count, 1))
    wanted = {act: torch.cat([one(expert, act, x) for expert in range(count)]) for act in acts}
    return {act: probes.distance(type(experts).__name__, found, each) for act, each in wanted.items()}


def _nearest(experts: nn.Module, distances: dict[Act, float]) -> Act:
    nearest = min(distances, key=lambda one: distances[one])
    probes.check(type(experts).__name__, distances[nearest])
    return nearest


def check(experts: Any, tried: list[Act]) -> Act:
    """The one of ``tried`` through which rows of every magnitude go as through the module; InvalidArgument where there is none.
    For a module on the meta device a small copy with random weights is asked."""
    form = form_of(experts)
    if experts.gate_up_proj.device.type == "meta":
        experts = _small_copy(experts, form)
        form = form_of(experts)
    parts = parts_of(experts, form)
    with torch.no_grad(), probes.evaluated(experts):
        ask = _in_turn if form.by_rows else _routed
        x = probes.rows(parts.gate[0], parts.up[0])
        return _nearest(experts, ask(experts, form.experts, lambda e, act, rows: _mlp(parts.of(e), act, rows), tried, x))


# ---- without a gate ---------------------------------------------------------------------------------------------------------


def is_ungated(module: nn.Module) -> bool:
    up, down = getattr(module, "up_proj", None), getattr(module, "down_proj", None)
    shapes = [list(one.shape) if isinstance(one, Tensor) and one.dim() == 3 else [] for one in (up, down)]
    has_gate = is_experts(module) or getattr(module, "gate_proj", None) is not None
    return not has_gate and bool(shapes[0]) and shapes[1] == [shapes[0][0], shapes[0][2], shapes[0][1]]


def check_ungated(experts: Any, tried: list[Act]) -> Act:
    """As check(), of y = down(act(up(x)))."""
    count, n, k = experts.up_proj.shape
    if experts.up_proj.device.type == "meta":
        sizes, generator = probes.small_sizes(n, k), torch.Generator("cpu").manual_seed(0)
        experts = copy.deepcopy(experts)
        for name, shape in (("up_proj", (sizes[n], sizes[k])), ("down_proj", (sizes[k], sizes[n]))):
            value = torch.randn(count, *shape, generator=generator, device="cpu") / sizes[k] ** 0.5
            setattr(experts, name, nn.Parameter(value, requires_grad=False))
        probes.shrink(experts, sizes)
    up, down = experts.up_proj, experts.down_proj
    with torch.no_grad(), probes.evaluated(experts):
        x = probes.rows(up[0], up[0])
        return _nearest(
            experts, _routed(experts, count, lambda e, act, rows: (act.of(rows @ up[e].T) @ down[e].T).float(), tried, x)
        )
