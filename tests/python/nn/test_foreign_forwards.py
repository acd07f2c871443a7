"""MLPs that are not what they seem: what their forward does beside the formula shows at some magnitude, or they stay."""

from __future__ import annotations

import warnings
from collections.abc import Callable

import pytest
import torch
from operands import DEVICE, ROWS, dg, only_on_cpu
from torch import nn
from torch.nn import functional

from dualgemm._activations import Act
from dualgemm._floats import check_forward, float_experts, float_mlp

K, N = 64, 96


class Plain(nn.Module):
    def __init__(self, k: int = K, n: int = N, dtype: torch.dtype = torch.float32) -> None:
        super().__init__()
        self.gate_proj, self.up_proj, self.down_proj = (
            nn.Linear(a, b, bias=False, dtype=dtype) for a, b in ((k, n), (k, n), (n, k))
        )
        self.act_fn = nn.SiLU()

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.down_proj(self.act_fn(self.gate_proj(x)) * self.up_proj(x))


def variant(change: Callable[[Plain, torch.Tensor], torch.Tensor]) -> type[Plain]:
    return type("Foreign", (Plain,), {"forward": change})


def _clamped(name: str, low: float | None, high: float | None) -> Callable[[Plain, torch.Tensor], torch.Tensor]:
    def forward(self: Plain, x: torch.Tensor) -> torch.Tensor:
        x = x.clamp(low, high) if name == "x" else x
        gate, up = self.gate_proj(x), self.up_proj(x)
        gate = gate.clamp(low, high) if name == "gate" else gate
        up = up.clamp(low, high) if name == "up" else up
        h = self.act_fn(gate) * up
        y = self.down_proj(h.clamp(low, high) if name == "h" else h)
        return y.clamp(low, high) if name == "y" else y

    return forward


FORMULA = {
    "gate times 0.5": lambda self, x: self.down_proj(self.act_fn(0.5 * self.gate_proj(x)) * self.up_proj(x)),
    "down times 0.9": lambda self, x: 0.9 * self.down_proj(self.act_fn(self.gate_proj(x)) * self.up_proj(x)),
    "soft cap": lambda self, x: self.down_proj(self.act_fn(30 * torch.tanh(self.gate_proj(x) / 30)) * self.up_proj(x)),
    "norm": lambda self, x: self.down_proj(functional.rms_norm(self.act_fn(self.gate_proj(x)) * self.up_proj(x), (N,))),
    "up plus one": lambda self, x: self.down_proj(self.act_fn(self.gate_proj(x)) * (self.up_proj(x) + 1)),
    "eps": lambda self, x: self.down_proj(self.act_fn(self.gate_proj(x)) * self.up_proj(x)) + 0.05,
    "residual": lambda self, x: x + self.down_proj(self.act_fn(self.gate_proj(x)) * self.up_proj(x)),
    "mixes tokens": lambda self, x: Plain.forward(self, x if x.dim() == 2 else x + x.mean(1, keepdim=True)),
    "tuple": lambda self, x: (Plain.forward(self, x), None),
    "exchanged": lambda self, x: self.down_proj(self.act_fn(self.up_proj(x)) * self.gate_proj(x)),
}
CLAMPS = {
    f"{name} {low} {high}": _clamped(name, low, high)
    for name, low, high in (
        ("gate", None, 7.0),
        ("gate", None, 10.0),
        ("gate", None, 90.0),
        ("up", -7.0, 7.0),
        ("up", -1000.0, 1000.0),
        ("up", None, 100.0),
        ("x", -300.0, 300.0),
        ("h", -5e4, 5e4),
        ("y", -3e4, 3e4),
        ("gate", -0.05, None),
    )
}


@pytest.mark.parametrize("name", [*FORMULA, *CLAMPS])
def test_what_does_more_is_left(name: str) -> None:
    torch.manual_seed(0)
    mlp = variant({**FORMULA, **CLAMPS}[name])().eval()
    for parameter in mlp.parameters():
        nn.init.normal_(parameter, std=0.02)  # as pretrained weights are
    if name == "eps":
        nn.init.normal_(mlp.gate_proj.weight, std=1.0)
    with pytest.raises(dg.InvalidArgument):
        dg.GatedMLP.from_float(mlp)
    with pytest.raises(dg.InvalidArgument):  # without weights: a small copy is asked
        check_forward(mlp.to("meta"))


