"""Any shape, dtype, activation and layout, as hypothesis finds them."""

from __future__ import annotations

import pytest
import torch
from operands import dg, only_on_cpu, operands, same_bits

pytest.importorskip("hypothesis", reason="hypothesis is not installed: no random shapes were tried")
import reference
from hypothesis import given, settings
from hypothesis import strategies as st

pytestmark = only_on_cpu


@settings(max_examples=80, deadline=None)
@given(
    m=st.integers(1, 40),
    n=st.integers(1, 70),
    blocks=st.integers(1, 12),
    seed=st.integers(0, 99),
    a_dtype=st.sampled_from([torch.uint8, torch.float16, torch.bfloat16, torch.float32]),
    out_dtype=st.sampled_from([None, torch.float16, torch.bfloat16, torch.float32]),
    activation=st.sampled_from(sorted(reference.ACTIVATIONS)),
    swizzled=st.booleans(),
    alternating=st.booleans(),
)
def test_any(
    m: int,
    n: int,
    blocks: int,
    seed: int,
    a_dtype: torch.dtype,
    out_dtype: torch.dtype | None,
    activation: str,
    swizzled: bool,
    alternating: bool,
) -> None:
    one = operands(m, n, 16 * blocks, a_dtype, seed)
    d = dg.glu(**one.named(), out_dtype=out_dtype, activation=activation)
    one.check(d, activation)
    changed = one.named()
    if alternating:
        both = torch.stack([one.gate, one.up], dim=1)
        changed["gate"], changed["up"] = both[:, 0], both[:, 1]
    if swizzled:
        for name in ("a_scales", "gate_scales", "up_scales"):
            if changed[name] is not None:
                changed[name] = dg.swizzle_scales(changed[name])
    assert same_bits(d, dg.glu(**changed, out_dtype=out_dtype, activation=activation))
