"""flashinfer#3807: experts with an intermediate size from 1024 on ask for more shared memory than there is."""

import pytest
import torch
from situations import DEVICE, ROW, is_close, quantized, values

import dualgemm as dg


@pytest.mark.parametrize("n", [1024, 1536, 2048])
def test_wide_experts(n: int) -> None:
    k, count = 64, 2
    made = [(quantized(2 * e + 1, n, k), quantized(2 * e + 2, n, k)) for e in range(count)]
    gate, up = ([pair[i] for pair in made] for i in range(2))
    weights = dg.Weights.from_tensors(
        torch.stack([one.codes for one in gate]),
        torch.stack([one.scales.view(torch.uint8) for one in gate]),
        torch.stack([one.codes for one in up]),
        torch.stack([one.scales.view(torch.uint8) for one in up]),
        alpha_gate=torch.cat([one.global_scale.reshape(1) for one in gate]),
        alpha_up=torch.cat([one.global_scale.reshape(1) for one in up]),
    )
    x = torch.randn(count, 3, k, generator=torch.Generator(DEVICE).manual_seed(n)).to(ROW)
    found = weights(x, out_dtype=torch.float32)
    for e in range(count):
        g, u = (x[e].double().cpu() @ values(one[e]).cpu().T for one in (gate, up))
        assert is_close(found[e], g * torch.sigmoid(g) * u)
