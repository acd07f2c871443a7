"""What a type checker knows of the package through `import dualgemm`, as a user of it has that."""

from __future__ import annotations

import importlib.util
import pathlib
import re
import subprocess
import sys
from typing import get_args

import pytest

import dualgemm as dg
from dualgemm._library import parse
from dualgemm._names import Activation, Strategy

ROOT = pathlib.Path(__file__).parents[3]
USE = """\
import torch
import dualgemm as dg
q = dg.quantize(torch.randn(2, 64))
reveal_type(q.codes)
reveal_type(dg.glu(q.codes, q.codes, q.codes, a_scales=q.scales, gate_scales=q.scales, up_scales=q.scales))
reveal_type(dg.Weights.from_tensors(q.codes, q.scales, q.codes, q.scales))
reveal_type(dg.GatedMLP(64, 32, torch.nn.Identity()))
reveal_type(dg.open_checkpoint("x"))
reveal_type(dg.plan(1, 1, 16))
dg.glu(q.codes)
dg.glus
dg.nn.finalize(torch.nn.Identity())
dg.distributed.dispatch
dg.plan(1, 1, 16, activation="swish")
"""
TYPES = [
    "torch._tensor.Tensor",
    "torch._tensor.Tensor",
    "dualgemm.weights.Weights",
    "dualgemm.nn.GatedMLP",
    "dualgemm._opened.Checkpoint",
    "dualgemm._plan.Plan",
]


def test_all_that_is_promised_is_there() -> None:
    assert sorted(set(dg.__all__)) == sorted(dg.__all__) and set(dg._IN_TORCH) < set(dg.__all__)
    assert all(getattr(dg, name) is not None for name in dg.__all__)
    with pytest.raises(AttributeError, match="glus"):
        dg.glus  # noqa: B018


@pytest.mark.parametrize("what,names", [("activation", Activation), ("strategy", Strategy)])
def test_names_are_those_of_the_library(what: str, names: object) -> None:
    with pytest.raises(dg.InvalidArgument) as caught:
        parse(what, "none of them")
    assert sorted(caught.value.rule.removeprefix("must be one of ").split(", ")) == sorted(get_args(names))


@pytest.mark.skipif(importlib.util.find_spec("mypy") is None, reason="no mypy")
def test_names_have_types(tmp_path: pathlib.Path) -> None:
    (tmp_path / "use.py").write_text(USE)
    done = subprocess.run(
        [sys.executable, "-P", "-m", "mypy", "--config-file", str(ROOT / "pyproject.toml"), str(tmp_path / "use.py")],
        capture_output=True,
        text=True,
        check=False,
        cwd=ROOT,
    )
    assert re.findall(r'Revealed type is "([\w.]+)"', done.stdout) == TYPES, done.stdout + done.stderr
    lines = {int(line) for line in re.findall(r"use\.py:(\d+): error", done.stdout)}
    assert lines == {10, 11, 14}, done.stdout
