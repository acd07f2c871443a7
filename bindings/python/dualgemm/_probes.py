"""Asking a foreign forward what it computes: rows of every magnitude, comparison, small copies of what has no weights yet."""

from __future__ import annotations

import contextlib
import copy
from collections.abc import Callable, Iterator
from typing import Any

import torch
from torch import Tensor, nn

from ._errors import InvalidArgument

# The largest values that rows of probes give gate or up. Clamps, soft caps and norms that matter anywhere lie below one of them; the
# steps are short where float16 is near its end, so that a clamp is met before the product overflows.
_MAGNITUDES = tuple(2.0**exponent for exponent in (-3, 0, 2, 4, 5, 6, 7, 8, 10, 13, 17, 22))
# 16-bit roundings in another order stay far below; another formula, or gate for up, does not.
_TOLERANCE = 0.02
_SMALL_K, _SMALL_N = 64, 48


def rows(gate: Tensor, up: Tensor) -> Tensor:
    """[rows, K], one for each magnitude that the dtype can hold, and the same with the other sign."""
    steps = torch.arange(gate.shape[-1], device=gate.device, dtype=torch.float32)
    directions = torch.stack([torch.sin(steps * (0.7 + 0.13 * index) + index) for index in range(len(_MAGNITUDES))])
    like = directions.to(gate.dtype)
    reached = torch.maximum((like @ gate.T).abs().amax(-1), (like @ up.T).abs().amax(-1)).float()[:, None]
    wanted = torch.tensor(_MAGNITUDES, device=gate.device)[:, None]
    found = (directions * wanted / torch.where(reached > 0, reached, 1.0)).to(gate.dtype)
    found = found[torch.isfinite(found).all(-1)]
    if found.shape[0] == 0:
        raise InvalidArgument("mlp", "weights that are not finite", "must be finite")
    return torch.cat([found, -found])


def columns(count: int, device: torch.device) -> Tensor:
    """[rows, count] of float32, a row for each magnitude, and the same with the other sign: what products would give."""
    steps = torch.arange(count, device=device, dtype=torch.float32)
    found = torch.stack([torch.sin(steps * (0.7 + 0.13 * index) + index) * size for index, size in enumerate(_MAGNITUDES)])
    return torch.cat([found, -found])


@contextlib.contextmanager
def evaluated(module: nn.Module) -> Iterator[None]:
    """The module as it is used to infer: no dropout. Each part's mode is put back."""
    modes = [(inner, inner.training) for inner in module.modules()]
    module.eval()
    try:
        yield
    finally:
        for inner, training in modes:
            inner.training = training


def foreign(what: str, function: Callable[[Tensor], Any], x: Tensor) -> Any:
    """What a function of somebody else's makes of x; whatever it raises is InvalidArgument."""
    try:
        return function(x)
    except Exception as error:
        raise InvalidArgument(
            "mlp", f"{what}(x) with x {list(x.shape)} raises {type(error).__name__}: {error}", "must take one tensor of rows"
        ) from error


def distance(what: str, found: Any, wanted: Any) -> float:
    """The largest error of a row, by the row's own largest value. Rows that the formula cannot compute in this dtype say
    nothing."""
    if not isinstance(found, Tensor) or not isinstance(wanted, Tensor) or found.shape != wanted.shape:
        seen = f"{list(found.shape)}" if isinstance(found, Tensor) else type(found).__name__
        raise InvalidArgument(
            "mlp", f"{what} gives {seen}", f"must give one tensor {list(wanted.shape) if isinstance(wanted, Tensor) else ''}"
        )
    can_tell = torch.isfinite(wanted).all(-1)
    if not bool(can_tell.any()):
        raise InvalidArgument("mlp", f"{what} gives nothing finite", "must have finite weights")
    error = (found.float() - wanted.float()).abs().amax(-1)
    largest = wanted.float().abs().amax(-1)
    ratio = torch.where(error > 0, error / largest, torch.where(error == 0, 0.0, torch.inf))  # a NaN of found is far away
    return float(ratio[can_tell].max())


def check(what: str, far: float) -> None:
    if not far <= _TOLERANCE:
        raise InvalidArgument("mlp", f"{what} computes something else", "must compute down(act(gate(x)) * up(x))")


def small_sizes(n: int, k: int) -> dict[int, int]:
    """Those of a small copy, by the sizes of the module: n, k, and 2 n where both are stacked."""
    small_n = _SMALL_K if n == k else _SMALL_N
    return {2 * n: 2 * small_n, n: small_n, k: _SMALL_K} if 2 * n != k else {n: small_n, k: 2 * small_n}


def shrink(module: nn.Module, sizes: dict[int, int]) -> None:
    """hidden_size, intermediate_size, by whatever name."""
    for name, value in vars(module).items():
        if isinstance(value, int) and not isinstance(value, bool) and value in sizes and not name.startswith("num"):
            setattr(module, name, sizes[value])


def small_copy(module: nn.Module, linear_names: tuple[str, ...], gated: bool = True) -> nn.Module:
    """A copy on the CPU in float32 with few rows and columns and random weights; the class and all else as it is.

    linear_names: of gate, up and down, or of both and down; without a gate of up and down.
    """
    generator = torch.Generator("cpu").manual_seed(0)

    def weight(*sizes: int) -> nn.Parameter:
        return nn.Parameter(torch.randn(sizes, generator=generator, device="cpu") / sizes[-1] ** 0.5, requires_grad=False)

    made: Any = copy.deepcopy(module)
    first: Any = getattr(made, linear_names[0]).weight
    is_stacked = gated and len(linear_names) == 2
    sizes = small_sizes(first.shape[0] // (2 if is_stacked else 1), first.shape[1])
    for name in linear_names:
        linear = getattr(made, name)
        out_features, in_features = (sizes.get(size, size) for size in linear.weight.shape)
        linear.weight, linear.out_features, linear.in_features = weight(out_features, in_features), out_features, in_features
        if linear.bias is not None:
            linear.bias = weight(out_features)
    for inner in made.modules():
        for name, parameter in inner._parameters.items():
            if parameter is not None and parameter.device.type == "meta":
                inner._parameters[name] = weight(*(sizes.get(size, size) for size in parameter.shape))
        for name, buffer in inner._buffers.items():  # those of a model on the meta device lie on torch's default device
            if buffer is not None and buffer.device.type != "meta":
                inner._buffers[name] = buffer.cpu()
    shrink(made, sizes)
    return made
