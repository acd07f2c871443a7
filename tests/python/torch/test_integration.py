"""torch's own machinery: opcheck, compile, export, vmap, autograd, threads, processes, leaks."""

from __future__ import annotations

import gc
import resource
import sys
import threading
import warnings

import pytest
import torch
from operands import FINE, dg, only_on_cpu, only_on_cuda, operands, same_bits
from torch.library import opcheck

OPS = torch.ops.dualgemm
WITHOUT_SCHEMA = ("test_autograd_registration", "test_faketensor", "test_aot_dispatch_dynamic")


def cases() -> list[tuple[object, tuple[object, ...], dict[str, object], bool]]:
    """operator, arguments, named arguments, whether torch can compare its inputs."""
    one, bf16 = operands(5, 32, 64), operands(5, 32, 64, torch.bfloat16)
    values, half = one.positional(), bf16.positional()
    a, a_scales, gate, gate_scales, up, up_scales, alpha_gate, alpha_up = values
    packed = OPS.pack_weights(gate, gate_scales, up, up_scales, a_dtype=torch.uint8)
    stacked = [torch.stack([value, value]) for value in (gate, gate_scales, up, up_scales)]
    alphas = (torch.full((2,), 0.1), torch.full((2,), 0.2))
    offsets = torch.tensor([0, 2, 5], dtype=torch.int32)
    out = torch.empty(5, 32, dtype=torch.float16)
    x = torch.randn(5, 64)
    nvfp4 = (a, a_scales, gate, gate_scales, up, up_scales, None, 0, 0, 0.5, alpha_gate, alpha_up)
    return [
        (OPS.glu.default, values, {}, True),
        (OPS.glu.default, half, dict(out_dtype=torch.float32), True),
        (OPS.glu.out, values, dict(out=out), True),
        (OPS.glu_packed.default, (a, a_scales, packed, 32, 1), {}, True),
        (OPS.glu_packed.out, (a, a_scales, packed, 32, 1), dict(out=out), True),
        (OPS.glu_nvfp4.default, nvfp4, {}, False),
        (OPS.glu_nvfp4.default, nvfp4, dict(d_scale_layout="swizzled_128x4"), False),
        (OPS.m_grouped_glu_contiguous.default, (a, a_scales, *stacked, None, 0, 0, offsets, None, *alphas), {}, True),
        (
            OPS.m_grouped_glu_masked.default,
            (
                torch.stack([a, a]),
                torch.stack([a_scales, a_scales]),
                *stacked,
                None,
                0,
                0,
                torch.tensor([3, 5], dtype=torch.int32),
                *alphas,
            ),
            {},
            True,
        ),
        (OPS.linear.default, (a, a_scales, gate, gate_scales, None, 0, 0), dict(alpha=alpha_gate), True),
        (OPS.linear.out, (a, a_scales, gate, gate_scales, None, 0, 0), dict(alpha=alpha_gate, out=out), True),
        (OPS.quantize_nvfp4.default, (x,), {}, False),
        (OPS.quantize_nvfp4.default, (x,), dict(per_row=True), False),
        (OPS.dequantize_nvfp4.default, (gate, gate_scales, alpha_gate), {}, True),
    ]


@pytest.mark.parametrize("case", range(14))
def test_opcheck(case: int) -> None:
    operator, arguments, named, comparable = cases()[case]
    if comparable:
        opcheck(operator, arguments, named)
    else:  # torch has no arithmetic for the float8 that comes out
        opcheck(operator, arguments, named, test_utils=WITHOUT_SCHEMA)


def test_opcheck_on_the_named_dtypes() -> None:
    one = operands(5, 32, 64)
    opcheck(
        OPS.glu.default,
        (
            one.a.view(torch.float4_e2m1fn_x2),
            one.a_scales,
            one.gate.view(torch.float4_e2m1fn_x2),
            one.gate_scales,
            one.up.view(torch.float4_e2m1fn_x2),
            one.up_scales,
            one.alpha_gate,
            one.alpha_up,
        ),
        test_utils=WITHOUT_SCHEMA,
    )


def test_compile_whole_and_dynamic() -> None:
    one = operands(8, 48, 64, torch.bfloat16)
    graphs = 0

    def counting(module: torch.fx.GraphModule, inputs: object) -> object:
        nonlocal graphs
        graphs += 1
        return module.forward

    def layer(x: torch.Tensor) -> torch.Tensor:
        q = dg.quantize(x, per_row=True)
        d = dg.glu(
            q.codes,
            one.gate,
            one.up,
            a_scales=q.scales,
            gate_scales=one.gate_scales,
            up_scales=one.up_scales,
            alpha_gate=one.alpha_gate,
            alpha_up=one.alpha_up,
            a_row_scale=q.global_scale,
            out_dtype=torch.bfloat16,
        )
        return d + dg.linear(x, one.gate, w_scales=one.gate_scales, alpha=one.alpha_gate)

    compiled = torch.compile(layer, fullgraph=True, dynamic=True, backend=counting)
    for rows in (2, 3, 8, 31):
        x = torch.randn(rows, 64, dtype=torch.bfloat16)
        assert same_bits(compiled(x), layer(x))
    assert graphs == 1


