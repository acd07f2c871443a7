"""scripts/multi_gpu_check over gloo, and that it can fail."""

from __future__ import annotations

import pathlib
import runpy
import subprocess
import sys
import threading
from typing import Any

import pytest
import torch
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.tensor.parallel import parallelize_module

from dualgemm.distributed import GatedMLPParallel

SCRIPT = pathlib.Path(__file__).resolve().parents[3] / "scripts" / "check" / "multi_gpu_check"


def test_passes() -> None:
    command = [sys.executable, "-P", str(SCRIPT), "--processes", "3", "--configurations", "12", "--seed", "6"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=240)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "gloo, 3 processes: 12 configurations, 0 failures" in done.stdout


def test_a_row_of_another_expert_fails() -> None:
    functions = runpy.run_path(str(SCRIPT))
    draw = {"seed": 4, "hidden": 64, "n": 48, "rows": [9], "experts": 4, "top_k": 2, "packed": False}
    x, ids, weights = functions["rows_of"](draw, 0, torch.device("cpu"))
    experts = functions["experts_of"](draw, [0, 1, 2, 3], torch.device("cpu"))
    y = experts(x, ids, weights)
    functions["close"]("same", y, y.clone(), 2)
    other = ids.clone()
    other[4, 1] = next(one for one in range(4) if one not in ids[4].tolist())
    with pytest.raises(AssertionError, match="off, "):
        functions["close"]("one row", experts(x, other, weights), y, 2)


def _one_fails(rank: int, device: Any) -> None:
    functions = runpy.run_path(str(SCRIPT))
    draw = {"seed": 4, "hidden": 64, "n": 64, "bias": False, "nvfp4_down": False}
    mlp = functions["mlp_of"](draw, device)
    parallelize_module(mlp, init_device_mesh("cpu", (2,)), GatedMLPParallel())
    if rank == 1:
        raise RuntimeError("no more memory in this process")
    with torch.no_grad():
        mlp(torch.randn(3, 64).to(torch.bfloat16))


def test_a_process_that_fails_ends_the_others(monkeypatch: Any) -> None:
    monkeypatch.syspath_prepend(str(SCRIPT.parent))
    import ranks

    (_, waited), (_, failed) = ranks.run(_one_fails, (), 2, "gloo", 10)
    assert "no more memory in this process" in failed and "all_reduce" in waited


def test_bad_arguments_and_too_few_gpus() -> None:
    for arguments, status, text in (
        (["--processes", "1"], 2, "--processes: must be at least 2"),
        (["--backend", "nccl", "--processes", "64"], 1, "GPUs here, 64 are needed"),
    ):
        done = subprocess.run([sys.executable, "-P", str(SCRIPT), *arguments], capture_output=True, text=True, timeout=120)
        assert done.returncode == status and text in done.stdout + done.stderr


def test_the_bench_runs_and_refuses_too_few_gpus() -> None:
    bench = SCRIPT.parents[1] / "gpu" / "run_multi_gpu_bench"
    command = [sys.executable, "-P", str(bench), "--processes"]
    done = subprocess.run([*command, "1", "2", "--tiny"], capture_output=True, text=True, timeout=240)
    assert done.returncode == 0, done.stdout + done.stderr
    lines = done.stdout.splitlines()
    for first in ("| (128, 64) | ", "| tiny | "):  # two sizes in the run's table and in that of more processes
        assert sum(line.startswith(first) for line in lines) == 4, done.stdout
    for name, more in (("h200_distributed", []), ("h200_distributed_four", ["--predict", "4", "8"])):
        page = SCRIPT.parents[2] / "docs" / "performance" / f"{name}.md"
        earlier = [sys.executable, "-P", str(bench), "--from", str(page.with_suffix(".json")), *more]
        done = subprocess.run(earlier, capture_output=True, text=True, timeout=120)
        printed, written = done.stdout.splitlines(), page.read_text().splitlines()
        rows, on_page = ([line for line in lines if line.startswith("|")] for lines in (printed, written))
        assert len(rows) > 40 and rows == on_page, done.stderr
    done = subprocess.run([*command, "64"], capture_output=True, text=True, timeout=120)
    assert done.returncode == 1 and "GPUs here, 64 are needed" in done.stdout


def _waits_for_ever(rank: int, device: Any) -> None:
    if rank == 1:
        raise RuntimeError("failed first")
    threading.Event().wait()


def test_a_process_that_no_time_out_ends(monkeypatch: Any) -> None:
    monkeypatch.syspath_prepend(str(SCRIPT.parent))
    import ranks

    # Processes of a busy machine start seconds apart.
    (_, waited), (_, failed) = ranks.run(_waits_for_ever, (), 2, "gloo", 8)
    assert "failed first" in failed and waited == "ended after 8 s of waiting for the others"
