"""export(): models with modules of this package for loaders that do not know them."""

from __future__ import annotations

import pathlib
from typing import Any

import pytest
import torch
from operands import DEVICE, dg, same_bits

transformers = pytest.importorskip("transformers", reason="transformers is not installed")
if DEVICE != "cpu":
    pytest.skip("float32 activations: a CPU's", allow_module_level=True)

import test_mixed as mixed  # noqa: E402
import test_pre_quant_scale as awq  # noqa: E402
import test_rotations as rotations  # noqa: E402
from dualgemm.integrations.transformers import as_floats, export, load  # noqa: E402

SMALL = dict(hidden_size=64, num_attention_heads=4, num_key_value_heads=2, vocab_size=96, head_dim=16, num_hidden_layers=2)
TOKENS = torch.randint(0, 96, (2, 9), generator=torch.Generator().manual_seed(1))


def qwen_moe() -> Any:
    config = transformers.Qwen3MoeConfig(
        **SMALL, intermediate_size=96, moe_intermediate_size=48, num_experts=4, num_experts_per_tok=2, mlp_only_layers=[1]
    )
    return transformers.Qwen3MoeForCausalLM(config)


def gpt_oss() -> Any:
    kinds = ["full_attention", "full_attention"]
    config = transformers.GptOssConfig(
        **SMALL, intermediate_size=48, num_local_experts=4, num_experts_per_tok=2, layer_types=kinds
    )
    model = transformers.GptOssForCausalLM(config)
    with torch.no_grad():
        for value in model.parameters():
            value.normal_(std=0.2)
    return model


def llama(**kw: Any) -> Any:
    return transformers.LlamaForCausalLM(transformers.LlamaConfig(**SMALL, intermediate_size=96, **kw))


def phi3() -> Any:
    config = dict(SMALL, pad_token_id=0)
    return transformers.Phi3ForCausalLM(transformers.Phi3Config(**config, intermediate_size=96))


MODELS = {
    "llama": llama,
    "llama with biases": lambda: llama(mlp_bias=True),
    "llama, tied": lambda: llama(tie_word_embeddings=True),
    "gate and up in one": phi3,
    "qwen3_moe": qwen_moe,
    "gpt_oss": gpt_oss,
}


def replaced(name: str, **kw: Any) -> Any:
    torch.manual_seed(3)
    model = MODELS[name]().float().eval()
    assert dg.replace_mlps(model, quantize_down=True, **kw)
    return model


def logits(model: Any) -> torch.Tensor:
    with torch.no_grad():
        found: torch.Tensor = model(TOKENS).logits
    return found


def expect_near(got: torch.Tensor, want: torch.Tensor) -> None:
    assert (got - want).abs().max() < 2e-4 * want.abs().max()


@pytest.mark.parametrize("name", MODELS)
def test_floats_are_read_by_transformers(name: str, tmp_path: pathlib.Path) -> None:
    model = replaced(name)
    ours = [type(one).__name__ for one in model.modules() if isinstance(one, dg.nn.PackedModule)]
    assert ours
    export(model, tmp_path / "out")
    again = transformers.AutoModelForCausalLM.from_pretrained(tmp_path / "out", dtype=torch.float32).eval()
    assert not any("dualgemm" in type(one).__module__ for one in again.modules())
    expect_near(logits(again), logits(model))
    assert again.config.architectures == [type(model).__name__]
    plain = as_floats(model)
    assert same_bits(logits(plain), logits(again))


@pytest.mark.parametrize("name", ["llama", "llama with biases", "llama, tied", "qwen3_moe"])
@pytest.mark.parametrize("input_dtype", ["bf16", "nvfp4"])
def test_compressed_tensors_are_read_again(name: str, input_dtype: str, tmp_path: pathlib.Path) -> None:
    model = replaced(name, input_dtype=input_dtype)
    export(model, tmp_path / "out", format="compressed-tensors")
    with dg.open_checkpoint(tmp_path / "out") as checkpoint:
        layers = {layer.module: layer for layer in checkpoint.linear_layers()}
    assert not any(layer.contradiction for layer in layers.values())
    assert (
        layers["model.layers.1.mlp.down_proj"].format == "nvfp4" and layers["model.layers.0.self_attn.q_proj"].format == "float"
    )
    again = load(tmp_path / "out", dtype=torch.float32)
    if input_dtype == "bf16":
        expect_near(logits(again), logits(model))
    floats, others = as_floats(model).state_dict(), as_floats(load(tmp_path / "out", dtype=torch.float32, finalize=False))
    for key, value in others.state_dict().items():  # 1/(1/x) is not always x
        assert torch.allclose(value, floats[key], rtol=2e-7, atol=0), key


