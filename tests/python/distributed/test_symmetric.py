"""Sums by torch's symmetric memory: where they are not to be had. scripts/multi_gpu_check runs them on GPUs."""

from __future__ import annotations

import logging
from types import SimpleNamespace
from typing import Any
from unittest.mock import patch

import pytest
import torch
import torch.distributed as dist

from dualgemm.distributed import _symmetric
from dualgemm.distributed._symmetric import SymmetricSums, sums_of, summed


def test_processes_whose_gpus_cannot_read_each_other(monkeypatch: Any) -> None:
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 2)
    monkeypatch.setattr(torch.cuda, "can_device_access_peer", lambda one, other: (one, other) != (1, 0))
    why_not = _symmetric._why_not
    assert why_not([("1", "a", 0), ("0", "a", 1)]) == "DUALGEMM_SYMMETRIC_MEMORY=0 in process 1 of the group"
    assert why_not([("1", "a", 0), ("1", "b", 1)]) == "the group's processes are on 2 hosts"
    assert why_not([("1", "a", 0), ("1", "a", 0)]) == "a process does not see every GPU under a number of its own"
    assert why_not([("1", "a", 0), ("1", "a", 2)]) == "a process does not see every GPU under a number of its own"
    assert why_not([("1", "a", 0), ("1", "a", 1)]) == "GPU 1 cannot read GPU 0"
    monkeypatch.setattr(torch.cuda, "can_device_access_peer", lambda one, other: True)
    assert why_not([("1", "a", 0), ("1", "a", 1)]) is None
    three = [("1", "a", device) for device in range(3)]
    assert why_not(three) == "the group has 3 processes, torch's kernels are for 2, 4 or 8"


def _without_gpus(rank: int, world: int) -> None:
    x = torch.full((3, 4), float(rank + 1))
    assert sums_of(None, x.device) is None and torch.equal(summed(x, None), torch.full((3, 4), 3.0))
    lines: list[str] = []
    handler = logging.Handler()
    handler.emit = lambda record: lines.append(record.getMessage())  # type: ignore[method-assign]
    logging.getLogger("dualgemm").addHandler(handler)
    group = dist.group.WORLD
    assert _symmetric._set_up(group, torch.device("cuda", rank)) is None
    reason = "a process does not see every GPU under a number of its own"
    assert lines == [f"dualgemm: sums of small rows go through NCCL, without symmetric memory: {reason}"]

    def made(*_: Any) -> Any:
        if rank == 1:
            raise RuntimeError("no handles\nof memory")

    with patch.object(_symmetric, "_why_not", lambda places: None), patch.object(_symmetric, "SymmetricSums", made):
        assert _symmetric._set_up(group, torch.device("cuda", rank)) is None  # what one process cannot set up, none does
    assert lines[1].endswith("without symmetric memory: RuntimeError: no handles")


def test_one_line_where_there_is_none(processes: Any) -> None:
    processes(2).run(_without_gpus)


@pytest.mark.parametrize(
    "rows,dtype,fits",
    [(1, torch.bfloat16, True), (1, torch.float16, False), (0, torch.bfloat16, False), (513, torch.float32, False)],
)
def test_what_is_taken(rows: int, dtype: torch.dtype, fits: bool) -> None:
    sums: Any = SymmetricSums.__new__(SymmetricSums)
    sums.world = 2
    assert sums.takes(torch.empty(rows, 4096, dtype=dtype)) is fits
    assert not sums.takes(torch.empty(4096, 2, dtype=dtype).t())  # as it lies
    assert not sums.takes(torch.empty(1, 12, dtype=dtype))  # 24 bytes: no 16 of each process
    if fits:
        assert not sums.takes(torch.empty(rows, 4096, dtype=dtype, requires_grad=True))


def test_made_in_inference_mode_and_used_outside(monkeypatch: Any) -> None:
    import torch.distributed._symmetric_memory as symmetric

    monkeypatch.setattr(symmetric, "empty", torch.empty, raising=False)
    monkeypatch.setattr(symmetric, "rendezvous", lambda buffer, name: None, raising=False)
    monkeypatch.setattr(torch.cuda, "current_stream", lambda device: None)
    group: Any = SimpleNamespace(group_name="0", size=lambda: 2)
    with torch.inference_mode():
        sums = SymmetricSums(group, torch.device("cpu"))
        first = sums._part(torch.bfloat16, torch.Size([3, 8]))
    for shape in ((3, 8), (5, 16)):
        sums._part(torch.bfloat16, torch.Size(shape)).copy_(torch.ones(shape))
    assert first.data_ptr() == sums._part(torch.bfloat16, torch.Size([3, 8])).data_ptr()
    for rows in range(200):  # of any number of sizes some are kept
        sums._part(torch.float32, torch.Size([rows, 8]))
    assert len(sums._parts) <= 64
