"""Gated MLPs in NVFP4: D = act(alpha_gate * A @ Gate.T) * (alpha_up * A @ Up.T) in one pass, on CPUs and GPUs.

``import dualgemm`` needs neither torch, NumPy nor a GPU: plan(), run() and device_info() work on arrays of any library. What
needs torch (>= 2.10) is imported when it is first asked for: glu, linear, quantize, Weights, nn, ... and torch.ops.dualgemm.

Formats. Codes: E2M1, two a byte, low nibble = even k; dtype uint8 or torch.float4_e2m1fn_x2, shape [..., K/2].
Scales: E4M3, one per 16 codes along k; dtype uint8 or torch.float8_e4m3fn. K % 16 == 0; any M >= 0, N >= 1.
    linear          [..., rows, K/16]; rows may be strided, the last dimension is contiguous
    swizzled_128x4  1-D (batches: [L, span]) flat bytes, as torch's SWIZZLE_32_4_4, cuBLASLt and FlashInfer have them; the 6-D
                    view [32, 4, ceil(R/128), 4, ceil(K/64), L] of the GPU MODE task is taken as it lies
``scale_layout="auto"`` takes as many dimensions as the codes have for linear, 1-D (batches: 2-D) and 6-D for swizzled. A 2-D
*padded* swizzled tensor (vLLM) cannot be told from a linear one where rows % 128 == 0 and K % 64 == 0: it must be named, or
flattened.

Alphas are dequantising multipliers (input scale * weight scale), one for gate and one for up, before the activation. As
tensors they are float32 of 1 element or of L, on the device of ``a``: nothing synchronises.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from . import _interpreter  # noqa: F401  before anything that needs ctypes
from ._errors import DualGemmError, FileError, InvalidArgument, OutOfMemory, Unsupported, WorkspaceTooSmall
from ._library import version as _version
from ._plan import Plan, device_info, plan, run

__version__ = _version()

# Where each name comes from that needs torch.
_IN_TORCH = {
    name: module
    for module, names in {
        "torch": (
            "QuantizedTensor",
            "quantize",
            "dequantize",
            "swizzle_scales",
            "transform_rows",
            "unswizzle_scales",
            "swap_nibbles",
            "glu",
            "glu_nvfp4",
            "linear_nvfp4",
            "linear",
            "explain",
            "m_grouped_glu_contiguous",
            "m_grouped_glu_masked",
        ),
        "weights": ("Weights", "LinearWeights"),
        "nn": ("GatedMLP", "GatedExperts", "replace_mlps"),
        "checkpoint": ("Checkpoint", "open_checkpoint", "from_pretrained"),
    }.items()
    for name in names
}
_MODULES = ("torch", "weights", "nn", "checkpoint", "distributed", "jax", "gpumode", "integrations")

# As a list that type checkers can read.
__all__ = [
    "Checkpoint",
    "DualGemmError",
    "FileError",
    "GatedExperts",
    "GatedMLP",
    "InvalidArgument",
    "LinearWeights",
    "OutOfMemory",
    "Plan",
    "QuantizedTensor",
    "Unsupported",
    "Weights",
    "WorkspaceTooSmall",
    "dequantize",
    "device_info",
    "explain",
    "from_pretrained",
    "glu",
    "glu_nvfp4",
    "linear_nvfp4",
    "linear",
    "m_grouped_glu_contiguous",
    "m_grouped_glu_masked",
    "open_checkpoint",
    "plan",
    "quantize",
    "replace_mlps",
    "run",
    "swap_nibbles",
    "swizzle_scales",
    "transform_rows",
    "unswizzle_scales",
]

if TYPE_CHECKING:  # a __getattr__ would make Any of every name
    from . import checkpoint as checkpoint, distributed as distributed, gpumode as gpumode, integrations as integrations
    from . import jax as jax, nn as nn, torch as torch, weights as weights
    from .checkpoint import Checkpoint, from_pretrained, open_checkpoint
    from .nn import GatedExperts, GatedMLP, replace_mlps
    from .torch import (
        QuantizedTensor,
        dequantize,
        explain,
        glu,
        glu_nvfp4,
        linear_nvfp4,
        linear,
        quantize,
        swap_nibbles,
        swizzle_scales,
        transform_rows,
        unswizzle_scales,
    )
    from .weights import LinearWeights, Weights, m_grouped_glu_contiguous, m_grouped_glu_masked
else:

    def __getattr__(name: str) -> Any:
        if name in _IN_TORCH:
            return getattr(importlib.import_module(f"{__name__}.{_IN_TORCH[name]}"), name)
        if name in _MODULES:
            return importlib.import_module(f"{__name__}.{name}")
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *_IN_TORCH, *_MODULES})
