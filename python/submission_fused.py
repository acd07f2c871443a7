"""Fused: the library's operator, one kernel for products and activation. Needs the package dualgemm."""

import dualgemm.torch as dg

try:
    from task import input_t, output_t
except ImportError:
    from .task import input_t, output_t


def custom_kernel(data: input_t) -> output_t:
    """The 10-tuple of task.py; returns its c, written. Batches lead in memory: these permutes are views."""
    a, b1, b2, _, _, _, sfa_permuted, sfb1_permuted, sfb2_permuted, c = data
    gate, up, out = (x.permute(2, 0, 1) for x in (b1, b2, c))
    dg.glu(a.permute(2, 0, 1), gate, up, a_scales=sfa_permuted, gate_scales=sfb1_permuted, up_scales=sfb2_permuted, out=out)
    return c
