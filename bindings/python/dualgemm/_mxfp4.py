"""MXFP4 (OCP Microscaling Formats 1.0), exactly: as NVFP4, or in 16 bits where a matrix's exponents lie too far apart for that."""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor

from ._errors import FileError, Unsupported

_E2M1 = (0.0, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 6.0)
_BIAS, _NAN = 127, 255
_LEAST_E4M3, _MOST_E4M3, _LEAST_FP32 = -9, 8, -126  # exponents of powers of two that E4M3, and FP32's normal numbers, have
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


def as_nvfp4(name: str, codes: Tensor, scales: Tensor, parts: int, alternate: bool) -> tuple[Tensor, Tensor]:
    """E4M3 scales [E, N, K/16] and global scales [E, parts] of the experts ``name``: codes uint8 [E, N, K/2], scales E8M0
    [E, N, K/32]. ``parts``: 2 where the rows are those of Gate and Up, below each other or, with ``alternate``, in turn; each part
    has a global scale of its own. Exact: the codes stay. FileError: NaN among the scales. Unsupported: a part's exponents lie
    more than 17 apart."""
    experts, rows, blocks = scales.shape
    exponents = scales.view(torch.uint8)
    if bool((exponents == _NAN).any()):
        raise FileError(name, "NaN", "a block scale must be a number")
    made = torch.empty(experts, rows, blocks, 2, dtype=torch.float8_e4m3fn, device=scales.device)
    factors = torch.empty(experts, parts, dtype=torch.float32)
    for expert in range(experts):
        for part in range(parts):
            own = slice(part, None, parts) if alternate else slice(part * rows // parts, (part + 1) * rows // parts)
            found = exponents_of(codes[expert, own].contiguous(), exponents[expert, own].contiguous())
            if found.span > _MOST_E4M3 - _LEAST_E4M3:
                said = f"expert {expert}: exponents from {found.least} to {found.most}, {found.span} apart"
                raise Unsupported(name, said, "must lie within 17 of each other to be exact as NVFP4")
            whole = max(found.most - _MOST_E4M3, _LEAST_FP32)
            powers = (exponents[expert, own].int() - (_BIAS + whole)).clamp(_LEAST_E4M3, _MOST_E4M3)
            made[expert, own] = torch.exp2(powers.float()).to(torch.float8_e4m3fn)[..., None]
            factors[expert, part] = 2.0**whole
    return made.reshape(experts, rows, blocks * 2), factors.to(scales.device)


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
