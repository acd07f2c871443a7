"""Weights and LinearWeights: from what they are made, what they compute, how they move and are saved."""

from __future__ import annotations

import dataclasses
import io
import pickle
import subprocess
import sys

import numpy as np
import pytest
import reference
import torch
from operands import DEVICE, DTYPE_NAMES, FINE, ROWS, Operands, as_numpy, decoded, dg, only_on_cpu, operands, same_bits

Weights, LinearWeights = dg.Weights, dg.LinearWeights
KINDS = [torch.uint8, *ROWS]


def weights_of(one: Operands, **kw: object) -> dg.Weights:
    kw.setdefault("a_dtype", one.a.dtype)
    return Weights.from_tensors(
        one.gate, one.gate_scales, one.up, one.up_scales, alpha_gate=one.alpha_gate, alpha_up=one.alpha_up, **kw
    )


@pytest.mark.parametrize("a_dtype", KINDS)
@pytest.mark.parametrize("m,n,k", [(0, 16, 32), (1, 1, 16), (1, 272, 64), (5, 17 * 3, 112), (33, 130, 256)])
def test_every_form_gives_the_same(m: int, n: int, k: int, a_dtype: torch.dtype) -> None:
    one = operands(max(m, 1), n, k, a_dtype, seed=n)
    one = dataclasses.replace(one, a=one.a[:m], a_scales=None if one.a_scales is None else one.a_scales[:m])
    plain = dg.glu(**one.named())
    if m:
        one.check(plain)
    swizzled = Weights.from_tensors(
        one.gate,
        dg.swizzle_scales(one.gate_scales),
        one.up,
        dg.swizzle_scales(one.up_scales),
        alpha_gate=one.alpha_gate,
        alpha_up=one.alpha_up,
        a_dtype=a_dtype,
    )
    for made in (
        weights_of(one),
        weights_of(one, prepare=False),
        weights_of(one, keep_original=True),
        swizzled,
        swizzled.prepare(),
    ):
        d = made(one.a, one.a_scales)
        assert d.shape == plain.shape and (made.n, made.k, made.num_experts) == (n, k, 1)
        if DEVICE == "cpu":
            assert same_bits(d, plain)
        elif m:  # a GPU may have another kernel for packed weights
            one.check(d)
    out, made = torch.empty_like(plain), weights_of(one)
    assert made(one.a, one.a_scales, out=out) is out and same_bits(out, made(one.a, one.a_scales))


def test_gate_and_up_exchanged_are_seen() -> None:
    one = operands(3, 32, 64, torch.bfloat16)
    changed = Weights.from_tensors(
        one.up, one.up_scales, one.gate, one.gate_scales, alpha_gate=one.alpha_gate, alpha_up=one.alpha_up
    )
    with pytest.raises(AssertionError):
        one.check(changed(one.a))


@pytest.mark.parametrize("experts", [0, 3])
@pytest.mark.parametrize("n", [17, 128])
@pytest.mark.parametrize("order", ["gate_up", "up_gate", "alternating"])
def test_stacked_in_every_order_is_a_view(order: str, n: int, experts: int) -> None:
    parts = [operands(2, n, 64, torch.bfloat16, seed=seed) for seed in range(max(experts, 1))]

    def stack(name: str) -> torch.Tensor:
        def one(part: Operands) -> torch.Tensor:
            gate, up = getattr(part, f"gate{name}").view(torch.uint8), getattr(part, f"up{name}").view(torch.uint8)
            if order == "alternating":
                return torch.stack([gate, up], dim=1).reshape(2 * n, -1)
            return torch.cat([gate, up] if order == "gate_up" else [up, gate])

        return torch.stack([one(part) for part in parts]) if experts else one(parts[0])

    codes, scales = stack(""), stack("_scales")
    made = Weights.from_stacked(
        codes, scales, order=order, alpha_gate=parts[0].alpha_gate, alpha_up=parts[0].alpha_up, prepare=False
    )
    inside = range(codes.data_ptr(), codes.data_ptr() + codes.numel())
    assert all(made.state_dict()["gate"].shape == part.shape for part in ([parts[0].gate] if not experts else []))
    assert made._tensors["gate"].data_ptr() in inside and made._tensors["up"].data_ptr() in inside
    flat = torch.stack([dg.swizzle_scales(part) for part in scales]) if experts else dg.swizzle_scales(scales)
    from_flat = Weights.from_stacked(codes, flat, order=order, alpha_gate=parts[0].alpha_gate, alpha_up=parts[0].alpha_up)
    x = torch.stack([part.a for part in parts]) if experts else parts[0].a
    for weights in (made, made.prepare(), from_flat):
        d = weights(x)
        for index, part in enumerate(parts):
            part.check(d[index] if experts else d)


