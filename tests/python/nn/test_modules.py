"""GatedMLP, GatedExperts, NVFP4Linear, replace_mlps: values, states, devices, compilation, what does not fit."""

from __future__ import annotations

import copy
import io
import pickle
from typing import Any

import numpy as np
import pytest
import reference
import torch
from operands import DEVICE, DTYPE_NAMES, FINE, ROWS, as_numpy, decoded, dg, same_bits
from torch import nn

import dualgemm.nn as dnn

ACTIVATIONS = {"silu": nn.SiLU(), "gelu_tanh": nn.GELU(approximate="tanh"), "gelu_erf": nn.GELU(), "sigmoid": nn.Sigmoid()}
MODES = [
    {},
    {"input_dtype": "nvfp4"},
    {"input_dtype": "nvfp4", "input_scale": 0.01},
    {"quantize_down": True},
    {"input_dtype": "nvfp4", "quantize_down": True},
]

# Two orders of additions, in the type of the rows.
CLOSE = {"rtol": 1e-5, "atol": 1e-6} if FINE == torch.float32 else {"rtol": 4e-3, "atol": 1e-4}


class FloatMLP(nn.Module):
    def __init__(
        self, k: int, n: int, bias: bool = False, dtype: torch.dtype = torch.bfloat16, activation: str = "silu"
    ) -> None:
        super().__init__()
        self.gate_proj, self.up_proj = nn.Linear(k, n, bias=bias, dtype=dtype), nn.Linear(k, n, bias=bias, dtype=dtype)
        self.down_proj, self.act_fn = nn.Linear(n, k, bias=bias, dtype=dtype), ACTIVATIONS[activation]

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.down_proj(self.act_fn(self.gate_proj(x)) * self.up_proj(x))


class StackedMLP(nn.Module):
    def __init__(self, up_first: bool) -> None:
        super().__init__()
        self.gate_up_proj, self.down_proj, self.up_first = (
            nn.Linear(64, 96, bias=False),
            nn.Linear(48, 64, bias=False),
            up_first,
        )

    def activation_fn(self, x: torch.Tensor) -> torch.Tensor:
        return nn.functional.silu(x)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        first, second = self.gate_up_proj(x).chunk(2, dim=-1)
        gate, up = (second, first) if self.up_first else (first, second)
        return self.down_proj(self.activation_fn(gate) * up)


def check_hidden(module: dg.GatedMLP, x: torch.Tensor, activation: str) -> None:
    """Every value that goes into ``down`` within its bound, from the module's own buffers."""
    module = copy.deepcopy(module)
    module.down = nn.Identity()
    with torch.no_grad():
        h = module(x)
    if module.input_dtype == "nvfp4":
        q = dg.quantize(x, global_scale=module.input_scale, per_row=module.input_scale is None)
        rows = decoded(q.codes, q.scales) * q.global_scale.double().cpu().numpy().reshape(-1, 1)
    else:
        rows = decoded(x, None)
    alphas = [
        float(alpha) / (float(module.input_scale) if module.input_scale is not None else 1.0)
        for alpha in (module.alpha_gate, module.alpha_up)
    ]
    gate, up = (
        reference.decode(as_numpy(codes), as_numpy(scales))
        for codes, scales in ((module.gate_codes, module.gate_scales), (module.up_codes, module.up_scales))
    )
    exact, bound = reference.glu(rows, gate, up, *alphas, activation, DTYPE_NAMES[h.dtype])
    assert (np.abs(h.double().cpu().numpy() - exact) <= bound + 2.0**-20 * np.abs(exact)).all()


@pytest.mark.parametrize("dtype", ROWS)
@pytest.mark.parametrize("mode", MODES, ids=str)
def test_values_and_every_form(mode: dict[str, object], dtype: torch.dtype) -> None:
    torch.manual_seed(0)
    for activation in ACTIVATIONS if dtype == torch.bfloat16 else ["silu"]:
        mlp = FloatMLP(64, 48, dtype=dtype, activation=activation).eval()
        made = dg.GatedMLP.from_float(mlp, **mode)
        assert made.activation == activation and not list(made.parameters(recurse=False))
        x = torch.randn(5, 64, dtype=dtype)
        check_hidden(made, x, activation)
        final = copy.deepcopy(made).finalize(a_dtype=None if "input_dtype" in mode else dtype)
        with torch.no_grad():
            d, wanted = made(x), mlp(x)
            assert d.dtype == dtype and d.shape == wanted.shape and same_bits(final(x), d)
            assert float((d - wanted).float().norm() / wanted.float().norm()) < 0.35  # four bits; the bits are checked above
            assert made(x[:0]).shape == (0, 64) and same_bits(made(x[0]), made(x[:1])[0])
            three = torch.stack([x, x])
            assert same_bits(made(three)[1], d) and same_bits(made(torch.stack([x, x], 1)[:, 0]), d)


