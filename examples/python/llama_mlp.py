#!/usr/bin/env python3
"""A small random Llama of transformers, its MLPs in NVFP4: error and time beside the float model.

python3 examples/python/llama_mlp.py [--device cuda] [--hidden 512] [--down] [--input-dtype nvfp4]
"""

from __future__ import annotations

import argparse
import copy
import time

import torch
import transformers

import dualgemm
from dualgemm.nn import finalize

# ---- 1. A float model ------------------------------------------------------------------------------------


def small_llama(hidden: int, layers: int, device: str) -> torch.nn.Module:
    """Random weights; the shape of a Llama, four times as wide inside."""
    torch.manual_seed(0)
    config = transformers.LlamaConfig(
        hidden_size=hidden,
        intermediate_size=4 * hidden,
        num_hidden_layers=layers,
        num_attention_heads=8,
        num_key_value_heads=2,
        vocab_size=1024,
    )
    model = transformers.AutoModelForCausalLM.from_config(config, dtype=torch.bfloat16)
    return model.to(device).eval()


# ---- 2. What is compared ---------------------------------------------------------------------------------


def milliseconds(model: torch.nn.Module, x: torch.Tensor, rounds: int) -> float:
    """The best of ``rounds`` forward passes, after one that warms up."""
    model(x)
    times = []
    for _ in range(rounds):
        if x.is_cuda:
            torch.cuda.synchronize()
        start = time.perf_counter()
        model(x)
        if x.is_cuda:
            torch.cuda.synchronize()
        times.append(time.perf_counter() - start)
    return 1e3 * min(times)


def relative_error(found: torch.Tensor, wanted: torch.Tensor) -> float:
    return float((found.float() - wanted.float()).norm() / wanted.float().norm())


def size(model: torch.nn.Module) -> float:
    """MB of parameters and buffers."""
    tensors = {tensor.data_ptr(): tensor for tensor in (*model.parameters(), *model.buffers())}
    return sum(tensor.numel() * tensor.element_size() for tensor in tensors.values()) / 1e6


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    parser.add_argument("--hidden", type=int, default=512)
    parser.add_argument("--layers", type=int, default=4)
    parser.add_argument("--tokens", type=int, nargs="+", default=[1, 16, 128])
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--down", action="store_true", help="the down projections in NVFP4, too")
    parser.add_argument("--input-dtype", choices=("bf16", "nvfp4"), default="bf16")
    arguments = parser.parse_args()

    # ---- 3. With us: three lines -----------------------------------------------------------------------------
    plain = small_llama(arguments.hidden, arguments.layers, arguments.device)
    ours = copy.deepcopy(plain)
    names = dualgemm.replace_mlps(ours, quantize_down=arguments.down, input_dtype=arguments.input_dtype)
    finalize(ours)

    print(f"{len(names)} MLPs replaced on {arguments.device}; {size(plain):.1f} MB become {size(ours):.1f} MB")
    print(f"{'tokens':>7} {'float ms':>9} {'NVFP4 ms':>9} {'error of an MLP':>16} {'of the logits':>14}")
    with torch.no_grad():
        for tokens in arguments.tokens:
            ids = torch.randint(0, 1024, (1, tokens), device=arguments.device)
            x = torch.randn(1, tokens, arguments.hidden, dtype=torch.bfloat16, device=arguments.device)
            of_mlp = relative_error(ours.get_submodule(names[0])(x), plain.get_submodule(names[0])(x))
            of_logits = relative_error(ours(ids).logits, plain(ids).logits)
            times = [milliseconds(model, ids, arguments.rounds) for model in (plain, ours)]
            print(f"{tokens:>7} {times[0]:>9.2f} {times[1]:>9.2f} {of_mlp:>16.4f} {of_logits:>14.4f}")
        print(dualgemm.explain(x[0], ours.get_submodule(names[0]).weights()).splitlines()[0])


if __name__ == "__main__":
    main()
