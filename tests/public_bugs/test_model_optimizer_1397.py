"""Model-Optimizer#1397: a block of zeros gets the scale 0x7F, which is NaN."""

import pathlib

import pytest
import torch
from situations import dg, layer, save, validate


def test_a_block_of_zeros_does_not_hide_its_scale(tmp_path: pathlib.Path) -> None:
    tensors, _ = layer()
    tensors["l.mlp.gate_proj.weight"][2, 8:16] = 0
    tensors["l.mlp.gate_proj.weight_scale"].view(torch.uint8)[2, 1] = 0x7F
    path = save(tmp_path / "m.safetensors", tensors)
    with dg.open_checkpoint(path) as checkpoint, pytest.raises(dg.FileError, match="gate_proj.weight_scale.*row 2, block 1"):
        checkpoint.weights("l.mlp")
    assert validate(path).returncode == 1


def test_our_own_quantiser_gives_zeros_a_number() -> None:
    x = torch.randn(4, 64)
    x[1, 16:32] = 0
    made = dg.quantize(x)
    assert not bool(((made.scales.view(torch.uint8) & 0x7F) == 0x7F).any())
    assert bool((dg.dequantize(made)[1, 16:32] == 0).all())
