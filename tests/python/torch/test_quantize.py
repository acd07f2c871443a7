"""quantize and dequantize against the recipe in NumPy, bit by bit."""

from __future__ import annotations

import numpy as np
import pytest
import reference
import torch
from operands import DEVICE, as_numpy, dg, same_bits

GRID = reference.E2M1[:8]


def nearest_even(values: np.ndarray, grid: np.ndarray) -> np.ndarray:
    """Index of the nearest of an ascending grid; ties go to the even index, beyond the end to the last."""
    upper = np.clip(np.searchsorted(grid, values), 1, len(grid) - 1)
    below, above = values - grid[upper - 1], grid[upper] - values
    index = np.where(below < above, upper - 1, upper)
    return np.where(below == above, np.where((upper - 1) % 2 == 0, upper - 1, upper), index)


def recipe(x: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.float32]:
    """docs/formats.md: G = 2688 / amax, s = e4m3(min(G * amax_of_block / 6, 448)), code = e2m1(x * G / s), all in float32."""
    amax = np.abs(x).max().astype(np.float32)
    g = np.float32(2688) / amax
    blocks = x.reshape(-1, 16).astype(np.float32)
    wanted = np.minimum(g * np.abs(blocks).max(1) / np.float32(6), np.float32(448)).astype(np.float32)
    scale_codes = nearest_even(wanted.astype(np.float64), reference.E4M3[:127]).astype(np.uint8)
    s = reference.E4M3[scale_codes].astype(np.float32)
    with np.errstate(divide="ignore", invalid="ignore"):
        scaled = np.where(s[:, None] > 0, blocks * (g / s)[:, None], 0).astype(np.float32)
    codes = nearest_even(np.abs(scaled).astype(np.float64), GRID).astype(np.uint8) | (np.signbit(scaled) << 3).astype(np.uint8)
    codes = codes.reshape(x.shape[0], -1)
    return codes[:, ::2] | codes[:, 1::2] << 4, scale_codes.reshape(x.shape[0], -1), amax / np.float32(2688)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32])
@pytest.mark.parametrize("rows,k", [(1, 16), (3, 160), (130, 64)])
def test_close_to_the_recipe_and_exact_back(dtype: torch.dtype, rows: int, k: int) -> None:
    x = (torch.from_numpy(np.random.default_rng(rows).standard_normal((rows, k))).to(DEVICE) * 3).to(dtype)
    q = dg.quantize(x)
    codes, scales, scale = recipe(x.float().cpu().numpy())
    assert float(q.global_scale) == pytest.approx(float(scale), rel=1e-6)
    assert (as_numpy(q.scales) == scales).mean() > 0.99  # a rounding of the recipe's order of operations may differ
    assert (as_numpy(q.codes) == codes).mean() > 0.99
    exact = reference.decode(as_numpy(q.codes), as_numpy(q.scales)) * float(q.global_scale)
    assert (dg.dequantize(q).double().cpu().numpy() == exact.astype(np.float32)).all()
    block_scale = np.repeat(reference.E4M3[as_numpy(q.scales)], 16, axis=-1) * float(q.global_scale)
    assert (
        np.abs(exact - x.double().cpu().numpy()) <= 1.07 * block_scale + 1e-30
    ).all()  # half a step of 2, and the block scale's rounding


def test_layouts_ways_and_outputs() -> None:
    # The same values on every device: where 1 / (amax / 2688) is not 2688 / amax, a block's scale may be the next one.
    x = torch.randn(5, 7, 64, generator=torch.Generator("cpu").manual_seed(0), device="cpu").to(DEVICE, torch.bfloat16)
    linear = dg.quantize(x)
    assert linear.codes.shape == (5, 7, 32) and linear.scales.shape == (5, 7, 4)
    swizzled = dg.quantize(x, scale_layout="swizzled_128x4")
    assert same_bits(swizzled.scales, dg.swizzle_scales(linear.scales.reshape(35, 4)))
    assert same_bits(dg.unswizzle_scales(swizzled.scales, 35, 4), linear.scales.reshape(35, 4))
    assert same_bits(dg.dequantize(swizzled), dg.dequantize(linear))
    given = dg.quantize(x, global_scale=float(linear.global_scale))
    assert all(same_bits(one, two) for one, two in zip(given, dg.quantize(x, global_scale=linear.global_scale)))
    assert same_bits(given.global_scale, linear.global_scale)
    assert (as_numpy(given.codes) == as_numpy(linear.codes)).mean() > 0.99  # 1 / (amax / 2688) is not 2688 / amax to the bit
    rows = dg.quantize(x, per_row=True)
    assert rows.global_scale.shape == (5, 7)
    for i, j in [(0, 0), (4, 6)]:
        own = dg.quantize(x[i, j : j + 1])
        assert same_bits(own.codes, rows.codes[i, j : j + 1]) and float(own.global_scale) == float(rows.global_scale[i, j])
    out = dg.QuantizedTensor(torch.empty_like(linear.codes), torch.empty_like(linear.scales), torch.empty(1))
    assert all(same_bits(one, two) for one, two in zip(dg.quantize(x, out=out), linear))
    four = dg.quantize(x, four_over_six=True)
    error = lambda q: float((dg.dequantize(q) - x.float()).abs().mean())
    assert error(four) < error(linear)


def test_nibbles() -> None:
    codes = torch.arange(256, dtype=torch.uint8)
    assert torch.equal(dg.swap_nibbles(dg.swap_nibbles(codes)), codes)
    assert int(dg.swap_nibbles(codes)[0x2D]) == 0xD2


@pytest.mark.parametrize("bad", [float("nan"), float("inf")])
def test_not_finite(bad: float) -> None:
    x = torch.zeros(2, 32)
    x[1, 3] = bad
    if DEVICE == "cuda":  # an error would have to wait for the GPU
        assert dg.dequantize(dg.quantize(x)).isnan().any()
        return
    with pytest.raises(dg.InvalidArgument, match="x: NaN or infinity in row 1; must be finite"):
        dg.quantize(x)


def test_refused() -> None:
    x = torch.zeros(2, 32)
    for arguments, named in [
        ((x[:, :20],), {}),
        ((x.double(),), {}),
        ((torch.zeros(32),), {}),
        ((x,), dict(scale_layout="rows")),
        ((x,), dict(per_row=True, global_scale=1.0)),
        ((x.T,), {}),
        ((x,), dict(global_scale=torch.ones(2))),
    ]:
        with pytest.raises(dg.InvalidArgument):
            dg.quantize(*arguments, **named)
    with pytest.raises(dg.InvalidArgument):
        dg.unswizzle_scales(torch.zeros(512, dtype=torch.uint8), 200, 4)
