"""The pytest plug-in, on CuTe DSL's kernels: a right one passes, a race fails with the line of the source, a baseline lets it pass."""

import json
import os
import subprocess
import sys

import pytest

pytest.importorskip("cutlass.cute", reason="needs the package nvidia-cutlass-dsl", exc_type=ImportError)

TESTS = '''
import cutlass
import numpy as np
import ptxsim.cute
import pytest
from cutlass import cute


@cute.kernel
def double_words(x: cute.Tensor, y: cute.Tensor):
    at = cute.arch.block_idx()[0] * 64 + cute.arch.thread_idx()[0]
    y[at] = 2 * x[at]


@cute.kernel
def collide_words(x: cute.Tensor, y: cute.Tensor):
    thread = cute.arch.thread_idx()[0]
    y[thread % 4] = x[thread]  # each block, the same words


@cute.jit
def double(x: cute.Pointer, y: cute.Pointer, count: cutlass.Constexpr):
    layout = cute.make_layout(count)
    double_words(cute.make_tensor(x, layout), cute.make_tensor(y, layout)).launch(grid=[count // 64, 1, 1], block=[64, 1, 1])


@cute.jit
def collide(x: cute.Pointer, y: cute.Pointer):
    x, y = cute.make_tensor(x, cute.make_layout(64)), cute.make_tensor(y, cute.make_layout(4))
    collide_words(x, y).launch(grid=[2, 1, 1], block=[64, 1, 1])


@pytest.mark.ptxsim(device="h100")
@pytest.mark.parametrize("dtype", ["float32", "int32"])
def test_right(dtype):
    values = np.arange(256).astype(dtype)
    x, y = ptxsim.cute.array(values), ptxsim.cute.array(np.zeros_like(values))
    double(x.pointer(), y.pointer(), 256)
    np.testing.assert_array_equal(y.numpy(), 2 * values)


@pytest.mark.ptxsim(device="b200")
def test_race():
    x, y = ptxsim.cute.array(np.arange(64, dtype=np.float32)), ptxsim.cute.array(np.zeros(4, np.float32))
    collide(x.pointer(), y.pointer())


@pytest.mark.ptxsim
def test_of_no_type():
    ptxsim.cute.array(np.zeros(4, complex)).pointer()
'''


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "test_kernels.py").write_text(TESTS)
    return tmp_path


def run(folder, *arguments):
    command = [sys.executable, "-P", "-m", "pytest", "-q", "-p", "no:cacheprovider", "--rootdir", folder, *arguments, folder]
    return subprocess.run(
        [*map(str, command)], capture_output=True, text=True, cwd=folder, env=os.environ | {"HOME": str(folder)}
    )


def line_of(text):
    return 1 + [text in line for line in TESTS.splitlines()].index(True)


def test_findings_fail_and_baselines_know_them(folder):
    baseline = folder / "baseline.json"
    done = run(folder, "--ptxsim-write-baseline", baseline)
    assert "2 failed, 2 passed" in done.stdout, done.stdout
    line = line_of("y[thread % 4]")
    assert f"test_kernels.py:{line}" in done.stdout and "[R17]" in done.stdout, done.stdout
    assert "dtype complex128: must be one of float16" in done.stdout, done.stdout
    entries = json.loads(baseline.read_text())
    assert [(entry["rule"], entry["source"]) for entry in entries] == [("R17", f"test_kernels.py:{line}")]
    done = run(folder, "--ptxsim-baseline", baseline)
    assert "1 failed, 3 passed" in done.stdout, done.stdout
