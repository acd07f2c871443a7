"""The files of the strategy fused with torch: compiled, loaded and asked as a harness does; and what the
static guard of the package index says. Needs no GPU; launches and kernels: tests/kernels/submission.
"""

import json
import os
import pathlib
import shutil
import subprocess
import sys

import pytest

TREE = pathlib.Path(__file__).resolve().parents[3]
ARCHITECTURES = ("sm_100a", "sm_90a")
NVCC = shutil.which("nvcc") or shutil.which("nvcc", path="/usr/local/cuda/bin")

# In a process of its own: what is compiled stays loaded.
BEGIN = '''
import sys
import types

import torch

sys.modules["task"] = types.SimpleNamespace(input_t=tuple, output_t=torch.Tensor)
import submission


def data(m, n, k, l, a_bytes=0):
    def lying(*shape, dtype=torch.uint8):
        return torch.zeros(l, *shape, dtype=dtype)

    def scales(rows):
        return lying(-(-rows // 128), -(-k // 64), 32, 4, 4).permute(3, 4, 1, 5, 2, 0)

    def linear(rows):
        return lying(rows, k // 16).permute(1, 2, 0)

    rows = [lying(rows, k // 2 + more).permute(1, 2, 0) for rows, more in ((m, a_bytes), (n, 0), (n, 0))]
    return (*rows, linear(m), linear(n), linear(n), scales(m), scales(n), scales(n),
            lying(m, n, dtype=torch.float16).permute(1, 2, 0))


def error(call):
    try:
        submission.custom_kernel(call)
    except (RuntimeError, ValueError) as caught:
        return f"{type(caught).__name__}: {caught}"
    return ""
'''

CHECKS = (
    BEGIN
    + '''
def changed(at, change):
    call = list(data(256, 512, 256, 2))
    call[at] = change(call[at])
    return error(tuple(call))


print("whole", error(data(256, 512, 256, 1)))
print("batches", error(data(129, 200, 320, 3)))
print("k", error(data(256, 512, 272, 1)))
print("a", changed(0, lambda a: a.contiguous()))
print("a type", changed(0, lambda a: a.short()))
print("b2", changed(2, lambda b: b[:-1]))
print("sfa", changed(6, lambda s: s.contiguous()))
print("sfb1", changed(7, lambda s: s[:, :, :1]))
print("c", changed(9, lambda c: c.float()))
'''
)

# The checks pass on a GPU alone, so the call is entered as checked.
LAUNCHES = (
    BEGIN
    + '''
import ctypes

torch.cuda.current_device = lambda: 0
call = data(256, 512, 256, 1)
print("error", error(call))
workspace_bytes = ctypes.c_int64()
assert not submission._LIBRARY.dual_gemm_workspace_bytes(256, 512, 256, 1, ctypes.byref(workspace_bytes))
print("workspace", workspace_bytes.value)
submission._CALLS[call[0].shape, call[9].shape] = 256, 512, 256, 1, workspace_bytes.value
assert submission.custom_kernel(call) is call[9]
print("addresses", *(tensor.data_ptr() for tensor in call), flush=True)
'''
)


def make(arch: str, out: pathlib.Path) -> pathlib.Path:
    subprocess.run(
        [sys.executable, TREE / "scripts/make_submission", "--arch", arch, "--out", out], check=True, stdout=subprocess.DEVNULL
    )
    return out


