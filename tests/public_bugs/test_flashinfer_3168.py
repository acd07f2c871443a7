"""flashinfer#3168: a hidden size of 2688 is padded to 2816 without a word, and the weights are read from the wrong place."""

import torch
from situations import DEVICE, ROW, is_close, quantized, values

import dualgemm as dg


def test_2688_columns_are_2688() -> None:
    w = quantized(7, 48, 2688)
    for keep_original in (False, True):
        product = dg.LinearWeights.from_tensors(w.codes, w.scales, alpha=w.global_scale, prepare=False)
        product = product.prepare(keep_original=keep_original)
        x = torch.randn(4, 2688, generator=torch.Generator(DEVICE).manual_seed(1)).to(ROW)
        assert is_close(product(x, out_dtype=torch.float32), x.double().cpu() @ values(w).cpu().T)
