"""AWQ: factors of the columns of a layer's input, in front of gate and up, of down and of any linear layer."""

from __future__ import annotations

import json
import pathlib
from typing import Any

import pytest
import reference
import torch
from operands import DEVICE, as_numpy, dg

safetensors = pytest.importorskip("safetensors.torch", reason="safetensors is not installed")
transformers = pytest.importorskip("transformers", reason="transformers is not installed")
if DEVICE != "cpu":
    pytest.skip("float32 activations: a CPU's", allow_module_level=True)
from dualgemm.integrations.transformers import load  # noqa: E402

INPUTS = {"gate_proj": "mlp", "up_proj": "mlp", "q_proj": "attention", "k_proj": "attention", "v_proj": "attention"}


def write(model: Any, folder: pathlib.Path, differ: bool = False) -> None:
    """As ModelOpt's NVFP4_AWQ: W * 1/s in NVFP4 beside s. The model gets the values that are written, times s."""
    noise = torch.Generator().manual_seed(4)
    tensors, factors = {}, {}
    with torch.no_grad():
        for name, value in model.state_dict().items():
            module = name.removesuffix(".weight")
            last = module.rpartition(".")[2]
            if not last.endswith("_proj"):
                tensors[name] = value
                continue
            key = module if differ or last not in INPUTS else module.replace(last, INPUTS[last])
            s = factors.setdefault(key, (torch.rand(value.shape[1], generator=noise) * 3 + 0.25).bfloat16())
            made = dg.quantize((value / s.float()).contiguous())
            exact = torch.from_numpy(reference.decode(as_numpy(made.codes), as_numpy(made.scales)))
            value.copy_(exact * made.global_scale.double() * s.double())
            tensors |= {
                f"{module}.weight": made.codes,
                f"{module}.weight_scale": made.scales,
                f"{module}.weight_scale_2": made.global_scale.reshape(()),
                f"{module}.pre_quant_scale": s,
            }
    folder.mkdir(exist_ok=True)
    safetensors.save_file({name: t.contiguous().clone() for name, t in tensors.items()}, str(folder / "model.safetensors"))
    config = json.loads(model.config.to_json_string())
    four = {"num_bits": 4, "type": "float", "group_size": 16}
    group = {"weights": four, "input_activations": four | {"dynamic": True}, "targets": ["Linear"]}
    config["quantization_config"] = {
        "quant_method": "modelopt",
        "quant_algo": "NVFP4_AWQ",
        "config_groups": {"group_0": group},
        "ignore": ["lm_head"],
    }
    (folder / "config.json").write_text(json.dumps(config))


def llama() -> Any:
    torch.manual_seed(6)
    config = transformers.LlamaConfig(
        hidden_size=128,
        intermediate_size=192,
        num_hidden_layers=2,
        num_attention_heads=4,
        num_key_value_heads=2,
        vocab_size=96,
        tie_word_embeddings=False,
    )
    return transformers.LlamaForCausalLM(config).float().eval()


def qwen_moe() -> Any:
    torch.manual_seed(7)
    config = transformers.Qwen3MoeConfig(
        hidden_size=64,
        intermediate_size=96,
        moe_intermediate_size=64,
        num_hidden_layers=1,
        num_attention_heads=4,
        num_key_value_heads=2,
        head_dim=16,
        num_experts=4,
        num_experts_per_tok=2,
        vocab_size=96,
        tie_word_embeddings=False,
    )
    return transformers.Qwen3MoeForCausalLM(config).float().eval()


def compare(model: Any, loaded: Any, bound: float = 2e-4) -> None:
    tokens = torch.randint(0, 96, (2, 9), generator=torch.Generator().manual_seed(1))
    with torch.no_grad():
        want, got = model(tokens).logits, loaded(tokens).logits
    assert (got - want).abs().max() < bound * want.abs().max()


def test_logits_of_exactly_decoded_weights(tmp_path: pathlib.Path) -> None:
    model = llama()
    write(model, tmp_path / "m")
    loaded = load(tmp_path / "m", dtype=torch.float32)
    layer = loaded.model.layers[0]
    for module in (layer.mlp, layer.mlp.down, layer.self_attn.q_proj):
        assert module.pre_quant_scale is not None and module.pre_quant_scale.dtype == torch.float32
    compare(model, loaded)
    loaded.save_pretrained(tmp_path / "saved")
    compare(loaded, load(tmp_path / "saved", dtype=torch.float32), 1e-6)
    state = {name: tensor.clone() for name, tensor in layer.mlp.state_dict().items()}
    fresh = dg.GatedMLP(128, 192, dg.nn.NVFP4Linear(192, 128)).finalize(a_dtype=torch.float32)
    fresh.load_state_dict(state)
    x = torch.randn(3, 128)
    assert torch.equal(fresh(x), layer.mlp(x))


