"""What the adapters to engines share: a mixture's experts, packed once."""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor

from .._errors import DualGemmError
from .._quantized import call

_ops = torch.ops.dualgemm


class PackedExperts(NamedTuple):
    """Bytes [experts, bytes an expert] of Gate and Up, or of Up alone, and of Down; and Gate's outputs."""

    first: Tensor
    down: Tensor
    n: int


def gate_and_up(n: int, in_turn: bool) -> tuple[slice, slice]:
    """Where the rows of Gate and Up lie among 2 n."""
    return (slice(0, None, 2), slice(1, None, 2)) if in_turn else (slice(0, n), slice(n, None))


def pack_experts(
    w13: Tensor, s13: Tensor, w2: Tensor, s2: Tensor, gated: bool, in_turn: bool, rows: torch.dtype
) -> PackedExperts:
    """NVFP4 codes and linear E4M3 scales as engines load them: w13 [experts, 2 n, K / 2] or, not ``gated``, [experts, n, K / 2];
    w2 [experts, K, n / 2]. ``rows``: the type of x. ValueError: what the library cannot multiply."""
    n = w13.shape[1] // (2 if gated else 1)
    try:
        if gated:
            halves = [one[:, part] for part in gate_and_up(n, in_turn) for one in (w13, s13)]
            first = call(_ops.pack_weights, *halves, a_dtype=rows)
        else:
            first = call(_ops.pack_linear, w13, s13, a_dtype=rows)
        down = call(_ops.pack_linear, w2, s2, a_dtype=rows)
    except DualGemmError as error:
        raise ValueError(f"dualgemm: {error}") from None
    return PackedExperts(first.view(w13.shape[0], -1), down.view(w13.shape[0], -1), n)
