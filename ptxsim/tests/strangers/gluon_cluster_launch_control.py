"""Gluon's tutorial 12, its kernel with its sizes, beside sums in float64. Run by pytest in the tutorials' folder.

The tutorial's own test wants every sum of f16 within 1e-5 or 0.1 % of PyTorch's, which holds where both add in one order.
Here a sum may be as far from the exact one as rounding allows in any order: each MMA adds 16 exact products to an f32 and rounds,
or truncates, by at most 2^-23 of what was added up so far, and the result is rounded to f16 once.
"""

from __future__ import annotations

import importlib

import torch

SIZE = 1000
PRODUCTS_OF_AN_MMA = 16


def test_sums() -> None:
    tutorial = importlib.import_module("12-cluster-launch-control")
    torch.manual_seed(1)
    a, b = (torch.randn(SIZE, SIZE, dtype=torch.float16) for _ in range(2))
    c = torch.empty(SIZE, SIZE, dtype=torch.float16)
    tutorial.run_matmul_kernel(a, b, c, use_clc=True)
    exact = a.double() @ b.double()
    magnitude = a.double().abs() @ b.double().abs()
    steps = -(-SIZE // PRODUCTS_OF_AN_MMA)
    bound = steps * 2.0**-23 * magnitude + 2.0**-11 * exact.abs() + 2.0**-25
    wrong = int(((c.double() - exact).abs() > bound).sum())
    assert wrong == 0, f"{wrong} of {c.numel()} sums are farther from those in float64 than rounding allows"
