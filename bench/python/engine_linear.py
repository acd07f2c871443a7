#!/usr/bin/env python3
"""One NVFP4 linear layer on this library beside vLLM's Marlin kernel, in one run on a GPU.

python3 bench/python/engine_linear.py [--rows 1 8 32 128 1024 8192] [--json FILE]    needs a GPU, the package and vLLM

W4A16, x in bf16: the layers qkv, o and down of models, and gate and up as one product. Each in CUDA graphs of calls that go through
copies of the weights of 256 MB or more together, so that weights are cold; both graphs in turns, with 512 MB written before each
replay. Medians of the replays, in microseconds a call.
"""

from __future__ import annotations

import argparse
import json
import statistics
from collections.abc import Callable
from typing import Any

import dualgemm.nn  # noqa: F401 (its operators)
import torch

ROUNDS, CACHE_BYTES, COPIES_BYTES = 15, 512 << 20, 256 << 20
LAYERS = {
    "llama_8b qkv": (6144, 4096),
    "llama_8b o": (4096, 4096),
    "llama_8b down": (4096, 14336),
    "llama_8b gate_up": (28672, 4096),
    "qwen3_30b_a3b qkv": (5120, 2048),
    "qwen3_30b_a3b o": (2048, 4096),
    "gpt_oss_20b qkv": (5120, 2880),
    "llama_70b down": (8192, 28672),
}
_ops = torch.ops.dualgemm


def ours(w: torch.Tensor, scales: torch.Tensor, alpha: torch.Tensor) -> Callable[[torch.Tensor], Any]:
    packed = _ops.pack_linear(w, scales, a_dtype=torch.bfloat16)
    return lambda x: _ops.linear(x, None, None, None, packed, w.shape[0], 1, None, None, None, alpha)


def marlin(w: torch.Tensor, scales: torch.Tensor, alpha: torch.Tensor) -> Callable[[torch.Tensor], Any]:
    from vllm.model_executor.layers.quantization.utils import marlin_utils_fp4 as fp4

    layer: Any = torch.nn.Module()
    layer.output_size_per_partition, layer.input_size_per_partition = w.shape[0], w.shape[1] * 2
    layer.params_dtype = torch.bfloat16
    layer.weight = torch.nn.Parameter(w.clone(), requires_grad=False)
    layer.weight_scale = torch.nn.Parameter(scales.clone(), requires_grad=False)
    layer.weight_global_scale = torch.nn.Parameter(alpha[0].clone(), requires_grad=False)
    fp4.prepare_fp4_layer_for_marlin(layer)
    return lambda x: fp4.apply_fp4_marlin_linear(
        input=x,
        weight=layer.weight,
        weight_scale=layer.weight_scale,
        weight_global_scale=layer.weight_global_scale,
        workspace=layer.workspace,
        size_n=layer.output_size_per_partition,
        size_k=layer.input_size_per_partition,
    )


def recorded(ways: list[Callable[[torch.Tensor], Any]], x: torch.Tensor) -> torch.cuda.CUDAGraph:
    with torch.cuda.stream(torch.cuda.Stream()):
        for way in ways:
            way(x)
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        for way in ways:
            way(x)
    return graph


def measure(graphs: list[torch.cuda.CUDAGraph], calls: int, cache: torch.Tensor) -> list[float]:
    times: list[list[float]] = [[] for _ in graphs]
    for _ in range(ROUNDS):
        for graph, found in zip(graphs, times):
            cache.zero_()
            begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
            begin.record()
            graph.replay()
            end.record()
            torch.cuda.synchronize()
            found.append(begin.elapsed_time(end) * 1000 / calls)
    return [statistics.median(one) for one in times]


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--layers", nargs="+", choices=LAYERS, default=list(LAYERS))
    parser.add_argument("--rows", nargs="+", type=int, default=[1, 8, 32, 128, 1024, 8192])
    parser.add_argument("--json")
    arguments = parser.parse_args()
    torch.manual_seed(1)
    cache = torch.empty(CACHE_BYTES, dtype=torch.uint8, device="cuda")
    alpha, results = torch.tensor([0.002], device="cuda"), []
    with torch.inference_mode():
        for name in arguments.layers:
            n, k = LAYERS[name]
            copies = max(2, -(-COPIES_BYTES // (n * k * 9 // 16)))
            weights = []
            for _ in range(copies):
                w = torch.randint(0, 256, (n, k // 2), dtype=torch.uint8, device="cuda")
                scales = torch.randint(0x30, 0x40, (n, k // 16), dtype=torch.uint8, device="cuda")
                weights.append((w, scales.view(torch.float8_e4m3fn), alpha))
            ways = [[way(*one) for one in weights] for way in (ours, marlin)]
            for m in arguments.rows:
                x = torch.randn(m, k, device="cuda", dtype=torch.bfloat16)
                first, other = (way[0](x).float() for way in ways)
                apart = float((first - other).norm() / other.norm())
                a, b = measure([recorded(way, x) for way in ways], copies, cache)
                results.append({"layer": name, "n": n, "k": k, "m": m, "ours_us": a, "marlin_us": b, "apart": apart})
                line = f"{name:18} ({n}, {k}) M {m:5}: ours {a:8.1f} us, Marlin {b:8.1f}, ratio {a / b:.2f}"
                print(f"{line}, results apart by {apart:.2g}", flush=True)
    if arguments.json:
        with open(arguments.json, "w") as file:
            json.dump({"device": torch.cuda.get_device_name(), "points": results}, file, indent=1)


if __name__ == "__main__":
    main()
