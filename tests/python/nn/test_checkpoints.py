"""open_checkpoint, from_pretrained and the adapter to transformers, on small models that are written here."""

from __future__ import annotations

import json
import pathlib

import pytest
import reference
import torch
from operands import DEVICE, as_numpy, dg, same_bits

safetensors = pytest.importorskip("safetensors.torch", reason="safetensors is not installed")
K, N = 64, 48

# What packed weights are made for, but that a CPU takes anything.
ROW = torch.float32 if DEVICE == "cpu" else torch.bfloat16


def close(found: torch.Tensor, wanted: torch.Tensor) -> bool:
    """Logits of the same values in another order of additions; wanted is float32."""
    if ROW == torch.float32:
        return torch.allclose(found, wanted, rtol=1e-4, atol=1e-5)
    return float((found.float() - wanted).norm() / wanted.norm()) < 0.02  # what bfloat16 between the layers costs


def quantized(seed: int, rows: int, columns: int) -> dg.QuantizedTensor:
    return dg.quantize(torch.randn(rows, columns, generator=torch.Generator(DEVICE).manual_seed(seed)) * 0.1)


def modelopt(name: str, w: dg.QuantizedTensor, input_scale: float = 0.0) -> dict[str, torch.Tensor]:
    found = {f"{name}.weight": w.codes, f"{name}.weight_scale": w.scales, f"{name}.weight_scale_2": w.global_scale.reshape(())}
    return {**found, f"{name}.input_scale": torch.tensor(input_scale)} if input_scale else found


def compressed(name: str, w: dg.QuantizedTensor, input_scale: float = 0.0) -> dict[str, torch.Tensor]:
    found = {
        f"{name}.weight_packed": w.codes,
        f"{name}.weight_scale": w.scales,
        f"{name}.weight_global_scale": 1 / w.global_scale,
    }
    return {**found, f"{name}.input_global_scale": torch.tensor([1 / input_scale])} if input_scale else found


def values(w: dg.QuantizedTensor) -> torch.Tensor:
    return torch.from_numpy(reference.decode(as_numpy(w.codes), as_numpy(w.scales))).to(DEVICE) * w.global_scale.double()


def save(path: pathlib.Path, tensors: dict[str, torch.Tensor]) -> str:
    safetensors.save_file({name: tensor.contiguous().cpu().clone() for name, tensor in tensors.items()}, str(path))
    return str(path)


@pytest.mark.parametrize("names", [modelopt, compressed])
def test_a_layer(names: object, tmp_path: pathlib.Path) -> None:
    gate, up, down = quantized(1, N, K), quantized(2, N, K), quantized(3, K, N)
    tensors = {
        **names("m.0.mlp.gate_proj", gate, 0.25),
        **names("m.0.mlp.up_proj", up, 0.25),
        **names("m.0.mlp.down_proj", down, 0.5),
        **names("m.0.q_proj", up),
    }
    tensors["m.0.mlp.up_proj.bias"], tensors["m.0.k_proj.weight"] = torch.arange(N).float(), torch.ones(16, K).bfloat16()
    with dg.open_checkpoint(save(tmp_path / "m.safetensors", tensors)) as checkpoint:
        assert (
            list(checkpoint.layers()) == ["m.0.mlp"] and checkpoint.experts("m.0.mlp") == 0 and checkpoint.expert_layers() == []
        )
        assert checkpoint.input_scale("m.0.mlp") == 0.25 and checkpoint.down_input_scale("m.0.mlp") == 0.5
        assert checkpoint.linear_input_scale("m.0.q_proj") is None
        weights = checkpoint.weights("m.0.mlp", device=DEVICE, keep_original=True)
        found_down, q_proj = checkpoint.down("m.0.mlp", device=DEVICE), checkpoint.linear("m.0.q_proj", device=DEVICE)
        shards = [checkpoint.weights("m.0.mlp", device=DEVICE, shard=(rank, 3)) for rank in range(3)]
        plain = checkpoint.linear("m.0.k_proj", device=DEVICE)
        with pytest.raises(dg.FileError, match="nearest"):
            checkpoint.weights("m.1.mlp")
        with pytest.raises(dg.InvalidArgument, match="expert"):
            checkpoint.weights("m.0.mlp", expert=-3)
    with pytest.raises(dg.InvalidArgument, match="closed"):
        checkpoint.weights("m.0.mlp")
    state = weights.state_dict()  # what it gave stays
    assert (
        same_bits(state["gate"], gate.codes)
        and same_bits(state["up_scales"], up.scales)
        and same_bits(state["bias_up"], torch.arange(N).float())
    )
    assert torch.allclose(weights.alpha_gate, gate.global_scale, rtol=1e-6) and isinstance(found_down, dg.LinearWeights)
    assert isinstance(q_proj, dg.LinearWeights) and isinstance(plain, torch.nn.Linear) and plain.weight.dtype == torch.bfloat16
    x = torch.randn(5, K).to(ROW)
    whole = weights(x, out_dtype=torch.float32)
    exact = torch.nn.functional.silu(x.double() @ values(gate).T) * (x.double() @ values(up).T + torch.arange(N))
    assert torch.allclose(whole.double(), exact, rtol=1e-4, atol=1e-5)
    if DEVICE == "cpu":
        assert same_bits(torch.cat([shard(x) for shard in shards], 1), whole)
    h = whole.to(ROW)
    d = found_down(h, out_dtype=torch.float32)
    assert torch.allclose(d.double(), h.double() @ values(down).T, rtol=1e-4, atol=1e-4)


