"""The functions on torch tensors. Importing this registers torch.ops.dualgemm.* (torch >= 2.10).

Every function is forward only, works on the CPU and on CUDA (the current stream, any device index), under
torch.compile(fullgraph=True, dynamic=True), export and CUDA graphs, and raises DualGemmError with argument, observation and
rule, with nothing written. A direct call of torch.ops.dualgemm.* raises RuntimeError with the same text.
"""

from __future__ import annotations

from ._explain import explain, plans_kept
from ._products import glu, glu_nvfp4, linear
from ._quantized import QuantizedTensor, dequantize, quantize, swap_nibbles, swizzle_scales, unswizzle_scales
from .weights import LinearWeights, Weights, m_grouped_glu_contiguous, m_grouped_glu_masked

__all__ = [
    "LinearWeights",
    "QuantizedTensor",
    "Weights",
    "dequantize",
    "explain",
    "glu",
    "glu_nvfp4",
    "linear",
    "m_grouped_glu_contiguous",
    "m_grouped_glu_masked",
    "plans_kept",
    "quantize",
    "swap_nibbles",
    "swizzle_scales",
    "unswizzle_scales",
]
