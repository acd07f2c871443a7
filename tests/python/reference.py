"""NVFP4 gated products in float64 with NumPy alone, and how far a float32 accumulation may be from them."""

from __future__ import annotations

import numpy as np

E2M1 = np.array([0, 0.5, 1, 1.5, 2, 3, 4, 6, -0.0, -0.5, -1, -1.5, -2, -3, -4, -6])
_byte = np.arange(256)
_exponent, _mantissa = (_byte >> 3) & 15, _byte & 7
E4M3 = np.where(_exponent == 0, _mantissa / 512.0, (1 + _mantissa / 8.0) * 2.0 ** (_exponent - 7.0))
E4M3[0x7F] = E4M3[0xFF] = np.nan  # the sign of a block scale is ignored, as the hardware does

# Relative rounding error and smallest step of the output types.
OUTPUT = {"float16": (2.0**-11, 2.0**-25), "bfloat16": (2.0**-8, 2.0**-134), "float32": (2.0**-24, 2.0**-150)}


def decode(codes: np.ndarray, scales: np.ndarray) -> np.ndarray:
    """Codes [..., K/2], linear scales [..., K/16], both uint8, to float64 [..., K]."""
    pairs = np.stack([E2M1[codes & 15], E2M1[codes >> 4]], axis=-1).reshape(*codes.shape[:-1], -1)
    return pairs * np.repeat(E4M3[scales], 16, axis=-1)


def swizzle(scales: np.ndarray) -> np.ndarray:
    """Linear [rows, K/16] to flat 128x4, element by element from the formula of docs/formats.md."""
    rows, columns = scales.shape
    tiles = -(-columns // 4)
    flat = np.zeros(-(-rows // 128) * tiles * 512, np.uint8)
    r, s = np.indices(scales.shape)
    flat[(r // 128 * tiles + s // 4) * 512 + r % 32 * 16 + r % 128 // 32 * 4 + s % 4] = scales
    return flat


def sigmoid(x: np.ndarray) -> np.ndarray:
    return 1 / (1 + np.exp(-x))


def _gelu_erf(x: np.ndarray) -> np.ndarray:
    from math import erf

    return 0.5 * x * (1 + np.vectorize(erf)(x / np.sqrt(2)))


# Name -> function of the gate and the largest slope it has.
ACTIVATIONS = {
    "silu": (lambda g: g * sigmoid(g), 1.1),
    "gelu_erf": (_gelu_erf, 1.13),
    "gelu_tanh": (lambda g: 0.5 * g * (1 + np.tanh(np.sqrt(2 / np.pi) * (g + 0.044715 * g**3))), 1.13),
    "sigmoid": (sigmoid, 0.25),
    "identity": (lambda g: g, 1.0),
}


def product(a: np.ndarray, w: np.ndarray, alpha: float) -> tuple[np.ndarray, np.ndarray]:
    """alpha * a @ w.T, and how far one float32 addition and multiplication after the other may be from it."""
    exact = alpha * (a @ w.T)
    weight = abs(alpha) * (np.abs(a) @ np.abs(w).T)
    return exact, weight * (a.shape[-1] + 8) * 2.0**-24


def glu(
    a: np.ndarray, gate: np.ndarray, up: np.ndarray, alpha_gate: float, alpha_up: float, activation: str, dtype: str
) -> tuple[np.ndarray, np.ndarray]:
    """D in float64 and the bound for each element of D in ``dtype``."""
    function, slope = ACTIVATIONS[activation]
    (g, g_error), (u, u_error) = product(a, gate, alpha_gate), product(a, up, alpha_up)
    h = function(g)
    d = h * u
    h_error = slope * g_error + 1e-6 * np.abs(h) + 1e-30  # the activation itself in float32
    relative, smallest = OUTPUT[dtype]
    bound = h_error * np.abs(u) + np.abs(h) * u_error + h_error * u_error
    return d, bound + relative * (np.abs(d) + bound) + smallest + 1e-37
