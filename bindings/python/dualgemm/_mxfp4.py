"""MXFP4 (OCP Microscaling Formats 1.0) in 16 bits, exactly: for matrices whose exponents lie further apart than NVFP4's."""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor

from ._errors import FileError, Unsupported

_E2M1 = (0.0, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 6.0)
_BIAS, _NAN = 127, 255
_ROWS_AT_ONCE = 4096


class Exponents(NamedTuple):
    """Those of the blocks that are not all zeros."""

    least: int
    most: int

    @property
    def span(self) -> int:
        return self.most - self.least


def exponents_of(codes: Tensor, scales: Tensor) -> Exponents:
    """codes: uint8 [..., K/2]; scales: E8M0 [..., K/32]."""
    counts = ((codes.reshape(*scales.shape, 16) & 0x77) != 0).any(-1)
    used = scales.view(torch.uint8)[counts]
    if not used.numel():
        return Exponents(0, 0)
    return Exponents(int(used.min()) - _BIAS, int(used.max()) - _BIAS)


def decode(name: str, codes: Tensor, scales: Tensor, dtype: torch.dtype) -> Tensor:
    """[..., K] of the matrix ``name``. FileError: NaN among its scales. Unsupported: ``dtype`` has not all of its values."""
    exponents = scales.view(torch.uint8)
    if bool((exponents == _NAN).any()):
        raise FileError(name, "NaN", "a block scale must be a number")
    table = torch.tensor([*_E2M1, *(-value for value in _E2M1)], dtype=torch.float64, device=codes.device)
    rows, powers = codes.reshape(-1, codes.shape[-1]), exponents.reshape(-1, exponents.shape[-1])
    made = torch.empty(rows.shape[0], rows.shape[1] * 2, dtype=dtype, device=codes.device)
    for first in range(0, rows.shape[0], _ROWS_AT_ONCE):
        part = rows[first : first + _ROWS_AT_ONCE]
        values = table[torch.stack((part & 15, part >> 4), -1).long()].reshape(part.shape[0], -1, 32)
        scale = torch.exp2((powers[first : first + _ROWS_AT_ONCE].int() - _BIAS).double())  # exact: whole numbers
        values = (values * scale[..., None]).reshape(part.shape[0], -1)
        made[first : first + _ROWS_AT_ONCE] = values
        if not torch.equal(made[first : first + _ROWS_AT_ONCE].double(), values):
            raise Unsupported(name, f"MXFP4 values beyond {dtype}", "must be exact: load in bfloat16 or float32")
    return made.reshape(*codes.shape[:-1], -1)
