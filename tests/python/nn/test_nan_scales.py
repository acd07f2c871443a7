"""Scales that are NaN or infinite: an error where they are read, unless they are allowed."""

from __future__ import annotations

import pathlib

import pytest
import torch
from operands import DEVICE, dg
from test_checkpoints import K, N, ROW, modelopt, quantized, save, write_llama

safetensors = pytest.importorskip("safetensors.torch", reason="safetensors is not installed")


def test_a_layer(tmp_path: pathlib.Path) -> None:
    """Refused where they are read, and taken as they are on request."""
    sound = {
        name: tensor
        for index, (part, rows, columns) in enumerate((("gate_proj", N, K), ("up_proj", N, K), ("down_proj", K, N)))
        for name, tensor in modelopt(f"l.mlp.{part}", quantized(index, rows, columns), 0.5).items()
    }
    scales = sound["l.mlp.gate_proj.weight_scale"].view(torch.uint8).clone()
    scales.view(-1)[1] = 0x7F
    for changed in (
        {"l.mlp.gate_proj.weight_scale": scales.view(torch.float8_e4m3fn)},
        {"l.mlp.down_proj.weight_scale_2": torch.tensor(float("nan"))},
        {"l.mlp.down_proj.weight_scale_2": torch.tensor(float("inf"))},
        {"l.mlp.up_proj.input_scale": torch.tensor(float("inf")), "l.mlp.gate_proj.input_scale": torch.tensor(float("inf"))},
    ):
        path = save(tmp_path / "m.safetensors", {**sound, **changed})
        checkpoint, name = dg.open_checkpoint(path), next(iter(changed)).rpartition(".")[0]
        read = checkpoint.down if name == "l.mlp.down_proj" else checkpoint.weights
        for call in (lambda **kw: read("l.mlp", **kw), lambda **kw: checkpoint.linear(name, **kw)):
            with pytest.raises(dg.FileError, match="allow_nan=True"):
                call(prepare=False)
            call(prepare=False, allow_nan=True)
        with dg.open_checkpoint(path, allow_nan=True) as lenient:
            lenient.weights("l.mlp", prepare=False), lenient.down("l.mlp", prepare=False)
            lenient.input_scale("l.mlp"), lenient.down_input_scale("l.mlp"), lenient.linear_input_scale(name)
    sound["l.mlp.gate_proj.weight_scale"] = scales.view(torch.float8_e4m3fn)
    weights = dg.open_checkpoint(save(tmp_path / "m.safetensors", sound)).weights("l.mlp", device=DEVICE, allow_nan=True)
    assert bool(weights(torch.ones(1, K).to(ROW), out_dtype=torch.float32).isnan()[0, 0])


@pytest.mark.parametrize(
    "name, value",
    [("down_proj.weight_scale_2", float("nan")), ("down_proj.weight_scale_2", float("inf")), ("gate_proj.weight_scale", 0x7F)],
)
def test_a_model_of_transformers(name: str, value: float, tmp_path: pathlib.Path) -> None:
    from dualgemm.integrations.transformers import load

    write_llama(tmp_path / "m", modelopt)
    tensors = safetensors.load_file(str(tmp_path / "m" / "model.safetensors"))
    changed = tensors[f"model.layers.0.mlp.{name}"]
    if changed.dtype == torch.float8_e4m3fn:
        changed.view(torch.uint8).view(-1)[1] = value
    else:
        changed.fill_(value)
    save(tmp_path / "m" / "model.safetensors", tensors)
    with pytest.raises(dg.FileError, match=name):
        load(tmp_path / "m", device=DEVICE, dtype=ROW)
    model = load(tmp_path / "m", device=DEVICE, dtype=ROW, allow_nan=True)
    with torch.no_grad():
        assert not bool(torch.isfinite(model(torch.tensor([[1, 2, 3]])).logits).all())
