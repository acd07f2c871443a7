"""sglang#34192: a model whose router weights are factors of the experts' input (Llama-4) gets them on the output."""

import pytest
import torch
from situations import DEVICE, ROW

import dualgemm as dg

transformers = pytest.importorskip("transformers", reason="transformers is not installed")


def test_router_weights_stay_on_the_input() -> None:
    module = pytest.importorskip("transformers.models.llama4.modeling_llama4")
    torch.manual_seed(3)
    config = transformers.Llama4TextConfig(
        hidden_size=64, intermediate_size=96, num_local_experts=4, num_experts_per_tok=1, hidden_act="silu"
    )
    moe = module.Llama4TextMoe(config).to(ROW).eval()
    with torch.no_grad():
        for parameter in moe.parameters():
            parameter.normal_(std=0.3)
        moe.router.weight.mul_(0.05)  # weights near a half: at 1 both places are one
        x = torch.randn(1, 11, 64, device=DEVICE).to(ROW) * 2
        wanted = moe(x)[0]
        # The same with the weights on the output: what the report is about, and far from it as activations are no lines.
        flat = x.reshape(-1, 64)
        scores, _ = moe.router(flat)
        routed = moe.experts(flat.repeat(4, 1)) * scores.transpose(0, 1).reshape(-1, 1)
        on_output = moe.shared_expert(flat) + routed.reshape(4, -1, 64).sum(0)
        assert dg.replace_mlps(moe) == ["experts", "shared_expert"]
        dg.nn.finalize(moe)
        found = moe(x)[0]
    scale = wanted.float().norm()
    error, other = (found - wanted).float().norm() / scale, (found - on_output).float().norm() / scale
    assert error < 0.25 and error < 0.7 * other, (float(error), float(other))  # four bits; another formula
