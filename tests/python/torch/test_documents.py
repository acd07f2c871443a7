"""Every Python snippet of README.md and docs/ runs as printed: those of one file in order, in one process."""

from __future__ import annotations

import os
import pathlib
import re
import subprocess
import sys

import pytest
from operands import only_on_cpu

ROOT = pathlib.Path(__file__).parents[3]
DOCUMENTS = [
    path
    for path in [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
    if re.search(r"^```python$", path.read_text(), re.MULTILINE)
]


def snippets(path: pathlib.Path) -> list[str]:
    return re.findall(r"^```python\n(.*?)^```$", path.read_text(), re.MULTILINE | re.DOTALL)


def test_the_known_ones_are_found() -> None:
    assert {"README.md", "python.md"} <= {path.name for path in DOCUMENTS}


@only_on_cpu
@pytest.mark.parametrize("path", DOCUMENTS, ids=[path.name for path in DOCUMENTS])
def test_snippets(path: pathlib.Path, tmp_path: pathlib.Path) -> None:
    paths = os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")])  # as from the root: the folder python/ is there
    program = tmp_path / "snippets.py"  # a file: Triton asks for its kernels' source
    program.write_text("\n".join(snippets(path)))
    run = subprocess.run(
        [sys.executable, program],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=600,
        env={**os.environ, "PYTHONPATH": paths},
    )
    assert run.returncode == 0, run.stderr
    if path.name == "README.md":
        assert float(re.search(r"largest error: ([0-9.e-]+)", run.stdout)[1]) < 0.05  # type: ignore[index]
