"""mlx-vlm#1706: compressed-tensors' "mixed-precision", whose groups have formats of their own, is taken for one format."""

import json
import pathlib

import torch
from situations import dg, layer, save, validate
from test_checkpoints import compressed


def test_every_group_has_its_format(tmp_path: pathlib.Path) -> None:
    tensors, _ = layer(compressed, "model.layers.0.mlp")
    for name in ("q_proj", "k_proj"):
        tensors[f"model.layers.0.self_attn.{name}.weight"] = torch.randn(64, 64, device="cpu").to(torch.float8_e4m3fn)
        tensors[f"model.layers.0.self_attn.{name}.weight_scale"] = torch.rand(64, 1, device="cpu") + 0.5
    save(tmp_path / "model.safetensors", tensors)
    four = {"num_bits": 4, "type": "float", "strategy": "tensor_group", "group_size": 16}
    eight = {"num_bits": 8, "type": "float", "strategy": "channel"}
    groups = {
        "group_0": {
            "format": "float-quantized",
            "targets": ["re:.*self_attn.*"],
            "weights": eight,
            "input_activations": eight | {"strategy": "token", "dynamic": True},
        },
        "group_1": {
            "format": "nvfp4-pack-quantized",
            "targets": ["re:.*mlp.*"],
            "weights": four,
            "input_activations": four | {"dynamic": "local"},
        },
    }
    config = {"quant_method": "compressed-tensors", "format": "mixed-precision", "config_groups": groups, "ignore": ["lm_head"]}
    (tmp_path / "config.json").write_text(json.dumps({"model_type": "llama", "quantization_config": config}))
    with dg.open_checkpoint(tmp_path) as checkpoint:
        found = {one.module.rpartition(".")[2]: one for one in checkpoint.linear_layers()}
    assert {name: one.format for name, one in found.items()} == {
        "q_proj": "fp8",
        "k_proj": "fp8",
        "gate_proj": "nvfp4",
        "up_proj": "nvfp4",
        "down_proj": "nvfp4",
    }
    assert (found["q_proj"].activations, found["up_proj"].activations) == ("dynamic", "local")
    assert not [one for one in found.values() if one.contradiction]
    assert validate(tmp_path).returncode == 0
