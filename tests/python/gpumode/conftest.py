"""Of all tests of dualgemm.gpumode: where the package is, small cases, and the harness as a user calls it."""
from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import pytest

ROOT = Path(__file__).resolve().parents[3]
PACKAGE = ROOT / "bindings" / "python"
for folder in (ROOT, PACKAGE):
    if str(folder) not in sys.path:
        sys.path.insert(0, str(folder))

SMALL = "m: 130; n: 256; k: 256; l: 1; seed: 1111\nm: 5; n: 48; k: 80; l: 2; seed: 7\n"


class Done(NamedTuple):
    status: int
    verdict: dict[str, str]  # of the protocol; empty for the command
    lines: list[str]
    out: str
    talk: str


def called(arguments: list[str], folder: Path, **more: str) -> Done:
    """A module of the package as a command."""
    environment = {**os.environ, "PYTHONPATH": str(PACKAGE), "PYTHONDONTWRITEBYTECODE": "1", **more}
    done = subprocess.run([sys.executable, "-m", *arguments], cwd=folder, env=environment, text=True, capture_output=True,
                          timeout=300)
    return Done(done.returncode, {}, [], done.stdout, done.stderr)


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