@pytest.mark.parametrize("dtype", ROWS)
@pytest.mark.parametrize("biases", ["", "gate", "up", "both"])
def test_from_linear_is_within_its_bound(dtype: torch.dtype, biases: str) -> None:
    torch.manual_seed(1)
    gate = torch.nn.Linear(64, 33, bias=biases in ("gate", "both"), dtype=dtype)
    up = torch.nn.Linear(64, 33, bias=biases in ("up", "both"), dtype=dtype)
    made, x = Weights.from_linear(gate, up, keep_original=True), torch.randn(7, 64, dtype=dtype)
    assert (made.bias_gate is None) == (not biases)
    state = made.state_dict()
    products = []
    for name, linear in (("gate", gate), ("up", up)):
        w = reference.decode(as_numpy(state[name]), as_numpy(state[f"{name}_scales"]))
        exact, error = reference.product(decoded(x, None), w, float(state[f"alpha_{name}"]))
        bias = 0.0 if linear.bias is None else linear.bias.detach().double().cpu().numpy()
        products.append((exact + bias, error + 2.0**-24 * (np.abs(exact) + np.abs(bias))))
    (g, g_error), (u, u_error) = products
    h, (relative, smallest) = g * reference.sigmoid(g), reference.OUTPUT[DTYPE_NAMES[dtype]]
    h_error = 1.1 * g_error + 1e-6 * np.abs(h) + 1e-30
    bound = h_error * np.abs(u) + np.abs(h) * u_error + h_error * u_error
    bound += relative * (np.abs(h * u) + bound) + smallest + 1e-37
    with torch.no_grad():
        assert (np.abs(made(x).double().cpu().numpy() - h * u) <= bound).all()


def test_a_quantized_tensor_brings_its_scale() -> None:
    one, x = operands(5, 48, 64, torch.bfloat16), torch.randn(5, 64)
    made = weights_of(one, a_dtype=torch.uint8)
    whole, rows = dg.quantize(x), dg.quantize(x, per_row=True)
    assert same_bits(
        made(whole),
        made(
            whole.codes,
            whole.scales,
            alpha_gate=one.alpha_gate * whole.global_scale,
            alpha_up=one.alpha_up * whole.global_scale,
        ),
    )
    assert same_bits(made(rows), made(rows.codes, rows.scales, a_row_scale=rows.global_scale))
    swizzled = dg.quantize(x, scale_layout="swizzled_128x4")
    assert same_bits(made(swizzled), made(whole))
    padded = swizzled.scales.view(128, 4)  # as vLLM has it: named
    assert same_bits(made(swizzled.codes, padded, scale_layout="swizzled_128x4"), made(whole.codes, whole.scales))
    with pytest.raises(dg.InvalidArgument, match="x_scales"):
        made(whole, whole.scales)


def test_nvfp4_output() -> None:
    one = operands(9, 48, 64, torch.bfloat16)
    expected = dg.glu_nvfp4(**one.named(), d_global_scale=0.01)
    for made in (weights_of(one), weights_of(one, prepare=False)):
        found = made.glu_nvfp4(one.a, d_global_scale=0.01)
        assert (
            same_bits(found.codes, expected.codes)
            and same_bits(found.scales, expected.scales)
            and float(found.global_scale) == pytest.approx(0.01)
        )


