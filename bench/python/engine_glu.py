#!/usr/bin/env python3
"""Gate, up and SiLU of an MLP on this library beside vLLM's Marlin kernel with its silu_and_mul, in one run on a GPU.

python3 bench/python/engine_glu.py [--shapes 4096x7168 ...] [--rows 1 8 16 32 64 128 256 1024 4096] [--json FILE]

W4A16, x in bf16, weights packed: the library's choice for this GPU, the kernels for any GPU from compute capability 8.0 on (isa=sm80), and
Marlin on gate and up as one product. In CUDA graphs of calls that go through copies of the weights of 420 MB or more together, so that
weights are cold; the graphs in turns, with 512 MB written before each replay. Medians of the replays, in microseconds a call. Needs a
GPU, the package and vLLM.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable
from typing import Any

import dualgemm.nn  # noqa: F401 (its operators)
import torch
from engine_linear import CACHE_BYTES, marlin, measure, recorded

COPIES_BYTES = 420 << 20
_ops = torch.ops.dualgemm
Weights = tuple[torch.Tensor, torch.Tensor, torch.Tensor]


def shape(text: str) -> tuple[int, int]:
    n, _, k = text.partition("x")
    if not (n.isdigit() and k.isdigit()):
        raise argparse.ArgumentTypeError(f"{text}; must be NxK, such as 4096x7168")
    return int(n), int(k)


def ours(weights: Weights, config: str) -> Callable[[torch.Tensor], Any]:
    codes, scales, alpha = weights
    n = codes.shape[0] // 2
    packed = _ops.pack_weights(codes[:n], scales[:n], codes[n:], scales[n:], a_dtype=torch.bfloat16)
    return lambda x: _ops.glu_packed(x, None, packed, n, 1, alpha, alpha, None, None, None, config=config)


def with_activation(weights: Weights) -> Callable[[torch.Tensor], Any]:
    product, n = marlin(*weights), weights[0].shape[0] // 2

    def call(x: torch.Tensor) -> torch.Tensor:
        out = x.new_empty(x.shape[0], n)
        torch.ops._C.silu_and_mul(out, product(x))
        return out

    return call


WAYS: dict[str, Callable[[Weights], Callable[[torch.Tensor], Any]]] = {
    "ours": lambda weights: ours(weights, ""),
    "sm80": lambda weights: ours(weights, "isa=sm80"),
    "marlin": with_activation,
}


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--shapes", nargs="+", type=shape, default=[(4096, 7168), (14336, 4096), (3072, 4096)], metavar="NxK")
    parser.add_argument("--rows", nargs="+", type=int, default=[1, 8, 16, 32, 64, 128, 256, 1024, 4096])
    parser.add_argument("--json")
    arguments = parser.parse_args()
    torch.manual_seed(1)
    cache = torch.empty(CACHE_BYTES, dtype=torch.uint8, device="cuda")
    alpha, results = torch.tensor([0.002], device="cuda"), []
    with torch.inference_mode():
        for n, k in arguments.shapes:
            copies = max(2, -(-COPIES_BYTES // (2 * n * k * 9 // 16)))
            weights: list[Weights] = []
            for _ in range(copies):
                codes = torch.randint(0, 256, (2 * n, k // 2), dtype=torch.uint8, device="cuda")
                scales = torch.randint(0x30, 0x40, (2 * n, k // 16), dtype=torch.uint8, device="cuda")
                weights.append((codes, scales.view(torch.float8_e4m3fn), alpha))
            ways = {name: [way(one) for one in weights] for name, way in WAYS.items()}
            for m in arguments.rows:
                x = torch.randn(m, k, device="cuda", dtype=torch.bfloat16)
                expected = ways["marlin"][0](x).float()
                times = measure([recorded(calls, x) for calls in ways.values()], copies, cache)
                point: dict[str, Any] = {"n": n, "k": k, "m": m}
                line = f"({n}, {k}) M {m:5}:"
                for (name, calls), microseconds in zip(ways.items(), times):
                    apart = float((calls[0](x).float() - expected).norm() / expected.norm())
                    point |= {f"{name}_us": microseconds, f"{name}_apart": apart}
                    line += f" {name} {microseconds:8.1f} us ({microseconds / times[-1]:.2f}, apart {apart:.1g})"
                results.append(point)
                print(line, flush=True)
            del ways, weights
    if arguments.json:
        with open(arguments.json, "w") as file:
            json.dump({"device": torch.cuda.get_device_name(), "points": results}, file, indent=1)


if __name__ == "__main__":
    main()
