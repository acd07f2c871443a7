"""torch.func.vmap over glu and linear: mapped rows are more rows, anything else is done one after the other."""
from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

# Which arguments go along with the rows: a, a_scales (linear), a_row_scale; by their place in the schema.
_ROWS = {"glu": (0, 1, 8), "linear": (0, 1, 13)}
_ROW_SCALE = {"glu": 8, "linear": 13}


def _register(name: str) -> None:
    operator = getattr(torch.ops.dualgemm, name).default
    row_places, row_scale = _ROWS[name], _ROW_SCALE[name]

    def rule(info: Any, in_dims: tuple[Any, ...], *arguments: Any, **named: Any) -> tuple[Tensor, int]:
        mapped = [place for place, dim in enumerate(in_dims) if dim is not None and place < len(arguments)]
        moved = [value.movedim(dim, 0) if dim is not None else value for value, dim in zip(arguments, in_dims)]
        a_scales, scale = arguments[1], arguments[row_scale] if len(arguments) > row_scale else None
        rows_alone = all(place in row_places for place in mapped) and 0 in mapped
        together = rows_alone and (a_scales is None or (1 in mapped and moved[1].dim() == moved[0].dim()))
        if together and (scale is None or row_scale in mapped):
            if scale is not None:
                moved[row_scale] = moved[row_scale].reshape(-1)
            return operator(*moved, **named), 0
        each = [operator(*(value[i] if place in mapped else value for place, value in enumerate(moved)), **named)
                for i in range(info.batch_size)]
        return torch.stack(each), 0

    torch.library.register_vmap(f"dualgemm::{name}", rule)


def register() -> None:
    for name in _ROWS:
        _register(name)
