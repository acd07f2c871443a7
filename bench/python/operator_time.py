#!/usr/bin/env python3
"""GPU time of the torch operators with weights cold in L2, in a CUDA graph and eager, beside the library's C interface.

python3 bench/python/operator_time.py [--bench-cuda build/cuda/bin/bench_cuda] [--json FILE]      needs a GPU and the package

D is fp16, A and the weights are NVFP4, the weights packed or not, in bench_cuda's way: as many sets of them as make up 430 MB take
turns, a graph has 12 calls or more, 512 MiB are read before each replay. What a graph of the operators is compared with is what
bench_cuda measures, dualgemm_run() recorded as often, alphas by value, here by the same library on the same tensors: the graphs take
turns in the same rounds, those of one m together, the other way round every other time; medians of 41 rounds after 20, and of the
ratios of a round. bench_cuda itself, in a process before, has other memory: two processes with it differ by up to 5 %. Eager: the
same calls, each enqueued from Python, with a number of rows that changes from call to call (m and m - 1, or 2); wall time of 400 of
them, best of 7, which is the GPU's time or the host's, whichever is longer.
"""

from __future__ import annotations

import argparse
import ctypes
import json
import pathlib
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from typing import Any, Optional

import dualgemm.torch  # noqa: F401  registers torch.ops.dualgemm
import torch
from dualgemm import _library

sys.dont_write_bytecode = True  # the tree stays as it is
sys.path.insert(0, str(pathlib.Path(__file__).parent.parent / "peers"))
import dualgemm_c as c

COLD_BYTES, SPACER_BYTES, LEAST_CALLS, WARM_UPS, ROUNDS = 430_000_000, 512 << 20, 12, 20, 41
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


class PlainCall:
    """The same by the C interface, as bench_cuda calls it."""

    def __init__(self, library: Any, shape: Shape, m: int, prepared: bool) -> None:
        self.shape = shape
        self.plan = c.Plan(library, library.problem(m, shape.n, shape.k, None, c.E2M1, c.F16), prepared=prepared)
        self.workspace = torch.empty(max(self.plan.workspace_bytes, 1), dtype=torch.uint8, device="cuda")
        rows = {
            "a": shape.a.data_ptr(),
            "a_scales": shape.a_scales.data_ptr(),
            "d": shape.out.data_ptr(),
            "alpha_gate": ALPHA,
            "alpha_up": ALPHA,
        }
        if prepared:
            descriptor = self.plan.prepared_descriptor()
            views = [c.PreparedView(descriptor, packed.data_ptr(), packed.numel()) for packed in shape.packed]
            self.buffers = [library.buffers(prepared_view=ctypes.pointer(view), **rows) for view in views]
        else:
            names = ("gate", "gate_scales", "up", "up_scales")
            self.buffers = [
                library.buffers(**dict(zip(names, (tensor.data_ptr() for tensor in weights))), **rows)
                for weights in shape.weights
            ]

    def __call__(self, number: int) -> None:
        buffers = self.buffers[number % self.shape.sets]
        buffers.stream = torch.cuda.current_stream().cuda_stream
        self.plan.run(buffers, self.workspace.data_ptr())


def recorded(call: Call, calls: int) -> torch.cuda.CUDAGraph:
    call(0)
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        for number in range(calls):
            call(number)
    return graph


def in_turns(graphs: list[torch.cuda.CUDAGraph], calls: int, spacer: torch.Tensor) -> list[list[float]]:
    """For each graph the microseconds a call in each round."""
    begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    times: list[list[float]] = [[] for _ in graphs]
    order = list(range(len(graphs)))
    for number in range(-WARM_UPS, ROUNDS):
        for i in order:
            spacer.sum()
            begin.record()
            graphs[i].replay()
            end.record()
            end.synchronize()
            if number >= 0:
                times[i].append(1e3 * begin.elapsed_time(end) / calls)
        order.reverse()
    return times


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
        subprocess.run(
            [program, "--shapes", f"{n}x{k}", "--m", m, "--json", str(numbers)], check=True, stdout=subprocess.DEVNULL
        )
        (shape,) = json.loads(numbers.read_text())["shapes"]
    return {
        (point["m"], ours["prepared"]): ours["median_us"]
        for point in shape["points"]
        for ours in point["ours"]
        if ours["strategy"] == "fused" and ours["a"] == "e2m1"
    }


def points_of(shape: Shape, library: Any, m: int, spacer: torch.Tensor) -> list[dict[str, Any]]:
    """Weights unpacked, and packed."""
    graphs, calls = [], shape.calls
    for prepared in (False, True):
        graphs += [recorded(shape.call_of(prepared, (m,)), calls), recorded(PlainCall(library, shape, m, prepared), calls)]
    times = in_turns(graphs, calls, spacer)
    points = []
    for prepared in (False, True):
        ours, plain = times[2 * prepared :][:2]
        points.append(
            {
                "m": m,
                "prepared": prepared,
                "graph_us": statistics.median(ours),
                "c_us": statistics.median(plain),
                "ratio": statistics.median(x / y for x, y in zip(ours, plain)),
                "eager_us": eager_microseconds(shape.call_of(prepared, (m, m - 1 if m > 1 else 2))),
            }
        )
    return points


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bench-cuda", help="that program, to be run on the same points before")
    parser.add_argument("--n", type=int, default=4096)
    parser.add_argument("--k", type=int, default=7168)
    parser.add_argument("--m", type=int, nargs="+", default=[1, 16, 64, 256, 1024])
    parser.add_argument("--json", help="write the table there as well")
    options = parser.parse_args()
    name = torch.cuda.get_device_name()
    print(f"{name}, torch {torch.__version__}, {options.n} x {options.k}; us a call")
    theirs: dict[tuple[int, bool], float] = {}
    if options.bench_cuda:
        theirs = bench_cuda_microseconds(options.bench_cuda, options.n, options.k, options.m)
    shape, spacer = Shape(options.n, options.k, max(*options.m, 2)), torch.ones(SPACER_BYTES // 4, device="cuda")
    library = c.Library(str(_library.file_of_package("lib/libdualgemm.so.0")))
    points = []
    print(f"{'m':>6} {'weights':>9} {'graph':>9} {'C graph':>9} {'ratio':>6} {'bench_cuda':>11} {'eager':>9} {'more':>6}")
    with torch.inference_mode():
        for m in options.m:
            for point in points_of(shape, library, m, spacer):
                of: Optional[float] = theirs.get((m, point["prepared"]))
                points.append({**point, "bench_cuda_us": of})
                beside = f"{of:11.2f}" if of else f"{'-':>11}"
                graph, eager = point["graph_us"], point["eager_us"]
                print(
                    f"{m:6} {'packed' if point['prepared'] else 'unpacked':>9} {graph:9.2f} {point['c_us']:9.2f} "
                    f"{point['ratio']:6.3f} {beside} {eager:9.2f} {eager - graph:6.2f}",
                    flush=True,
                )
    if options.json:
        report = {"device": name, "torch": torch.__version__, "n": options.n, "k": options.k, "points": points}
        pathlib.Path(options.json).write_text(json.dumps(report, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
