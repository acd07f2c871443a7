"""sglang#30887: 704 rows over 2 ranks are 352 each; gate and up were padded apart."""

import torch
from situations import DEVICE, ROW, quantized

import dualgemm as dg


def test_shares_of_352_rows_are_those_rows() -> None:
    gate, up = quantized(1, 704, 64), quantized(2, 704, 64)
    whole = dg.Weights.from_tensors(
        gate.codes, gate.scales, up.codes, up.scales, alpha_gate=gate.global_scale, alpha_up=up.global_scale, prepare=False
    )
    x = torch.randn(6, 64, generator=torch.Generator(DEVICE).manual_seed(0)).to(ROW)
    wanted = whole(x, out_dtype=torch.float32)
    for prepare in (False, True):
        shares = [whole.shard(rank, 2) for rank in range(2)]
        parts = [(one.prepare() if prepare else one)(x, out_dtype=torch.float32) for one in shares]
        assert [part.shape[1] for part in parts] == [352, 352]
        torch.testing.assert_close(torch.cat(parts, 1), wanted, rtol=2e-3, atol=1e-4)
