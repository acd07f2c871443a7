"""Fixtures of all tests of dualgemm.gpumode: small cases, and the harness as a user calls it."""
from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))
pytest.importorskip("torch", reason="torch is not installed: no test of dualgemm.gpumode was run")
from harness import PACKAGE, SMALL, Done, called  # noqa: E402


@pytest.fixture
def cases(tmp_path: Path) -> Path:
    path = tmp_path / "cases.txt"
    path.write_text(SMALL)
    return path


@pytest.fixture
def command(tmp_path: Path, cases: Path) -> Callable[..., Done]:
    """command(text of a submission, mode, options...): `python -m dualgemm.gpumode` on the CPU, on small cases."""

    def run(text: str, mode: str = "test", *options: str) -> Done:
        file = tmp_path / "entry.py"
        file.write_text(text)
        return called(["dualgemm.gpumode", mode, str(file), "--device", "cpu", "--cases", str(cases), "--inputs", "3",
                       "--rounds", "4", "--clear", "1", *options], tmp_path)

    return run


@pytest.fixture
def evaluated(tmp_path: Path, cases: Path) -> Callable[..., Done]:
    """evaluated(text of submission.py, mode, environment): the servers' entry, with a pipe for the verdict."""

    def run(text: str, mode: str = "test", case_file: Path | None = None, **environment: str) -> Done:
        (tmp_path / "submission.py").write_text(text)
        verdict = tmp_path / "verdict"
        with open(verdict, "w") as file:
            done = subprocess.run(
                [sys.executable, "-m", "dualgemm.gpumode.eval", mode, str(case_file or cases)], cwd=tmp_path, text=True,
                env={**os.environ, "PYTHONPATH": str(PACKAGE), "CUDA_VISIBLE_DEVICES": "", "POPCORN_FD": str(file.fileno()),
                     **environment}, capture_output=True, timeout=300, pass_fds=(file.fileno(),))
        lines = verdict.read_text().splitlines()
        parsed = dict(line.split(": ", 1) for line in lines)
        assert len(parsed) == len(lines), "every line is `key: value`, and no key comes twice"
        return Done(done.returncode, parsed, lines, done.stdout, done.stderr)

    return run
