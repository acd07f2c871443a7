"""transformers' experts of gpt-oss: gate_up_proj [E, K, 2N] whose columns alternate, down_proj [E, N, K], both with biases."""

from __future__ import annotations

import copy
from typing import Any

import torch
from torch import Tensor, nn

from . import _probes as probes

_SMALL = 64


def is_gpt_oss(experts: nn.Module) -> bool:
    """By names and shapes; what it computes is found out by computing."""
    tensors = [getattr(experts, name, None) for name in ("gate_up_proj", "gate_up_proj_bias", "down_proj", "down_proj_bias")]
    if not all(isinstance(tensor, Tensor) for tensor in tensors):
        return False
    both, bias, down, down_bias = (list(tensor.shape) for tensor in tensors if tensor is not None)
    return (
        len(both) == 3
        and bias == [both[0], both[2]]
        and down == [both[0], both[2] // 2, both[1]]
        and down_bias == [both[0], both[1]]
    )


def extents(experts: Any) -> tuple[int, int]:
    """N and K."""
    return experts.gate_up_proj.shape[2] // 2, experts.gate_up_proj.shape[1]


def _small_copy(experts: nn.Module) -> nn.Module:
    """On the CPU in float32, of few rows and columns, with random weights; the class and all else as it is."""
    generator = torch.Generator("cpu").manual_seed(0)
    made: Any = copy.deepcopy(experts)
    n, k = extents(experts)
    count = made.gate_up_proj.shape[0]
    shapes = {
        "gate_up_proj": (count, _SMALL, 2 * _SMALL),
        "gate_up_proj_bias": (count, 2 * _SMALL),
        "down_proj": (count, _SMALL, _SMALL),
        "down_proj_bias": (count, _SMALL),
    }
    for name, shape in shapes.items():
        value = torch.randn(shape, generator=generator, device="cpu") / _SMALL**0.5
        setattr(made, name, nn.Parameter(value, requires_grad=False))
    sizes = {2 * n: 2 * _SMALL, n: _SMALL, k: _SMALL}
    for name, value in vars(made).items():  # hidden_size, intermediate_size by whatever name
        if isinstance(value, int) and not isinstance(value, bool) and value in sizes and not name.startswith("num"):
            setattr(made, name, sizes[value])
    return made


def check(experts: nn.Module, tried: list[Any]) -> Any:
    """The one of ``tried``, activations, through which rows of every magnitude go as through the module; InvalidArgument where
    there is none."""
    small: Any = _small_copy(experts)
    count = small.gate_up_proj.shape[0]
    with torch.no_grad(), probes.evaluated(small):
        x = probes.rows(small.gate_up_proj[0, :, ::2].T, small.gate_up_proj[0, :, 1::2].T)
        ids = torch.arange(x.shape[0], device=x.device)[:, None] % min(count, 4)
        weights = torch.full(ids.shape, 0.75, dtype=x.dtype, device=x.device)
        if count > 1:
            ids, weights = torch.cat([ids, (ids + 1) % count], 1), torch.cat([weights, weights / 3], 1)
        found = probes.foreign("forward", lambda rows: small(rows, ids, weights), x)
        name = type(experts).__name__
        distances = {act: probes.distance(name, found, _wanted(small, act, x, ids, weights)) for act in tried}
    nearest = min(distances, key=lambda one: distances[one])
    probes.check(name, distances[nearest])
    return nearest


def _wanted(small: Any, act: Any, x: Tensor, ids: Tensor, weights: Tensor) -> Tensor:
    wanted = torch.zeros_like(x)
    for row, (of_row, factors) in enumerate(zip(ids.tolist(), weights.tolist())):
        for expert, factor in zip(of_row, factors):
            both = x[row] @ small.gate_up_proj[expert] + small.gate_up_proj_bias[expert]
            h = act.hidden(both[::2], both[1::2])
            wanted[row] += factor * (h @ small.down_proj[expert] + small.down_proj_bias[expert])
    return wanted
