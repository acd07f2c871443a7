"""Random operands of the products, as tensors and decoded in float64."""

from __future__ import annotations

import dataclasses
import os

import dualgemm as dg
import dualgemm.torch  # noqa: F401  registers torch.ops.dualgemm
import numpy as np
import pytest
import reference
import torch

# Where the tests run: "cpu", or with a GPU "cuda" (scripts/gpu_check runs them once for each).
DEVICE = os.environ.get("DUALGEMM_TEST_DEVICE", "cpu")
torch.set_default_device(DEVICE)
# Wide rows: a GPU's kernels read 16 bits. FINE: the type with the most of them, for values that are compared closely.
ROWS = [torch.float16, torch.bfloat16, *([torch.float32] if DEVICE == "cpu" else [])]
FINE = ROWS[-1] if DEVICE == "cpu" else torch.float16
only_on_cpu = pytest.mark.skipif(DEVICE != "cpu", reason="about the CPU")
only_on_cuda = pytest.mark.skipif(DEVICE != "cuda", reason="about a GPU")

DTYPE_NAMES = {torch.float16: "float16", torch.bfloat16: "bfloat16", torch.float32: "float32"}


def codes(shape: tuple[int, ...], random: np.random.Generator) -> torch.Tensor:
    return torch.from_numpy(random.integers(0, 256, shape, np.uint8)).to(DEVICE)


def scales(shape: tuple[int, ...], random: np.random.Generator) -> torch.Tensor:
    """Positive, zeros and subnormals too, not too far apart."""
    return torch.from_numpy(random.integers(0, 0x40, shape, np.uint8)).to(DEVICE).view(torch.float8_e4m3fn)


def as_numpy(tensor: torch.Tensor) -> np.ndarray:
    if tensor.dtype in (torch.float8_e4m3fn, torch.float4_e2m1fn_x2):
        tensor = tensor.view(torch.uint8)
    return tensor.cpu().numpy()


def decoded(tensor: torch.Tensor, scale: torch.Tensor | None) -> np.ndarray:
    """float64 [..., K] of codes with linear scales, or of a float tensor."""
    return tensor.double().cpu().numpy() if scale is None else reference.decode(as_numpy(tensor), as_numpy(scale))


@dataclasses.dataclass
class Operands:
    a: torch.Tensor
    a_scales: torch.Tensor | None
    gate: torch.Tensor
    gate_scales: torch.Tensor
    up: torch.Tensor
    up_scales: torch.Tensor
    alpha_gate: torch.Tensor
    alpha_up: torch.Tensor

    def named(self) -> dict[str, torch.Tensor | None]:
        return {field.name: getattr(self, field.name) for field in dataclasses.fields(self)}

    def positional(self) -> tuple[torch.Tensor | None, ...]:
        """As torch.ops.dualgemm.glu takes them, scales as bytes: opcheck cannot multiply float8."""
        as_bytes = lambda t: None if t is None else t.view(torch.uint8)
        return (
            self.a,
            as_bytes(self.a_scales),
            self.gate,
            as_bytes(self.gate_scales),
            self.up,
            as_bytes(self.up_scales),
            self.alpha_gate,
            self.alpha_up,
        )

    def check(self, d: torch.Tensor, activation: str = "silu") -> None:
        """Every element of ``d`` within its bound."""
        exact, bound = reference.glu(
            decoded(self.a, self.a_scales),
            decoded(self.gate, self.gate_scales),
            decoded(self.up, self.up_scales),
            float(self.alpha_gate),
            float(self.alpha_up),
            activation,
            DTYPE_NAMES[d.dtype],
        )
        wrong = np.abs(d.double().cpu().numpy() - exact) > bound
        assert not wrong.any(), (
            f"{wrong.sum()} of {wrong.size} elements beyond their bound, the first at {np.argwhere(wrong)[0]}"
        )


def operands(m: int, n: int, k: int, a_dtype: torch.dtype = torch.uint8, seed: int = 0) -> Operands:
    random = np.random.default_rng(seed)
    if a_dtype == torch.uint8:
        a, a_scales = codes((m, k // 2), random), scales((m, k // 16), random)
    else:
        a, a_scales = torch.from_numpy(random.standard_normal((m, k))).to(DEVICE, a_dtype), None
    alpha = 0.5 / np.sqrt(k)
    return Operands(
        a,
        a_scales,
        codes((n, k // 2), random),
        scales((n, k // 16), random),
        codes((n, k // 2), random),
        scales((n, k // 16), random),
        torch.tensor([alpha], dtype=torch.float32),
        torch.tensor([alpha * 0.7], dtype=torch.float32),
    )


def same_bits(x: torch.Tensor, y: torch.Tensor) -> bool:
    return (
        x.dtype == y.dtype
        and x.shape == y.shape
        and torch.equal(x.contiguous().view(torch.uint8), y.contiguous().view(torch.uint8))
    )


__all__ = [
    "DEVICE",
    "Operands",
    "as_numpy",
    "codes",
    "decoded",
    "dg",
    "only_on_cpu",
    "only_on_cuda",
    "operands",
    "same_bits",
    "scales",
]
