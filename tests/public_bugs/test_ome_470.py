"""ome#470: Infinity in Nemotron-H's config.json; the file that a tool writes anew has to keep it."""

import pathlib
import subprocess
import sys

import torch
from situations import save


def test_quantize_keeps_it(tmp_path: pathlib.Path) -> None:
    source = tmp_path / "source"
    source.mkdir()
    save(source / "model.safetensors", {f"l.mlp.{part}_proj.weight": torch.randn(64, 64) for part in ("gate", "up")})
    (source / "config.json").write_text('{"model_type": "nemotron_h", "time_step_limit": [0.0, Infinity], "x": [1.50, 1e2]}')
    command = [sys.executable, "-P", "-m", "dualgemm", "quantize", str(source), "--out", str(tmp_path / "made")]
    assert subprocess.run(command, capture_output=True, text=True, check=False).returncode == 0
    written = (tmp_path / "made" / "config.json").read_text()
    assert (
        '"time_step_limit": [0.0, Infinity]' in written and '"x": [1.50, 1e2]' in written and "quantization_config" in written
    )
