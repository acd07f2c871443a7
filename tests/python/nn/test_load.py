"""load() of checkpoints whose models are not what they seem, and what it says of tensors that it does not take."""

from __future__ import annotations

import json
import copy
import pathlib
import subprocess
import sys
import warnings
from typing import Any

import pytest
import reference
import torch
from operands import DEVICE, as_numpy, dg

safetensors = pytest.importorskip("safetensors.torch", reason="safetensors is not installed")
transformers = pytest.importorskip("transformers", reason="transformers is not installed")
if DEVICE != "cpu":
    pytest.skip("float32 activations: a CPU's", allow_module_level=True)

MATRICES = ("gate_proj", "up_proj", "down_proj", "w1", "w2", "w3")


def write(
    model: torch.nn.Module, folder: pathlib.Path, leave: str = " ", input_scale: float = 0.0, **more: torch.Tensor
) -> None:
    """ModelOpt's names for the MLPs' matrices, experts as modules; the model gets the values of the codes."""
    tensors: dict[str, torch.Tensor] = {}
    prefix_of = {}
    with torch.no_grad():
        for name, value in model.state_dict().items():
            last = name.split(".")[-2] if name.endswith(".weight") else ""
            if value.dim() == 3 and name.endswith(("experts.gate_up_proj", "experts.down_proj")):
                base = name.rpartition(".")[0]
                for expert in range(value.shape[0]):
                    parts = value[expert].chunk(2) if name.endswith("gate_up_proj") else (value[expert],)
                    for part, matrix in zip(("gate_proj", "up_proj") if len(parts) == 2 else ("down_proj",), parts):
                        prefix_of[f"{base}.{expert}.{part}"] = matrix
            elif last in MATRICES:
                prefix_of[name.removesuffix(".weight")] = value
            else:
                tensors[name] = value
        for prefix, value in prefix_of.items():
            if leave in prefix:
                tensors[f"{prefix}.weight"] = value.clone()
                continue
            w = dg.quantize(value.contiguous())
            exact = torch.from_numpy(reference.decode(as_numpy(w.codes), as_numpy(w.scales))) * w.global_scale.double()
            value.copy_(exact.float())
            tensors |= {
                f"{prefix}.weight": w.codes,
                f"{prefix}.weight_scale": w.scales,
                f"{prefix}.weight_scale_2": w.global_scale.reshape(()),
            }
            if input_scale:
                tensors[f"{prefix}.input_scale"] = torch.tensor(input_scale)
    tensors |= more
    folder.mkdir(exist_ok=True)
    safetensors.save_file(
        {name: tensor.contiguous().clone() for name, tensor in tensors.items()}, str(folder / "model.safetensors")
    )
    described = json.loads(model.config.to_json_string()) | {"architectures": [type(model).__name__]}
    (folder / "config.json").write_text(json.dumps(described))


def build(config: Any, std: float = 0.08) -> torch.nn.Module:
    torch.manual_seed(0)
    model = transformers.AutoModelForCausalLM.from_config(config, dtype=torch.float32).eval()
    for parameter in model.parameters():
        if parameter.dim() > 1:
            torch.nn.init.normal_(parameter, std=std)
    return model


IDS = torch.tensor([[3, 14, 15, 92, 65, 35]])


def check(model: torch.nn.Module, folder: pathlib.Path, **kw: Any) -> torch.nn.Module:
    from dualgemm.integrations.transformers import load

    with torch.no_grad():
        wanted = model(IDS).logits
        loaded = load(folder, dtype=torch.float32, **kw)
        torch.testing.assert_close(loaded(IDS).logits, wanted, rtol=1e-3, atol=1e-4 * float(wanted.abs().max()))
    return loaded


@pytest.mark.parametrize("multipliers,taken", [([1.0, 1.0], True), ([0.5, 0.3], False)])
def test_falcon_h1(multipliers: list[float], taken: bool, tmp_path: pathlib.Path) -> None:
    config = transformers.FalconH1Config(
        hidden_size=64,
        intermediate_size=96,
        num_hidden_layers=2,
        num_attention_heads=4,
        num_key_value_heads=2,
        head_dim=16,
        vocab_size=128,
        mamba_n_heads=8,
        mamba_d_head=16,
        mamba_d_state=16,
        mamba_n_groups=1,
        mamba_d_ssm=128,
        mamba_chunk_size=16,
        mlp_multipliers=multipliers,
    )
    model = build(config)
    write(model, tmp_path)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        loaded = check(model, tmp_path)
    assert isinstance(loaded.model.layers[1].feed_forward, dg.GatedMLP) == taken
    told = [str(one.message) for one in caught if "matrix by matrix" in str(one.message)]
    assert bool(told) != taken and all("model.layers.0.feed_forward" in text for text in told)
    if not taken:
        assert isinstance(loaded.model.layers[0].feed_forward.gate_proj, dg.nn.NVFP4Linear)