def test_rows_of_any_number() -> None:
    made = dg.GatedMLP.from_float(FloatMLP(64, 17 * 3).eval())
    check_hidden(made, torch.randn(3, 64, dtype=torch.bfloat16), "silu")
    check_hidden(made.finalize(keep_original=True), torch.randn(3, 64, dtype=torch.bfloat16), "silu")


def test_biases() -> None:
    torch.manual_seed(3)
    mlp = FloatMLP(64, 48, bias=True, dtype=FINE).eval()
    made, x = dg.GatedMLP.from_float(mlp), torch.randn(4, 64).to(FINE)
    plain = dg.GatedMLP.from_float(mlp)
    plain.bias_gate, plain.bias_up = None, None
    with torch.no_grad():
        mlp.gate_proj.bias.mul_(20)
        mlp.up_proj.bias.mul_(20)
        made = dg.GatedMLP.from_float(mlp)
        assert float((made(x) - mlp(x)).norm()) < 0.1 * float((plain(x) - mlp(x)).norm())


def test_stacked_order_is_probed() -> None:
    torch.manual_seed(4)
    mlp, x = StackedMLP(up_first=False).to(FINE), torch.randn(4, 64).to(FINE)
    with torch.no_grad():
        assert float((dg.GatedMLP.from_float(mlp)(x) - mlp(x)).norm() / mlp(x).norm()) < 0.35
    with pytest.raises(dg.InvalidArgument, match="something else"):
        dg.GatedMLP.from_float(StackedMLP(up_first=True).to(FINE))


def test_down_takes_what_the_product_wrote() -> None:
    torch.manual_seed(5)
    mlp, x = FloatMLP(64, 48).eval(), torch.randn(6, 64, dtype=torch.bfloat16)
    made = dg.GatedMLP.from_float(mlp, input_dtype="nvfp4")
    made.down = dnn.NVFP4Linear.from_float(mlp.down_proj, input_dtype="nvfp4", input_scale=0.002)
    with torch.no_grad():
        assert made.down.output_scale == 0.002
        d = made(x)
        codes = dg.quantize(x, per_row=True)
        h = made.weights().glu_nvfp4(codes, d_global_scale=0.002)
        assert same_bits(d, made.down.weights()(h.codes, h.scales, out_dtype=torch.bfloat16))
        assert float((d - mlp(x)).float().norm() / mlp(x).float().norm()) < 0.4
        assert same_bits(copy.deepcopy(made).finalize()(x), d)


# ---- states -----------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("assign", [False, True])
@pytest.mark.parametrize("source_is_packed", [False, True])
@pytest.mark.parametrize("target_is_packed", [False, True])
def test_any_state_loads_into_any_module(source_is_packed: bool, target_is_packed: bool, assign: bool) -> None:
    torch.manual_seed(6)
    source, target = (dg.GatedMLP.from_float(FloatMLP(64, 48).eval(), quantize_down=True) for _ in range(2))
    x = torch.randn(3, 64, dtype=torch.bfloat16)
    wanted = source(x)
    for module, is_packed in ((source, source_is_packed), (target, target_is_packed)):
        if is_packed:
            module.finalize()
    saved = io.BytesIO()
    torch.save(source.state_dict(), saved)
    saved.seek(0)
    target.load_state_dict(torch.load(saved, map_location=DEVICE), assign=assign)
    assert same_bits(target(x), wanted)
    assert target.is_packed == source.is_packed or target_is_packed
    assert same_bits(pickle.loads(pickle.dumps(target.finalize()))(x), wanted)


