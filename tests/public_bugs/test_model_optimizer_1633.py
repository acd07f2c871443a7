"""Model-Optimizer#1633: NaN bytes among the block scales of a published checkpoint."""

import pathlib

import pytest
import torch
from situations import dg, layer, save, validate


def test_the_tensor_and_the_place_are_named(tmp_path: pathlib.Path) -> None:
    tensors, _ = layer()
    scales = tensors["l.mlp.down_proj.weight_scale"].view(torch.uint8)
    scales[5, 3] = 0x7F
    path = save(tmp_path / "m.safetensors", tensors)
    with dg.open_checkpoint(path) as checkpoint:
        with pytest.raises(dg.FileError, match="down_proj.weight_scale.*NaN at row 5, block 3"):
            checkpoint.down("l.mlp")
        checkpoint.weights("l.mlp")
    report = validate(path)
    assert report.returncode == 1 and "NaN at row 5, block 3" in report.stdout + report.stderr