@pytest.fixture(scope="module", params=ARCHITECTURES)
def compiled(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> tuple[str, pathlib.Path]:
    """An architecture, and a folder with its file, which what a test compiles stays in."""
    for command, found in (("nvcc", NVCC), ("ninja", shutil.which("ninja"))):
        if found is None:
            pytest.skip(f"{command} is not here")
    torch = pytest.importorskip("torch", reason="torch is not here")
    if not hasattr(torch, "float4_e2m1fn_x2"):
        pytest.skip(f"torch {torch.__version__} has no float4_e2m1fn_x2")
    folder = tmp_path_factory.mktemp(request.param)
    make(request.param, folder / "submission.py")
    return request.param, folder


def run(program: str, folder: pathlib.Path, **more: str) -> list[str]:
    """The lines that it prints."""
    environment = dict(
        os.environ,
        TORCH_EXTENSIONS_DIR=str(folder / "extensions"),
        CUDA_VISIBLE_DEVICES="",
        PATH=f"{pathlib.Path(NVCC or '').parent}:{os.environ['PATH']}",
        **more,
    )
    done = subprocess.run(
        [sys.executable, "-B", "-c", program],
        cwd=folder,
        env=environment,
        text=True,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


def test_compiles_when_imported_and_checks_its_operands(compiled: tuple[str, pathlib.Path]) -> None:
    said = dict(line.replace("a type", "a_type").split(" ", 1) for line in run(CHECKS, compiled[1]))
    # What the library says where there is no GPU, or no driver either.
    no_gpu = ("no CUDA-capable device is detected", "CUDA driver version is insufficient for CUDA runtime version")
    for what, extents in (("whole", "(256, 512, 256, 1)"), ("batches", "(129, 200, 320, 3)")):
        assert said[what] in [f"RuntimeError: nvfp4_dual_gemm {extents}: {reason}" for reason in no_gpu]
    assert said["k"] == "RuntimeError: nvfp4_dual_gemm (256, 512, 272, 1): k must be a multiple of 64"
    assert said["a"] == "ValueError: a: strides (256, 2, 1); it must lie as (2, 256, 128)"
    assert said["a_type"] == "ValueError: a: torch.int16; it must have elements of one byte"
    assert said["b2"].startswith("ValueError: b2: ")
    assert said["sfa"].startswith("ValueError: sfa_permuted: (32, 4, 2, 4, 4, 2), strides ")
    assert said["sfb1"].startswith("ValueError: sfb1_permuted: (32, 4, 1, 4, 4, 2), ")
    assert said["c"] == "ValueError: c: (256, 512, 2) of torch.float32; it must be (256, 512, 2) of float16"


def test_launches_on_a_gpu_that_is_not_there(compiled: tuple[str, pathlib.Path]) -> None:
    """Which tensor goes where, the shared memory that is asked for, the default queue."""
    arch, folder = compiled
    fake = folder / "fake_cuda.so"
    include = pathlib.Path(NVCC or "").resolve().parents[1] / "include"
    source = pathlib.Path(__file__).with_name("fake_cuda.cpp")
    subprocess.run(["c++", "-shared", "-fPIC", f"-I{include}", "-o", fake, source], check=True)
    major, sms, maps = ("10", "148", "6") if arch == "sm_100a" else ("9", "132", "5")
    printed = run(LAUNCHES, folder, LD_PRELOAD=str(fake), FAKE_MAJOR=major, FAKE_SMS=sms, FAKE_MAPS=maps)
    lines = [line.split() for line in printed if line]
    said = {words[0]: words[1:] for words in lines}
    assert " ".join(said["error"]) == "ValueError: a: on cpu; it must be on the current GPU"
    assert said["entry"] == ["cuTensorMapEncodeTiled", "12000"]
    launches = [list(map(int, words[1:])) for words in lines if words[0] == "launch"]
    allowed = [int(words[2]) for words in lines if words[0] == "attribute"]
    assert len(allowed) == (2 if arch == "sm_100a" else 3) and launches[-1][2] in allowed  # one for each kernel
    assert all(default_queue == 1 for _, _, _, default_queue, *_ in launches)
    a, b1, b2, _, _, _, sfa, sfb1, sfb2, _ = map(int, said["addresses"])
    if arch == "sm_100a":
        assert said["workspace"] == ["0"] and len(launches) == 1
        assert launches[0][4:] == [a, b1, b2, sfa, sfb1, sfb2]
    else:
        assert said["workspace"] == [str(256 * 256 * 2)] and len(launches) == 2
        assert launches[1][5:] == [b1, b2, sfb1, sfb2]  # behind decoded A


@pytest.mark.parametrize("arch", ARCHITECTURES)
def test_the_guard_calls_it_valid(arch: str, tmp_path: pathlib.Path) -> None:
    pytest.importorskip("kernelguard", reason="kernelguard is not here")
    text = make(arch, tmp_path / "submission.py").read_text()
    done = subprocess.run(
        [sys.executable, "-m", "kernelguard", "--api-mode"],
        input=text,
        text=True,
        cwd=tmp_path,
        stdout=subprocess.PIPE,
        check=True,
    )
    verdict = json.loads(done.stdout)
    assert verdict["classification"] == "valid"
    assert not verdict["should_filter"] and not verdict["matched_patterns"]