def test_states_of_other_shapes_are_refused() -> None:
    one, other = (dg.GatedMLP.from_float(FloatMLP(64, n).eval()) for n in (48, 64))
    with pytest.raises(RuntimeError, match="gate_codes"):
        one.load_state_dict({key: value for key, value in other.state_dict().items() if "down" not in key}, strict=False)
    packed = other.finalize().state_dict()
    if "packed" in packed:
        with pytest.raises(RuntimeError, match="packed: .*; must"):
            one.load_state_dict({key: value for key, value in packed.items() if "down" not in key}, strict=False)


def test_dtypes_of_buffers_stay() -> None:
    made, x = dg.GatedMLP.from_float(FloatMLP(64, 48).eval()), torch.randn(3, 64, dtype=torch.bfloat16)
    wanted = made(x)
    made.to(torch.float16).to(torch.bfloat16).half().bfloat16()
    assert (
        made.alpha_gate.dtype == torch.float32 and made.gate_scales.dtype == torch.float8_e4m3fn and same_bits(made(x), wanted)
    )
    names = {name for name, _ in made.named_buffers()}
    assert {"gate_codes", "gate_scales", "up_codes", "up_scales", "alpha_gate", "alpha_up"} <= names
    bytes_of_scales = {k: v.view(torch.uint8) if v.dtype == torch.float8_e4m3fn else v for k, v in made.state_dict().items()}
    fresh = dg.GatedMLP.from_float(FloatMLP(64, 48).eval())
    fresh.load_state_dict(bytes_of_scales)
    assert same_bits(fresh(x), wanted)


def test_moving_a_packed_module() -> None:
    made = dg.GatedMLP.from_float(FloatMLP(64, 48).eval())
    assert copy.deepcopy(made).to("meta").gate_codes.device.type == "meta"
    empty = dg.GatedMLP(64, 48, nn.Linear(48, 64, bias=False, device="meta"), device="meta").to_empty(device=DEVICE)
    empty.load_state_dict(made.state_dict())
    x = torch.randn(2, 64, dtype=torch.bfloat16)
    assert same_bits(empty.bfloat16()(x), made(x))
    if DEVICE == "cuda":
        made.finalize()
        with pytest.raises(dg.Unsupported, match="finalize"):
            made.cpu()


def test_safetensors_keep_it(tmp_path: object) -> None:
    safetensors = pytest.importorskip("safetensors.torch")
    made, x = dg.GatedMLP.from_float(FloatMLP(64, 48).eval(), quantize_down=True), torch.randn(2, 64, dtype=torch.bfloat16)
    for module in (made, copy.deepcopy(made).finalize()):
        safetensors.save_file(module.state_dict(), f"{tmp_path}/m.safetensors")
        other = dg.GatedMLP.from_float(FloatMLP(64, 48).eval(), quantize_down=True)
        other.load_state_dict(safetensors.load_file(f"{tmp_path}/m.safetensors", device=DEVICE), assign=True)
        assert same_bits(other(x), made(x))


# ---- gradients, compilation -------------------------------------------------------------------------------------------------


def test_gradients_are_refused_clearly() -> None:
    made = dg.GatedMLP.from_float(FloatMLP(64, 48).eval())
    x = torch.randn(2, 64, dtype=torch.bfloat16, requires_grad=True)
    with pytest.raises(dg.InvalidArgument, match="requires_grad.*no_grad"):
        made(x)
    with torch.no_grad():
        assert made(x).shape == (2, 64)
    with torch.inference_mode():
        assert made(x).shape == (2, 64)


@pytest.mark.parametrize("mode", MODES, ids=str)
def test_compiled_whole(mode: dict[str, object]) -> None:
    torch.manual_seed(7)
    torch.compiler.reset()  # one forward, many modules
    for made in (
        dg.GatedMLP.from_float(FloatMLP(64, 48).eval(), **mode),
        dg.GatedMLP.from_float(FloatMLP(64, 48).eval(), **mode).finalize(),
    ):
        compiled = torch.compile(made, fullgraph=True, dynamic=True, backend="aot_eager")
        with torch.no_grad():
            for m in (3, 5, 1):
                x = torch.randn(m, 64, dtype=torch.bfloat16)
                assert same_bits(compiled(x), made(x))


# ---- experts ----------------------------------------------------------------------------------------------------------------