def test_experts(tmp_path: pathlib.Path) -> None:
    tensors: dict[str, torch.Tensor] = {}
    for expert in range(3):
        for index, (name, rows, columns) in enumerate((("gate_proj", N, K), ("up_proj", N, K), ("down_proj", K, N))):
            tensors |= modelopt(f"l.mlp.experts.{expert}.{name}", quantized(10 * expert + index, rows, columns), 0.5 + expert)
    checkpoint = dg.open_checkpoint(save(tmp_path / "m.safetensors", tensors))
    assert checkpoint.expert_layers() == ["l.mlp.experts"] and checkpoint.experts("l.mlp.experts") == 3
    all_of_them = checkpoint.weights("l.mlp.experts", device=DEVICE)
    down = checkpoint.down("l.mlp.experts", device=DEVICE)
    assert all_of_them.num_experts == 3 and down.num_experts == 3 and checkpoint.input_scale("l.mlp.experts") == 2.5
    x = torch.randn(3, 2, K).to(torch.bfloat16)
    d = all_of_them(x)
    for expert in range(3):
        one = checkpoint.weights("l.mlp.experts", expert=expert, device=DEVICE)
        assert same_bits(one(x[expert]), d[expert])
    with pytest.raises(dg.InvalidArgument, match="3 experts"):
        checkpoint.weights("l.mlp.experts", expert=3)


def test_files_that_are_none(tmp_path: pathlib.Path) -> None:
    (tmp_path / "bad.safetensors").write_bytes(b"\x08\0\0\0\0\0\0\0{broken}")
    for name in ("none.safetensors", "bad.safetensors"):
        with pytest.raises(dg.FileError) as caught:
            dg.open_checkpoint(tmp_path / name)
        assert name in str(caught.value)


# ---- transformers -----------------------------------------------------------------------------------------------------------

transformers = pytest.importorskip("transformers", reason="transformers is not installed")


def write_llama(folder: pathlib.Path, names: object) -> torch.nn.Module:
    """A Llama of 2 layers in NVFP4 but for the head, as ``names`` spells it; returns the float model with the values of the codes."""
    torch.manual_seed(0)
    config = transformers.LlamaConfig(
        hidden_size=K,
        intermediate_size=N,
        num_hidden_layers=2,
        num_attention_heads=4,
        num_key_value_heads=2,
        vocab_size=96,
        hidden_act="gelu_pytorch_tanh",
    )
    model = transformers.AutoModelForCausalLM.from_config(config, dtype=torch.float32).eval()
    tensors = {name: value for name, value in model.state_dict().items()}
    for name, module in model.named_modules():
        if isinstance(module, torch.nn.Linear) and name != "lm_head":
            w = dg.quantize(module.weight.detach())
            module.weight.data = values(w).float()
            del tensors[f"{name}.weight"]
            tensors |= names(name, w, 0.01)
    folder.mkdir()
    save(folder / "model.safetensors", tensors)
    described = json.loads(config.to_json_string())
    described |= {
        "quantization_config": {"quant_method": "modelopt", "quant_algo": "NVFP4"},
        "architectures": ["LlamaForCausalLM"],
    }
    (folder / "config.json").write_text(json.dumps(described))
    return model


@pytest.mark.parametrize("names", [modelopt, compressed])
def test_llama_without_a_quantizer(names: object, tmp_path: pathlib.Path) -> None:
    from dualgemm.integrations.transformers import load

    exact = write_llama(tmp_path / "m", names)
    ids = torch.randint(0, 96, (2, 7))
    with torch.no_grad():
        wanted = exact(ids).logits
        model = load(tmp_path / "m", device=DEVICE, dtype=ROW)
        assert isinstance(model.model.layers[1].mlp, dg.GatedMLP) and model.model.layers[0].mlp.activation == "gelu_tanh"
        assert isinstance(model.model.layers[0].self_attn.q_proj, dg.nn.NVFP4Linear)
        assert close(model(ids).logits, wanted)  # the same values in another order of additions
        assert model.generate(ids, max_new_tokens=3, do_sample=False).shape == (2, 10)
        rough = load(tmp_path / "m", device=DEVICE, input_dtype="nvfp4", dtype=ROW)
        assert rough.model.layers[0].mlp.down.output_scale is not None
        assert 1e-4 < float((rough(ids).logits - wanted).norm() / wanted.norm()) < 0.5
        replaced = dg.from_pretrained(transformers.LlamaForCausalLM(exact.config).eval().to(ROW), tmp_path / "m", device=DEVICE)
        replaced.load_state_dict({k: v for k, v in exact.state_dict().items() if ".mlp." not in k}, strict=False)
        assert close(replaced(ids).logits, wanted)


