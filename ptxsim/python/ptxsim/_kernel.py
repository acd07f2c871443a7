"""Kernels in PTX, run and timed by the command, with arrays of NumPy as buffers."""

from __future__ import annotations

import dataclasses
import json
import pathlib
import re
import subprocess
import tempfile
from collections.abc import Sequence
from typing import Any

import numpy as np

from ptxsim._files import command

_SCALARS = {
    "u1": "u8",
    "i1": "s8",
    "u2": "u16",
    "i2": "s16",
    "u4": "u32",
    "i4": "s32",
    "u8": "u64",
    "i8": "s64",
    "f4": "f32",
    "f8": "f64",
}
_BITS = {1: "b8", 2: "b16", 4: "b32", 8: "b64"}


class InputError(ValueError):
    """The kernel, an argument or an option is not valid; the message says where, as the command does."""


@dataclasses.dataclass(frozen=True)
class Unwritten:
    """An argument: a buffer that nothing is written into before the kernel, so that reading it is an error."""

    shape: Any
    dtype: Any


@dataclasses.dataclass(frozen=True)
class Finding:
    rule: str  # "R16": docs/rules.md
    severity: str  # "error", "warning" or "advisory"
    message: str
    source: str  # "kernel.cu:8", or of the PTX where it has no lines of the source
    count: int  # how often
    details: dict[str, Any]  # as `ptxsim run --json` has it


@dataclasses.dataclass(frozen=True)
class Result:
    arrays: list[np.ndarray]  # what the buffers among the arguments hold after the last run, in their order
    findings: list[Finding]  # of all runs
    instructions: dict[str, Any]  # counters of the first run: warp and lane instructions, bytes, MMAs
    error: str | None  # a fault, a deadlock or a budget that was used up

    @property
    def passed(self) -> bool:
        """No error, and no finding of severity error."""
        return self.error is None and not any(finding.severity == "error" for finding in self.findings)


@dataclasses.dataclass(frozen=True)
class Time:
    us: float | None  # None: too much of the kernel is not modelled for a single number
    low_us: float
    high_us: float
    unknown_percent: float  # of its instructions
    assumed_percent: float  # of the critical path: numbers that are assumed
    critical_path: list[dict[str, Any]]
    details: dict[str, Any]  # as `ptxsim time --json` has it


def _extents(value: int | Sequence[int]) -> list[int]:
    return [int(value)] if isinstance(value, (int, np.integer)) else [int(extent) for extent in value]


def _parameter(
    number: int, argument: Any, folder: pathlib.Path, buffers: list[tuple[str, Any]], case: dict[str, Any]
) -> dict[str, Any]:
    if isinstance(argument, (np.ndarray, Unwritten)):
        name = f"arg{number}"
        dtype = np.dtype(argument.dtype)
        if not isinstance(argument, Unwritten):
            (folder / name).write_bytes(np.ascontiguousarray(argument).tobytes())
            case["buffers"].append({"name": name, "file": str(folder / name)})
        else:
            count = int(np.prod(argument.shape, dtype=np.int64))
            case["buffers"].append({"name": name, "bytes": count * dtype.itemsize})
        buffers.append((name, argument))
        return {"buffer": name}
    if isinstance(argument, (np.generic, np.void)):
        kind = _SCALARS.get(argument.dtype.str[1:])
        if kind in ("f32", "f64") or kind is None and argument.dtype.itemsize in _BITS:
            pattern = int.from_bytes(argument.tobytes(), "little")
            return {"type": _BITS[argument.dtype.itemsize], "value": f"0x{pattern:x}"}
        if kind is not None:
            return {"type": kind, "value": int(argument)}
    raise InputError(
        f"args[{number}]: {type(argument).__name__}; must be an array of NumPy, ptxsim.Unwritten, or a scalar of NumPy with its type,"
        " such as numpy.int32(5)"
    )


def _write_case(
    ptx: Any,
    entry: str | None,
    grid: Any,
    block: Any,
    cluster: Any,
    shared_bytes: int,
    args: Sequence[Any],
    folder: pathlib.Path,
) -> tuple[pathlib.Path, pathlib.Path, list[tuple[str, Any]]]:
    is_text = isinstance(ptx, str) and "\n" in ptx
    kernel = folder / "kernel.ptx" if is_text else pathlib.Path(ptx)
    if is_text:
        kernel.write_text(ptx)
    elif not kernel.exists():
        raise InputError(f"ptx: '{kernel}' is no file, and no text of PTX, which has lines")
    case: dict[str, Any] = {
        "grid": _extents(grid),
        "block": _extents(block),
        "cluster": _extents(cluster),
        "buffers": [],
        "params": [],
    }
    if entry is not None:
        case["entry"] = entry
    if shared_bytes:
        case["dynamic_shared_bytes"] = int(shared_bytes)
    buffers: list[tuple[str, Any]] = []
    for number, argument in enumerate(args):
        case["params"].append(_parameter(number, argument, folder, buffers, case))
    path = folder / "case.json"
    path.write_text(json.dumps(case))
    return kernel, path, buffers