class FloatExperts(nn.Module):
    def __init__(self, experts: int, k: int, n: int) -> None:
        super().__init__()
        self.gate_up_proj = nn.Parameter(torch.randn(experts, 2 * n, k) * 0.1)
        self.down_proj = nn.Parameter(torch.randn(experts, k, n) * 0.1)
        self.act_fn = nn.SiLU()

    def forward(self, x: torch.Tensor, ids: torch.Tensor, weights: torch.Tensor) -> torch.Tensor:
        result = torch.zeros_like(x)
        for token in range(x.shape[0]):
            for slot in range(ids.shape[1]):
                expert = int(ids[token, slot])
                if 0 <= expert < self.gate_up_proj.shape[0]:
                    gate, up = (self.gate_up_proj[expert] @ x[token]).chunk(2)
                    result[token] += weights[token, slot] * (self.down_proj[expert] @ (self.act_fn(gate) * up))
        return result


def exact_experts(module: dg.GatedExperts) -> FloatExperts:
    """The same experts with the values that the codes stand for."""

    def values(part: nn.Module, name: str, alpha: torch.Tensor) -> torch.Tensor:
        w = reference.decode(as_numpy(getattr(part, f"{name}_codes")), as_numpy(getattr(part, f"{name}_scales")))
        return torch.from_numpy(w).to(DEVICE) * alpha.double()[:, None, None]

    made = FloatExperts(1, 16, 16).double()
    made.gate_up_proj = nn.Parameter(
        torch.cat([values(module, "gate", module.alpha_gate), values(module, "up", module.alpha_up)], 1)
    )
    made.down_proj = nn.Parameter(values(module.down, "w", module.down.alpha))
    return made


@pytest.mark.parametrize("input_dtype", ["bf16", "nvfp4"])
def test_experts(input_dtype: str) -> None:
    torch.manual_seed(8)
    torch.compiler.reset()
    experts = FloatExperts(5, 64, 48)
    made = dg.GatedExperts.from_float(experts, input_dtype=input_dtype)
    assert made.num_experts == 5 and made.down.shape == (64, 48, 5)
    x, weights = torch.randn(9, 64).to(FINE), torch.rand(9, 2)
    ids = torch.randint(0, 5, (9, 2))
    ids[3, 1], ids[4, 0] = 5, -1  # no expert of ours
    weights[4, 0] = float("nan")
    exact = exact_experts(made)
    with torch.no_grad():
        d = made(x, ids, weights)
        if input_dtype == "bf16":  # K = 64 and 48 in float32, two of them one after the other; h and d in the type of x
            wanted = exact(x.double(), ids, weights.double())
            magnitude = FloatExperts(1, 16, 16).double()
            magnitude.gate_up_proj, magnitude.down_proj = (
                nn.Parameter(exact.gate_up_proj.abs()),
                nn.Parameter(exact.down_proj.abs()),
            )
            bound = magnitude(x.double().abs(), ids, weights.double()) * 200 * 2.0**-24
            if FINE != torch.float32:
                bound *= 2.0**6  # 2 * 2^-11 for h and d, the sums above
            assert bool(((d.double() - wanted).abs() <= bound).all())
        else:
            wanted = experts(x.float(), ids, weights)
            assert float((d - wanted).norm() / wanted.norm()) < 0.4
        for one in (
            copy.deepcopy(made).finalize(a_dtype=FINE if input_dtype == "bf16" else None),
            torch.compile(made, fullgraph=True, dynamic=True, backend="aot_eager"),
        ):
            assert same_bits(one(x, ids, weights), d)
        assert made(x[:0], ids[:0], weights[:0]).shape == (0, 64)
        assert same_bits(made(x.view(3, 3, 64), ids, weights), d.view(3, 3, 64))
        for wrong in ((ids[:3], weights[:3]), (ids.float(), weights), (ids, torch.ones_like(ids))):
            with pytest.raises(dg.InvalidArgument, match="topk_ids"):
                made(x, *wrong)


