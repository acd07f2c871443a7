"""Operands for tests, the same in every process."""

from __future__ import annotations

from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

import dualgemm


def operand(rows: int, k: int, seed: int, layers: int | None = None) -> tuple[Tensor, Tensor]:
    """Codes and scales, both uint8: gloo moves no float8."""
    generator = torch.Generator().manual_seed(seed)
    shape = (rows, k) if layers is None else (layers, rows, k)
    made = dualgemm.quantize(torch.randn(shape, generator=generator), global_scale=1.0)
    return made.codes, made.scales.view(torch.uint8)


def glu_arguments(m: int, n: int, k: int, layers: int | None = None) -> dict[str, Tensor]:
    arguments: dict[str, Tensor] = {}
    for seed, (name, rows) in enumerate((("a", m), ("gate", n), ("up", n))):
        arguments[name], arguments[f"{name}_scales"] = operand(rows, k, seed, layers)
    return arguments


class _Shape(NamedTuple):
    n: int
    k: int


class Nvfp4Down(nn.Module):
    """What GatedMLPParallel asks of an NVFP4Linear."""

    def __init__(self, columns: int, rows: int, bias: bool) -> None:
        super().__init__()
        codes, scales = operand(rows, columns, 4)
        self.register_buffer("w_codes", codes)
        self.register_buffer("w_scales", scales.view(torch.float8_e4m3fn))
        self.register_buffer("bias", torch.arange(float(rows)) if bias else None)
        self.shape, self.in_features = _Shape(rows, columns), columns

    def forward(self, x: Tensor) -> Tensor:
        return dualgemm.linear(x, self.w_codes, w_scales=self.w_scales, bias=self.bias)


class Gated(nn.Module):
    """What GatedMLPParallel asks of a module, and no more."""

    def __init__(
        self, hidden: int, intermediate: int, *, bias: bool = False, swizzled: bool = False, nvfp4_down: bool = False
    ) -> None:
        super().__init__()
        for seed, name in ((1, "gate"), (2, "up")):
            codes, scales = operand(intermediate, hidden, seed)
            scales = scales.view(torch.float8_e4m3fn)
            self.register_buffer(f"{name}_codes", codes)
            self.register_buffer(f"{name}_scales", dualgemm.torch.swizzle_scales(scales) if swizzled else scales)
            self.register_buffer(f"alpha_{name}", torch.tensor([0.125]))
        self.intermediate_size = intermediate
        self.activation = "silu"
        self.batch_invariant = True
        if nvfp4_down:
            self.down: nn.Module = Nvfp4Down(intermediate, hidden, bias)
            return
        self.down = nn.Linear(intermediate, hidden, bias=bias)
        generator = torch.Generator().manual_seed(3)
        with torch.no_grad():
            self.down.weight.copy_(torch.randint(-2, 3, self.down.weight.shape, generator=generator))
            if bias:
                self.down.bias.copy_(torch.randint(-2, 3, self.down.bias.shape, generator=generator))

    def hidden(self, x: Tensor, **rows: Any) -> Tensor:
        return dualgemm.glu(
            x,
            self.gate_codes,
            self.up_codes,
            gate_scales=self.gate_scales,
            up_scales=self.up_scales,
            alpha_gate=self.alpha_gate,
            alpha_up=self.alpha_up,
            activation=self.activation,
            batch_invariant=True,
            **rows,
        )

    def forward(self, x: Tensor) -> Tensor:
        return self.down(self.hidden(x))


def same_bits(x: Tensor, y: Tensor) -> bool:
    x, y = x.contiguous(), y.contiguous()
    return x.shape == y.shape and x.dtype == y.dtype and torch.equal(x.view(torch.uint8), y.view(torch.uint8))
