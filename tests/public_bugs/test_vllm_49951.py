"""vllm#49951: 1856 columns over 8 ranks are 232 each, which tears a group of 16."""

import types

import pytest
from situations import dg

torch = pytest.importorskip("torch")


def test_a_torn_group_is_refused_by_name() -> None:
    from dualgemm.distributed import GatedMLPParallel

    mlp = dg.GatedMLP(64, 1856, dg.nn.NVFP4Linear(1856, 64))
    mesh = types.SimpleNamespace(ndim=1, size=lambda: 8, get_group=lambda: None)
    with pytest.raises(dg.InvalidArgument, match="1856 columns; must be a multiple of 16 for each of 8 processes"):
        GatedMLPParallel()._apply(mlp, mesh)
    assert mlp.gate_codes.shape == (1856, 32)  # nothing was taken apart