@pytest.mark.parametrize("input_dtype", ["bf16", "nvfp4"])
@pytest.mark.parametrize("gated", [True, False])
def test_router_weights_on_the_input(gated: bool, input_dtype: str) -> None:
    """Powers of two, which the rows of x take exactly: the bits of experts that get rows multiplied before."""
    torch.manual_seed(11)
    floats = FloatExperts(5, 64, 48)
    made: Any = dg.GatedExperts.from_float(floats, input_dtype=input_dtype, router_weight_on_input=True)
    if not gated:
        up, down = (
            dg.LinearWeights.from_tensors(one.codes, one.scales, alpha=one.global_scale.expand(5).contiguous(), prepare=False)
            for one in (dg.quantize(torch.randn(5, n, k) / 8) for n, k in ((48, 64), (64, 48)))
        )
        made = dg.nn.Experts.from_weights(up, down, activation="relu2", input_dtype=input_dtype, router_weight_on_input=True)
    x, ids = torch.randn(9, 64).to(FINE), torch.randint(0, 5, (9, 2))
    weights = torch.exp2(torch.randint(-3, 3, (9, 2)).float())
    ids[3, 1], ids[4, 0], weights[4, 0] = 5, -1, float("nan")
    plain = copy.deepcopy(made)
    plain.router_weight_on_input = False
    ones = torch.ones(9, 1)
    with torch.no_grad():
        parts = [plain((x * weights[:, i : i + 1].nan_to_num()).to(x.dtype), ids[:, i : i + 1], ones) for i in range(2)]
        wanted = sum(part.float() for part in parts).to(x.dtype)
        assert same_bits(made(x, ids, weights), wanted)
        assert not same_bits(plain(x, ids, weights), wanted), "on the output it is another function"
        packed = copy.deepcopy(made).finalize(a_dtype=FINE if input_dtype == "bf16" else None)
        assert packed.router_weight_on_input and same_bits(packed(x, ids, weights), wanted)
    assert made.saved_arguments()["router_weight_on_input"] and "router_weight_on_input" not in plain.saved_arguments()


@pytest.mark.parametrize("input_dtype", ["bf16", "nvfp4"])
def test_masked_experts(input_dtype: str) -> None:
    torch.manual_seed(9)
    made = dg.GatedExperts.from_float(FloatExperts(3, 64, 48), input_dtype=input_dtype)
    x, counts = torch.randn(3, 4, 64).to(FINE), [4, 0, 2]
    garbage = x.clone()
    for expert, count in enumerate(counts):
        garbage[expert, count:] = float("nan")
    masked = torch.tensor(counts, dtype=torch.int32)
    with torch.no_grad():
        d = made.forward_masked(garbage, masked)
        assert same_bits(d, made.forward_masked(x, masked)) and not bool(d[1].any()) and not bool(d[2, 2:].any())
        for expert, count in enumerate(counts):
            ids = torch.full((count, 1), expert)
            assert torch.allclose(d[expert, :count], made(x[expert, :count], ids, torch.ones(count, 1)), **CLOSE)


# ---- replacing --------------------------------------------------------------------------------------------------------------


class Block(nn.Module):
    def __init__(self, mlp: nn.Module) -> None:
        super().__init__()
        self.mlp = mlp


class Scaled(FloatMLP):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return super().forward(x) * 0.5


def test_replace_mlps_without_a_gate() -> None:
    class Block(nn.Module):
        def __init__(self, names: tuple[str, str]) -> None:
            super().__init__()
            self.names, self.act = names, nn.GELU()
            for name, (k, n) in zip(names, ((32, 48), (48, 32))):
                setattr(self, name, nn.Linear(k, n))

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            up, down = (getattr(self, name) for name in self.names)
            result: torch.Tensor = down(self.act(up(x)))
            return result

    def blocks() -> nn.Sequential:
        torch.manual_seed(2)
        return nn.Sequential(Block(("fc1", "fc2")), Block(("c_fc", "c_proj")), Block(("up_proj", "down_proj")))

    with pytest.warns(UserWarning, match="nothing was replaced"):
        assert dg.replace_mlps(blocks()) == []
    model = blocks().to(DEVICE)
    assert dg.replace_mlps(model, without_gate=True, quantize_down=True) == ["0", "1", "2"]
    assert all(type(one) is dnn.MLP and one.activation == "gelu_erf" for one in model)
    assert all(isinstance(one.down, dnn.NVFP4Linear) for one in model)
    x = torch.randn(4, 32, device=DEVICE)
    with torch.no_grad():
        want, got = blocks().to(DEVICE)(x), model(x.to(FINE)).float()
    assert (got - want).norm() < 0.4 * want.norm()
    with pytest.raises(dg.InvalidArgument, match="without_gate"):
        dg.replace_mlps(blocks(), without_gate=1)  # type: ignore[arg-type]


