"""torch.func.vmap: mapped rows are more rows of one call; anything else is done one after the other."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

# Which arguments go along with the rows, by their place in the schema: a, its linear scales, a_row_scale.
_ROWS = {"glu": (0, 1, 8), "glu_packed": (0, 1, 7), "linear": (0, 1, 13)}


def _is_one_layer(name: str, arguments: tuple[Any, ...]) -> bool:
    if name == "glu_packed":
        return bool(arguments[4] == 1)
    weight = arguments[2]
    if name == "linear":  # groups and a residual have rows of their own
        others = (*arguments[7:10], *arguments[12:13])
        return all(other is None for other in others) and (arguments[6] == 1 if weight is None else weight.dim() == 2)
    return bool(weight.dim() == 2)


def _moved(in_dims: tuple[Any, ...], arguments: tuple[Any, ...]) -> list[Any]:
    return [value.movedim(dim, 0) if dim is not None else value for value, dim in zip(arguments, in_dims)]


def _one_by_one(operator: Any, count: int, mapped: list[int], moved: list[Any], named: dict[str, Any]) -> Any:
    each = [
        operator(*(value[i] if place in mapped else value for place, value in enumerate(moved)), **named) for i in range(count)
    ]
    if isinstance(each[0], Tensor):
        return torch.stack(each), 0
    return tuple(_stacked(parts) for parts in zip(*each)), (0,) * len(each[0])


def _stacked(parts: tuple[Tensor, ...]) -> Tensor:
    if parts[0].dtype != torch.float8_e4m3fn:
        return torch.stack(parts)
    return torch.stack([part.view(torch.uint8) for part in parts]).view(torch.float8_e4m3fn)


def _register_product(name: str) -> None:
    operator = getattr(torch.ops.dualgemm, name).default
    row_places = _ROWS[name]
    row_scale = row_places[-1]

    def rule(info: Any, in_dims: tuple[Any, ...], *arguments: Any, **named: Any) -> tuple[Tensor, int]:
        mapped = [place for place, dim in enumerate(in_dims) if dim is not None and place < len(arguments)]
        moved = _moved(in_dims, arguments)
        a_scales, scale = arguments[1], arguments[row_scale] if len(arguments) > row_scale else None
        rows_alone = all(place in row_places for place in mapped) and 0 in mapped and _is_one_layer(name, arguments)
        together = rows_alone and (a_scales is None or (1 in mapped and moved[1].dim() == moved[0].dim()))
        if together and (scale is None or row_scale in mapped):
            moved[0] = moved[0].contiguous()
            if a_scales is not None:
                moved[1] = moved[1].contiguous()
            if scale is not None:
                moved[row_scale] = moved[row_scale].reshape(-1)
            return operator(*moved, **named), 0
        result: tuple[Tensor, int] = _one_by_one(operator, info.batch_size, mapped, moved, named)
        return result

    torch.library.register_vmap(f"dualgemm::{name}", rule)


def _register_quantizer() -> None:
    operator = torch.ops.dualgemm.quantize_nvfp4.default

    def rule(info: Any, in_dims: tuple[Any, ...], *arguments: Any, **named: Any) -> Any:
        mapped = [place for place, dim in enumerate(in_dims) if dim is not None and place < len(arguments)]
        moved = _moved(in_dims, arguments)
        if mapped == [0] and named.get("per_row") and named.get("scale_layout", "linear") == "linear":
            return operator(moved[0].contiguous(), *moved[1:], **named), (0, 0, 0)
        return _one_by_one(operator, info.batch_size, mapped, moved, named)

    torch.library.register_vmap("dualgemm::quantize_nvfp4", rule)


def register() -> None:
    for name in _ROWS:
        _register_product(name)
    _register_quantizer()
