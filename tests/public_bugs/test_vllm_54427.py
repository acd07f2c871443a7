"""vllm#54427: a checkpoint labelled NVFP4 without input_scale is run with one that nothing wrote."""

import pathlib

import pytest
import torch
from situations import DEVICE, ROW, change
from test_checkpoints import close, modelopt, write_llama


def test_absent_input_scales_mean_w4a16(tmp_path: pathlib.Path) -> None:
    from dualgemm.integrations.transformers import load

    exact = write_llama(tmp_path / "m", modelopt)
    change(
        tmp_path / "m" / "model.safetensors",
        lambda tensors: [tensors.pop(name) for name in list(tensors) if name.endswith("input_scale")],
    )
    with pytest.warns(UserWarning, match="stay W4A16"):
        model = load(tmp_path / "m", device=DEVICE, dtype=ROW, input_dtype="nvfp4")
    ids = torch.randint(0, 96, (2, 7))
    with torch.no_grad():
        assert close(model(ids).logits, exact(ids).logits)
