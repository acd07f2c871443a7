"""The GPU MODE challenge and a harness for it: `python -m dualgemm.gpumode {test,benchmark,leaderboard,profile} FILE`.

Needs torch alone. The task and the strategies are the files of python/ (see `submissions`); nothing is repeated here.
"""

from __future__ import annotations

from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING

from .submissions import FOLDER

if TYPE_CHECKING:  # the harness's own process computes nothing, and starts without torch
    from torch import Tensor

    from .submissions.task import input_t

__all__ = ["STRATEGIES", "custom_kernel", "file_of"]

STRATEGIES = {
    "baseline": "submission",
    "cached": "submission_v2",
    "graph": "submission_best",
    "streams": "submission_streams",
    "triton": "submission_triton",
    "fused": "submission_fused",
}


def file_of(strategy: str) -> Path:
    """The submission's file. ValueError for an unknown strategy."""
    if strategy not in STRATEGIES:
        raise ValueError(f"strategy: {strategy}; must be one of {', '.join(STRATEGIES)}")
    return FOLDER / f"{STRATEGIES[strategy]}.py"


def custom_kernel(data: input_t, strategy: str = "fused") -> Tensor:
    """The challenge's 10-tuple by one of STRATEGIES: writes and returns c, fp16 [M, N, L]."""
    return import_module(f".submissions.{file_of(strategy).stem}", __name__).custom_kernel(data)
