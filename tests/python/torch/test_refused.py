"""Bad input: an exception with argument, observation and rule; nothing written."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from operands import dg, only_on_cpu, operands

ONE = operands(4, 32, 64)
FLOAT = operands(4, 32, 64, torch.bfloat16)


def freed() -> torch.Tensor:
    gone = ONE.gate.clone()
    gone.untyped_storage().resize_(0)
    return gone


# what changes, the argument that the message names
BAD: list[tuple[dict[str, object], str]] = [
    (dict(a=ONE.a[:, :16]), "a_scales"),
    (dict(a=ONE.a.double()), "a"),
    (dict(a=ONE.a.T), "a"),
    (dict(a=ONE.a[0]), "a"),
    (dict(a=ONE.a.expand(2, 4, 32)[:, ::2]), "a"),
    (dict(a_scales=None), "a_scales"),
    (dict(a_scales=ONE.a_scales[:2]), "a_scales"),
    (dict(a_scales=ONE.a_scales.float()), "a_scales"),
    (dict(gate=ONE.gate[:, :16], gate_scales=ONE.gate_scales[:, :2]), "gate"),
    (dict(gate=ONE.gate[:16]), "gate_scales"),
    (dict(up=ONE.up[:16], up_scales=ONE.up_scales[:16]), "up"),
    (dict(gate=freed()), "gate"),
    (dict(gate=ONE.gate.float()), "gate"),
    (dict(gate=ONE.gate.to_sparse()), "tensors"),
    (dict(up=ONE.up.expand(2, 32, 32)), "up"),
    (dict(alpha_gate=torch.ones(2)), "alpha_gate"),
    (dict(alpha_up=torch.ones(1, dtype=torch.float64)), "alpha_up"),
    (dict(a_row_scale=torch.ones(3)), "a_row_scale"),
    (dict(bias_gate=torch.ones(32)), "bias_up"),
    (dict(bias_gate=torch.ones(31), bias_up=torch.ones(32)), "bias_gate"),
    (dict(bias_gate=torch.ones(32).half(), bias_up=torch.ones(32).half()), "bias_gate"),
    (dict(activation="swish"), "activation"),
    (dict(activation="clamped_swiglu"), "act"),
    (dict(strategy="quick"), "strategy"),
    (dict(config="nothing"), "config"),
    (dict(scale_layout="rows"), "scale_layout"),
    (dict(scale_layout="swizzled_128x4"), "a_scales"),
    (dict(out_dtype=torch.int8), "out_dtype"),
    (dict(out=torch.zeros(4, 31)), "out"),
    (dict(out=torch.zeros(32, 4).T), "out"),
    (dict(out=torch.zeros(4, 32, dtype=torch.uint8)), "out"),
    (dict(out=torch.zeros(4, 32), out_dtype=torch.float16), "out"),
    (dict(out=torch.zeros(1, 32).expand(4, 32)), "out"),
    (dict(a=FLOAT.a), "a_scales"),
    (dict(a=FLOAT.a.clone().requires_grad_(), a_scales=None), "a"),
    (dict(a=None), "a"),
    (dict(alpha_gate="one"), "alpha_gate"),
    (
        dict(
            gate=ONE.gate[:0],
            gate_scales=ONE.gate_scales[:0],
            up=ONE.up[:0],
            up_scales=ONE.up_scales[:0],
            out=torch.zeros(4, 0),
        ),
        "gate",
    ),
]


@pytest.mark.parametrize("change,argument", BAD, ids=[f"{i}-{name}" for i, (_, name) in enumerate(BAD)])
def test_glu(change: dict[str, object], argument: str) -> None:
    out = change.get("out", torch.full((4, 32), 7, dtype=torch.float16))
    before = out.clone()
    named = {**ONE.named(), "out": out, **change}
    if "out_dtype" in change and "out" not in change:
        del named["out"]
    with pytest.raises(dg.DualGemmError) as caught:
        dg.glu(**named)
    assert argument in caught.value.argument and caught.value.observed and caught.value.rule
    assert torch.equal(out, before)


def test_out_that_overlaps_an_operand() -> None:
    both = FLOAT.a.clone()
    with pytest.raises(dg.InvalidArgument):
        dg.glu(**{**FLOAT.named(), "a": both}, out=both[:, :32])
    assert torch.equal(both, FLOAT.a)


def test_other_devices() -> None:
    with pytest.raises(dg.InvalidArgument, match="must be on one device"):
        dg.glu(**{**ONE.named(), "gate": ONE.gate.to("meta")})


def on_meta(**change: object) -> dict[str, object]:
    named = {**ONE.named(), **change}
    return {name: value.to("meta") if isinstance(value, torch.Tensor) else value for name, value in named.items()}


def test_meta_tensors_have_shapes_and_are_refused_as_others() -> None:
    d = dg.glu(**on_meta())
    assert d.shape == (4, 32) and d.device.type == "meta"
    wrong: list[tuple[dict[str, object], str]] = [
        (dict(a=torch.zeros(4, 80), a_scales=None), "gate"),
        (dict(a=ONE.a.double()), "a"),
        (dict(a=ONE.a[0]), "a"),
        (dict(up=ONE.up[:16]), "up"),
        (dict(gate=ONE.gate.float()), "gate"),
        (dict(out_dtype=torch.int8), "out_dtype"),
        (dict(out=torch.zeros(3, 32)), "out"),
        (dict(out=torch.zeros(4, 32, dtype=torch.int32)), "out_dtype"),
    ]
    for change, argument in wrong:
        with pytest.raises(dg.InvalidArgument) as caught:
            dg.glu(**on_meta(**change))
        assert caught.value.argument == argument
    with pytest.raises(dg.InvalidArgument, match="columns"):
        dg.quantize(torch.zeros(4, 40, device="meta"))
    with pytest.raises(dg.InvalidArgument, match="must have its values"):
        dg.Weights.from_linear(*(torch.nn.Linear(64, 32, device="meta") for _ in range(2)))


def test_what_torch_itself_would_read_behind_its_end() -> None:
    def emptied(tensor: torch.Tensor) -> torch.Tensor:
        tensor = tensor.clone()
        tensor.untyped_storage().resize_(0)
        return tensor

    g = ONE.gate_scales
    for call in (
        lambda: dg.quantize(emptied(torch.ones(4, 64))),
        lambda: dg.swizzle_scales(emptied(g)),
        lambda: dg.unswizzle_scales(emptied(dg.swizzle_scales(g)), 32, 4),
        lambda: dg.swap_nibbles(emptied(ONE.gate)),
        lambda: dg.glu_nvfp4(**ONE.named(), d_global_scale=emptied(torch.ones(1))),
        lambda: dg.Weights.from_tensors(ONE.gate, g, ONE.up, g, alpha_gate=emptied(torch.ones(1))),
        lambda: dg.Weights.from_tensors(ONE.gate, g, ONE.up, g, bias_gate=emptied(torch.ones(32).half())),
    ):
        with pytest.raises(dg.InvalidArgument, match="was it freed"):
            call()


def test_operators_without_weights() -> None:
    ops = torch.ops.dualgemm
    for call, name in (
        (lambda: ops.linear(FLOAT.a, None, None, None, None, 0, 0), "w"),
        (lambda: ops.linear(FLOAT.a, None, FLOAT.gate, None, None, 0, 0), "w_scales"),
        (lambda: ops.glu_nvfp4(FLOAT.a, None, FLOAT.gate, FLOAT.gate_scales, None, None, None, 0, 0, 1.0), "up"),
    ):
        with pytest.raises(RuntimeError, match=f"dualgemm: invalid_argument: {name}: None; must be given"):
            call()


def test_quantize_writes_nothing_where_it_refuses() -> None:
    out = dg.QuantizedTensor(
        torch.full((4, 32), 7, dtype=torch.uint8),
        torch.full((4, 4), 7, dtype=torch.uint8).view(torch.float8_e4m3fn),
        torch.full((1,), 7.0),
    )
    bad = torch.ones(4, 64)
    bad[2, 5] = float("nan")
    for x, named in ((torch.ones(4, 64), dict(global_scale=0.0)), (torch.ones(4, 64), dict(global_scale="one")), (bad, {})):
        if x is bad and x.is_cuda:
            continue  # NaN scales there
        with pytest.raises(dg.InvalidArgument):
            dg.quantize(x, **named, out=out)
        assert (out.codes == 7).all() and (out.scales.view(torch.uint8) == 7).all() and float(out.global_scale) == 7
    with pytest.raises(dg.InvalidArgument, match="torch.int32; must be float16, bfloat16 or float32"):
        dg.quantize(torch.ones(4, 64, dtype=torch.int32))


def test_unknown_names() -> None:
    w = dg.Weights.from_tensors(ONE.gate, ONE.gate_scales, ONE.up, ONE.up_scales)
    with pytest.raises(TypeError, match="unexpected keyword argument 'activations'"):
        w(FLOAT.a, activations="silu")


def test_huge_sizes_are_refused_before_memory_is_asked_for() -> None:
    one = operands(1, 16, 16)
    with pytest.raises(dg.InvalidArgument, match="must not be expanded"):
        dg.glu(**{**one.named(), "a": one.a.expand(2**50, 8), "a_scales": one.a_scales.view(torch.uint8).expand(2**50, 1)})
    with pytest.raises(RuntimeError, match="dualgemm: invalid_argument: packed: "):
        torch.ops.dualgemm.glu_packed(one.a, one.a_scales, torch.zeros(64, dtype=torch.uint8), 2**61, 1)


@pytest.mark.parametrize("name", ["a", "alpha_gate", "alpha_up", "a_row_scale", "bias_gate"])
def test_derivatives_of_any_factor(name: str) -> None:
    named = {**FLOAT.named(), "a_row_scale": torch.ones(4), "bias_gate": torch.ones(32), "bias_up": torch.ones(32)}
    value = named[name]
    assert value is not None
    wanting = {**named, name: value.clone().requires_grad_()}
    for call in (lambda: dg.glu(**wanting), lambda: dg.glu_nvfp4(**wanting, d_global_scale=1.0)):
        with pytest.raises(dg.InvalidArgument, match="requires_grad") as caught:
            call()
        assert caught.value.argument == name
        with torch.no_grad():
            call()
    with pytest.raises(dg.InvalidArgument, match="with a tangent"):  # zeros would look like a derivative
        torch.func.jvp(lambda x: dg.glu(**{**named, name: x}), (value,), (torch.ones_like(value),))


def test_derivatives_of_other_calls() -> None:
    one = torch.ones(1, requires_grad=True)
    rows = torch.ones(4, requires_grad=True)
    w = dg.Weights.from_tensors(ONE.gate, ONE.gate_scales, ONE.up, ONE.up_scales)
    down = dict(w_scales=FLOAT.gate_scales)
    for call in (
        lambda: dg.linear(FLOAT.a, FLOAT.gate, **down, alpha=one),
        lambda: w(FLOAT.a, alpha_up=one),
        lambda: dg.linear(FLOAT.a, FLOAT.gate, **down, a_row_scale=rows),
        lambda: w(FLOAT.a, a_row_scale=rows),
        lambda: dg.quantize(torch.ones(4, 64), global_scale=one),
        lambda: w.glu_nvfp4(FLOAT.a, d_global_scale=1.0, alpha_gate=one),
        lambda: dg.dequantize(dg.QuantizedTensor(ONE.a, ONE.a_scales, one)),
    ):
        with pytest.raises(dg.InvalidArgument, match="requires_grad"):
            call()


@only_on_cpu  # a GPU's headers are not read: that would wait for it
def test_packed_weights_that_do_not_fit() -> None:
    packed = torch.ops.dualgemm.pack_weights(ONE.gate, ONE.gate_scales, ONE.up, ONE.up_scales, a_dtype=torch.uint8)
    operator = torch.ops.dualgemm.glu_packed
    cases: list[Callable[[], object]] = [
        lambda: operator(ONE.a, ONE.a_scales, packed[:-64], 32, 1),
        lambda: operator(ONE.a, ONE.a_scales, packed, 48, 1),
        lambda: operator(ONE.a, ONE.a_scales, packed, 32, 2),
        lambda: operator(ONE.a, ONE.a_scales, torch.zeros_like(packed), 32, 1),
        lambda: operator(ONE.a, ONE.a_scales, packed.view(torch.int8), 32, 1),
        lambda: operator(ONE.a, ONE.a_scales, torch.cat([packed, packed])[1 : packed.numel() + 1], 32, 1),
        lambda: operator(ONE.a, ONE.a_scales, packed, -1, 1),
        lambda: operator(ONE.a, ONE.a_scales, packed, 32, 0),
    ]
    for case in cases:
        with pytest.raises(RuntimeError, match="dualgemm: "):
            case()


def test_arguments_are_named_as_the_caller_calls_them() -> None:
    for change, argument in (
        (dict(w=ONE.gate.float()), "w"),
        (dict(w=freed()), "w"),
        (dict(w_scales=ONE.gate_scales[:2]), "w_scales"),
    ):
        named = {"w": ONE.gate, "w_scales": ONE.gate_scales, **change}
        with pytest.raises(dg.DualGemmError) as caught:
            dg.linear(ONE.a, named["w"], w_scales=named["w_scales"], a_scales=ONE.a_scales)
        assert caught.value.argument == argument
    for pack in (
        lambda: torch.ops.dualgemm.pack_linear(ONE.gate, ONE.gate_scales, a_dtype=torch.int32),
        lambda: torch.ops.dualgemm.pack_weights(ONE.gate, ONE.gate_scales, ONE.up, ONE.up_scales, a_dtype=torch.int32),
    ):
        with pytest.raises(RuntimeError, match="a_dtype"):
            pack()