@pytest.mark.parametrize("dtype", ROWS)
@pytest.mark.parametrize("std", [1e-4, 0.02, 1.0])
def test_what_is_plain_is_taken(dtype: torch.dtype, std: float) -> None:
    torch.manual_seed(0)
    mlp = Plain(dtype=dtype).eval()
    for parameter in mlp.parameters():
        nn.init.normal_(parameter, std=std)
    assert float_mlp(mlp).activation == check_forward(mlp) == check_forward(mlp.to("meta")) == Act("silu")


@pytest.mark.parametrize("dtype", ROWS)
def test_clamps_that_a_16_bit_model_meets(dtype: torch.dtype) -> None:
    torch.manual_seed(0)
    for limit in (2.0, 7.0, 10.0, 60.0):
        mlp = variant(_clamped("gate", None, limit))(dtype=dtype).eval()
        with pytest.raises(dg.InvalidArgument, match="computes something else"):
            float_mlp(mlp)


def test_an_activation_that_is_a_function_is_found() -> None:
    class Function(Plain):
        def __init__(self) -> None:
            super().__init__()
            del self.act_fn

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return self.down_proj(functional.gelu(self.gate_proj(x), approximate="tanh") * self.up_proj(x))

    assert float_mlp(Function()).activation == Act("gelu_tanh")
    assert dg.GatedMLP.from_float(Function()).activation == "gelu_tanh"


@only_on_cpu  # float32
def test_a_down_that_does_more_is_not_quantized() -> None:
    class Doubled(nn.Linear):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return 2 * super().forward(x)

    mlp = Plain()
    mlp.down_proj = Doubled(N, K, bias=False)
    x = torch.randn(3, K)
    with torch.no_grad():
        made = dg.GatedMLP.from_float(mlp)
        assert float((made(x) - mlp(x)).norm() / mlp(x).norm()) < 0.3  # down is used as it is
    with pytest.raises(dg.InvalidArgument, match="something else"):
        dg.GatedMLP.from_float(mlp, quantize_down=True)


class Experts(nn.Module):
    def __init__(self, input_weighted: bool = False, limit: float | None = None) -> None:
        super().__init__()
        self.num_experts, self.input_weighted, self.limit, self.act_fn = 4, input_weighted, limit, nn.SiLU()
        self.gate_up_proj = nn.Parameter(torch.randn(4, 2 * N, K) / 8)
        self.down_proj = nn.Parameter(torch.randn(4, K, N) / 8)

    def forward(self, x: torch.Tensor, ids: torch.Tensor, weights: torch.Tensor) -> torch.Tensor:
        d = torch.zeros_like(x)
        for row in range(x.shape[0]):
            for expert, weight in zip(ids[row], weights[row]):
                one = x[row] * weight if self.input_weighted else x[row]
                gate, up = (self.gate_up_proj[expert] @ one).chunk(2)
                if self.limit:
                    gate = gate.clamp(max=self.limit)
                y = self.down_proj[expert] @ (self.act_fn(gate) * up)
                d[row] += y if self.input_weighted else weight * y
        return d


def test_experts_likewise() -> None:
    torch.manual_seed(0)
    assert float_experts(Experts())[1] == check_forward(Experts().to("meta")) == Act("silu")
    for other in (Experts(input_weighted=True), Experts(limit=10.0)):
        with pytest.raises(dg.InvalidArgument, match="something else"):
            float_experts(other)
        with pytest.raises(dg.InvalidArgument, match="something else"):
            check_forward(other.to("meta"))


# ---- replace_mlps: all or nothing -------------------------------------------------------------------------------------------


def raising(error: BaseException) -> type[Plain]:
    def forward(self: Plain, x: torch.Tensor) -> torch.Tensor:
        raise error

    return variant(forward)


