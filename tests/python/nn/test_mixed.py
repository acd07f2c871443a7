"""Models of mixed precision: NVFP4 beside FP8 and MXFP8, and what the configs beside them say of each layer."""

from __future__ import annotations

import json
import pathlib
from typing import Any, Optional

import numpy as np
import pytest
import reference
import torch
from operands import DEVICE, as_numpy, dg

safetensors = pytest.importorskip("safetensors.torch", reason="safetensors is not installed")
transformers = pytest.importorskip("transformers", reason="transformers is not installed")
if DEVICE != "cpu":
    pytest.skip("float32 activations: a CPU's", allow_module_level=True)

from dualgemm.integrations.transformers import load  # noqa: E402

E4M3 = torch.float8_e4m3fn


def fp8(w: torch.Tensor, form: str, noise: torch.Generator) -> tuple[dict[str, torch.Tensor], torch.Tensor]:
    """Tensors of a matrix in a form of FP8, and what they say in double."""
    n, k = w.shape
    codes = (w / w.abs().max() * 448).to(E4M3)
    values = codes.double()
    random = lambda *shape: (torch.rand(shape, generator=noise) * 2e-4 + 1e-4).float()  # noqa: E731
    if form == "tensor":
        scale = random(1)[0]
        return {"weight": codes, "weight_scale": scale, "input_scale": torch.tensor(0.25)}, values * scale.double()
    if form == "channel":
        scale = random(n, 1).bfloat16()
        return {"weight": codes, "weight_scale": scale}, values * scale.double()
    if form == "block":
        scale = random(-(-n // 128), -(-k // 128))
        wide = scale.double().repeat_interleave(128, 0)[:n].repeat_interleave(128, 1)[:, :k]
        return {"weight": codes, "weight_scale_inv": scale}, values * wide
    exponents = torch.randint(110, 118, (n, k // 32), generator=noise, dtype=torch.uint8)
    wide = torch.exp2(exponents.double() - 127).repeat_interleave(32, 1)
    return {"weight": codes, "weight_scale": exponents}, values * wide


def nvfp4(w: torch.Tensor) -> tuple[dict[str, torch.Tensor], torch.Tensor]:
    made = dg.quantize(w.contiguous())
    exact = torch.from_numpy(reference.decode(as_numpy(made.codes), as_numpy(made.scales))) * made.global_scale.double()
    names = {"weight": made.codes, "weight_scale": made.scales, "weight_scale_2": made.global_scale.reshape(())}
    return names, exact


def write(model: torch.nn.Module, folder: pathlib.Path, forms: dict[str, str], config: Optional[dict[str, Any]] = None) -> None:
    """forms: end of a linear layer's name -> its form; the model gets the values that are written."""
    noise = torch.Generator().manual_seed(3)
    state, tensors = model.state_dict(), {}
    with torch.no_grad():
        for name, value in state.items():
            module = name.removesuffix(".weight")
            form = next((form for end, form in forms.items() if module.endswith(end)), None)
            if form is None:
                tensors[name] = value
                continue
            made, exact = nvfp4(value) if form == "nvfp4" else fp8(value, form, noise)
            value.copy_(exact)
            tensors |= {f"{module}.{end}": tensor for end, tensor in made.items()}
    folder.mkdir(exist_ok=True)
    safetensors.save_file({name: t.contiguous().clone() for name, t in tensors.items()}, str(folder / "model.safetensors"))
    written = json.loads(model.config.to_json_string())
    (folder / "config.json").write_text(json.dumps(written | ({} if config is None else {"quantization_config": config})))


def llama(layers: int = 2, hidden: int = 256, bias: bool = False) -> Any:
    torch.manual_seed(5)
    config = transformers.LlamaConfig(
        hidden_size=hidden,
        intermediate_size=320,
        num_hidden_layers=layers,
        num_attention_heads=4,
        num_key_value_heads=2,
        vocab_size=96,
        attention_bias=bias,
        tie_word_embeddings=False,
    )
    model = transformers.LlamaForCausalLM(config).float().eval()
    if bias:
        with torch.no_grad():
            for name, value in model.named_parameters():
                if name.endswith("bias"):
                    value.normal_()
    return model


# As unsloth's releases: the last layers' MLPs and all attention in FP8, the other MLPs NVFP4.
FORMS = {f"layers.1.mlp.{one}_proj": "channel" for one in ("gate", "up", "down")}
FORMS |= {f"{one}_proj": "nvfp4" for one in ("gate", "up", "down")}
GROUPS = {
    "quant_method": "compressed-tensors",
    "format": "mixed-precision",
    "ignore": ["lm_head"],
    "config_groups": {
        "group_0": {
            "format": "float-quantized",
            "targets": ["re:.*self_attn.*", "re:.*layers\\.1\\.mlp.*"],
            "weights": {"num_bits": 8, "type": "float", "strategy": "channel"},
            "input_activations": {"num_bits": 8, "type": "float", "strategy": "token", "dynamic": True},
        },
        "group_1": {
            "format": "nvfp4-pack-quantized",
            "targets": ["re:.*mlp.*"],
            "weights": {"num_bits": 4, "type": "float", "strategy": "tensor_group", "group_size": 16},
            "input_activations": None,
        },
    },
}


@pytest.mark.parametrize("form", ["tensor", "channel", "block", "mx"])
@pytest.mark.parametrize("bias", [False, True])
def test_logits_of_exactly_decoded_weights(form: str, bias: bool, tmp_path: pathlib.Path) -> None:
    model = llama(bias=bias)
    write(model, tmp_path / "m", {**FORMS, "q_proj": form, "k_proj": form, "v_proj": form, "o_proj": form})
    loaded = load(tmp_path / "m", dtype=torch.float32)
    tokens = torch.randint(0, 96, (2, 9), generator=torch.Generator().manual_seed(1))
    with torch.no_grad():
        want, got = model(tokens).logits, loaded(tokens).logits
        assert (got - want).abs().max() < 2e-4 * want.abs().max()
        assert torch.equal(
            model.generate(tokens, max_new_tokens=8, do_sample=False),
            loaded.generate(tokens, max_new_tokens=8, do_sample=False),
        )
    layer = loaded.model.layers[0]
    assert type(layer.mlp) is dg.GatedMLP
    assert type(layer.self_attn.q_proj) is type(loaded.model.layers[1].mlp.down_proj) is dg.nn.FP8Linear
    product = {"block": "16 bits, block by block", "mx": "16 bits"}.get(form, "16 bits, scaled after")
    assert layer.self_attn.q_proj.product == product and product in repr(layer.self_attn.q_proj)


@pytest.mark.parametrize("form", ["tensor", "channel", "block", "mx"])
def test_experts_in_fp8(form: str, tmp_path: pathlib.Path) -> None:
    """Modules of their own in the file, as quantisers leave them; decoded, and the model's own class computes."""
    torch.manual_seed(5)
    config = transformers.Qwen3MoeConfig(
        hidden_size=128,
        moe_intermediate_size=96,
        num_hidden_layers=1,
        num_attention_heads=4,
        num_key_value_heads=2,
        head_dim=32,
        vocab_size=96,
        num_experts=3,
        num_experts_per_tok=2,
    )
    model = transformers.Qwen3MoeForCausalLM(config).float().eval()
    noise, tensors = torch.Generator().manual_seed(3), dict(model.state_dict())
    with torch.no_grad():
        for last in ("gate_up_proj", "down_proj"):
            whole = tensors.pop(f"model.layers.0.mlp.experts.{last}")
            for expert in range(3):
                parts = whole[expert].chunk(2) if last == "gate_up_proj" else (whole[expert],)
                for part, value in zip(("gate_proj", "up_proj") if len(parts) == 2 else ("down_proj",), parts):
                    made, exact = fp8(value, form, noise)
                    value.copy_(exact)
                    tensors |= {f"model.layers.0.mlp.experts.{expert}.{part}.{end}": one for end, one in made.items()}
    folder = tmp_path / "m"
    folder.mkdir()
    safetensors.save_file({name: t.contiguous().clone() for name, t in tensors.items()}, str(folder / "model.safetensors"))
    (folder / "config.json").write_text(model.config.to_json_string())
    with pytest.warns(UserWarning, match=r"gate_up_proj: experts in FP8.*decoded to \d+ bytes, rounded to float32"):
        loaded = load(folder, dtype=torch.float32)
    tokens = torch.randint(0, 96, (2, 9), generator=torch.Generator().manual_seed(1))
    with torch.no_grad():
        want, got = model(tokens).logits, loaded(tokens).logits
    assert (got - want).abs().max() < 2e-5 * want.abs().max()


def test_the_configs_beside_the_tensors(tmp_path: pathlib.Path) -> None:
    forms = {**FORMS, "q_proj": "channel", "k_proj": "channel", "v_proj": "channel", "o_proj": "channel"}
    write(llama(), tmp_path / "m", forms, GROUPS)
    with dg.open_checkpoint(tmp_path / "m") as checkpoint:
        layers = {layer.module: layer for layer in checkpoint.linear_layers()}
    assert (layers["lm_head"].format, layers["lm_head"].activations) == ("float", "none")
    q = layers["model.layers.0.self_attn.q_proj"]
    assert (q.n, q.k, q.format, q.granularity, q.activations, q.contradiction) == (256, 256, "fp8", "channel", "dynamic", "")
    assert layers["model.layers.0.mlp.up_proj"][5:9] == ("nvfp4", "group", (0, 16), "none")
    assert layers["model.layers.1.mlp.up_proj"].format == "fp8", "which both groups claim"
    assert not any(layer.contradiction for layer in layers.values())
    loaded = load(tmp_path / "m")
    assert loaded.model.layers[1].mlp.up_proj.activations == "dynamic"


def test_transforms_are_refused(tmp_path: pathlib.Path) -> None:
    transforms = {"config_groups": {"R3": {"type": "hadamard", "apply": [{"targets": ["self_attn"], "location": "q_attn"}]}}}
    write(llama(), tmp_path / "m", FORMS, {**GROUPS, "transform_config": transforms})
    with pytest.raises(dg.Unsupported, match="a transform at 'q_attn'"):
        load(tmp_path / "m")


def test_saved_and_read_again(tmp_path: pathlib.Path) -> None:
    write(llama(bias=True), tmp_path / "m", {**FORMS, "q_proj": "block", "k_proj": "mx", "v_proj": "tensor"}, GROUPS)
    loaded = load(tmp_path / "m")
    loaded.save_pretrained(tmp_path / "again")
    again = load(tmp_path / "again")
    tokens = torch.arange(12)[None]
    with torch.no_grad():
        assert torch.equal(loaded(tokens).logits, again(tokens).logits)
    assert again.model.layers[0].self_attn.q_proj.product == "16 bits, block by block"


def test_what_is_wrong_is_named(tmp_path: pathlib.Path) -> None:
    codes = torch.zeros(32, 64).to(E4M3)
    ones = torch.ones(32, 1)
    for weight, scale, more, part in (
        (torch.zeros(32, 64), ones, {}, "must be float8_e4m3fn"),
        (codes, torch.ones(31, 1), {}, "must hold 1 or 32"),
        (codes, torch.full((32, 1), float("nan")), {}, "must be finite"),
        (codes, torch.ones(1, 2), {"block": (128, 128)}, r"must be \[1, 1\]"),
        (codes, torch.full((32, 2), 255, dtype=torch.uint8), {"block": (1, 32)}, "NaN in E8M0"),
        (codes, ones.int(), {}, "floats or E8M0"),
    ):
        with pytest.raises(dg.InvalidArgument, match=part):
            dg.nn.FP8Linear(weight, scale, **more)
    model = llama()
    write(model, tmp_path / "m", {"q_proj": "channel"})
    file = tmp_path / "m" / "model.safetensors"
    tensors = safetensors.load_file(str(file))
    name = "model.layers.0.self_attn.q_proj.weight_scale"
    for scale, part in ((torch.ones(7), "does not read|must hold"), (torch.full((256, 1), float("inf")), "must be finite")):
        safetensors.save_file({**tensors, name: scale}, str(file))
        with pytest.raises(dg.DualGemmError, match=part):
            load(tmp_path / "m")


def test_halves_of_float16_are_exact_or_refused() -> None:
    codes = torch.arange(256, dtype=torch.uint8).view(E4M3).reshape(4, 64)
    codes = torch.where(codes.float().isnan(), torch.zeros(()), codes.float()).to(E4M3)
    for scale in (1.0, 2.0**-13, 1.5 * 2.0**-15, 3e-6):
        made = dg.nn.FP8Linear(codes, torch.tensor([scale]), dtype=torch.float16)
        decoded = made.weight.double() * made.weight_scale.double().reshape(1, 1)
        assert torch.equal(decoded, codes.double() * float(np.float32(scale)))
    with pytest.raises(dg.Unsupported, match="must be exact"):
        dg.nn.FP8Linear(codes, torch.tensor([512.0]), dtype=torch.float16)
