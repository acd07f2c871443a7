"""vllm#54444: input_scale is there and was never written, 0 or NaN; outputs are zeros or NaN."""

import pathlib

import pytest
import torch
from situations import DEVICE, ROW, change, validate
from test_checkpoints import close, compressed, modelopt, write_llama


@pytest.mark.parametrize("names, end", [(modelopt, "input_scale"), (compressed, "input_global_scale")])
@pytest.mark.parametrize("value", [0.0, float("nan")])
def test_unwritten_input_scales_mean_w4a16(names: object, end: str, value: float, tmp_path: pathlib.Path) -> None:
    from dualgemm.integrations.transformers import load

    exact = write_llama(tmp_path / "m", names)
    change(
        tmp_path / "m" / "model.safetensors",
        lambda tensors: [tensors[name].fill_(value) for name in tensors if name.endswith(end)],
    )
    with pytest.warns(UserWarning, match="stay W4A16"):
        model = load(tmp_path / "m", device=DEVICE, dtype=ROW, input_dtype="nvfp4")
    ids = torch.randint(0, 96, (2, 7))
    with torch.no_grad():
        assert close(model(ids).logits, exact(ids).logits)
    report = validate(tmp_path / "m")
    assert report.returncode == 0 and "input scale never written" in report.stdout
