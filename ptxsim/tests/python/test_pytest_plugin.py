"""The pytest plug-in, on Triton's kernels: a right one passes, a race fails with the line of the source, a baseline lets it pass."""

import json
import os
import subprocess
import sys

import pytest

triton = pytest.importorskip("triton")
pytest.importorskip("triton.backends.nvidia.driver")

TESTS = '''
import numpy as np
import ptxsim.triton
import pytest
import triton
import triton.language as tl


@triton.jit
def double(x, y, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(y + at, 2 * tl.load(x + at, mask=at < n, other=0.0), mask=at < n)


@triton.jit
def collide(x, y, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    tl.store(y + at % 4, tl.load(x + at))  # each block, the same words


@pytest.mark.ptxsim(device="h100")
def test_right():
    values = np.arange(1000, dtype=np.float32)
    x, y = ptxsim.triton.array(values), ptxsim.triton.array(np.zeros_like(values))
    double[(4,)](x, y, 1000, BLOCK=256)
    np.testing.assert_array_equal(y.numpy(), 2 * values)


@pytest.mark.ptxsim(device="h100")
def test_race():
    x, y = ptxsim.triton.array(np.arange(64, dtype=np.float32)), ptxsim.triton.array(np.zeros(4, np.float32))
    collide[(2,)](x, y, BLOCK=64)


@pytest.mark.ptxsim
def test_wrong():
    assert 1 == 2


def test_elsewhere():
    pass
'''


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "test_kernels.py").write_text(TESTS)
    return tmp_path


def run(folder, *arguments):
    command = [
        sys.executable,
        "-P",
        "-m",
        "pytest",
        "-q",
        "-p",
        "no:cacheprovider",
        "--rootdir",
        folder,
        *map(str, arguments),
        folder,
    ]
    return subprocess.run(command, capture_output=True, text=True, cwd=folder, env=os.environ | {"HOME": str(folder)})


def line_of(text):
    return 1 + [text in line for line in TESTS.splitlines()].index(True)


def test_findings_fail_and_baselines_know_them(folder):
    baseline = folder / "baseline.json"
    done = run(folder, "--ptxsim-write-baseline", baseline)
    assert "2 failed, 2 passed" in done.stdout, done.stdout
    assert f"test_kernels.py:{line_of('tl.store(y + at % 4')}" in done.stdout and "[R17]" in done.stdout
    assert "assert 1 == 2" in done.stdout
    entries = json.loads(baseline.read_text())
    assert [(entry["rule"], entry["kernel"]) for entry in entries] == [("R17", "collide")] and entries[0]["reason"]
    done = run(folder, "--ptxsim-baseline", baseline)
    assert "1 failed, 3 passed" in done.stdout, done.stdout
