"""torch.func.vmap: mapped rows are more rows of one call; anything else is done one after the other."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from ._schemas import OPERATORS, Operator, overload


def _folds_product(values: dict[str, Any]) -> bool:
    """Whether all rows go through one layer; groups and a residual have rows of their own."""
    if any(values.get(name) is not None for name in ("offsets", "m_indices", "masked_m", "residual")):
        return False
    weight = values.get("gate", values.get("w"))
    return bool(values["l"] == 1 if weight is None else weight.dim() == 2)


def _folds_quantizer(values: dict[str, Any]) -> bool:
    return bool(values.get("per_row")) and values.get("scale_layout", "linear") == "linear"


# When the rows of an operator are folded, where it is not a product.
_FOLDS: dict[str, Callable[[dict[str, Any]], bool]] = {
    "quantize_nvfp4": _folds_quantizer,
    "transform_rows": lambda values: True,
}


def _folded(operator: Operator, values: dict[str, Any], mapped: set[str]) -> dict[str, Any] | None:
    """The arguments of one call for all rows, or None. ``values``: by name, what is mapped along dimension 0."""
    first, *along = operator.rows
    along = [name for name in along if values.get(name) is not None]
    if first not in mapped or not mapped <= {first, *along} or not mapped >= set(along):
        return None
    if not _FOLDS.get(operator.name, _folds_product)(values):
        return None
    folded = {first: values[first].contiguous()}
    if "a_scales" in along:
        if values["a_scales"].dim() != values[first].dim():  # swizzled: tiles of several rows
            return None
        folded["a_scales"] = values["a_scales"].contiguous()
    if "a_row_scale" in along:
        folded["a_row_scale"] = values["a_row_scale"].reshape(-1)
    return folded


def _one_by_one(call: Any, count: int, mapped: list[int], moved: list[Any], named: dict[str, Any]) -> Any:
    each = [call(*(value[i] if place in mapped else value for place, value in enumerate(moved)), **named) for i in range(count)]
    if isinstance(each[0], Tensor):
        return torch.stack(each), 0
    return tuple(_stacked(parts) for parts in zip(*each)), (0,) * len(each[0])


def _stacked(parts: tuple[Tensor, ...]) -> Tensor:
    if parts[0].dtype != torch.float8_e4m3fn:
        return torch.stack(parts)
    return torch.stack([part.view(torch.uint8) for part in parts]).view(torch.float8_e4m3fn)


def _register(operator: Operator) -> None:
    call, names = overload(operator.name), operator.argument_names()

    def rule(info: Any, in_dims: tuple[Any, ...], *arguments: Any, **named: Any) -> Any:
        mapped = [place for place, dim in enumerate(in_dims) if dim is not None and place < len(arguments)]
        moved = [value.movedim(dim, 0) if dim is not None else value for value, dim in zip(arguments, in_dims)]
        values = {**dict(zip(names, moved)), **named}
        folded = _folded(operator, values, {names[place] for place in mapped})
        if folded is None:
            return _one_by_one(call, info.batch_size, mapped, moved, named)
        result = call(*(folded.get(name, value) for name, value in zip(names, moved)), **named)
        return result, 0 if isinstance(result, Tensor) else (0,) * len(result)

    torch.library.register_vmap(f"dualgemm::{operator.name}", rule)


def register() -> None:
    for operator in OPERATORS.values():
        if operator.rows:
            _register(operator)
