#!/usr/bin/env python3
"""GPU time of the torch operators with weights cold in L2, in a CUDA graph and eager, beside bench_cuda's in one run.

python3 bench/python/operator_time.py [--bench-cuda build/cuda/bin/bench_cuda] [--json FILE]      needs a GPU and the package

D is fp16, A and the weights are NVFP4, the weights packed or not, in bench_cuda's way: as many sets of them as make up 430 MB take
turns, a graph has 12 calls or more, 512 MiB are read before each replay; medians of 41. Eager: the same calls, each enqueued from
Python, with a number of rows that changes from call to call (m and m - 1, or 2); wall time of 400 of them, best of 7, which is the
GPU's time or the host's, whichever is longer.
"""
from __future__ import annotations

import argparse
import json
import pathlib
import statistics
import subprocess
import tempfile
import time
from collections.abc import Callable
from typing import Optional

import dualgemm as dg
import dualgemm.torch  # registers torch.ops.dualgemm
import torch

COLD_BYTES, SPACER_BYTES, LEAST_CALLS, REPLAYS = 430_000_000, 512 << 20, 12, 41
EAGER_CALLS, EAGER_ROUNDS = 400, 7
ALPHA = 0.02
Call = Callable[[int], object]  # number of the call


class Shape:
    """Random operands: codes as they come, scales 0x20 to 0x48, the same kind as bench_cuda's."""

    def __init__(self, n: int, k: int, most_rows: int) -> None:
        self.n, self.k = n, k
        self.sets = -(-COLD_BYTES // (2 * n * k * 9 // 16))
        self.calls = -(-LEAST_CALLS // self.sets) * self.sets
        self.a, self.a_scales = self.codes(most_rows), self.scales(most_rows)
        self.weights = [(self.codes(n), self.scales(n), self.codes(n), self.scales(n)) for _ in range(self.sets)]
        self.packed = [torch.ops.dualgemm.pack_weights(*weights, a_dtype=torch.uint8) for weights in self.weights]
        self.alpha = torch.full((1,), ALPHA, device="cuda")
        self.out = torch.empty(most_rows, n, dtype=torch.float16, device="cuda")

    def codes(self, rows: int) -> torch.Tensor:
        return torch.randint(0, 256, (rows, self.k // 2), dtype=torch.uint8, device="cuda")

    def scales(self, rows: int) -> torch.Tensor:
        return torch.randint(0x20, 0x49, (rows, self.k // 16), dtype=torch.uint8, device="cuda").view(torch.float8_e4m3fn)

    def call_of(self, prepared: bool, some_rows: tuple[int, ...]) -> Call:
        """Call i has some_rows[i % len] rows, in tensors that are there beforehand."""
        glu, glu_packed = torch.ops.dualgemm.glu.out, torch.ops.dualgemm.glu_packed.out
        rows = [(self.a[:m], self.a_scales[:m], self.out[:m]) for m in some_rows]

        def unpacked_call(number: int) -> object:
            a, a_scales, out = rows[number % len(rows)]
            return glu(a, a_scales, *self.weights[number % self.sets], self.alpha, self.alpha, out=out)

        def packed_call(number: int) -> object:
            a, a_scales, out = rows[number % len(rows)]
            return glu_packed(a, a_scales, self.packed[number % self.sets], self.n, 1, self.alpha, self.alpha, out=out)

        return packed_call if prepared else unpacked_call


def graph_microseconds(call: Call, calls: int, spacer: torch.Tensor) -> float:
    call(0)
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        for number in range(calls):
            call(number)
    begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    times = []
    for _ in range(REPLAYS):
        spacer.sum()
        begin.record()
        graph.replay()
        end.record()
        end.synchronize()
        times.append(1e3 * begin.elapsed_time(end) / calls)
    return statistics.median(times)


def eager_microseconds(call: Call) -> float:
    best = float("inf")
    for _ in range(EAGER_ROUNDS):
        torch.cuda.synchronize()
        start = time.perf_counter()
        for number in range(EAGER_CALLS):
            call(number)
        torch.cuda.synchronize()
        best = min(best, (time.perf_counter() - start) / EAGER_CALLS)
    return 1e6 * best


def bench_cuda_microseconds(program: str, n: int, k: int, rows: list[int]) -> dict[tuple[int, bool], float]:
    with tempfile.TemporaryDirectory() as folder:
        numbers = pathlib.Path(folder) / "numbers.json"
        m = ",".join(map(str, rows))
        subprocess.run([program, "--shapes", f"{n}x{k}", "--m", m, "--json", str(numbers)], check=True, stdout=subprocess.DEVNULL)
        (shape,) = json.loads(numbers.read_text())["shapes"]
    return {(point["m"], ours["prepared"]): ours["median_us"] for point in shape["points"] for ours in point["ours"]
            if ours["strategy"] == "fused" and ours["a"] == "e2m1"}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bench-cuda", help="that program, to be run on the same points")
    parser.add_argument("--n", type=int, default=4096)
    parser.add_argument("--k", type=int, default=7168)
    parser.add_argument("--m", type=int, nargs="+", default=[1, 16, 64, 256, 1024])
    parser.add_argument("--json", help="write the table there as well")
    options = parser.parse_args()
    name = torch.cuda.get_device_name()
    print(f"{name}, torch {torch.__version__}, {options.n} x {options.k}; us a call")
    theirs: Optional[dict[tuple[int, bool], float]] = None
    if options.bench_cuda:
        theirs = bench_cuda_microseconds(options.bench_cuda, options.n, options.k, options.m)
    shape, spacer = Shape(options.n, options.k, max(*options.m, 2)), torch.ones(SPACER_BYTES // 4, device="cuda")
    points = []
    print(f"{'m':>6} {'weights':>9} {'graph':>9} {'bench_cuda':>11} {'ratio':>6} {'eager':>9} {'more':>6}")
    with torch.inference_mode():
        for m in options.m:
            for prepared in (False, True):
                graph = graph_microseconds(shape.call_of(prepared, (m,)), shape.calls, spacer)
                eager = eager_microseconds(shape.call_of(prepared, (m, m - 1 if m > 1 else 2)))
                of = theirs[m, prepared] if theirs else None
                points.append({"m": m, "prepared": prepared, "graph_us": graph, "eager_us": eager, "bench_cuda_us": of})
                beside = f"{of:11.2f} {graph / of:6.3f}" if of else f"{'-':>11} {'-':>6}"
                print(f"{m:6} {'packed' if prepared else 'unpacked':>9} {graph:9.2f} {beside} {eager:9.2f} {eager - graph:6.2f}", flush=True)
    if options.json:
        report = {"device": name, "torch": torch.__version__, "n": options.n, "k": options.k, "points": points}
        pathlib.Path(options.json).write_text(json.dumps(report, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
