"""vllm#49715: global scales of the weights absent; dynamic scales of the activations."""

import pathlib

import pytest
from situations import dg, layer, save, validate
from test_checkpoints import compressed, modelopt


@pytest.mark.parametrize("names, end", [(modelopt, "weight_scale_2"), (compressed, "weight_global_scale")])
def test_an_absent_global_scale_is_named(names: object, end: str, tmp_path: pathlib.Path) -> None:
    tensors, _ = layer(names)
    del tensors[f"l.mlp.up_proj.{end}"]
    path = save(tmp_path / "m.safetensors", tensors)
    with dg.open_checkpoint(path) as checkpoint, pytest.raises(dg.FileError, match=f"up_proj.{end}"):
        checkpoint.weights("l.mlp")
    report = validate(path)
    assert report.returncode == 1 and f"up_proj.{end}" in report.stdout + report.stderr
