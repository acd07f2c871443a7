"""examples/python/whole_models.py: every architecture that it names, on this device."""

from __future__ import annotations

import importlib.util
import pathlib
from typing import Any

import pytest
import torch
from operands import DEVICE, dg

pytest.importorskip("safetensors", reason="safetensors is not installed")
pytest.importorskip("transformers", reason="transformers is not installed")

_PATH = pathlib.Path(__file__).resolve().parents[3] / "examples" / "python" / "whole_models.py"


def example() -> Any:
    spec = importlib.util.spec_from_file_location("whole_models", _PATH)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


with torch.device("cpu"):
    EXAMPLE = example()
BOUND = 1e-4 if DEVICE == "cpu" else 0.1


@pytest.mark.parametrize("architecture", EXAMPLE.FORMS, ids=lambda one: one.__name__)
def test_a_whole_model(architecture: Any, tmp_path: pathlib.Path) -> None:
    with torch.device("cpu"):
        error, agree = EXAMPLE.run(architecture, tmp_path / "m", DEVICE, torch.float32 if DEVICE == "cpu" else torch.bfloat16)
        assert error < BOUND, error
        assert agree == 16 or DEVICE != "cpu"


@pytest.mark.parametrize(
    "name, kinds",
    [
        ("nemotron_h", {"Experts", "MLP", "NVFP4Linear"}),
        ("llama4", {"GatedExperts", "GatedMLP", "NVFP4Linear"}),
        ("qwen3_mixed", {"FP8Linear", "GatedMLP", "NVFP4Linear"}),
        ("gpt_oss", {"GatedExperts", "NVFP4Linear"}),
        ("deepseek_v3", {"GatedExperts", "GatedMLP", "NVFP4Linear"}),
    ],
)
def test_what_stands_in_it(name: str, kinds: set[str], tmp_path: pathlib.Path) -> None:
    """Not a model of floats that happens to be right."""
    from dualgemm.integrations.transformers import load

    with torch.device("cpu"):
        EXAMPLE.write(getattr(EXAMPLE, name), tmp_path / "m")
        model = load(tmp_path / "m", dtype=torch.float32)
        found = {
            type(module).__name__ for module in model.modules() if isinstance(module, (dg.nn.PackedModule, dg.nn.FP8Linear))
        }
        assert found == kinds
        tokens = torch.arange(12).reshape(2, 6)
        with torch.no_grad():
            model.save_pretrained(tmp_path / "saved")
            again = load(tmp_path / "saved", dtype=torch.float32)
            assert torch.equal(again(tokens).logits, model(tokens).logits)