def test_quantised_inputs_are_multiplied_first(tmp_path: pathlib.Path) -> None:
    write(llama(), tmp_path / "m")
    loaded = load(tmp_path / "m", dtype=torch.float32, input_dtype="nvfp4", finalize=False)
    mlp = loaded.model.layers[0].mlp
    x = torch.randn(5, 128)
    scaled = x * mlp.pre_quant_scale
    plain = load(tmp_path / "m", dtype=torch.float32, input_dtype="nvfp4", finalize=False).model.layers[0].mlp
    plain.set_pre_quant_scale(None)
    assert torch.equal(mlp(x), plain(scaled))
    assert not torch.equal(mlp(x), plain(x))
    half = torch.randn(5, 128, dtype=torch.bfloat16)
    assert torch.equal(mlp(half), plain((half.float() * mlp.pre_quant_scale).bfloat16()))


def test_experts_share_their_factors_or_are_refused(tmp_path: pathlib.Path) -> None:
    model = qwen_moe()
    state = model.state_dict()
    # transformers stacks experts; checkpoints have a module each.
    tensors, factors = {}, {"gate_up_proj": torch.rand(64) + 0.5, "down_proj": torch.rand(64) * 2 + 0.5}
    with torch.no_grad():
        for name, value in state.items():
            last = name.rpartition(".")[2]
            if last not in factors:
                tensors[name] = value
                continue
            s = factors[last]
            for expert in range(4):
                parts = value[expert].chunk(2) if last == "gate_up_proj" else (value[expert],)
                names = ("gate_proj", "up_proj") if last == "gate_up_proj" else ("down_proj",)
                for part, matrix in zip(names, parts):
                    made = dg.quantize((matrix / s).contiguous())
                    exact = torch.from_numpy(reference.decode(as_numpy(made.codes), as_numpy(made.scales)))
                    matrix.copy_(exact * made.global_scale.double() * s.double())
                    module = f"{name.rpartition('.')[0]}.{expert}.{part}"
                    tensors[f"{module}.weight"] = made.codes
                    tensors[f"{module}.weight_scale"] = made.scales
                    tensors[f"{module}.weight_scale_2"] = made.global_scale.reshape(())
                    tensors[f"{module}.pre_quant_scale"] = s
    folder = tmp_path / "m"
    folder.mkdir()
    (folder / "config.json").write_text(model.config.to_json_string())
    save = lambda: safetensors.save_file(  # noqa: E731
        {name: t.contiguous().clone() for name, t in tensors.items()}, str(folder / "model.safetensors")
    )
    save()
    loaded = load(folder, dtype=torch.float32)
    experts = loaded.model.layers[0].mlp.experts
    assert type(experts) is dg.GatedExperts and experts.down.pre_quant_scale is not None
    compare(model, loaded)
    tensors["model.layers.0.mlp.experts.2.down_proj.pre_quant_scale"] = factors["down_proj"] * 2
    save()
    with pytest.raises(dg.Unsupported, match="expert 2 has another pre_quant_scale"):
        load(folder, dtype=torch.float32)


def test_readers_of_weights_must_ask(tmp_path: pathlib.Path) -> None:
    write(llama(), tmp_path / "m")
    prefix = "model.layers.1.mlp"
    with dg.open_checkpoint(tmp_path / "m") as checkpoint:
        for refused in (
            lambda: checkpoint.weights(prefix),
            lambda: checkpoint.down(prefix),
            lambda: checkpoint.linear("model.layers.1.self_attn.o_proj"),
        ):
            with pytest.raises(dg.Unsupported, match="pre_quant_scale"):
                refused()
        assert checkpoint.weights(prefix, pre_quant_scale=True).n == 192
        factors = checkpoint.pre_quant_scale(prefix)
        assert factors is not None and factors.shape == (128,)
        assert checkpoint.down_pre_quant_scale(prefix).shape == (192,)
        assert checkpoint.linear_pre_quant_scale("model.layers.1.self_attn.o_proj").shape == (128,)
    with pytest.raises(dg.InvalidArgument, match=r"must be floats \[128\]"):
        dg.GatedMLP(128, 192, torch.nn.Linear(192, 128)).set_pre_quant_scale(torch.ones(64))


def test_gate_and_up_must_agree(tmp_path: pathlib.Path) -> None:
    write(llama(), tmp_path / "m", differ=True)
    with pytest.raises(dg.FileError, match="its factors must agree"):
        load(tmp_path / "m", dtype=torch.float32)
