"""glu, linear, glu_nvfp4 and the grouped forms against float64, element by element."""

from __future__ import annotations

import numpy as np
import pytest
import reference
import torch
from operands import DEVICE, ROWS, Operands, as_numpy, codes, decoded, dg, only_on_cuda, operands, same_bits, scales

A_DTYPES = [torch.uint8, *ROWS]
WIDE = [torch.float16, torch.bfloat16, torch.float32]


@pytest.mark.parametrize("a_dtype", A_DTYPES)
@pytest.mark.parametrize("m,n,k", [(1, 1, 16), (1, 64, 256), (3, 33, 48), (16, 100, 128), (40, 17, 208), (65, 256, 512)])
def test_shapes_and_dtypes(m: int, n: int, k: int, a_dtype: torch.dtype) -> None:
    given_operands = operands(m, n, k, a_dtype, seed=m)
    for out_dtype in (None, *WIDE):
        d = dg.glu(**given_operands.named(), out_dtype=out_dtype)
        assert d.shape == (m, n) and d.dtype == (out_dtype or (torch.float16 if a_dtype == torch.uint8 else a_dtype))
        given_operands.check(d)


@only_on_cuda
def test_float32_rows_are_refused_on_a_gpu() -> None:
    one = operands(3, 32, 64, torch.float32)
    for call in (lambda: dg.glu(**one.named()), lambda: dg.linear(one.a, one.gate, w_scales=one.gate_scales)):
        with pytest.raises(dg.Unsupported, match="f16 or bf16") as caught:
            call()
        assert (caught.value.argument, caught.value.observed) == ("a.type", "f32")


@pytest.mark.parametrize("activation", sorted(reference.ACTIVATIONS))
def test_activations(activation: str) -> None:
    given_operands = operands(7, 40, 96)
    given_operands.check(dg.glu(**given_operands.named(), activation=activation), activation)


def test_one_lost_element_is_seen() -> None:
    given_operands = operands(9, 40, 64)
    d = dg.glu(**given_operands.named())
    d[4, 33] = d[4, 32]
    with pytest.raises(AssertionError, match="1 of 360"):
        given_operands.check(d)


def test_gate_and_up_are_not_exchanged() -> None:
    one = operands(3, 32, 64)
    with pytest.raises(AssertionError):
        one.check(
            dg.glu(
                one.a,
                one.up,
                one.gate,
                a_scales=one.a_scales,
                gate_scales=one.up_scales,
                up_scales=one.gate_scales,
                alpha_gate=one.alpha_gate,
                alpha_up=one.alpha_up,
            )
        )


@pytest.mark.parametrize("dtypes", ["float4", "float8"])
def test_named_dtypes_are_the_same_bytes(dtypes: str) -> None:
    one = operands(7, 48, 96)
    plain = one.named()
    if dtypes == "float4":
        changed = {
            name: value.view(torch.float4_e2m1fn_x2) if name in ("a", "gate", "up") else value for name, value in plain.items()
        }
    else:
        changed = {name: value.view(torch.uint8) if name.endswith("scales") else value for name, value in plain.items()}
    assert same_bits(dg.glu(**plain), dg.glu(**changed))


