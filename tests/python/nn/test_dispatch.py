"""Which packed bytes a GPU takes for which rows: every documented combination, by the rules that a GPU's calls go through.

A CPU's bytes fit all rows. Here its device is said to pack by rows, as a GPU does, so that a call with others is refused.
"""

from __future__ import annotations

import copy
import itertools

import pytest
import torch
from operands import dg, only_on_cpu
from torch import nn

from dualgemm import _container

WIDE = [torch.bfloat16, torch.float16]


@pytest.fixture(autouse=True)
def packs_by_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_container, "packs_by_rows", lambda device: True)


class Plain(nn.Module):
    def __init__(self, dtype: torch.dtype) -> None:
        super().__init__()
        self.gate_proj, self.up_proj, self.down_proj = (nn.Linear(a, b, dtype=dtype) for a, b in ((64, 96), (64, 96), (96, 64)))
        self.act_fn = nn.SiLU()

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.down_proj(self.act_fn(self.gate_proj(x)) * self.up_proj(x))


@only_on_cpu
def test_the_rules_are_those_of_a_gpu() -> None:
    made = dg.GatedMLP.from_float(Plain(torch.bfloat16)).finalize(a_dtype=torch.float16)
    with pytest.raises(dg.Unsupported, match="packed for float16 or NVFP4"), torch.no_grad():
        made(torch.randn(2, 64, dtype=torch.bfloat16))


@pytest.mark.parametrize("dtype", WIDE)
@pytest.mark.parametrize("static", [False, True])
@pytest.mark.parametrize("input_dtype,down_dtype", list(itertools.product(("bf16", "nvfp4"), (None, "bf16", "nvfp4"))))
def test_a_finalized_mlp_takes_its_rows(input_dtype: str, down_dtype: str | None, static: bool, dtype: torch.dtype) -> None:
    torch.manual_seed(0)
    scale = 0.01 if static else None
    made = dg.GatedMLP.from_float(Plain(dtype), input_dtype=input_dtype, input_scale=scale)
    if down_dtype is not None:
        made.down = dg.nn.NVFP4Linear.from_float(made.down, input_dtype=down_dtype, input_scale=scale)
    x = torch.randn(3, 64, dtype=dtype)
    with torch.no_grad():
        wanted = made(x)
        for whole in (False, True):  # the function for models, and the method
            for a_dtype in {dtype, *([None, torch.uint8] if dtype == torch.bfloat16 else [])}:
                final = copy.deepcopy(made)
                if whole:
                    dg.nn.finalize(final, a_dtype=a_dtype)
                else:
                    final.finalize(a_dtype=a_dtype)
                torch.testing.assert_close(final(x), wanted, rtol=2e-2, atol=2e-2 * float(wanted.abs().max()))


@pytest.mark.parametrize("dtype", WIDE)
@pytest.mark.parametrize("input_dtype", ["bf16", "nvfp4"])
def test_finalized_experts_take_their_rows(input_dtype: str, dtype: torch.dtype) -> None:
    torch.manual_seed(0)
    gate, up, down = (torch.randn(3, *shape, dtype=dtype) / 8 for shape in ((48, 64), (48, 64), (64, 48)))
    parts = [dg.weights.quantized_weight("w", w, False) for w in (gate, up, down)]
    w = dg.Weights.from_tensors(
        parts[0].codes,
        parts[0].scales,
        parts[1].codes,
        parts[1].scales,
        alpha_gate=parts[0].global_scale,
        alpha_up=parts[1].global_scale,
        prepare=False,
    )
    second = dg.LinearWeights.from_tensors(parts[2].codes, parts[2].scales, alpha=parts[2].global_scale, prepare=False)
    for scales in ({}, {"input_scale": 0.01, "down_input_scale": 0.02}):
        made = dg.GatedExperts.from_weights(w, second, input_dtype=input_dtype, **scales)
        x, ids, factors = torch.randn(5, 64, dtype=dtype), torch.randint(0, 3, (5, 2)), torch.rand(5, 2)
        with torch.no_grad():
            wanted = made(x, ids, factors)
            made.finalize(a_dtype=dtype)
            torch.testing.assert_close(made(x, ids, factors), wanted, rtol=2e-2, atol=2e-2 * float(wanted.abs().max()))


def test_input_scales_of_experts_are_used() -> None:
    """The static scale is what the rows are quantised with, and a factor of the alphas."""
    torch.manual_seed(0)
    parts = [dg.weights.quantized_weight("w", torch.randn(2, *shape) / 8, False) for shape in ((48, 64), (48, 64), (64, 48))]
    w = dg.Weights.from_tensors(parts[0].codes, parts[0].scales, parts[1].codes, parts[1].scales, prepare=False)
    down = dg.LinearWeights.from_tensors(parts[2].codes, parts[2].scales, prepare=False)
    x, ids, ones = torch.randn(4, 64, dtype=torch.bfloat16), torch.zeros((4, 1), dtype=torch.int64), torch.ones((4, 1))
    made = dg.GatedExperts.from_weights(w, down, input_dtype="nvfp4", input_scale=0.5, down_input_scale=3.0)
    plain = dg.GatedExperts.from_weights(w, down)
    first = [dg.QuantizedTensor(*(t[0] for t in part[:2]), torch.ones(1)) for part in parts]
    with torch.no_grad():
        rows = dg.quantize(x, global_scale=0.5)
        one = dg.Weights.from_tensors(
            first[0].codes, first[0].scales, first[1].codes, first[1].scales, a_dtype=torch.uint8, prepare=False
        )
        h = one(rows, out_dtype=torch.bfloat16)
        second = dg.LinearWeights.from_tensors(first[2].codes, first[2].scales, a_dtype=torch.uint8, prepare=False)
        wanted = second(dg.quantize(h, global_scale=3.0), out_dtype=torch.bfloat16)
        found = made(x, ids, ones)
        torch.testing.assert_close(found, wanted, rtol=1e-2, atol=1e-2 * float(wanted.abs().max()))
        assert not torch.allclose(found, plain(x, ids, ones), rtol=1e-3)
