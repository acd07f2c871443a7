"""Fixtures of all tests of dualgemm.gpumode: small cases, and the harness as a user calls it."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))
pytest.importorskip("torch", reason="torch is not installed: no test of dualgemm.gpumode was run")
from harness import SMALL, Done, called

from dualgemm.gpumode import eval


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
        return called(
            [
                "dualgemm.gpumode",
                mode,
                str(file),
                "--device",
                "cpu",
                "--cases",
                str(cases),
                "--inputs",
                "3",
                "--rounds",
                "4",
                "--clear",
                "1",
                *options,
            ],
            tmp_path,
        )

    return run


@pytest.fixture
def evaluated(
    tmp_path: Path, cases: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> Callable[..., Done]:
    """evaluated(text of submission.py, mode, environment): the servers' entry, a file for the verdict; fewer rounds than theirs."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "")
    for name in ("BENCHMARK", "LEADERBOARD"):
        monkeypatch.setattr(eval, name, replace(getattr(eval, name), inputs=5, most_rounds=6, clear_bytes=1 << 20))

    def run(text: str, mode: str = "test", case_file: Path | None = None, **environment: str) -> Done:
        (tmp_path / "submission.py").write_text(text)
        verdict = tmp_path / "verdict"
        descriptor = os.open(verdict, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
        for name, value in {"POPCORN_FD": str(descriptor), **environment}.items():
            monkeypatch.setenv(name, value)
        status = eval.main([mode, str(case_file or cases)])
        lines = verdict.read_text().splitlines()
        parsed = dict(line.split(": ", 1) for line in lines)
        assert len(parsed) == len(lines), "every line is `key: value`, and no key comes twice"
        return Done(status, parsed, lines, *capfd.readouterr())

    return run
