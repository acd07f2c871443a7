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
PROGRAM = '''
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


def make(arch: str, out: pathlib.Path) -> pathlib.Path:
    subprocess.run([sys.executable, TREE / "scripts/make_submission", "--arch", arch, "--out", out],
                   check=True, stdout=subprocess.DEVNULL)
    return out


@pytest.mark.skipif(NVCC is None, reason="nvcc is not here")
@pytest.mark.parametrize("arch", ARCHITECTURES)
def test_compiles_when_imported_and_checks_its_operands(arch: str, tmp_path: pathlib.Path) -> None:
    torch = pytest.importorskip("torch", reason="torch is not here")
    if not hasattr(torch, "float4_e2m1fn_x2"):
        pytest.skip(f"torch {torch.__version__} has no float4_e2m1fn_x2")
    make(arch, tmp_path / "submission.py")
    environment = dict(os.environ, TORCH_EXTENSIONS_DIR=str(tmp_path / "extensions"), CUDA_VISIBLE_DEVICES="",
                       PATH=f"{pathlib.Path(NVCC or '').parent}:{os.environ['PATH']}")
    done = subprocess.run([sys.executable, "-B", "-c", PROGRAM], cwd=tmp_path, env=environment, text=True,
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    assert done.returncode == 0, done.stderr
    said = dict(line.split(" ", 1) for line in done.stdout.replace("a type", "a_type").splitlines())
    # What the library says where there is no GPU, or no driver either.
    no_gpu = ("no CUDA-capable device is detected",
              "CUDA driver version is insufficient for CUDA runtime version")
    for what, extents in (("whole", "(256, 512, 256, 1)"), ("batches", "(129, 200, 320, 3)")):
        assert said[what] in [f"RuntimeError: nvfp4_dual_gemm {extents}: {reason}" for reason in no_gpu]
    assert said["k"] == "RuntimeError: nvfp4_dual_gemm (256, 512, 272, 1): k must be a multiple of 64"
    assert said["a"] == "ValueError: a: strides (256, 2, 1); it must lie as (2, 256, 128)"
    assert said["a_type"] == "ValueError: a: torch.int16; it must have elements of one byte"
    assert said["b2"].startswith("ValueError: b2: ")
    assert said["sfa"].startswith("ValueError: sfa_permuted: (32, 4, 2, 4, 4, 2), strides ")
    assert said["sfb1"].startswith("ValueError: sfb1_permuted: (32, 4, 1, 4, 4, 2), ")
    assert said["c"] == "ValueError: c: (256, 512, 2) of torch.float32; it must be (256, 512, 2) of float16"


@pytest.mark.parametrize("arch", ARCHITECTURES)
def test_the_guard_calls_it_valid(arch: str, tmp_path: pathlib.Path) -> None:
    pytest.importorskip("kernelguard", reason="kernelguard is not here")
    text = make(arch, tmp_path / "submission.py").read_text()
    done = subprocess.run([sys.executable, "-m", "kernelguard", "--api-mode"], input=text, text=True,
                          cwd=tmp_path, stdout=subprocess.PIPE, check=True)
    verdict = json.loads(done.stdout)
    assert verdict["classification"] == "valid"
    assert not verdict["should_filter"] and not verdict["matched_patterns"]