def test_calibrated_inputs_are_written(tmp_path: pathlib.Path) -> None:
    rotations.write(rotations.llama(), tmp_path / "m", {**rotations.R4, "apply": []}, holds_matrix=False, w4a4=True)
    model = load(tmp_path / "m", dtype=torch.float32, input_dtype="nvfp4", finalize=False)
    export(model, tmp_path / "out", format="compressed-tensors")
    again = load(tmp_path / "out", dtype=torch.float32, input_dtype="nvfp4", finalize=False)
    mlp, other = model.model.layers[1].mlp, again.model.layers[1].mlp
    for one, two in ((mlp, other), (mlp.down, other.down)):
        assert torch.allclose(one.input_scale, two.input_scale, rtol=2e-7, atol=0)
    assert torch.allclose(mlp.alpha_gate, other.alpha_gate, rtol=4e-7, atol=0)
    assert same_bits(mlp.gate_codes, other.gate_codes) and same_bits(mlp.down.w_scales, other.down.w_scales)


def test_fp8_factors_and_rotations_become_floats(tmp_path: pathlib.Path) -> None:
    mixed.write(mixed.llama(), tmp_path / "mixed", {**mixed.FORMS, "q_proj": "block", "k_proj": "mx", "v_proj": "tensor"})
    awq.write(awq.llama(), tmp_path / "awq")
    rotations.write(rotations.llama(), tmp_path / "rotated")
    for name in ("mixed", "awq", "rotated"):
        model = load(tmp_path / name, dtype=torch.float32, finalize=False)
        export(model, tmp_path / f"{name}-out")
        again = transformers.AutoModelForCausalLM.from_pretrained(tmp_path / f"{name}-out", dtype=torch.float32)
        expect_near(logits(again.eval()), logits(model))
    export(load(tmp_path / "mixed", finalize=False), tmp_path / "ct", format="compressed-tensors")
    layers = {layer.module: layer.format for layer in dg.open_checkpoint(tmp_path / "ct").linear_layers()}
    assert layers["model.layers.0.mlp.up_proj"] == "nvfp4" and layers["model.layers.1.mlp.up_proj"] == "float"
    for name in ("awq", "rotated"):
        with pytest.raises(dg.Unsupported, match="multiplied or rotated"):
            export(load(tmp_path / name, finalize=False), tmp_path / "no", format="compressed-tensors")
    assert not (tmp_path / "no").exists() and not list(tmp_path.glob(".no*"))


def test_what_is_refused(tmp_path: pathlib.Path) -> None:
    model = replaced("llama")
    for wrong in (dict(format="gguf"), dict(dtype=torch.int8)):
        with pytest.raises(dg.InvalidArgument):
            export(model, tmp_path / "out", **wrong)  # type: ignore[arg-type]
    with pytest.raises(dg.InvalidArgument, match="model"):
        export(torch.nn.Linear(2, 2), tmp_path / "out")
    with pytest.raises(dg.Unsupported, match="one global scale"):
        export(replaced("gate and up in one"), tmp_path / "out", format="compressed-tensors")
    with pytest.raises(dg.Unsupported, match="experts with biases"):
        export(replaced("gpt_oss"), tmp_path / "out", format="compressed-tensors")
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "mine").write_text("x")
    with pytest.raises(dg.FileError, match="must be new"):
        export(model, tmp_path / "full")
    packed = dg.nn.finalize(replaced("llama"))
    if packed.model.layers[0].mlp.is_packed:
        with pytest.raises(dg.Unsupported, match="keep_original"):
            export(packed, tmp_path / "out")
    assert [one.name for one in tmp_path.iterdir()] == ["full"], "nothing is half-written"
    (tmp_path / "empty").mkdir()
    export(dg.nn.finalize(replaced("llama"), keep_original=True), tmp_path / "empty")
    assert (tmp_path / "empty" / "config.json").exists()