OTHERS = {
    "two arguments": type("Two", (Plain,), {"forward": lambda self, x, layer_idx: Plain.forward(self, x)}),
    "three dimensions": type("Three", (Plain,), {"forward": lambda self, x: (x.shape[2], Plain.forward(self, x))[1]}),
    "its own error": raising(type("Own", (Exception,), {})("\x1b[31m")),
    "assertion": raising(AssertionError()),
    "keyword": type("Key", (Plain,), {"forward": lambda self, *, x: Plain.forward(self, x)}),
    "stop": raising(StopIteration()),
}


@pytest.mark.parametrize("name", OTHERS)
def test_whatever_a_forward_raises_is_a_reason_to_leave_it(name: str) -> None:
    model = nn.ModuleList([nn.ModuleDict({"mlp": kind()}) for kind in (Plain, OTHERS[name], Plain)])
    with pytest.warns(UserWarning, match=r"1\.mlp \(mlp: forward\(x\)") as caught:
        assert dg.replace_mlps(model) == ["0.mlp", "2.mlp"]
    assert str(caught[0].message).isprintable() and type(model[1]["mlp"]) is OTHERS[name]


def test_an_error_leaves_the_model_as_it_was(monkeypatch: pytest.MonkeyPatch) -> None:
    model = nn.ModuleList([nn.ModuleDict({"mlp": Plain()}) for _ in range(3)])
    before = list(model.modules())
    made: list[nn.Module] = []
    original = dg.GatedMLP.from_float

    def failing(mlp: nn.Module, **kw: object) -> dg.GatedMLP:
        if len(made) == 2:
            raise MemoryError
        made.append(mlp)
        return original(mlp, **kw)

    monkeypatch.setattr(dg.GatedMLP, "from_float", failing)
    with pytest.raises(MemoryError):
        dg.replace_mlps(model)
    assert list(model.modules()) == before
    monkeypatch.undo()

    class Stubborn(nn.ModuleDict):
        def __setattr__(self, name: str, value: object) -> None:
            if isinstance(value, dg.GatedMLP):
                raise ValueError("no")
            super().__setattr__(name, value)

    model.append(Stubborn({"mlp": Plain()}))
    before = list(model.modules())
    with pytest.raises(ValueError, match="no"):
        dg.replace_mlps(model)
    assert list(model.modules()) == before
    for kw, error in (
        ({"input_dtype": "fp8"}, dg.InvalidArgument),
        ({"input_scale": -1.0}, dg.InvalidArgument),
        ({"activation": "gelu"}, dg.InvalidArgument),
        ({"quantise_down": True}, TypeError),
    ):
        with pytest.raises(error):
            dg.replace_mlps(model, **kw)
    assert list(model.modules()) == before