def _ask(arguments: list[str]) -> Any:
    done = subprocess.run([str(command()), *arguments], capture_output=True, text=True)
    if done.returncode not in (0, 1) or not done.stdout:
        raise InputError(
            re.sub(r"\A.*?(error: )", r"\1", done.stderr.strip(), flags=re.S) or f"ptxsim ended with status {done.returncode}"
        )
    return json.loads(done.stdout)


def _finding(report: dict[str, Any]) -> Finding:
    place = report["place"]
    source = f"{place['source']}:{place['source_line']}" if place.get("source") else f"{place['ptx']}:{place['line']}"
    return Finding(report["rule"], report["severity"], report["message"], source, report["count"], report)


def _contents(argument: Any, data: bytes) -> np.ndarray:
    return np.frombuffer(data, dtype=argument.dtype).reshape(argument.shape).copy()


def run(
    ptx: str | pathlib.Path,
    entry: str | None = None,
    grid: int | Sequence[int] = 1,
    block: int | Sequence[int] = 1,
    args: Sequence[Any] = (),
    *,
    cluster: int | Sequence[int] = 1,
    shared_bytes: int = 0,
    schedule: str = "eager",
    seeds: int = 1,
    strict: bool = False,
    suppress: str | pathlib.Path | None = None,
) -> Result:
    """Runs a kernel and looks for races, and what else docs/rules.md has.

    ptx: a file, or the text. entry: the kernel, where there are several. grid, block, cluster: CTAs, threads of one, CTAs of a
    cluster, as CUDA has them, one to three extents. args: the kernel's parameters in order: an array (a buffer with its contents; the
    array itself stays as it is), `Unwritten`, or a scalar of NumPy. shared_bytes: dynamic shared memory. schedule: eager, lazy, random,
    or all; seeds: of random ones. strict: warnings and advisories count as errors. suppress: a file of findings that are known.

    Raises InputError for what is not valid, FileNotFoundError where there is no command.
    """
    with tempfile.TemporaryDirectory(prefix="ptxsim-") as name:
        folder = pathlib.Path(name)
        kernel, case, buffers = _write_case(ptx, entry, grid, block, cluster, shared_bytes, args, folder)
        arguments = [
            "run",
            str(kernel),
            "--case",
            str(case),
            "--schedule",
            schedule,
            "--seeds",
            str(seeds),
            "--json",
            "--verbose",
        ]
        arguments += ["--strict"] * strict + (["--suppress", str(suppress)] if suppress is not None else [])
        for buffer, _ in buffers:
            arguments += ["--dump", f"{buffer}={folder / buffer}.out"]
        runs = _ask(arguments)
        arrays = [
            _contents(argument, (folder / f"{buffer}.out").read_bytes())
            if (folder / f"{buffer}.out").exists()
            else np.zeros(argument.shape, argument.dtype)
            for buffer, argument in buffers
        ]
    findings = [_finding(report) for one in runs for report in one["reports"]]
    errors = [one["error"]["message"] for one in runs if one.get("error")]
    return Result(arrays, findings, runs[0]["stats"], errors[0] if errors else None)


def time(
    ptx: str | pathlib.Path,
    entry: str | None = None,
    grid: int | Sequence[int] = 1,
    block: int | Sequence[int] = 1,
    args: Sequence[Any] = (),
    *,
    gpu: str = "h100",
    cluster: int | Sequence[int] = 1,
    shared_bytes: int = 0,
    warm: bool = False,
    graph: bool = False,
    sass: str = "auto",
) -> Time:
    """Estimates how long a launch takes on a GPU (docs/clock.md): not a measurement.

    gpu: a100, b200, gb10, gb300, h100, h200, l40s, rtx3090, rtx4090, rtx5090, or a file of parameters. warm: L2 holds what it
    can of the buffers. graph: launches of a graph, not of a stream. sass: whose numbers of instructions count, those that ptxas makes
    ("ptxas"; "auto": where ptxas and nvdisasm are there), a table's ("off"), the same on every machine, or those of a listing (a
    file); docs/clock.md. `details["instructions"]` says whose they were. The other arguments, and what is raised: as `run` has
    them; a kernel that faults raises InputError.
    """
    with tempfile.TemporaryDirectory(prefix="ptxsim-") as name:
        kernel, case, _ = _write_case(ptx, entry, grid, block, cluster, shared_bytes, args, pathlib.Path(name))
        arguments = ["time", str(kernel), "--case", str(case), "--gpu", gpu, "--sass", sass, "--json"]
        launch = _ask(arguments + ["--warm"] * warm + ["--graph"] * graph)["launches"][0]
    interval = launch["interval"]
    return Time(
        launch["us"],
        interval["low_us"],
        interval["high_us"],
        launch["unknown_percent"],
        launch["assumed_percent"],
        launch["critical_path"],
        launch,
    )