def test_replace_mlps() -> None:
    shared = FloatMLP(64, 48).eval()
    model = nn.ModuleDict(
        {
            "a": Block(shared),
            "b": Block(shared),
            "c": Block(FloatMLP(64, 32)),
            "odd": Block(FloatMLP(24, 16)),
            "scaled": Block(Scaled(64, 48)),
            "none": Block(nn.Linear(4, 4)),
            "prelu": Block(FloatMLP(64, 48)),
        }
    )
    model["prelu"].mlp.act_fn = nn.PReLU().to(torch.bfloat16)
    with pytest.warns(UserWarning) as caught:
        assert dg.replace_mlps(model, skip=["c.mlp"]) == ["a.mlp", "b.mlp"]
    assert all(f"{name}.mlp (" in str(caught[0].message) for name in ("odd", "scaled", "none", "prelu"))
    assert model["a"].mlp is model["b"].mlp and isinstance(model["a"].mlp, dg.GatedMLP) and isinstance(model["c"].mlp, FloatMLP)
    assert dg.replace_mlps(model, match="c.mlp", quantize_down=True) == ["c.mlp"]
    dnn.finalize(model)
    assert model["c"].mlp.is_packed == model["c"].mlp.down.is_packed


def test_bad_arguments() -> None:
    mlp = FloatMLP(64, 48).eval()
    for kw, argument in (
        ({"input_dtype": "fp8"}, "input_dtype"),
        ({"input_scale": 0.0, "input_dtype": "nvfp4"}, "input_scale"),
        ({"activation": "gelu"}, "activation"),
    ):
        with pytest.raises(dg.InvalidArgument) as caught:
            dg.GatedMLP.from_float(mlp, **kw)
        assert argument in caught.value.argument
    with pytest.raises(dg.InvalidArgument, match="x: shape"):
        dg.GatedMLP.from_float(mlp).finalize()(torch.randn(2, 48, dtype=torch.bfloat16))
    for number in (dg.GatedMLP.from_float(mlp), dg.Weights.from_linear(mlp.gate_proj, mlp.up_proj)):
        with pytest.raises(dg.InvalidArgument, match=r"x: shape \[\]"):
            number(torch.tensor(1.0))
    with pytest.raises(dg.InvalidArgument, match="multiple of 16"):
        dg.GatedMLP(24, 48, nn.Identity())
    with pytest.raises(dg.InvalidArgument, match="meta"):
        dg.GatedMLP.from_float(FloatMLP(64, 48).to("meta"))


# ---- without a gate ---------------------------------------------------------------------------------------------------------

OF_ONE = {"relu2": lambda x: torch.relu(x).square(), **{name: function for name, function in ACTIVATIONS.items()}}


class FloatUngated(nn.Module):
    def __init__(
        self, activation: str = "relu2", bias: bool = False, names: tuple[str, str] = ("up_proj", "down_proj")
    ) -> None:
        super().__init__()
        self.names, self.act_fn = names, OF_ONE[activation]
        self.limit = float("inf")
        setattr(self, names[0], nn.Linear(64, 96, bias=bias, dtype=FINE))
        setattr(self, names[1], nn.Linear(96, 64, bias=bias, dtype=FINE))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        up, down = (getattr(self, name) for name in self.names)
        return down(self.act_fn(up(x)).clamp(max=self.limit))


def matrix(layer: dnn.NVFP4Linear) -> torch.Tensor:
    return torch.from_numpy(decoded(layer.w_codes, layer.w_scales)).double() * layer.alpha.double().cpu()


def through_product(made: dnn.MLP, x: torch.Tensor) -> torch.Tensor:
    """What is to come out, by torch on decoded weights."""
    bias, down_bias = (0 if one.bias is None else one.bias.detach().double().cpu() for one in (made, made.down))
    h = OF_ONE[made.activation](x.double().cpu() @ matrix(made).T + bias)
    down = made.down.weight.detach().double().cpu() if isinstance(made.down, nn.Linear) else matrix(made.down)
    return h @ down.T + down_bias


