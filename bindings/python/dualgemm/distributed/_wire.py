"""Rows in NVFP4 as one message: what a row needs lies together, so that a row goes anywhere in one piece."""

from __future__ import annotations

import torch
from torch import Tensor

from .._quantized import QuantizedTensor


def to_bytes(x: QuantizedTensor) -> Tensor:
    """uint8 [rows, K/2 + K/16 + 4] of codes, linear scales and a float32 global scale each."""
    rows = x.codes.shape[0]
    global_scale = x.global_scale.reshape(-1, 1).expand(rows, 1).contiguous()
    return torch.cat((x.codes.view(torch.uint8), x.scales.view(torch.uint8), global_scale.view(torch.uint8)), 1)


def from_bytes(message: Tensor, codes_dtype: torch.dtype, scales_dtype: torch.dtype) -> QuantizedTensor:
    """The inverse, each part contiguous; global_scale: float32 [rows]."""
    blocks = (message.shape[1] - 4) // 9
    codes, scales, global_scale = (part.contiguous() for part in torch.split(message, [blocks * 8, blocks, 4], 1))
    return QuantizedTensor(codes.view(codes_dtype), scales.view(scales_dtype), global_scale.view(torch.float32).reshape(-1))