def test_export() -> None:
    one = operands(8, 48, 64, torch.bfloat16)

    class Layer(torch.nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return dg.glu(
                x,
                one.gate,
                one.up,
                gate_scales=one.gate_scales,
                up_scales=one.up_scales,
                alpha_gate=one.alpha_gate,
                alpha_up=one.alpha_up,
            )

    program = torch.export.export(Layer(), (one.a,), dynamic_shapes=({0: torch.export.Dim("rows", min=2, max=64)},))
    assert "dualgemm.glu" in str(program.graph)
    x = torch.randn(17, 64, dtype=torch.bfloat16)
    assert same_bits(program.module()(x), Layer()(x))


@pytest.mark.filterwarnings("error:There is a performance drop")
def test_vmap_over_rows() -> None:
    one = operands(6, 32, 64)
    stacked = torch.stack([one.a, one.a.flip(0)])
    scales = torch.stack([one.a_scales.view(torch.uint8), one.a_scales.view(torch.uint8).flip(0)])
    single = lambda a, s: dg.glu(**{**one.named(), "a": a, "a_scales": s})
    both = torch.func.vmap(single)(stacked, scales)
    assert same_bits(both[1], single(stacked[1], scales[1])) and same_bits(both[0], dg.glu(**one.named()))
    others = operands(6, 32, 64, seed=1)
    gates = torch.stack([one.gate, others.gate], dim=1)
    per_gate = torch.func.vmap(lambda gate: dg.glu(**{**one.named(), "gate": gate}), in_dims=1)(gates)
    assert same_bits(per_gate[1], dg.glu(**{**one.named(), "gate": others.gate}))


@pytest.mark.filterwarnings("error:There is a performance drop")
def test_vmap_of_a_layer_that_quantises() -> None:
    one = operands(6, 32, 64, torch.bfloat16)
    packed = dg.Weights.from_tensors(one.gate, one.gate_scales, one.up, one.up_scales, a_dtype=torch.uint8)
    x = torch.randn(3, 6, 64, dtype=torch.bfloat16)

    def layer(rows: torch.Tensor) -> torch.Tensor:
        return packed(dg.quantize(rows, per_row=True), out_dtype=torch.bfloat16)

    mapped = torch.func.vmap(layer)(x)
    assert all(same_bits(mapped[i], layer(x[i])) for i in range(3))
    whole = torch.func.vmap(lambda rows: tuple(dg.quantize(rows, scale_layout="swizzled_128x4")))(x)  # one scale for each
    assert all(same_bits(part[2], wanted) for part, wanted in zip(whole, dg.quantize(x[2], scale_layout="swizzled_128x4")))


def test_vmap_where_rows_are_not_all() -> None:
    one = operands(6, 32, 64, torch.bfloat16)
    stacked = {
        name: torch.stack([getattr(one, name).view(torch.uint8)] * 2) for name in ("gate", "gate_scales", "up", "up_scales")
    }
    a = torch.randn(3, 2, 6, 64, dtype=torch.bfloat16)
    mapped = torch.func.vmap(lambda x: dg.glu(x, **stacked))(a)  # layers of their own
    assert same_bits(mapped[1], dg.glu(a[1], **stacked))
    residual = torch.randn(6, 32, dtype=torch.bfloat16)
    linear = lambda x: dg.linear(x, one.gate, w_scales=one.gate_scales, residual=residual)
    assert same_bits(torch.func.vmap(linear)(a[:, 0])[2], linear(a[2, 0]))


def test_no_gradient() -> None:
    one = operands(4, 32, 64, FINE)
    x = one.a.clone().requires_grad_()
    with pytest.raises(dg.InvalidArgument, match="requires_grad"):
        dg.glu(**{**one.named(), "a": x})
    with torch.no_grad():
        assert same_bits(dg.glu(**{**one.named(), "a": x}), dg.glu(**one.named()))
    d = OPS.glu(x, None, *one.positional()[2:])  # the operator itself leaves it to torch
    with pytest.warns(UserWarning, match="an autograd kernel was not registered"):
        d.sum().backward()
    assert x.grad is None


def test_explain_names_what_runs() -> None:
    one = operands(4, 32, 64)
    assert "strategy   fused" in dg.explain(one.a, one.gate)
    assert "two_pass" in dg.explain(one.a, one.gate, strategy="two_pass").splitlines()[0]


def test_explain_takes_what_glu_takes() -> None:
    one = operands(4, 32, 64, torch.bfloat16)
    bias = torch.ones(32)
    text = dg.explain(**one.named(), activation="clamped_swiglu", act_limit=7.0, bias_gate=bias, bias_up=bias)
    assert "clamped_swiglu" in text and "bias" in text
    w = dg.Weights.from_tensors(one.gate, one.gate_scales, one.up, one.up_scales, keep_original=True)
    assert "two_pass" in dg.explain(one.a, w, strategy="two_pass").splitlines()[0]  # on the originals, as the call
    for change, argument in ((dict(a=one.a[:, :32]), "a"), (dict(up=one.up[:16]), "up"), (dict(a=one.a[0]), "a")):
        with pytest.raises(dg.InvalidArgument) as caught:
            dg.explain(**{**one.named(), **change})
        assert caught.value.argument == argument
    with pytest.raises(TypeError):
        dg.explain(one.a, one.gate, activations="silu")


def test_plans_are_bounded() -> None:
    from dualgemm.torch import plans_kept

    one = operands(600, 16, 16)
    for rows in range(1, 600):
        dg.glu(**{**one.named(), "a": one.a[:rows], "a_scales": one.a_scales[:rows]})
    assert plans_kept() == 512


def test_threads() -> None:
    one = operands(33, 96, 128)
    expected = {rows: dg.glu(**{**one.named(), "a": one.a[:rows], "a_scales": one.a_scales[:rows]}) for rows in (1, 7, 33)}
    wrong = []

    def work() -> None:
        for turn in range(40):
            rows = (1, 7, 33)[turn % 3]
            d = dg.glu(**{**one.named(), "a": one.a[:rows], "a_scales": one.a_scales[:rows]})
            if not same_bits(d, expected[rows]):
                wrong.append(rows)

    threads = [threading.Thread(target=work) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


class Rows(torch.utils.data.Dataset):  # type: ignore[type-arg]
    one = operands(16, 64, 128)  # made anew in a spawned worker

    def __len__(self) -> int:
        return 16

    def __getitem__(self, row: int) -> torch.Tensor:
        return dg.glu(**{**self.one.named(), "a": self.one.a[row : row + 1], "a_scales": self.one.a_scales[row : row + 1]})


@only_on_cpu
@pytest.mark.parametrize("start", ["fork", "spawn"])
def test_data_loader_workers(start: str) -> None:
    before = torch.cat([Rows()[row] for row in range(16)])  # the parent has used its threads before it forks
    big = operands(64, 512, 1024)
    dg.glu(**big.named())
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        loader = torch.utils.data.DataLoader(Rows(), batch_size=4, num_workers=2, multiprocessing_context=start, timeout=120)
        assert same_bits(torch.cat([part.reshape(-1, 64) for part in loader]), before)


def test_nothing_leaks() -> None:
    one = operands(4, 64, 64)
    named = one.named()

    def work(times: int) -> int:
        for _ in range(times):
            dg.glu(**named)
            dg.quantize(torch.ones(4, 64))
            try:
                dg.glu(**{**named, "gate": one.gate[:5]})
            except dg.InvalidArgument:
                pass
        gc.collect()
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss

    before = work(300)
    counts = [sys.getrefcount(value) for value in named.values()]
    assert work(3000) - before < 8192  # KiB
    assert counts == [sys.getrefcount(value) for value in named.values()]


@only_on_cuda
def test_graph_replays_with_other_contents() -> None:
    one = operands(16, 256, 512, torch.bfloat16)
    out = torch.empty(16, 256, dtype=torch.bfloat16)
    x = one.a.clone()
    dg.glu(**{**one.named(), "a": x}, out=out)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        dg.glu(**{**one.named(), "a": x}, out=out)
        codes = dg.quantize(out).codes
    x.copy_(one.a.flip(0))
    graph.replay()
    assert same_bits(out, dg.glu(**{**one.named(), "a": x})) and same_bits(codes, dg.quantize(out).codes)


@only_on_cuda
def test_reduce_overhead() -> None:
    one = operands(8, 256, 512, torch.bfloat16)
    layer = lambda x: dg.glu(**{**one.named(), "a": x}) * 2
    compiled = torch.compile(layer, mode="reduce-overhead", fullgraph=True)
    for _ in range(4):
        x = torch.randn(8, 512, dtype=torch.bfloat16)
        assert same_bits(compiled(x).clone(), layer(x))


@only_on_cuda
def test_another_queue_is_the_current_one() -> None:
    one = operands(64, 1024, 1024, torch.bfloat16)
    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        x = one.a.clone()
        for _ in range(20):
            x = x.flip(0)  # what the product must wait for
        d = dg.glu(**{**one.named(), "a": x})
    side.synchronize()
    assert same_bits(d, dg.glu(**one.named()))


@only_on_cuda
@pytest.mark.skipif(torch.cuda.device_count() < 2, reason="one GPU")
def test_another_gpu_than_the_current_one() -> None:
    one = operands(5, 64, 128)
    there = {name: None if value is None else value.to("cuda:1") for name, value in one.named().items()}
    d = dg.glu(**there)
    assert d.device == torch.device("cuda:1") and same_bits(d.to("cuda:0"), dg.glu(**one.named()))
    with pytest.raises(dg.InvalidArgument, match="cuda:1"):
        dg.glu(**{**one.named(), "gate": there["gate"]})


@only_on_cuda
def test_devices_do_not_mix() -> None:
    one = operands(5, 64, 128)
    for name in ("a_scales", "gate", "up_scales", "alpha_gate"):
        with pytest.raises((dg.DualGemmError, RuntimeError)):
            dg.glu(**{**one.named(), name: getattr(one, name).cpu()})
