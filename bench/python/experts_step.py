#!/usr/bin/env python3
"""A mixture's experts, from a router's ids to the weighted sums, beside their two grouped products alone, in one run on a GPU.

python3 bench/python/experts_step.py [--models qwen3_30b_a3b ...] [--tokens 1 8 64 512 4096] [--config isa=sm80] [--json FILE]

Needs a GPU and the package. --config: what runs the products alone instead of the library's choice, as glu() takes it.

W4A16, weights packed, x in bf16, random ids. Both ways in CUDA graphs of as many calls, each with ids of its own, so that weights are
cold where a layer's experts are more than the cache holds; 512 MB are written before each replay. The products alone get their rows
gathered and sorted, and write into memory that is there: what remains is what a router costs. Medians of the replays, in microseconds
a call. Where vLLM is installed, its fused_marlin_moe, too, on weights of the same sizes.
"""

from __future__ import annotations

import argparse
import json
import statistics
from collections.abc import Callable
from typing import Any, NamedTuple

import dualgemm as dg
import dualgemm.nn
import torch
from torch import Tensor

ROUNDS, CACHE_BYTES = 15, 512 << 20
_ops = torch.ops.dualgemm


class Model(NamedTuple):
    experts: int
    top_k: int
    hidden: int
    intermediate: int


MODELS = {
    "qwen3_30b_a3b": Model(128, 8, 2048, 768),
    "gpt_oss_120b": Model(128, 4, 2880, 2880),
    "mixtral": Model(8, 2, 4096, 14336),
    "deepseek_v3_32_here": Model(32, 8, 7168, 2048),
}


def random_experts(model: Model) -> dg.nn.GatedExperts:
    experts = dg.nn.GatedExperts(model.experts, model.hidden, model.intermediate, device="cuda")
    for module in (experts, experts.down):
        for name, buffer in module._buffers.items():
            if buffer is None:
                continue
            if name.endswith("_codes"):
                buffer.random_(0, 256)
            elif name.endswith("_scales"):
                buffer.view(torch.uint8).random_(0x30, 0x40)
            elif name.startswith("alpha"):
                buffer.fill_(0.02)
    return experts.finalize()


def ids_of(model: Model, tokens: int) -> Tensor:
    return torch.rand(tokens, model.experts, device="cuda").topk(model.top_k, dim=1).indices.int()