def test_says_what_it_did_not_find() -> None:
    class Conv(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.c_fc, self.c_proj = nn.Linear(K, N), nn.Linear(N, K)

    with pytest.warns(
        UserWarning, match=r"nothing was replaced in ModuleDict; left as they are: 0\.mlp \(Conv has no gate_proj"
    ):
        assert dg.replace_mlps(nn.ModuleDict({"0": nn.ModuleDict({"mlp": Conv()})})) == []
    with pytest.warns(UserWarning, match="nothing was replaced"):
        assert dg.replace_mlps(nn.Linear(4, 4)) == []
    part = nn.ModuleDict({"0": nn.ModuleDict({"mlp": Conv()}), "1": nn.ModuleDict({"feed_forward": Plain()})})
    with pytest.warns(UserWarning, match=r"0\.mlp \(Conv"):
        assert dg.replace_mlps(part) == ["1.feed_forward"]
    with pytest.warns(UserWarning, match="no module's name matches nowhere"):
        dg.replace_mlps(nn.ModuleDict({"mlp": Plain()}), match="nowhere")
    whole = nn.ModuleDict({"mlp": Plain(), "other": nn.Linear(4, 4)})
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert dg.replace_mlps(whole) == ["mlp"]
        assert dg.replace_mlps(nn.ModuleDict({"w": Plain(), "mlp": Plain()}), skip="w") == ["mlp"]


transformers = pytest.importorskip("transformers", reason="transformers is not installed")
COMMON = dict(hidden_size=64, num_attention_heads=4, num_key_value_heads=2, vocab_size=96)
MAMBA = dict(mamba_n_heads=8, mamba_d_head=16, mamba_d_state=16, mamba_n_groups=1, mamba_expand=2)
FAMILIES = {
    "BambaConfig": (
        dict(COMMON, intermediate_size=96, num_hidden_layers=2, attn_layer_indices=[0], **MAMBA),
        ["feed_forward"] * 2,
    ),
    "JambaConfig": (
        dict(
            COMMON,
            intermediate_size=96,
            num_hidden_layers=2,
            num_experts=4,
            num_experts_per_tok=2,
            expert_layer_period=2,
            expert_layer_offset=1,
            attn_layer_period=2,
            attn_layer_offset=0,
            use_mamba_kernels=False,
            mamba_d_state=16,
            mamba_dt_rank=8,
        ),
        ["feed_forward", "feed_forward.experts"],
    ),
    "GraniteMoeConfig": (
        dict(COMMON, intermediate_size=96, num_hidden_layers=1, num_local_experts=4, num_experts_per_tok=2),
        ["block_sparse_moe.experts"],
    ),
    "GraniteMoeSharedConfig": (
        dict(
            COMMON,
            intermediate_size=96,
            num_hidden_layers=1,
            num_local_experts=4,
            num_experts_per_tok=2,
            shared_intermediate_size=48,
        ),
        ["block_sparse_moe.experts", "shared_mlp"],
    ),
    "Lfm2MoeConfig": (
        dict(
            COMMON,
            intermediate_size=96,
            moe_intermediate_size=48,
            num_hidden_layers=2,
            num_dense_layers=1,
            num_experts=4,
            num_experts_per_tok=2,
            layer_types=["full_attention", "conv"],
        ),
        ["feed_forward", "feed_forward.experts"],
    ),
    "Llama4TextConfig": (
        dict(
            COMMON,
            intermediate_size=96,
            intermediate_size_mlp=96,
            num_hidden_layers=2,
            num_local_experts=2,
            num_experts_per_tok=1,
            interleave_moe_layer_step=2,
            head_dim=16,
        ),
        ["feed_forward", "feed_forward.experts", "feed_forward.shared_expert"],
    ),
    "Qwen2MoeConfig": (
        dict(
            COMMON,
            intermediate_size=96,
            moe_intermediate_size=48,
            shared_expert_intermediate_size=96,
            num_hidden_layers=1,
            num_experts=4,
            num_experts_per_tok=2,
        ),
        ["mlp.experts", "mlp.shared_expert"],
    ),
    "DeepseekV3Config": (
        dict(
            COMMON,
            num_key_value_heads=4,
            intermediate_size=96,
            moe_intermediate_size=48,
            num_hidden_layers=2,
            first_k_dense_replace=1,
            n_routed_experts=8,
            num_experts_per_tok=2,
            n_group=2,
            topk_group=1,
            n_shared_experts=1,
            q_lora_rank=16,
            kv_lora_rank=16,
            qk_rope_head_dim=16,
            qk_nope_head_dim=16,
            v_head_dim=16,
        ),
        ["mlp", "mlp.experts", "mlp.shared_experts"],
    ),
}


@only_on_cpu  # float32
@pytest.mark.parametrize("name", FAMILIES)
def test_models_by_default(name: str) -> None:
    if not hasattr(transformers, name):
        pytest.skip(f"this transformers has no {name}")
    arguments, wanted = FAMILIES[name]
    torch.manual_seed(0)
    model = transformers.AutoModelForCausalLM.from_config(getattr(transformers, name)(**arguments), dtype=torch.float32).eval()
    for parameter in model.parameters():
        if parameter.dim() > 1:
            nn.init.normal_(parameter, std=0.05)
    ids = torch.randint(3, 90, (1, 6))
    with torch.no_grad(), warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        before = model(ids).logits
        replaced = dg.replace_mlps(model)
        after = model(ids).logits
    assert sorted(one.split(".", 3)[3] for one in replaced) == sorted(wanted), replaced
    assert not [one for one in caught if "left as they are" in str(one.message)]
    assert float((after - before).norm() / before.norm()) < 0.5 and DEVICE in str(after.device)
