"""What becomes of inputs with input_dtype "nvfp4": static scales, dynamic ones, and layers whose scale nothing ever wrote."""

from __future__ import annotations

import json
import pathlib
import warnings

import pytest
import torch
from operands import DEVICE, dg
from test_checkpoints import ROW, modelopt, save, write_llama

safetensors = pytest.importorskip("safetensors.torch", reason="safetensors is not installed")
pytest.importorskip("transformers", reason="transformers is not installed")
from dualgemm.integrations.transformers import load  # noqa: E402


def change(folder: pathlib.Path, end: str, value: float | None) -> None:
    path = folder / "model.safetensors"
    tensors = safetensors.load_file(str(path))
    for name in [name for name in tensors if name.endswith(f"{end}.input_scale")]:
        if value is None:
            del tensors[name]
        else:
            tensors[name] = torch.full_like(tensors[name], value)
    save(path, tensors)


@pytest.mark.parametrize("value", [0.0, float("nan"), None])
def test_layers_without_a_written_scale_stay_in_16_bits(value: float | None, tmp_path: pathlib.Path) -> None:
    write_llama(tmp_path / "m", modelopt)
    with warnings.catch_warnings():
        warnings.simplefilter("error", UserWarning)
        static = load(tmp_path / "m", device=DEVICE, dtype=ROW, input_dtype="nvfp4")
        load(tmp_path / "m", device=DEVICE, dtype=ROW)
    for end in ("layers.0.mlp.gate_proj", "layers.0.mlp.up_proj", "layers.1.mlp.down_proj", "q_proj"):
        change(tmp_path / "m", end, value)
    with warnings.catch_warnings():
        warnings.simplefilter("error", UserWarning)
        load(tmp_path / "m", device=DEVICE, dtype=ROW)  # 16 bits need no scale
    with pytest.warns(UserWarning, match="4 layers have no input scale.*W4A16.*layers.0.mlp") as said:
        model = load(tmp_path / "m", device=DEVICE, dtype=ROW, input_dtype="nvfp4")
    assert len([one for one in said if "W4A16" in str(one.message)]) == 1
    first, second = model.model.layers
    assert (first.mlp.input_dtype, first.mlp.down.input_dtype) == ("bf16", "nvfp4")
    assert (second.mlp.input_dtype, second.mlp.down.input_dtype) == ("nvfp4", "bf16")
    assert first.self_attn.q_proj.input_dtype == "bf16" and first.self_attn.k_proj.input_dtype == "nvfp4"
    x = torch.randn(3, first.mlp.hidden_size, device="cpu").to(DEVICE, ROW)
    assert torch.equal(first.self_attn.k_proj(x), static.model.layers[0].self_attn.k_proj(x))
    with dg.open_checkpoint(tmp_path / "m") as checkpoint:
        assert checkpoint.input_scale("model.layers.0.mlp") is None
        assert checkpoint.down_input_scale("model.layers.0.mlp") == pytest.approx(0.01)


def test_dynamic_rows_have_their_own(tmp_path: pathlib.Path) -> None:
    write_llama(tmp_path / "m", modelopt)
    change(tmp_path / "m", "proj", None)
    config = json.loads((tmp_path / "m" / "config.json").read_text())
    four = {"num_bits": 4, "type": "float", "group_size": 16}
    config["quantization_config"] = {
        "quant_method": "modelopt",
        "quant_algo": "NVFP4",
        "config_groups": {"group_0": {"weights": four, "input_activations": four | {"dynamic": True}, "targets": ["Linear"]}},
    }
    (tmp_path / "m" / "config.json").write_text(json.dumps(config))
    with warnings.catch_warnings():
        warnings.simplefilter("error", UserWarning)
        model = load(tmp_path / "m", device=DEVICE, dtype=ROW, input_dtype="nvfp4")
    mlp = model.model.layers[0].mlp
    assert mlp.input_dtype == mlp.down.input_dtype == "nvfp4" and mlp.input_scale is None
    config["quantization_config"]["config_groups"]["group_0"]["input_activations"] = None
    (tmp_path / "m" / "config.json").write_text(json.dumps(config))
    with pytest.warns(UserWarning, match="stay W4A16"):
        model = load(tmp_path / "m", device=DEVICE, dtype=ROW, input_dtype="nvfp4")
    assert model.model.layers[0].mlp.input_dtype == "bf16"


def test_a_model_that_exists(tmp_path: pathlib.Path) -> None:
    exact = write_llama(tmp_path / "m", modelopt)
    change(tmp_path / "m", "gate_proj", 0.0)
    with pytest.warns(UserWarning, match="2 layers have no input scale"):
        dg.from_pretrained(exact.to(ROW), tmp_path / "m", device=DEVICE, input_dtype="nvfp4")
    assert exact.model.layers[0].mlp.input_dtype == "bf16"
