"""Host time of one call of the operators on the smallest problem, beside torch's own, in one run.

python3 bench/python/call_cost.py [--device cpu|cuda] [--json FILE]     needs the package and torch >= 2.10

M = 1, one thread; N = K = 16 on a CPU; 128 on a GPU, which one launch does, as that of torch.mm (of 16 columns no kernel for a
GPU's copy engine can read: they are moved first). Microseconds, the best of 15 rounds: what the call itself costs. On CUDA nothing
waits for the GPU: it is the time to enqueue, with the queue emptied before each round.
"""

from __future__ import annotations

import argparse
import json
import platform
import time
from collections.abc import Callable

import dualgemm as dg
import dualgemm.torch  # registers torch.ops.dualgemm
import torch

ROUNDS = 15


def microseconds(call: Callable[[], object], device: str) -> float:
    calls = 2000 if device == "cpu" else 400  # fewer than the queue of a GPU holds
    best = float("inf")
    for _ in range(ROUNDS):
        if device == "cuda":
            torch.cuda.synchronize()
        start = time.perf_counter()
        for _ in range(calls):
            call()
        best = min(best, (time.perf_counter() - start) / calls)
    return best * 1e6


def ways(device: str) -> dict[str, Callable[[], object]]:
    side = 128 if device == "cuda" else 16
    x = torch.randn(1, side, dtype=torch.bfloat16, device=device)
    gate, up = (dg.quantize(torch.randn(side, side, device=device)) for _ in range(2))
    out = torch.empty(1, side, dtype=torch.bfloat16, device=device)
    w = torch.randn(side, side, dtype=torch.bfloat16, device=device)
    packed = torch.ops.dualgemm.pack_weights(gate.codes, gate.scales, up.codes, up.scales, a_dtype=torch.bfloat16)
    glu, glu_out, glu_packed_out = (
        torch.ops.dualgemm.glu.default,
        torch.ops.dualgemm.glu.out,
        torch.ops.dualgemm.glu_packed.out,
    )
    arguments = (x, None, gate.codes, gate.scales, up.codes, up.scales, gate.global_scale, up.global_scale)
    return {
        "torch.empty": lambda: torch.empty(1, side, device=device),
        "torch.mm": lambda: torch.mm(x, w),
        "torch.mm, out": lambda: torch.mm(x, w, out=out),
        "torch.ops.dualgemm.glu": lambda: glu(*arguments),
        "torch.ops.dualgemm.glu.out": lambda: glu_out(*arguments, out=out),
        "torch.ops.dualgemm.glu_packed.out": lambda: glu_packed_out(
            x, None, packed, side, 1, gate.global_scale, up.global_scale, out=out
        ),
        "dualgemm.glu": lambda: dg.glu(
            x,
            gate.codes,
            up.codes,
            gate_scales=gate.scales,
            up_scales=up.scales,
            alpha_gate=gate.global_scale,
            alpha_up=up.global_scale,
        ),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", choices=("cpu", "cuda"), default="cuda" if torch.cuda.is_available() else "cpu")
    parser.add_argument("--json", help="write the table there as well")
    options = parser.parse_args()
    torch.set_num_threads(1)
    name = torch.cuda.get_device_name() if options.device == "cuda" else dg.device_info()["name"]
    print(f"{name}, torch {torch.__version__}, Python {platform.python_version()}; us a call")
    table = {}
    with torch.inference_mode():
        for way, call in ways(options.device).items():
            table[way] = microseconds(call, options.device)
            print(f"{way:34} {table[way]:7.2f}  {table[way] / table['torch.empty']:5.2f} x torch.empty")
    print(f"glu.out is {table['torch.ops.dualgemm.glu.out'] / table['torch.mm']:.2f} x torch.mm")
    if options.json:
        with open(options.json, "w", encoding="utf-8") as file:
            json.dump({"device": name, "torch": torch.__version__, "microseconds": table}, file, indent=1)


if __name__ == "__main__":
    main()