@pytest.mark.parametrize("activation", OF_ONE)
@pytest.mark.parametrize("bias", [False, True])
@pytest.mark.parametrize("quantize_down", [False, True])
def test_an_mlp_without_a_gate(activation: str, bias: bool, quantize_down: bool) -> None:
    torch.manual_seed(0)
    mlp = FloatUngated(activation, bias).to(DEVICE)
    made = dnn.MLP.from_float(mlp, quantize_down=quantize_down)
    assert made.activation == activation
    x = torch.randn(5, 64, dtype=FINE, device=DEVICE)
    wanted = through_product(made, x)
    torch.testing.assert_close(made(x).double().cpu(), wanted, rtol=1e-2, atol=1e-2 * float(wanted.abs().max()))
    packed = copy.deepcopy(made).finalize(a_dtype=FINE)
    torch.testing.assert_close(packed(x).double().cpu(), wanted, rtol=1e-2, atol=1e-2 * float(wanted.abs().max()))
    torch.testing.assert_close(made(x[0]), made(x)[0], **CLOSE)


def test_the_hidden_rows_of_an_mlp_without_a_gate_are_written_as_nvfp4() -> None:
    torch.manual_seed(0)
    mlp = FloatUngated().to(DEVICE)
    plain = dnn.MLP.from_float(mlp)
    down = dnn.NVFP4Linear.from_float(mlp.down_proj, input_dtype="nvfp4", input_scale=0.01)
    made = dnn.MLP(64, 96, down, activation="relu2", device=DEVICE)
    made.load_state_dict({**plain.state_dict(), **{f"down.{name}": value for name, value in down.state_dict().items()}}, False)
    x = torch.randn(7, 64, dtype=FINE, device=DEVICE)
    h = dg.quantize(plain.product(x, None, None, torch.float32, activation="relu2"), global_scale=0.01)
    codes, scales = plain.product_nvfp4(x, None, None, 0.01, activation="relu2")
    assert same_bits(codes, h.codes) and same_bits(scales.view(torch.uint8), h.scales.view(torch.uint8))
    assert same_bits(made(x), down.product(h.codes, h.scales, None, x.dtype))


def test_what_no_gate_means_is_looked_at() -> None:
    for names in (("fc1", "fc2"), ("wi", "wo")):
        assert dnn.MLP.from_float(FloatUngated("gelu_tanh", names=names)).activation == "gelu_tanh"
    clamps = FloatUngated()
    clamps.limit = 3.0
    with pytest.raises(dg.InvalidArgument, match="FloatUngated"):
        dnn.MLP.from_float(clamps)
    with pytest.raises(dg.InvalidArgument, match="must have no gate"):
        dnn.MLP.from_float(FloatMLP(64, 48))
    with pytest.raises(dg.InvalidArgument, match="swiglu_oai"):
        dnn.MLP(64, 96, nn.Linear(96, 64), activation="swiglu_oai")


def test_an_activation_of_one_product() -> None:
    torch.manual_seed(0)
    w = dg.quantize(torch.randn(96, 64, dtype=FINE, device=DEVICE))
    x, bias = torch.randn(5, 64, dtype=FINE, device=DEVICE), torch.randn(96, device=DEVICE)
    residual = torch.randn(5, 96, device=DEVICE)
    given = {"w_scales": w.scales, "alpha": w.global_scale, "bias": bias, "out_dtype": torch.float32}
    product = dg.linear(x, w.codes, **given)
    for name, function in OF_ONE.items():
        d = dg.linear(x, w.codes, activation=name, residual=residual, **given)
        torch.testing.assert_close(d, function(product) + residual, rtol=1e-5, atol=1e-5)
    assert same_bits(dg.linear(x, w.codes, activation="identity", **given), product)
    with pytest.raises(dg.InvalidArgument, match="act.kind: swiglu_oai"):
        dg.linear(x, w.codes, activation="swiglu_oai", **given)
    with pytest.raises(dg.InvalidArgument, match="must be a multiple of 16"):
        dg.linear_nvfp4(x, w.codes[:40], w_scales=w.scales[:40], d_global_scale=1.0)
