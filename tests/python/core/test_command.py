"""The command that the package brings."""

from __future__ import annotations

import os
import pathlib
import signal
import struct
import subprocess
import sys
import time

import dualgemm
import pytest
from dualgemm import _command

pytestmark = pytest.mark.skipif(not _command.PROGRAM.exists(), reason="the package was built without the command")


def run(*arguments: str, **more: object) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, "-P", "-m", "dualgemm", *arguments], capture_output=True, text=True, **more)  # type: ignore[call-overload, no-any-return]


def test_it_is_the_program_of_this_version() -> None:
    found = run("--version")
    assert (found.returncode, found.stderr) == (0, "")
    assert dualgemm.__version__ in found.stdout
    assert run("info").returncode == 0


def test_the_console_command() -> None:
    command = pathlib.Path(sys.executable).parent / "dualgemm"
    if not command.exists():
        pytest.skip("the package is not installed")
    assert subprocess.run([command, "--version"], capture_output=True, text=True).stdout == run("--version").stdout


def test_exit_codes_are_its_own(tmp_path: pathlib.Path) -> None:
    assert run("no-such-command").returncode == 2
    file = tmp_path / "m.safetensors"
    file.write_bytes(struct.pack("<Q", 5) + b"{bad}")
    found = run("validate", str(file))
    assert found.returncode == 1 and str(file) in found.stderr
    assert run("make-layer", "--out", str(tmp_path / "layer.safetensors"), "--n", "32", "--k", "32").returncode == 0
    assert run("validate", str(tmp_path / "layer.safetensors")).returncode == 0


def test_signals_meet_it() -> None:
    read, write = os.pipe()
    with subprocess.Popen(
        [sys.executable, "-P", "-m", "dualgemm", "bench", "--m", "512", "--n", "8192", "--k", "8192", "--seconds", "60"],
        stdout=write,
        stderr=write,
    ) as process:
        os.close(write)
        os.read(read, 1)  # it has begun to talk: the handlers are there
        time.sleep(0.05)
        process.send_signal(signal.SIGTERM)
        assert process.wait(60) in (-signal.SIGTERM, 128 + signal.SIGTERM)
    os.close(read)
