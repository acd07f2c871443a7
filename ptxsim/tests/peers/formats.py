"""Values that sums in FP32 have exactly, and formats of 8 and 4 bits."""

from __future__ import annotations

import numpy as np

E2M1 = np.array([0, 0.5, 1, 1.5, 2, 3, 4, 6, 0, -0.5, -1, -1.5, -2, -3, -4, -6])


def integers(random: np.random.Generator, *shape: int) -> np.ndarray:
    return random.integers(-2, 3, shape)


def e4m3(codes: np.ndarray) -> np.ndarray:
    """uint8 without NaN, as float64."""
    exponent, mantissa = (codes >> 3 & 15).astype(int), (codes & 7) / 8.0
    size = np.where(exponent == 0, mantissa * 2.0**-6, (1 + mantissa) * 2.0 ** (exponent - 7))
    return np.where(codes & 128, -size, size)


def e4m3_integers(values: np.ndarray) -> np.ndarray:
    """-2 ... 2 as uint8."""
    table = {0: 0x00, 1: 0x38, 2: 0x40, -1: 0xB8, -2: 0xC0}
    return np.vectorize(table.get)(values).astype(np.uint8)


def e2m1(codes: np.ndarray) -> np.ndarray:
    """uint8 [..., k / 2], the lower half first, as float64 [..., k]."""
    return np.stack([E2M1[codes & 15], E2M1[codes >> 4]], axis=-1).reshape(*codes.shape[:-1], -1)


def scaled(values: np.ndarray, scales: np.ndarray) -> np.ndarray:
    return values * np.repeat(scales, values.shape[-1] // scales.shape[-1], axis=-1)
