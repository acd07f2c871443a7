"""What pack makes, the product takes: every N, K, layout of scales and kind of weights."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from operands import DEVICE, ROWS, dg, only_on_cpu, same_bits

OPS = torch.ops.dualgemm


def matrix(n: int, k: int, seed: int) -> dg.QuantizedTensor:
    return dg.quantize(torch.randn(n, k, generator=torch.Generator(DEVICE).manual_seed(seed)))


def laid(scales: torch.Tensor, layout: str) -> torch.Tensor:
    """Linear scales [..., N, S] as linear, flat, or the challenge's six dimensions."""
    if layout == "linear":
        return scales
    flat = dg.swizzle_scales(scales)
    if layout == "flat":
        return flat
    rows, blocks = -(-scales.shape[-2] // 128), -(-scales.shape[-1] // 4)
    return flat.view(torch.uint8).reshape(-1, rows, blocks, 32, 4, 4).permute(3, 4, 1, 5, 2, 0).view(torch.float8_e4m3fn)


def check(n: int, k: int, layout: str, experts: int, dtype: torch.dtype) -> None:
    """Packed in any layout as from linear scales that were never packed, for one matrix and for two."""
    parts = [[matrix(n, k, seed + 10 * expert) for seed in (0, 1)] for expert in range(max(experts, 1))]

    def stacked(index: int, name: str) -> torch.Tensor:
        found = [getattr(part[index], name).view(torch.uint8) for part in parts]
        return torch.stack(found) if experts else found[0]

    codes = [stacked(index, "codes") for index in (0, 1)]
    linear = [stacked(index, "scales").view(torch.float8_e4m3fn) for index in (0, 1)]
    own = [laid(scales, layout) for scales in linear]
    x = torch.randn(*((experts, 3, k) if experts else (3, k))).to(dtype)
    wanted = dg.LinearWeights.from_tensors(codes[0], linear[0], prepare=False)(x)
    made = dg.LinearWeights.from_tensors(codes[0], own[0], a_dtype=dtype)
    again = dg.LinearWeights.from_state_dict(made.state_dict())
    packed = OPS.pack_linear(codes[0], own[0], a_dtype=dtype)
    both = dg.Weights.from_tensors(codes[0], own[0], codes[1], own[1], a_dtype=dtype)
    results = [made(x), again(x), OPS.linear(x, None, None, None, packed, n, max(experts, 1))]
    dual = dg.Weights.from_tensors(codes[0], linear[0], codes[1], linear[1], prepare=False)(x)
    for found, exact in [*((result, wanted) for result in results), (both(x), dual)]:
        if DEVICE == "cpu":
            assert same_bits(found, exact)
        torch.testing.assert_close(found, exact, rtol=2e-2, atol=2e-2 * float(exact.abs().max()))


@pytest.mark.parametrize("layout", ["flat", "six"])
@pytest.mark.parametrize("n", [1, 15, 16, 17, 32, 96, 127, 128, 129, 160, 255, 256, 257, 384, 640, 1000, 1152, 4224])
def test_one_matrix_of_swizzled_scales(n: int, layout: str) -> None:
    check(n, 64, layout, 0, torch.bfloat16)


@given(
    st.integers(1, 700),
    st.integers(1, 20),
    st.sampled_from(["linear", "flat", "six"]),
    st.sampled_from([0, 1, 2, 3]),
    st.sampled_from(ROWS),
)
@settings(max_examples=60, deadline=None)
def test_whatever_is_packed_is_taken(n: int, blocks: int, layout: str, experts: int, dtype: torch.dtype) -> None:
    check(n, 16 * blocks, layout, experts, dtype)


@pytest.mark.parametrize("n", [96, 160, 384, 4224])
def test_modules_of_swizzled_scales(n: int) -> None:
    w = matrix(n, 64, 0)
    made = dg.nn.NVFP4Linear.from_weights(dg.LinearWeights.from_tensors(w.codes, dg.swizzle_scales(w.scales), prepare=False))
    x = torch.randn(3, 64, dtype=torch.bfloat16)
    with torch.no_grad():
        wanted = made(x)
        torch.testing.assert_close(made.finalize()(x), wanted, rtol=2e-2, atol=2e-2 * float(wanted.abs().max()))


@only_on_cpu
def test_swizzled_scales_of_groups_fit_exactly() -> None:
    """On a CPU no room is demanded for offsets that are not there."""
    counts, k = [3, 0, 130, 1], 64
    w = [matrix(16, k, seed) for seed in range(4)]
    weights = dg.LinearWeights.from_tensors(torch.stack([one.codes for one in w]), torch.stack([one.scales for one in w]))
    rows = [matrix(count, k, 9 + count) for count in counts if count]
    codes = torch.cat([one.codes for one in rows])
    offsets = torch.tensor([0, 3, 3, 133, 134], dtype=torch.int32)
    linear = weights(codes, torch.cat([one.scales.view(torch.uint8) for one in rows]), offsets=offsets, out_dtype=torch.float32)
    exact = torch.cat([dg.swizzle_scales(one.scales).view(torch.uint8) for one in rows])
    assert exact.numel() == 4 * 512
    assert same_bits(weights(codes, exact, offsets=offsets, out_dtype=torch.float32), linear)
    with pytest.raises(dg.InvalidArgument, match="at least 2048"):
        weights(codes, exact[:-512], offsets=offsets)
