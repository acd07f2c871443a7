"""The example scripts run as they are."""

from __future__ import annotations

import pathlib
import subprocess
import sys

import pytest
from operands import only_on_cpu

EXAMPLES = sorted((pathlib.Path(__file__).parents[3] / "examples" / "python").glob("*.py"))


@only_on_cpu  # as they are, without --device
@pytest.mark.parametrize("path", EXAMPLES, ids=[path.name for path in EXAMPLES])
def test_example(path: pathlib.Path) -> None:
    pytest.importorskip("transformers", reason="transformers is not installed: the example was not run")
    done = subprocess.run([sys.executable, "-P", str(path)], capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, done.stderr
    assert {"llama_mlp": "MLPs replaced", "whole_models": "greedy tokens equal"}[path.stem] in done.stdout
