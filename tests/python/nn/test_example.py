"""The example scripts run as they are."""

from __future__ import annotations

import pathlib
import subprocess
import sys

import pytest
from operands import only_on_cpu

EXAMPLES = sorted((pathlib.Path(__file__).parents[3] / "examples" / "python").glob("*.py"))


@only_on_cpu
def test_the_memory_that_loading_takes() -> None:
    pytest.importorskip("transformers", reason="transformers is not installed: the script was not run")
    script = pathlib.Path(__file__).parents[3] / "bench" / "python" / "load_memory.py"
    small = ["--layers", "2", "--hidden", "512", "--intermediate", "1024"]
    done = subprocess.run([sys.executable, "-P", str(script), *small], capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    header, _, row = done.stdout.strip().splitlines()
    assert header.startswith("| files, MB | the largest layer, MB | stays, MB |") and row.count("|") == header.count("|")


@only_on_cpu  # as they are, without --device
@pytest.mark.parametrize("path", EXAMPLES, ids=[path.name for path in EXAMPLES])
def test_example(path: pathlib.Path) -> None:
    pytest.importorskip("transformers", reason="transformers is not installed: the example was not run")
    done = subprocess.run([sys.executable, "-P", str(path)], capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, done.stderr
    assert {"llama_mlp": "MLPs replaced", "whole_models": "greedy tokens equal"}[path.stem] in done.stdout
