"""tokenspeed#749: an activation called swiglu computes SiLU alone."""

import pytest
import torch
from situations import DEVICE, ROW, K, N, is_close, quantized, swiglu_oai, values

import dualgemm as dg


@pytest.mark.parametrize("activation", ["silu", "swiglu_oai", "clamped_swiglu"])
def test_every_kind_of_swiglu_multiplies_by_up(activation: str) -> None:
    gate, up = quantized(1, N, K), quantized(2, N, K)
    weights = dg.Weights.from_tensors(
        gate.codes, gate.scales, up.codes, up.scales, alpha_gate=gate.global_scale, alpha_up=up.global_scale
    )
    x = (torch.randn(8, K, generator=torch.Generator(DEVICE).manual_seed(2)) * 5).to(ROW)
    limit = {} if activation == "silu" else {"act_limit": 2.0}
    found = weights(x, activation=activation, out_dtype=torch.float32, **limit)
    g, u = (x.double().cpu() @ values(one).cpu().T for one in (gate, up))
    wanted = {
        "silu": lambda: g * torch.sigmoid(g) * u,
        "swiglu_oai": lambda: swiglu_oai(g, u, 1.702, 2.0),
        "clamped_swiglu": lambda: g.clamp(max=2) * torch.sigmoid(g.clamp(max=2)) * u.clamp(-2, 2),
    }[activation]()
    assert is_close(found, wanted) and not is_close(found, g * torch.sigmoid(g))