class Products:
    """The two grouped products of rows that lie in the order of their experts."""

    def __init__(self, experts: dg.nn.GatedExperts, model: Model, x: Tensor, ids: Tensor, config: str) -> None:
        flat = ids.flatten().long()
        counts = torch.bincount(flat, minlength=model.experts)
        self.offsets = torch.cat([counts.new_zeros(1), counts.cumsum(0)]).int()
        self.rows = x[torch.argsort(flat, stable=True) // model.top_k].contiguous()
        self.h = x.new_empty(self.rows.shape[0], model.intermediate)
        self.y = torch.empty_like(self.rows)
        self.experts, self.model, self.config = experts, model, config

    def __call__(self) -> None:
        e, m = self.experts, self.model
        none, choice = [None] * 4, {"scale_layout": "auto", "batch_invariant": False, "strategy": "auto", "config": self.config}
        factors = (e.alpha_gate, e.alpha_up, None, None, None)
        _ops.m_grouped_glu_contiguous.out(
            self.rows, None, *none, e.packed, m.intermediate, m.experts, self.offsets, None, *factors, **choice, out=self.h
        )
        _ops.linear.out(
            self.h,
            None,
            None,
            None,
            e.down.packed,
            m.hidden,
            m.experts,
            self.offsets,
            None,
            None,
            e.down.alpha,
            None,
            None,
            None,
            **choice,
            out=self.y,
        )


def microseconds(calls: list[Callable[[], Any]], cache: Tensor) -> float:
    stream = torch.cuda.Stream()
    with torch.cuda.stream(stream):
        for call in calls:
            call()
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        for call in calls:
            call()
    times = []
    for _ in range(ROUNDS):
        cache.zero_()
        begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        begin.record()
        graph.replay()
        end.record()
        torch.cuda.synchronize()
        times.append(begin.elapsed_time(end) * 1000 / len(calls))
    return statistics.median(times)


def marlin_calls(model: Model, cases: list[tuple[Tensor, Tensor, Tensor]]) -> list[Callable[[], Any]] | None:
    """fused_marlin_moe on NVFP4 weights of these sizes, rounded up as vLLM does for it, x with them; None: no vLLM here."""
    try:
        from vllm.model_executor.layers.fused_moe.experts.marlin_moe import fused_marlin_moe
        from vllm.scalar_type import scalar_types
    except ImportError:
        return None
    e, k, n = model.experts, -(-model.hidden // 256) * 256, -(-model.intermediate // 128) * 128
    device = {"device": "cuda"}
    w1 = torch.randint(-(2**31), 2**31 - 1, (e, k // 16, 4 * n), dtype=torch.int32, **device)
    w2 = torch.randint(-(2**31), 2**31 - 1, (e, n // 16, 2 * k), dtype=torch.int32, **device)
    s1 = torch.full((e, k // 16, 2 * n), 1.0, **device).to(torch.float8_e4m3fn)
    s2 = torch.full((e, n // 16, k), 1.0, **device).to(torch.float8_e4m3fn)
    g = torch.full((e,), 0.02, **device)

    def call_of(x: Tensor, ids: Tensor, weights: Tensor) -> Callable[[], Any]:
        x = torch.nn.functional.pad(x, (0, k - x.shape[1]))
        return lambda: fused_marlin_moe(
            x,
            w1,
            w2,
            None,
            None,
            s1,
            s2,
            weights,
            ids,
            quant_type_id=scalar_types.float4_e2m1f.id,
            global_scale1=g,
            global_scale2=g,
            global_num_experts=e,
        )

    return [call_of(*case) for case in cases]


def measure(name: str, tokens: int, experts: dg.nn.GatedExperts, cache: Tensor, config: str) -> dict[str, Any]:
    model = MODELS[name]
    cases = []
    for _ in range(8 if tokens <= 64 else 2):
        x = torch.randn(tokens, model.hidden, device="cuda", dtype=torch.bfloat16)
        cases.append((x, ids_of(model, tokens), torch.rand(tokens, model.top_k, device="cuda")))
    whole: list[Callable[[], Any]] = [lambda case=case: experts(*case) for case in cases]
    products: list[Callable[[], Any]] = [Products(experts, model, x, ids, config) for x, ids, _ in cases]
    result: dict[str, Any] = {"model": name, "tokens": tokens}
    for way, calls in (("whole", whole), ("products", products), ("marlin", marlin_calls(model, cases))):
        if calls is None:
            continue
        try:
            result[way] = microseconds(calls, cache)
        except Exception as error:  # another version of vLLM
            result[f"{way}_error"] = f"{type(error).__name__}: {error}"[:200]
    return result


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--models", nargs="+", choices=MODELS, default=list(MODELS))
    parser.add_argument("--tokens", nargs="+", type=int, default=[1, 8, 64, 512, 4096])
    parser.add_argument("--config", default="", help="what runs the products alone, such as isa=sm80")
    parser.add_argument("--json")
    arguments = parser.parse_args()
    torch.manual_seed(1)
    cache = torch.empty(CACHE_BYTES, dtype=torch.uint8, device="cuda")
    results = []
    with torch.inference_mode():
        for name in arguments.models:
            experts = random_experts(MODELS[name])
            for tokens in arguments.tokens:
                found = measure(name, tokens, experts, cache, arguments.config)
                results.append(found)
                line = f"{name:20} {tokens:5} tokens: whole {found['whole']:8.1f} us, products {found['products']:8.1f}"
                line += f", {found['whole'] - found['products']:+7.1f}, ratio {found['whole'] / found['products']:.3f}"
                if "marlin" in found:
                    line += f"; marlin {found['marlin']:8.1f}, ratio {found['whole'] / found['marlin']:.2f}"
                    line += f", products {found['products'] / found['marlin']:.2f}"
                print(line + found.get("marlin_error", ""), flush=True)
            del experts
    if arguments.json:
        with open(arguments.json, "w") as file:
            json.dump({"device": torch.cuda.get_device_name(), "config": arguments.config, "results": results}, file, indent=1)


if __name__ == "__main__":
    main()