# ---- moving, saving, cutting ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("form", [{}, {"prepare": False}, {"keep_original": True}])
def test_pickle_and_state_dict(form: dict[str, bool], tmp_path: object) -> None:
    one = operands(3, 40, 64, torch.bfloat16)
    made = weights_of(one, **form)
    saved = io.BytesIO()
    torch.save(made.state_dict(), saved)
    saved.seek(0)
    copies = [pickle.loads(pickle.dumps(made)), Weights.from_state_dict(torch.load(saved, map_location=DEVICE))]
    for copy in copies:
        assert copy.is_packed == made.is_packed and copy.a_dtype == made.a_dtype and same_bits(copy(one.a), made(one.a))


@only_on_cpu
def test_another_process_reads_packed_weights(tmp_path: object) -> None:
    safetensors = pytest.importorskip("safetensors.torch")
    one = operands(3, 40, 64, torch.bfloat16)
    made = weights_of(one)
    safetensors.save_file(made.state_dict(), f"{tmp_path}/w.safetensors")
    torch.save(one.a, f"{tmp_path}/a.pt")
    code = (
        f"import torch, dualgemm; from safetensors.torch import load_file; w = dualgemm.Weights.from_state_dict("
        f"load_file('{tmp_path}/w.safetensors')); torch.save(w(torch.load('{tmp_path}/a.pt')), '{tmp_path}/d.pt')"
    )
    subprocess.run([sys.executable, "-c", code], check=True, env={**__import__("os").environ, "PYTHONPATH": ":".join(sys.path)})
    assert same_bits(torch.load(f"{tmp_path}/d.pt"), made(one.a))


def test_views_are_saved_without_the_rest() -> None:
    one = operands(2, 128, 256, torch.bfloat16)
    small = weights_of(one, prepare=False).shard(0, 16)
    assert len(pickle.dumps(small)) < 8000 < len(pickle.dumps(weights_of(one, prepare=False)))
    assert same_bits(pickle.loads(pickle.dumps(small))(one.a), small(one.a))


def test_states_that_do_not_fit_are_refused() -> None:
    one = operands(2, 40, 64, torch.bfloat16)
    state = weights_of(one).state_dict()
    packed = state["packed"]
    wrong = {"bytes": torch.zeros_like(packed), "short": packed[:-256], "format": packed.clone(), "other": packed.clone()}
    wrong["format"][8] = 77
    wrong["other"][16] = 48  # another n
    for name, bytes_ in wrong.items():
        with pytest.raises(dg.DualGemmError, match="packed") as caught:
            Weights.from_state_dict({**state, "packed": bytes_})
        assert caught.value.argument == "packed" and caught.value.rule, name
    with pytest.raises(dg.InvalidArgument, match="state"):
        Weights.from_state_dict({"packed": packed})
    for described in ([32, 64, 0], [32, 64, 0, 99], [32.0, 64.0, 0.0, 0.0]):
        with pytest.raises(dg.InvalidArgument, match="number of a_dtype"):
            Weights.from_state_dict({**state, "shape": torch.tensor(described)})
    with pytest.raises(dg.InvalidArgument, match="surplus"):
        Weights.from_state_dict({**state, "surplus": packed})


