"""The Triton kernels without a GPU: they compile for Hopper and both Blackwells, to the instructions meant; who imports them."""

from __future__ import annotations

import subprocess
import sys

import pytest
from harness import ROOT

pytest.importorskip("triton", reason="Triton is not installed")

COMPILE = """
import sys; sys.path.insert(0, {root!r})
import triton
from triton.compiler import ASTSource
from triton.backends.compiler import GPUTarget
from python import triton_kernels
kernel = getattr(triton_kernels, {kernel!r})
types = {{"a_ptr": {a!r}, "out_ptr": "*fp16", "M": "i32", "N": "i32", "K": "i32", "alpha": "fp32"}}
tile = {tile!r}
signature = {{name: "constexpr" if name in tile else types.get(name, "*u8") for name in kernel.arg_names}}
aligned = {{(i,): [["tt.divisibility", 16]] for i, name in enumerate(kernel.arg_names)
           if name.endswith("_ptr") or name in ("N", "K")}}
made = triton.compile(ASTSource(fn=kernel, signature=signature, constexprs=tile, attrs=aligned),
                      target=GPUTarget("cuda", {target}, 32), options=dict(num_warps={warps}, num_stages=3))
print(made.asm["ptx"])
"""


def ptx(kernel: str, a: str, tile: dict[str, int], target: int, warps: int) -> str:
    code = COMPILE.format(root=str(ROOT), kernel=kernel, a=a, tile=tile, target=target, warps=warps)
    done = subprocess.run([sys.executable, "-c", code], text=True, capture_output=True, timeout=300)
    assert done.returncode == 0, done.stderr[-2000:]
    return done.stdout


def test_hopper_decodes() -> None:
    tile = {"BM": 128, "BN": 128, "BK": 64, "SPLIT": 1, "GROUP": 8}
    assert "wgmma.mma_async" in ptx("dual_gemm", "*fp16", tile, 90, 8)


@pytest.mark.parametrize("target,instruction", [(100, "tcgen05.mma"), (120, "mma.sync")])
def test_blackwell_multiplies_codes(target: int, instruction: str) -> None:
    text = ptx("dual_gemm_scaled", "*u8", {"BM": 128, "BN": 128, "BK": 128}, target, 4)
    assert any(instruction in line and "mxf4nvf4" in line for line in text.splitlines())


def test_the_peer_imports_the_same_kernels() -> None:
    import torch

    if torch.cuda.is_available():
        pytest.skip("there is a GPU: the peer would measure")
    done = subprocess.run(
        [sys.executable, ROOT / "bench" / "peers" / "triton_dual_gemm.py"], text=True, capture_output=True, timeout=120
    )
    assert (done.returncode, done.stderr) == (2, "triton_dual_gemm: there is no GPU\n")


def test_a_cpu_is_refused_in_words() -> None:
    from python import task
    from python.submission_triton import custom_kernel

    with pytest.raises(RuntimeError, match="device: cpu; Triton needs a GPU"):
        custom_kernel(task.generate_input(128, 128, 256, 1, 1, "cpu"))
