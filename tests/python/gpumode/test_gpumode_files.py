"""python/ as a server meets it: short files without the forbidden word, which work beside any task.py and as one file."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from harness import ROOT, SMALL, called

from dualgemm.gpumode import STRATEGIES, file_of
from dualgemm.gpumode.submissions import FOLDER

FILES = sorted((ROOT / "python").glob("*.py"))
SHARED = ("by_device.py", "triton_kernels.py")
# As a server's: no more than the names that submissions import.
BARE_TASK = "from typing import TypeVar\ninput_t = TypeVar('input_t')\noutput_t = TypeVar('output_t')\n"
CALL = """
import sys; sys.path.insert(1, {root!r})
import {module}
from python.task import check_implementation, generate_input
data = generate_input(130, 256, 256, 1, 1, "cpu")
print(check_implementation(data, {module}.custom_kernel(data)))
"""
ON_CPU = [name for name in STRATEGIES if name not in ("triton", "fused")]


def test_the_package_has_the_same_files() -> None:
    """Those of the tree themselves, or what was installed from them."""
    for file in FILES:
        assert file.name == "__init__.py" or (FOLDER / file.name).read_bytes() == file.read_bytes()
    assert {file_of(name).name for name in STRATEGIES} <= {file.name for file in FILES}


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.name)
def test_lengths(file: Path) -> None:
    lines = file.read_text().splitlines()
    assert len(lines) <= (60 if file.name.startswith("submission") else 165)
    assert max(map(len, lines), default=0) <= 130


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.name)
def test_the_word_that_servers_refuse(file: Path) -> None:
    assert ("stream" in file.read_text().lower()) == (file.name == "submission_streams.py")


@pytest.mark.parametrize("strategy", ON_CPU)
def test_beside_a_task_of_the_servers(strategy: str, tmp_path: Path) -> None:
    for name in (file_of(strategy).name, *SHARED):
        shutil.copy(ROOT / "python" / name, tmp_path)
    (tmp_path / "task.py").write_text(BARE_TASK)
    done = subprocess.run(
        [sys.executable, "-c", CALL.format(root=str(ROOT), module=file_of(strategy).stem)],
        cwd=tmp_path,
        text=True,
        capture_output=True,
        timeout=120,
        env={key: value for key, value in os.environ.items() if key != "PYTHONPATH"},
    )
    assert done.stdout == "(True, '')\n", done.stderr


@pytest.mark.parametrize("strategy", [*ON_CPU[:3], "triton"])
def test_flattened(strategy: str, tmp_path: Path) -> None:
    script = ROOT / "scripts" / "make_submission"
    if not script.exists():
        pytest.skip("no scripts/make_submission")
    flat = tmp_path / "flat.py"
    subprocess.run([sys.executable, script, "--strategy", strategy, "--out", flat], check=True, timeout=60)
    text = flat.read_text()
    assert "stream" not in text.lower() and "by_device import" not in text and "triton_kernels import" not in text
    if strategy == "triton":
        compile(text, "flat.py", "exec")
        return
    (tmp_path / "cases").write_text(SMALL)
    done = called(["dualgemm.gpumode", "test", "flat.py", "--device", "cpu", "--cases", "cases"], tmp_path)
    assert done.status == 0, done.out
