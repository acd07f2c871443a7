"""gpt-oss as it is downloaded: experts in MXFP4 whose rows of gate and up alternate, biases, a clamped SwiGLU."""

from __future__ import annotations

import json
import pathlib
from typing import Any

import pytest
import torch
from operands import DEVICE, dg

safetensors = pytest.importorskip("safetensors.torch", reason="safetensors is not installed")
transformers = pytest.importorskip("transformers", reason="transformers is not installed")
if DEVICE != "cpu":
    pytest.skip("float32 activations: a CPU's", allow_module_level=True)
from dualgemm.integrations.transformers import load  # noqa: E402

VALUES = torch.tensor([0, 0.5, 1, 1.5, 2, 3, 4, 6, -0.0, -0.5, -1, -1.5, -2, -3, -4, -6])


def mxfp4(w: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Blocks [..., K/32, 16], exponents [..., K/32] and the values of a matrix [..., K]."""
    blocks = w.float().reshape(*w.shape[:-1], -1, 32)
    exponents = torch.floor(torch.log2(blocks.abs().amax(-1).clamp(min=2.0**-100))).clamp(-20, 10) - 2
    scaled = blocks / torch.exp2(exponents)[..., None]
    codes = (scaled[..., None] - VALUES).abs().argmin(-1)
    values = VALUES[codes].double() * torch.exp2(exponents.double())[..., None]
    packed = (codes[..., ::2] | codes[..., 1::2] << 4).to(torch.uint8)
    return packed, (exponents + 127).to(torch.uint8), values.reshape(w.shape)


def write(model: Any, folder: pathlib.Path, change: Any = None) -> None:
    """With gpt-oss's keys; the model gets the values that are written. Its own experts are [E, K, 2N] and [E, N, K]."""
    tensors: dict[str, torch.Tensor] = {}
    with torch.no_grad():
        for name, value in model.state_dict().items():
            if not name.endswith(("experts.gate_up_proj", "experts.down_proj")):
                tensors[name] = value
                continue
            blocks, exponents, values = mxfp4(value.transpose(1, 2).contiguous())
            value.copy_(values.transpose(1, 2))
            tensors |= {f"{name}_blocks": blocks, f"{name}_scales": exponents}
    if change is not None:
        change(tensors)
    folder.mkdir(exist_ok=True)
    safetensors.save_file({name: t.contiguous().clone() for name, t in tensors.items()}, str(folder / "model.safetensors"))
    config = json.loads(model.config.to_json_string())
    config["quantization_config"] = {
        "quant_method": "mxfp4",
        "modules_to_not_convert": ["model.layers.*.self_attn", "model.layers.*.mlp.router", "model.embed_tokens", "lm_head"],
    }
    (folder / "config.json").write_text(json.dumps(config))


def gpt_oss() -> Any:
    torch.manual_seed(9)
    config = transformers.GptOssConfig(
        hidden_size=64,
        intermediate_size=96,
        num_hidden_layers=2,
        num_attention_heads=4,
        num_key_value_heads=2,
        head_dim=16,
        num_local_experts=4,
        num_experts_per_tok=2,
        vocab_size=96,
        layer_types=["full_attention", "full_attention"],
        tie_word_embeddings=False,
    )
    model = transformers.GptOssForCausalLM(config).float().eval()
    with torch.no_grad():
        for name, value in model.named_parameters():
            value.normal_(std=0.3 if "experts" in name else 0.1)
            if name.endswith("gate_up_proj_bias"):
                value.mul_(20)  # beyond the limit of the activation
    return model


def test_logits_of_exactly_decoded_weights(tmp_path: pathlib.Path) -> None:
    model = gpt_oss()
    write(model, tmp_path / "m")
    with dg.open_checkpoint(tmp_path / "m") as checkpoint:
        assert checkpoint.expert_layers() == [f"model.layers.{i}.mlp.experts" for i in range(2)]
        formats = {layer.module: layer.format for layer in checkpoint.linear_layers()}
    assert formats["model.layers.0.mlp.experts.gate_up_proj"] == "mxfp4"
    assert formats["model.layers.0.self_attn.q_proj"] == "float"
    loaded = load(tmp_path / "m", dtype=torch.float32)
    assert type(loaded.model.layers[0].mlp.experts) is dg.GatedExperts
    tokens = torch.randint(0, 96, (2, 9), generator=torch.Generator().manual_seed(1))
    with torch.no_grad():
        want, got = model(tokens).logits, loaded(tokens).logits
        assert (got - want).abs().max() < 2e-4 * want.abs().max()
        assert torch.equal(
            model.generate(tokens, max_new_tokens=8, do_sample=False),
            loaded.generate(tokens, max_new_tokens=8, do_sample=False),
        )


def widen(tensors: dict[str, torch.Tensor]) -> None:
    tensors["model.layers.1.mlp.experts.down_proj_scales"][2, 5, 1] = 110
    tensors["model.layers.1.mlp.experts.down_proj_scales"][2, 6, 1] = 130
    tensors["model.layers.1.mlp.experts.down_proj_blocks"][2, 5:7, 1] = 0x11


def decoded(folder: pathlib.Path, model: Any) -> Any:
    """The model with exactly the values of the folder, by a decoder of this test's own."""
    tensors = safetensors.load_file(str(folder / "model.safetensors"))
    with torch.no_grad():
        for name, value in model.named_parameters():
            if f"{name}_blocks" not in tensors:
                continue
            codes, exponents = tensors[f"{name}_blocks"].long(), tensors[f"{name}_scales"].double() - 127
            values = torch.stack((VALUES[codes & 15], VALUES[codes >> 4]), -1).flatten(-2) * torch.exp2(exponents)[..., None]
            value.copy_(values.flatten(-2).transpose(1, 2))
    return model


def test_exponents_too_far_apart_are_decoded_with_one_warning_or_refused(tmp_path: pathlib.Path) -> None:
    model = gpt_oss()
    write(model, tmp_path / "m", widen)
    with pytest.warns(UserWarning, match="20 apart") as said:
        loaded = load(tmp_path / "m", dtype=torch.float32)
    about = [str(one.message) for one in said if "apart" in str(one.message)]
    assert len(about) == 2  # the layer is left as a whole, its gate and up with it
    assert any("down_proj_scales has exponents from -17 to 3, 20 apart" in text and "bytes from" in text for text in about)
    assert type(loaded.model.layers[0].mlp.experts) is dg.GatedExperts
    assert type(loaded.model.layers[1].mlp.experts) is not dg.GatedExperts
    tokens = torch.randint(0, 96, (2, 9), generator=torch.Generator().manual_seed(1))
    with torch.no_grad():
        want, got = decoded(tmp_path / "m", model)(tokens).logits, loaded(tokens).logits
    assert (got - want).abs().max() < 2e-4 * want.abs().max()
    with pytest.raises(dg.Unsupported, match="apart.*to be exact as NVFP4"):
        load(tmp_path / "m", dtype=torch.float32, wide_mxfp4="refuse")
    with pytest.raises(dg.InvalidArgument, match="decode or refuse"):
        load(tmp_path / "m", wide_mxfp4="maybe")


def test_what_sixteen_bits_cannot_hold_is_refused(tmp_path: pathlib.Path) -> None:
    def change(tensors: dict[str, torch.Tensor]) -> None:
        widen(tensors)
        tensors["model.layers.1.mlp.experts.down_proj_scales"][2, 6, 1] = 254

    write(gpt_oss(), tmp_path / "m", change)
    loaded = load(tmp_path / "m", dtype=torch.bfloat16, finalize=False)  # 0.5 * 2^127
    assert float(loaded.model.layers[1].mlp.experts.down_proj.abs().max()) == 2.0**126
    with pytest.raises(dg.Unsupported, match="must be exact"):
        load(tmp_path / "m", dtype=torch.float16)
