"""dynamo#3043: Infinity in config.json, as Python writes it for Mamba-2's time_step_limit, is no JSON to a strict reader."""

import pathlib

import pytest
from situations import dg, layer, save, validate


@pytest.mark.parametrize("value", ["Infinity", "-Infinity", "NaN"])
def test_a_config_as_python_writes_it(value: str, tmp_path: pathlib.Path) -> None:
    tensors, _ = layer()
    save(tmp_path / "model.safetensors", tensors)
    quantised = '"quantization_config": {"quant_method": "modelopt", "quant_algo": "NVFP4"}'
    (tmp_path / "config.json").write_text(f'{{"model_type": "mamba2", "time_step_limit": [0.0, {value}], {quantised}}}')
    assert validate(tmp_path).returncode == 0
    with dg.open_checkpoint(tmp_path) as checkpoint:
        assert {one.format for one in checkpoint.linear_layers()} == {"nvfp4"}
