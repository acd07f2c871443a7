"""The names that arguments take, for type checkers. Made by write_names.py from enums.h; not to be edited."""

from __future__ import annotations

from typing import Literal

Activation = Literal["silu", "clamped_swiglu", "swiglu_oai", "gelu_erf", "gelu_tanh", "relu2", "sigmoid", "identity"]
Strategy = Literal[
    "auto",
    "reference",
    "two_pass",
    "cached",
    "graph",
    "streams",
    "fused_epilogue",
    "fused_sequential",
    "fused",
    "fp8",
    "cutlass",
]
ScaleLayout = Literal["auto", "linear", "swizzled_128x4"]
OwnLayout = Literal["linear", "swizzled_128x4"]
"""The layouts of scales that are made, not read."""