def test_an_mlp_that_clamps(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As DeepSeek-V4's: gate and up are clamped at a limit that most rows do not reach."""
    from transformers.models.llama import modeling_llama

    def forward(self: Any, x: torch.Tensor) -> torch.Tensor:
        gate, up = self.gate_proj(x).clamp(max=1.0), self.up_proj(x).clamp(-1.0, 1.0)
        return self.down_proj(self.act_fn(gate) * up)

    monkeypatch.setattr(modeling_llama.LlamaMLP, "forward", forward)
    model = build(
        transformers.LlamaConfig(
            hidden_size=64, intermediate_size=96, num_hidden_layers=1, num_attention_heads=4, vocab_size=128
        ),
        std=0.5,
    )
    write(model, tmp_path)
    with pytest.warns(UserWarning, match="matrix by matrix: mlp: LlamaMLP computes something else"):
        loaded = check(model, tmp_path)
    assert type(loaded.model.layers[0].mlp).__name__ == "LlamaMLP"
    other = transformers.AutoModelForCausalLM.from_config(model.config, dtype=torch.float32)
    with pytest.raises(dg.InvalidArgument, match="computes something else"):
        dg.from_pretrained(other, tmp_path)
    with torch.device("meta"):
        empty = transformers.AutoModelForCausalLM.from_config(model.config, dtype=torch.float32)
    with pytest.raises(dg.InvalidArgument, match="computes something else"):
        dg.from_pretrained(empty, tmp_path)


def clamped_modules(limit: float) -> list[tuple[torch.nn.Module, str]]:
    """DeepSeek-V4's and MiniMax-M3's modules themselves, whose attributes say where they clamp."""
    deepseek = pytest.importorskip("transformers.models.deepseek_v4.modeling_deepseek_v4")
    minimax = pytest.importorskip("transformers.models.minimax_m3_vl.modeling_minimax_m3_vl")
    first = deepseek.DeepseekV4Config(hidden_size=256, intermediate_size=512, num_local_experts=4, swiglu_limit=limit)
    if not hasattr(first, "mlp_bias"):
        first.mlp_bias = False
    second = minimax.MiniMaxM3VLTextConfig(
        hidden_size=256, intermediate_size=512, dense_intermediate_size=512, num_local_experts=4, swiglu_limit=limit
    )
    made = [
        (deepseek.DeepseekV4MLP(first), "clamped_swiglu"),
        (deepseek.DeepseekV4Experts(first), "clamped_swiglu"),
        (minimax.MiniMaxM3VLDenseMLP(second), "swiglu_oai"),
        (minimax.MiniMaxM3VLExperts(second), "swiglu_oai"),
    ]
    for module, _ in made:
        for parameter in module.parameters():
            torch.nn.init.normal_(parameter, std=0.02)
    return made


@pytest.mark.parametrize("limit", [3.0, 7.0, 10.0])
def test_clamps_are_taken_with_the_modules_own_numbers(limit: float) -> None:
    from dualgemm._floats import check_forward

    for module, name in clamped_modules(limit):
        found = check_forward(module)
        assert (found.name, found.limit) == (name, limit)
        assert found == check_forward(copy.deepcopy(module).to("meta"))
        x = torch.randn(6, 256) * 40  # beyond the clamps
        experts = hasattr(module, "num_experts")
        ids, weights = torch.tensor([[0, 1], [2, 3]] * 3), torch.full((6, 2), 0.5)
        rest = (ids, weights) if experts else ()
        made = (dg.GatedExperts if experts else dg.GatedMLP).from_float(module)
        with torch.no_grad():
            error = (made(x, *rest) - module(x, *rest)).norm() / module(x, *rest).norm()
            module.limit = module.swiglu_limit = 1e6
            without = (made(x, *rest) - module(x, *rest)).norm() / module(x, *rest).norm()
        assert error < min(0.3, without / 3), (name, float(error), float(without))  # four bits; another formula


def experts_of_every_form() -> list[tuple[torch.nn.Module, bool]]:
    """transformers' own experts, and whether they take the rows of all experts in turn."""
    llama4 = pytest.importorskip("transformers.models.llama4.modeling_llama4")
    aria = pytest.importorskip("transformers.models.aria.modeling_aria")
    gpt_oss = pytest.importorskip("transformers.models.gpt_oss.modeling_gpt_oss")
    sizes = dict(hidden_size=64, intermediate_size=96)
    made = [
        (llama4.Llama4TextExperts(llama4.Llama4TextConfig(num_local_experts=4, **sizes)), True),
        (aria.AriaExperts(aria.AriaTextConfig(moe_num_experts=4, **sizes)), False),
        (gpt_oss.GptOssExperts(gpt_oss.GptOssConfig(num_local_experts=4, **sizes)), False),
    ]
    for module, _ in made:
        for parameter in module.parameters():
            torch.nn.init.normal_(parameter, std=0.2)
    return made


def test_experts_whose_matrices_lie_otherwise() -> None:
    """[E, K, 2N]: Gate's columns first, or alternating with Up's, with biases; routed, or rows of all experts in turn."""
    for module, by_rows in experts_of_every_form():
        made = dg.GatedExperts.from_float(module)
        x = torch.randn(12, 64)
        ids, weights = torch.tensor([[0, 1], [2, 3], [3, 0]] * 4), torch.rand(12, 2)
        rest = () if by_rows else (ids, weights)
        with torch.no_grad():
            wanted = module(x, *rest)
            error = (made(x, *rest) - wanted).norm()
            assert error < 0.3 * wanted.norm(), type(module).__name__
            others = (made(x.flip(0)).flip(0),) if by_rows else (made(x, ids.flip(1), weights), made(x, (ids + 1) % 4, weights))
            assert all((one - wanted).norm() > 2 * error for one in others), type(module).__name__
        if by_rows:
            assert made(x[:0]).shape == (0, 64)
            with pytest.raises(dg.InvalidArgument, match="as many for each of 4 experts"):
                made(x[:5])
        else:
            with pytest.raises(dg.InvalidArgument, match=r"must be \[tokens, k\] both"):
                made(x)


def test_a_llama4_from_a_checkpoint(tmp_path: pathlib.Path) -> None:
    """As ModelOpt writes it: experts in tensors [E, K/2, 2N] with scales [E, K/16, 2N]."""
    from dualgemm.integrations.transformers import load

    model = build(
        transformers.Llama4TextConfig(
            hidden_size=64,
            intermediate_size=96,
            intermediate_size_mlp=128,
            num_hidden_layers=2,
            num_attention_heads=4,
            num_key_value_heads=2,
            head_dim=16,
            num_local_experts=4,
            num_experts_per_tok=1,
            interleave_moe_layer_step=2,
            vocab_size=128,
        )
    )
    tensors = {}
    with torch.no_grad():
        for name, value in model.state_dict().items():
            last = name.rpartition(".")[2]
            if last not in ("gate_up_proj", "down_proj") or value.dim() != 3:
                tensors[name] = value
                continue
            made = [dg.quantize(one.T.contiguous()) for one in value]
            for one, matrix in zip(made, value):
                exact = torch.from_numpy(reference.decode(as_numpy(one.codes), as_numpy(one.scales)))
                matrix.copy_((exact * one.global_scale.double()).T)
            tensors[name] = torch.stack([one.codes.T for one in made])
            tensors[f"{name}_weight_scale"] = torch.stack([one.scales.view(torch.uint8).T for one in made]).view(
                torch.float8_e4m3fn
            )
            tensors[f"{name}_weight_scale_2"] = torch.stack([one.global_scale.reshape(()) for one in made])
    safetensors.save_file({name: t.contiguous().clone() for name, t in tensors.items()}, str(tmp_path / "model.safetensors"))
    (tmp_path / "config.json").write_text(model.config.to_json_string())
    loaded = load(tmp_path, dtype=torch.float32)
    experts = loaded.model.layers[1].feed_forward.experts
    assert isinstance(experts, dg.GatedExperts) and experts.by_rows
    tokens = torch.randint(0, 128, (2, 9), generator=torch.Generator().manual_seed(1))
    with torch.no_grad():
        wanted = model(tokens).logits
        assert (loaded(tokens).logits - wanted).abs().max() < 2e-4 * wanted.abs().max()
        loaded.save_pretrained(tmp_path / "saved")
        again = load(tmp_path / "saved", dtype=torch.float32)
        assert torch.equal(again(tokens).logits, loaded(tokens).logits)


def test_a_clamp_that_no_attribute_names_is_not_taken() -> None:
    from dualgemm._floats import check_forward

    for module, _ in clamped_modules(7.0):
        module.limit = module.swiglu_limit = torch.tensor(5.0)
        module.size_limit = 100.0
        with pytest.raises(dg.InvalidArgument, match="computes something else"):
            check_forward(module)


def test_dropout_of_training_is_no_reason() -> None:
    from dualgemm._floats import check_forward

    module = pytest.importorskip("transformers.models.seed_oss.modeling_seed_oss")
    mlp = module.SeedOssMLP(module.SeedOssConfig(hidden_size=64, intermediate_size=96, residual_dropout=0.5)).train()
    assert check_forward(mlp).name == "silu" and mlp.training


def test_the_page_of_architectures_is_true() -> None:
    """Some rows of each kind, by the script that wrote all of it."""
    root = pathlib.Path(__file__).resolve().parents[3]
    page = (root / "docs" / "architectures.md").read_text()
    if f"\n{transformers.__version__}. " not in page:
        pytest.skip(f"the page is of another version of transformers than {transformers.__version__}")
    names = [
        "llama",
        "qwen3_moe",
        "gpt_oss",
        "deepseek_v3",
        "deepseek_v4",
        "minimax_m3_vl_text",
        "seed_oss",
        "llama4_text",
        "bitnet",
    ]
    said = subprocess.run(
        [sys.executable, "-P", str(root / "scripts" / "check" / "list_architectures"), *names],
        capture_output=True,
        text=True,
        check=True,
    ).stdout.splitlines()
    assert len(said) >= len(names) and not [row for row in said if row not in page.splitlines()]


def qwen_moe() -> torch.nn.Module:
    return build(
        transformers.Qwen3MoeConfig(
            hidden_size=64,
            intermediate_size=96,
            moe_intermediate_size=48,
            num_hidden_layers=2,
            head_dim=16,
            num_attention_heads=4,
            num_key_value_heads=2,
            vocab_size=128,
            num_experts=4,
            num_experts_per_tok=2,
            decoder_sparse_step=1,
            mlp_only_layers=[],
        )
    )


def test_experts_that_were_left_in_float_are_there(tmp_path: pathlib.Path) -> None:
    """A checkpoint has them as modules, the model as one tensor."""
    model = qwen_moe()
    write(model, tmp_path, leave="layers.0.mlp")
    loaded = check(model, tmp_path)
    assert isinstance(loaded.model.layers[1].mlp.experts, dg.GatedExperts)
    assert loaded.model.layers[0].mlp.experts.gate_up_proj.shape == (4, 96, 64)


def test_experts_use_the_checkpoints_input_scales(tmp_path: pathlib.Path) -> None:
    from dualgemm.integrations.transformers import load

    model = qwen_moe()
    write(model, tmp_path, input_scale=0.25)
    loaded = load(tmp_path, input_dtype="nvfp4", dtype=torch.float32, finalize=False)
    experts = loaded.model.layers[0].mlp.experts
    assert float(experts.input_scale) == 0.25 and float(experts.down.input_scale) == 0.25
    without = load(tmp_path, dtype=torch.float32, finalize=False).model.layers[0].mlp.experts
    torch.testing.assert_close(experts.alpha_gate, 0.25 * without.alpha_gate)


def test_says_why_a_tensor_was_not_taken(tmp_path: pathlib.Path) -> None:
    from dualgemm.integrations.transformers import load

    model = build(
        transformers.LlamaConfig(
            hidden_size=64, intermediate_size=96, num_hidden_layers=1, num_attention_heads=4, vocab_size=128
        )
    )
    name = "model.layers.0.self_attn.q_proj.weight"
    for tensor, reason in (
        (torch.zeros(64, 64, dtype=torch.int8), r"int8 \[64, 64\]"),
        (torch.zeros(64, 32), r"float32 \[64, 32\]"),
    ):
        write(model, tmp_path, **{name: tensor})
        with pytest.raises(dg.FileError, match=rf"q_proj\.weight \(in the files as {reason}"):
            load(tmp_path)
    (tmp_path / "model.safetensors").write_bytes(b"no")
    with pytest.raises(dg.FileError, match="safetensors"):
        load(tmp_path)
    (tmp_path / "model.safetensors.index.json").write_text("{}")
    with pytest.raises(dg.FileError, match="weight_map"):
        load(tmp_path)
