"""vllm#55456: with 1, 5 and 129 rows, a quantised output with swizzled scales is written behind its array."""

import pytest
import torch
from situations import DEVICE, quantized

import dualgemm as dg

POISON, AROUND = 0xA5, 2048


def poisoned(size: int) -> torch.Tensor:
    return torch.full((AROUND + size + AROUND,), POISON, dtype=torch.uint8, device=DEVICE)


@pytest.mark.parametrize("rows", [1, 5, 129])
@pytest.mark.parametrize("layout", ["linear", "swizzled_128x4"])
def test_nothing_around_is_written(rows: int, layout: str) -> None:
    n, k = 208, 64
    gate, up = quantized(1, n, k), quantized(2, n, k)
    x = torch.randn(rows, k, generator=torch.Generator(DEVICE).manual_seed(rows)).bfloat16()
    factors = dict(alpha_gate=gate.global_scale, alpha_up=up.global_scale, d_global_scale=0.01, d_scale_layout=layout)
    weights = dict(gate_scales=gate.scales, up_scales=up.scales)
    wanted = dg.glu_nvfp4(x, gate.codes, up.codes, **weights, **factors)
    memory = [poisoned(one.numel()) for one in (wanted.codes, wanted.scales)]
    codes, scales = (
        bytes_[AROUND:-AROUND].view(one.shape) for bytes_, one in zip(memory, (wanted.codes, wanted.scales.view(torch.uint8)))
    )
    out = dg.QuantizedTensor(codes, scales.view(torch.float8_e4m3fn), wanted.global_scale)
    dg.glu_nvfp4(x, gate.codes, up.codes, **weights, **factors, out=out)
    assert torch.equal(codes, wanted.codes)
    for around in memory:
        assert bool((around[:AROUND] == POISON).all()) and bool((around[-AROUND:] == POISON).all())
