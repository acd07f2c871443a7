"""The programs that scripts/test_ptxsim_peers compiles and runs below ``ptxsim exec``."""

from __future__ import annotations

import dataclasses
from typing import Any

NVFP4, F16, CONVOLUTION = "sm120_nvfp4.cu", "sm90_f16.cu", "sm90_convolution.cu"
TUTORIALS = "examples/cute/tutorial"
PLAIN = "blackwell/01_mma_sm100.cu"
ONE_K_TILE = "512 1024 64"  # with more of them the second tutorial deadlocks: ptxsim/docs/evidence.md
WAITS = "    // Wait for loads to SMEM to complete with __syncthreads()\n"
FENCE = (WAITS, f"    cutlass::arch::fence_view_async_shared();\n{WAITS}")


@dataclasses.dataclass(frozen=True)
class Program:
    """``source``: of this folder, or, with a folder before its name, of CUTLASS, as its package has it. ``says``: what the program
    prints when its own comparison held; CUTLASS's tutorials do not say it by their exit status. ``kernel``: part of the name of
    the kernel that must have been launched. ``true_findings``: rules that CUTLASS's own code breaks, with the proof in
    ptxsim/docs/evidence.md; they must be seen. ``edit``: text that stands in the source once, and what takes its place before it is compiled:
    the same without that finding."""

    name: str
    source: str
    target: str
    device: str
    arguments: str
    says: str
    kernel: str = "device_kernel"
    slow: bool = False  # only with --all
    true_findings: frozenset[str] = frozenset()
    edit: tuple[str, ...] = ()

    @property
    def build(self) -> tuple[str, str, tuple[str, ...]]:
        """Programs with equal ones are one binary."""
        return self.source, self.target, self.edit

    @property
    def ours(self) -> bool:
        return "/" not in self.source


def own(name: str, source: str, target: str, device: str, word: str) -> Program:
    return Program(name, source, target, device, word, "right")


def tutorial(name: str, source: str, arguments: str, **more: Any) -> Program:
    return Program(
        name, f"{TUTORIALS}/{source}", "100a", "b200", arguments, "Execution is successful.", "gemm_device", slow=True, **more
    )


def all_of_them() -> list[Program]:
    made = [
        own("NVFP4, cooperative", NVFP4, "120a", "rtx5090", "cooperative"),
        own("NVFP4, ping-pong", NVFP4, "120a", "rtx5090", "ping_pong"),
        own("f16, ping-pong", F16, "90a", "h200", "ping_pong"),
        own("f16, cooperative", F16, "90a", "h200", "cooperative"),
        own("f16, stream-K", F16, "90a", "h200", "stream_k"),
        own("convolution, padded", CONVOLUTION, "90a", "h200", "padded"),
        own("convolution, strides and dilations", CONVOLUTION, "90a", "h200", "strided"),
        own("convolution of single pixels", CONVOLUTION, "90a", "h200", "pixels"),
    ]
    made += [
        tutorial("f16, plain copies", PLAIN, "256 512 128", true_findings=frozenset({"R1"})),
        tutorial("f16, plain copies, mended", PLAIN, "256 512 128", edit=FENCE),
        tutorial("f16, TMA", "blackwell/02_mma_tma_sm100.cu", ONE_K_TILE),
        tutorial("f16, TMA multicast", "blackwell/03_mma_tma_multicast_sm100.cu", "512 1024 128"),
        tutorial("f16, two CTAs", "blackwell/04_mma_tma_2sm_sm100.cu", "512 1024 128"),
        tutorial("f16, epilogue by TMA", "blackwell/05_mma_tma_epi_sm100.cu", "512 1024 128"),
    ]
    return made