@pytest.mark.parametrize("n,world", [(48, 3), (51, 3), (256, 2), (130, 2)])
@pytest.mark.parametrize("layout", ["linear", "swizzled"])
def test_shards_are_columns_of_the_whole(n: int, world: int, layout: str) -> None:
    one = operands(5, n, 64, torch.bfloat16)
    scales = [one.gate_scales, one.up_scales]
    if layout == "swizzled":
        scales = [dg.swizzle_scales(part) for part in scales]
    made = Weights.from_tensors(
        one.gate,
        scales[0],
        one.up,
        scales[1],
        alpha_gate=one.alpha_gate,
        alpha_up=one.alpha_up,
        bias_gate=torch.arange(n, dtype=torch.float32),
        prepare=False,
    )
    packed = made.prepare(keep_original=True)
    whole = made(one.a)
    for rank in range(world):
        part = whole[:, rank * n // world : (rank + 1) * n // world]
        assert same_bits(made.shard(rank, world)(one.a), part) and same_bits(packed.shard(rank, world)(one.a), part)
    with pytest.raises(dg.InvalidArgument, match="multiple"):
        made.shard(0, 7)
    with pytest.raises(dg.InvalidArgument, match="rank"):
        made.shard(world, world)
    if weights_of(one).is_packed:
        with pytest.raises(dg.Unsupported, match="originals"):
            weights_of(one).shard(0, world)


def test_down_by_rows_and_by_columns() -> None:
    torch.manual_seed(2)
    linear = torch.nn.Linear(96, 40)
    made, x = LinearWeights.from_linear(linear, prepare=False, a_dtype=FINE), torch.randn(6, 96).to(FINE)
    with torch.no_grad():
        whole = made(x, out_dtype=torch.float32)
        state = made.state_dict()
        exact, error = reference.product(
            decoded(x, None), reference.decode(as_numpy(state["w"]), as_numpy(state["w_scales"])), float(made.alpha)
        )
        exact = exact + linear.bias.double().cpu().numpy()
        assert (np.abs(whole.double().cpu().numpy() - exact) <= error + 2.0**-22 * np.abs(exact)).all()
        others = [
            made.prepare()(x, out_dtype=torch.float32),
            torch.cat([made.shard(rank, 4)(x, out_dtype=torch.float32) for rank in range(4)], dim=1),
        ]
        for other in others:
            if DEVICE == "cpu":
                assert same_bits(other, whole)
            assert (np.abs(other.double().cpu().numpy() - exact) <= error + 2.0**-22 * np.abs(exact)).all()
        parts = [
            made.shard(rank, 3, dim=1)(x[:, 32 * rank : 32 * rank + 32].contiguous(), out_dtype=torch.float32)
            for rank in range(3)
        ]
        assert (
            np.abs(sum(part.double() for part in parts).cpu().numpy() - exact) <= 2 * error + 2.0**-21 * np.abs(exact)
        ).all()
        residual = torch.randn(6, 40)
        d = made(x, residual=residual, out_dtype=torch.float32)
        assert torch.allclose(d, whole + residual, rtol=1e-6, atol=1e-6)


def test_to_another_device_needs_the_originals() -> None:
    one = operands(2, 32, 64, torch.bfloat16)
    made = weights_of(one)
    assert made.to(DEVICE) is made
    if made.is_packed:
        with pytest.raises(dg.Unsupported, match="keep_original") as caught:
            made.to("meta")
        assert caught.value.argument == "device"
    assert weights_of(one, prepare=False).to("meta").device.type == "meta"


# ---- groups -----------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("prepare", [False, True])
@pytest.mark.parametrize("a_dtype", [torch.uint8, torch.bfloat16])
def test_groups(a_dtype: torch.dtype, prepare: bool) -> None:
    counts = [3, 0, 1, 6]
    parts = [operands(max(count, 1), 34, 64, a_dtype, seed=seed) for seed, count in enumerate(counts)]

    def stacked(name: str) -> torch.Tensor:
        return torch.stack([getattr(part, name).view(torch.uint8) for part in parts])

    made = Weights.from_tensors(
        stacked("gate"),
        stacked("gate_scales"),
        stacked("up"),
        stacked("up_scales"),
        alpha_gate=torch.cat([part.alpha_gate for part in parts]),
        alpha_up=torch.cat([part.alpha_up for part in parts]),
        prepare=prepare,
        a_dtype=a_dtype,
    )
    rows = [part.a[:count] for part, count in zip(parts, counts)]
    a = torch.cat(rows)
    a_scales = (
        None if a_dtype != torch.uint8 else torch.cat([part.a_scales.view(torch.uint8)[:c] for part, c in zip(parts, counts)])
    )
    ends = torch.tensor(counts, dtype=torch.int32).cumsum(0).to(torch.int32)
    d = dg.m_grouped_glu_contiguous(a, made, a_scales=a_scales, offsets=ends)
    start = 0
    for part, count in zip(parts, counts):
        if count:
            part.check(d[start : start + count])
        start += count
    ids = torch.repeat_interleave(torch.arange(4), torch.tensor(counts)).to(torch.int32)
    assert same_bits(dg.m_grouped_glu_contiguous(a, made, a_scales=a_scales, m_indices=ids), d)
    out = torch.full_like(d, 7)
    dg.m_grouped_glu_contiguous(a, made, a_scales=a_scales, m_indices=torch.full_like(ids, -1), out=out)
    assert bool((out == 7).all())
    padded = torch.zeros((4, 6, a.shape[1]), dtype=a.dtype)
    padded_scales = None if a_scales is None else torch.zeros((4, 6, 4), dtype=torch.uint8)
    for index, count in enumerate(counts):
        padded[index, :count] = rows[index]
        if padded_scales is not None:
            padded_scales[index, :count] = parts[index].a_scales.view(torch.uint8)[:count]
    masked = dg.m_grouped_glu_masked(
        padded, made, torch.tensor(counts, dtype=torch.int32), a_scales=padded_scales, expected_m=3
    )
    assert same_bits(torch.cat([masked[index, :count] for index, count in enumerate(counts)]), d)
    with pytest.raises(dg.InvalidArgument, match="exactly one"):
        dg.m_grouped_glu_contiguous(a, made, a_scales=a_scales)


# ---- refused ----------------------------------------------------------------------------------------------------------------


def test_what_is_refused_says_why() -> None:
    one = operands(2, 32, 64, torch.bfloat16)
    given = dict(gate=one.gate, gate_scales=one.gate_scales, up=one.up, up_scales=one.up_scales)
    changes = {
        "gate": one.gate.float(),
        "up": one.up[:31],
        "gate_scales": one.gate_scales[:, :3],
        "up_scales": one.up_scales.float(),
        "alpha_gate": torch.ones(2),
        "bias_up": torch.ones(31),
        "scale_layout": "swizzled",
        "a_dtype": torch.int8,
    }
    for name, value in changes.items():
        with pytest.raises(dg.InvalidArgument) as caught:
            Weights.from_tensors(**{**given, name: value})
        assert caught.value.argument == name and caught.value.observed and caught.value.rule
    made = weights_of(one)
    with pytest.raises(dg.InvalidArgument, match="requires_grad"):
        made(one.a.clone().requires_grad_())
    for weights in (made, weights_of(one, prepare=False)):
        with pytest.raises(dg.InvalidArgument, match="x: 32 columns; must be the 64"):
            weights(one.a[:, :32])
    with pytest.raises(dg.InvalidArgument, match="out"):
        made(one.a, out=torch.empty(2, 32), out_dtype=torch.bfloat16)
    with pytest.raises(dg.InvalidArgument, match="multiple of 16"):
        Weights.from_linear(torch.nn.Linear(17, 4), torch.nn.Linear(17, 4))
    with pytest.raises(dg.InvalidArgument, match="order"):
        Weights.from_stacked(one.gate, one.gate_scales, order="both")


def test_compiled_weights() -> None:
    one = operands(4, 32, 64, torch.bfloat16)
    for form in ({}, {"prepare": False}):
        made = weights_of(one, **form)
        compiled = torch.compile(lambda x, made=made: made(x) * 2, fullgraph=True, dynamic=True, backend="aot_eager")
        assert same_bits(compiled(one.a), made(one.a) * 2) and same_bits(compiled(one.a[:2]), made(one.a[:2]) * 2)


def test_explain() -> None:
    one = operands(4, 32, 64, torch.bfloat16)
    assert "prepared" in dg.explain(one.a, weights_of(one)) or not weights_of(one).is_packed