@pytest.mark.parametrize("m,n,k", [(1, 16, 64), (130, 200, 320), (5, 129, 16)])
def test_swizzled_scales_in_every_shape(m: int, n: int, k: int) -> None:
    one = operands(m, n, k)
    expected = dg.glu(**one.named())
    flat = {name: dg.swizzle_scales(getattr(one, name)) for name in ("a_scales", "gate_scales", "up_scales")}
    for name, value in flat.items():
        assert (as_numpy(value) == reference.swizzle(as_numpy(getattr(one, name)))).all()
    assert same_bits(expected, dg.glu(**{**one.named(), **flat}))
    padded = {
        name: value.view(torch.uint8).reshape(-1, (k // 16 + 3) // 4 * 4).view(torch.float8_e4m3fn)
        for name, value in flat.items()
    }
    assert same_bits(expected, dg.glu(**{**one.named(), **padded}, scale_layout="swizzled_128x4"))  # as vLLM keeps them
    # The challenge's: memory [L, rows/128, k/64, 32, 4, 4], seen as [32, 4, rows/128, 4, k/64, L]
    six = {name: value.reshape(1, -1, (k + 63) // 64, 32, 4, 4).permute(3, 4, 1, 5, 2, 0) for name, value in flat.items()}
    assert same_bits(expected, dg.glu(**{**one.named(), **six}))


def test_strided_rows_and_leading_dimensions() -> None:
    one = operands(12, 40, 64, torch.bfloat16)
    expected = dg.glu(**one.named())
    wide = torch.full((12, 160), float("nan"), dtype=torch.bfloat16)
    wide[:, 16:80] = one.a
    assert same_bits(expected, dg.glu(**{**one.named(), "a": wide[:, 16:80]}))
    stacked = torch.stack([one.gate, one.up], dim=1)  # rows that alternate
    both = torch.stack([one.gate_scales.view(torch.uint8), one.up_scales.view(torch.uint8)], dim=1)
    assert same_bits(
        expected,
        dg.glu(
            **{**one.named(), "gate": stacked[:, 0], "up": stacked[:, 1], "gate_scales": both[:, 0], "up_scales": both[:, 1]}
        ),
    )
    d = dg.glu(**{**one.named(), "a": one.a.reshape(2, 3, 2, 64)})
    assert d.shape == (2, 3, 2, 40) and same_bits(expected, d.reshape(12, 40))
    out = torch.full((12, 64), 7, dtype=torch.bfloat16)
    assert dg.glu(**one.named(), out=out[:, 8:48]) is not None
    assert same_bits(expected, out[:, 8:48]) and (out[:, :8] == 7).all() and (out[:, 48:] == 7).all()


def test_batches_with_alphas_of_their_own() -> None:
    random = np.random.default_rng(5)
    each = [operands(6, 24, 64, seed=seed) for seed in range(3)]
    stack = {
        name: torch.stack([getattr(one, name) for one in each])
        for name in ("a", "a_scales", "gate", "gate_scales", "up", "up_scales")
    }
    alphas = torch.from_numpy(random.uniform(0.01, 0.1, (2, 3)).astype(np.float32)).to(DEVICE)
    d = dg.glu(**stack, alpha_gate=alphas[0], alpha_up=alphas[1])
    for i, one in enumerate(each):
        one.alpha_gate, one.alpha_up = alphas[0, i], alphas[1, i]
        one.check(d[i])
    shared = dg.glu(**stack, alpha_gate=0.05, alpha_up=torch.tensor(0.02))
    each[1].alpha_gate, each[1].alpha_up = torch.tensor(0.05), torch.tensor(0.02)
    each[1].check(shared[1])


def test_row_scales_and_biases() -> None:
    one = operands(5, 32, 64)
    row = torch.tensor([1.0, 0.5, 2.0, 0.25, 3.0])
    bias = torch.linspace(-1, 1, 32)
    d = dg.glu(**one.named(), a_row_scale=row, bias_gate=bias, bias_up=-bias, out_dtype=torch.float32).double().cpu().numpy()
    a = decoded(one.a, one.a_scales) * row.double().cpu().numpy()[:, None]
    g = float(one.alpha_gate) * a @ decoded(one.gate, one.gate_scales).T + bias.double().cpu().numpy()
    u = float(one.alpha_up) * a @ decoded(one.up, one.up_scales).T - bias.double().cpu().numpy()
    np.testing.assert_allclose(d, g * reference.sigmoid(g) * u, rtol=2e-5, atol=2e-5)


def test_batch_invariant_rows_keep_their_bits() -> None:
    one = operands(33, 64, 256)
    whole = dg.glu(**one.named(), batch_invariant=True)
    for first, last in [(0, 1), (5, 7), (8, 33)]:
        part = dg.glu(**{**one.named(), "a": one.a[first:last], "a_scales": one.a_scales[first:last]}, batch_invariant=True)
        assert same_bits(part, whole[first:last])


@pytest.mark.parametrize("a_dtype", A_DTYPES)
@pytest.mark.parametrize("residual", [False, True])
def test_linear(a_dtype: torch.dtype, residual: bool) -> None:
    one = operands(11, 37, 96, a_dtype)
    bias, added = torch.linspace(-2, 2, 37), torch.randn(11, 37)
    d = dg.linear(
        one.a,
        one.gate,
        w_scales=one.gate_scales,
        a_scales=one.a_scales,
        alpha=one.alpha_gate,
        bias=bias,
        residual=added if residual else None,
        out_dtype=torch.float32,
    )
    exact, bound = reference.product(decoded(one.a, one.a_scales), decoded(one.gate, one.gate_scales), float(one.alpha_gate))
    exact = exact + bias.double().cpu().numpy() + (added.double().cpu().numpy() if residual else 0)
    assert (np.abs(d.double().cpu().numpy() - exact) <= bound + 1e-6 * (1 + np.abs(exact))).all()


def test_packed_weights_give_the_same_bits() -> None:
    for a_dtype in (torch.uint8, torch.bfloat16):
        one = operands(4, 80, 128, a_dtype)
        packed = torch.ops.dualgemm.pack_weights(one.gate, one.gate_scales, one.up, one.up_scales, a_dtype=a_dtype)
        moved = torch.empty(packed.numel() + 256, dtype=torch.uint8)[256:].copy_(packed)
        d = torch.ops.dualgemm.glu_packed(one.a, one.a_scales, moved, 80, 1, one.alpha_gate, one.alpha_up)
        assert same_bits(d, dg.glu(**one.named()))
    w = torch.ops.dualgemm.pack_linear(one.gate, one.gate_scales, a_dtype=torch.bfloat16)
    d = torch.ops.dualgemm.linear(one.a, None, None, None, w, 80, 1, alpha=one.alpha_gate)
    assert same_bits(d, dg.linear(one.a, one.gate, w_scales=one.gate_scales, alpha=one.alpha_gate))


@pytest.mark.parametrize("layout", ["linear", "swizzled_128x4"])
def test_nvfp4_output_is_the_wide_one_quantised(layout: str) -> None:
    one = operands(21, 96, 128)
    wide = dg.glu(**one.named(), out_dtype=torch.float32)
    scale = float(wide.abs().max()) / 2688
    d = dg.glu_nvfp4(**one.named(), d_global_scale=scale, d_scale_layout=layout)
    again = dg.quantize(wide, global_scale=scale, scale_layout=layout)
    assert same_bits(d.codes, again.codes) and same_bits(d.scales, again.scales)
    assert float(d.global_scale) == np.float32(scale)


def experts(count: int, n: int, k: int) -> tuple[list[Operands], dict[str, torch.Tensor]]:
    each = [operands(1, n, k, seed=10 + seed) for seed in range(count)]
    stack = {name: torch.stack([getattr(one, name) for one in each]) for name in ("gate", "gate_scales", "up", "up_scales")}
    return each, stack


@pytest.mark.parametrize("way", ["offsets", "m_indices", "masked"])
def test_groups(way: str) -> None:
    random = np.random.default_rng(3)
    counts, n, k = [3, 0, 7, 1], 40, 64
    each, stack = experts(4, n, k)
    weights = (stack["gate"], stack["gate_scales"], stack["up"], stack["up_scales"], None, 0, 0)
    alphas = (torch.full((4,), 0.05), torch.full((4,), 0.03))
    rows = sum(counts)
    a, a_scales = codes((rows, k // 2), random), scales((rows, k // 16), random)
    starts = np.concatenate([[0], np.cumsum(counts)])
    ends = torch.from_numpy(starts.astype(np.int32)).to(DEVICE)
    ops = torch.ops.dualgemm
    if way == "offsets":
        d = ops.m_grouped_glu_contiguous(a, a_scales, *weights, ends, None, *alphas)
        parts = [d[starts[e] : starts[e + 1]] for e in range(4)]
    elif way == "m_indices":
        indices = torch.from_numpy(np.repeat(np.arange(4, dtype=np.int32), counts)).to(DEVICE)
        indices[5] = -1
        out = torch.full((rows, n), 7, dtype=torch.float16)
        ops.m_grouped_glu_contiguous.out(a, a_scales, *weights, None, indices, *alphas, out=out)
        assert (out[5] == 7).all()
        d = ops.m_grouped_glu_contiguous(a, a_scales, *weights, None, indices, *alphas)
        assert (d[5] == 0).all() and same_bits(d[:5], out[:5]) and same_bits(d[6:], out[6:])
        d[5] = ops.m_grouped_glu_contiguous(a, a_scales, *weights, ends, None, *alphas)[5]
        parts = [d[starts[e] : starts[e + 1]] for e in range(4)]
    else:
        most = 8
        masked, masked_scales = codes((4, most, k // 2), random), scales((4, most, k // 16), random)
        for e in range(4):
            masked[e, : counts[e]] = a[starts[e] : starts[e + 1]]
            masked_scales.view(torch.uint8)[e, : counts[e]] = a_scales.view(torch.uint8)[starts[e] : starts[e + 1]]
        out = torch.full((4, most, n), 7, dtype=torch.float16)
        ops.m_grouped_glu_masked.out(masked, masked_scales, *weights, torch.tensor(counts, dtype=torch.int32), *alphas, out=out)
        assert all((out[e, counts[e] :] == 7).all() for e in range(4))
        parts = [out[e, : counts[e]] for e in range(4)]
    for e, part in enumerate(parts):
        if counts[e]:
            one = each[e]
            one.a, one.a_scales = a[starts[e] : starts[e + 1]], a_scales[starts[e] : starts[e + 1]]
            one.alpha_gate, one.alpha_up = alphas[0][e], alphas[1][e]
            one.check(part)


def test_no_rows() -> None:
    one = operands(1, 32, 64)
    empty = {**one.named(), "a": one.a[:0], "a_scales": one.a_scales[:0]}
    assert dg.glu(**empty).shape == (0, 32)
    assert dg.glu_nvfp4(**empty, d_global_scale=1.0).codes.shape == (0, 16)
    assert dg.linear(one.a[:0], one.gate, w_scales=one.gate_scales, a_scales=one.a_scales[:0]).shape == (0, 32)
    nothing = dg.quantize(torch.zeros(0, 32))
    assert nothing.codes.shape == (0, 16) and float(nothing.global_scale) == 1
