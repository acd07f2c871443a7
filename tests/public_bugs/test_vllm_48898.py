"""vllm#48898: a rank's share of K is no multiple of 32."""

import torch
from situations import DEVICE, ROW, is_close, quantized, values

import dualgemm as dg


def test_any_multiple_of_16_is_right() -> None:
    for k in (16, 48, 80, 176, 208):
        w = quantized(k, 40, k)
        product = dg.LinearWeights.from_tensors(w.codes, w.scales, alpha=w.global_scale)
        x = torch.randn(5, k, generator=torch.Generator(DEVICE).manual_seed(k)).to(ROW)
        assert is_close(product(x, out_dtype=torch.float32), x.double().cpu() @ values(w).cpu().T), k