@pytest.mark.parametrize("names", [modelopt, compressed])
def test_a_mixture_of_experts_without_a_quantizer(names: object, tmp_path: pathlib.Path) -> None:
    from dualgemm.integrations.transformers import load

    torch.manual_seed(0)
    config = transformers.Qwen3MoeConfig(
        hidden_size=K,
        intermediate_size=N,
        moe_intermediate_size=N,
        num_hidden_layers=1,
        head_dim=16,
        num_attention_heads=4,
        num_key_value_heads=2,
        vocab_size=96,
        num_experts=4,
        num_experts_per_tok=2,
    )
    exact = transformers.AutoModelForCausalLM.from_config(config, dtype=torch.float32).eval()
    tensors = {name: value for name, value in exact.state_dict().items() if ".experts." not in name}
    prefix = "model.layers.0.mlp.experts"
    experts = exact.get_submodule(prefix)
    for expert in range(4):
        for index, (name, rows) in enumerate((("gate_proj", slice(0, N)), ("up_proj", slice(N, 2 * N)), ("down_proj", None))):
            w = quantized(10 * expert + index, K if rows is None else N, N if rows is None else K)
            tensors |= names(f"{prefix}.{expert}.{name}", w)
            if rows is None:
                experts.down_proj.data[expert] = values(w).float()
            else:
                experts.gate_up_proj.data[expert, rows] = values(w).float()
    (tmp_path / "m").mkdir()
    save(tmp_path / "m/model.safetensors", tensors)
    config.architectures = ["Qwen3MoeForCausalLM"]
    (tmp_path / "m/config.json").write_text(config.to_json_string())
    model = load(tmp_path / "m", device=DEVICE, dtype=ROW)
    assert isinstance(model.get_submodule(prefix), dg.GatedExperts)
    ids = torch.randint(0, 96, (2, 7))
    with torch.no_grad():
        assert close(model(ids).logits, exact(ids).logits)


def test_from_pretrained_wants_the_same_model(tmp_path: pathlib.Path) -> None:
    write_llama(tmp_path / "m", modelopt)
    other = transformers.LlamaConfig(
        hidden_size=32, intermediate_size=32, num_hidden_layers=1, num_attention_heads=2, vocab_size=16
    )
    with pytest.raises(dg.InvalidArgument, match="32, 32"):
        dg.from_pretrained(transformers.LlamaForCausalLM(other), tmp_path / "m", device=DEVICE)
    with pytest.raises(dg.InvalidArgument, match="no module"):
        dg.from_pretrained(torch.nn.Sequential(torch.nn.Linear(4, 4)), tmp_path / "m")


def test_load_says_what_is_missing(tmp_path: pathlib.Path) -> None:
    from dualgemm.integrations.transformers import load

    write_llama(tmp_path / "m", modelopt)
    tensors = safetensors.load_file(str(tmp_path / "m/model.safetensors"))
    tensors = {name: tensor for name, tensor in tensors.items() if "layers.1.self_attn.q_proj" not in name}
    save(tmp_path / "m/model.safetensors", tensors)
    with pytest.raises(dg.FileError, match="layers.1.self_attn.q_proj.weight"):
        load(tmp_path / "m")
    with pytest.raises(dg.FileError, match="config.json"):
        load(tmp_path)


def test_fusion_of_kernel_config() -> None:
    from transformers.integrations.hub_kernels import make_parent_class_for_kernel_fusion
    from transformers.models.llama import modeling_llama

    from dualgemm.integrations.transformers import DualGemmGatedMLP, DualGemmGatedMLPLayout

    assert set(vars(DualGemmGatedMLP)) & {"__init__", "__call__"} == set() and "forward" in vars(DualGemmGatedMLP)
    torch.manual_seed(0)
    config = transformers.LlamaConfig(
        hidden_size=K, intermediate_size=N, num_hidden_layers=1, num_attention_heads=4, vocab_size=96
    )
    config._attn_implementation = "eager"
    plain = modeling_llama.LlamaDecoderLayer(config, 0).eval().to(ROW)
    fused = (
        make_parent_class_for_kernel_fusion(modeling_llama.LlamaDecoderLayer, ["mlp"], DualGemmGatedMLPLayout)(config, 0)
        .eval()
        .to(ROW)
    )
    fused.load_state_dict(plain.state_dict())  # a float checkpoint loads as it is
    by_class = DualGemmGatedMLPLayout(config).eval().to(ROW)
    by_class.load_state_dict(plain.mlp.state_dict())
    x = torch.randn(3, K).to(ROW)
    assert same_bits(fused.mlp(x), plain.mlp(x))  # gradients are wanted: float
    with torch.no_grad():
        wanted = dg.GatedMLP.from_float(plain.mlp)(x)
        assert same_bits(fused.mlp(x), wanted) and same_bits(by_class(x), wanted) and not same_bits(plain.mlp(x), wanted)
    with pytest.raises(dg.InvalidArgument, match="whole MLP"):
        DualGemmGatedMLPLayout(plain.mlp.gate_proj, plain.mlp.up_proj)
