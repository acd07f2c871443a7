#!/usr/bin/env python3
"""A stack of MLPs in NVFP4 beside bf16, a Llama's or Nemotron-H's without a gate, under torch.compile, in one run on a GPU.

python3 bench/python/mlp_stack.py [--layers 32] [--batch 1 16 256] [--json FILE]      needs a GPU, Triton and the package
python3 bench/python/mlp_stack.py --without-gate --intermediate 21504

Each layer is x + down(silu(gate n) * (up n)), n = x by its root mean square; hidden size 4096, intermediate 14336, random weights
(Llama 3 8B's sizes). bf16 once with gate and up as two nn.Linear, as transformers has them, and once stacked into one; the faster of
the two is what ours is compared with. Ours: replace_mlps with all three matrices in NVFP4 and x in bf16 (W4A16), and with x and h
quantised on the fly, each row with a scale of its own (W4A4). All compiled in the same mode, CUDA graphs by default. In each round
each way runs by itself, passes one behind the other as in a loop that decodes: half a second so that clock and power settle (a GPU
at its power limit holds a higher clock for some tenths of a second after something lighter), then half a second that counts, by
events. Medians of the rounds. The relative error is of one layer's MLP, ours to bf16's, on a normal x: it is what 4 bits cost.
"""

from __future__ import annotations

import argparse
import json
import pathlib
import statistics
from typing import Any

import dualgemm as dg
import dualgemm.nn
import torch
from torch import Tensor, nn

ROUNDS, SECONDS = 5, 0.5


class Mlp(nn.Module):
    def __init__(self, hidden: int, intermediate: int) -> None:
        super().__init__()
        kind: dict[str, Any] = {"bias": False, "dtype": torch.bfloat16, "device": "cuda"}
        self.gate_proj, self.up_proj = (nn.Linear(hidden, intermediate, **kind) for _ in range(2))
        self.down_proj = nn.Linear(intermediate, hidden, **kind)
        self.act_fn = nn.SiLU()

    def forward(self, x: Tensor) -> Tensor:
        result: Tensor = self.down_proj(self.act_fn(self.gate_proj(x)) * self.up_proj(x))
        return result


class StackedMlp(nn.Module):
    """One product for gate and up, on the same numbers."""

    def __init__(self, mlp: Mlp) -> None:
        super().__init__()
        self.gate_up = nn.Parameter(torch.cat((mlp.gate_proj.weight, mlp.up_proj.weight)), requires_grad=False)
        self.down_proj = mlp.down_proj

    def forward(self, x: Tensor) -> Tensor:
        gate, up = nn.functional.linear(x, self.gate_up).chunk(2, -1)
        result: Tensor = self.down_proj(nn.functional.silu(gate) * up)
        return result


class UngatedMlp(nn.Module):
    def __init__(self, hidden: int, intermediate: int) -> None:
        super().__init__()
        kind: dict[str, Any] = {"bias": False, "dtype": torch.bfloat16, "device": "cuda"}
        self.up_proj, self.down_proj = nn.Linear(hidden, intermediate, **kind), nn.Linear(intermediate, hidden, **kind)

    def act_fn(self, x: Tensor) -> Tensor:
        return nn.functional.relu(x).square()

    def forward(self, x: Tensor) -> Tensor:
        result: Tensor = self.down_proj(self.act_fn(self.up_proj(x)))
        return result


class Layer(nn.Module):
    def __init__(self, mlp: nn.Module, hidden: int) -> None:
        super().__init__()
        self.mlp, self.norm = mlp, nn.RMSNorm(hidden, dtype=torch.bfloat16, device="cuda")

    def forward(self, x: Tensor) -> Tensor:
        result: Tensor = x + self.mlp(self.norm(x))
        return result


def ours(plain: list[Any], hidden: int, input_dtype: Any) -> nn.Sequential:
    stack = nn.Sequential(*(Layer(mlp, hidden) for mlp in plain))
    if isinstance(plain[0], UngatedMlp):
        for layer in stack:
            layer.mlp = dg.nn.MLP.from_float(layer.mlp, quantize_down=True, input_dtype=input_dtype)  # type: ignore[arg-type]
    else:
        assert len(dg.replace_mlps(stack, quantize_down=True, input_dtype=input_dtype)) == len(plain)
    dg.nn.finalize(stack)
    return stack


def relative_error(found: Tensor, wanted: Tensor) -> float:
    return float((found.float() - wanted.float()).norm() / wanted.float().norm())


def milliseconds_of(way: Any, x: Tensor, passes: int) -> float:
    begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    begin.record()
    for _ in range(passes):
        way(x)
    end.record()
    end.synchronize()
    return begin.elapsed_time(end) / passes


def median_milliseconds(ways: dict[str, Any], x: Tensor) -> dict[str, float]:
    passes = {}
    for name, way in ways.items():
        milliseconds_of(way, x, 3)  # compiles, records
        passes[name] = max(1, round(SECONDS * 1000 / milliseconds_of(way, x, 10)))
    times: dict[str, list[float]] = {name: [] for name in ways}
    for _ in range(ROUNDS):
        for name, way in ways.items():
            milliseconds_of(way, x, passes[name])
            times[name].append(milliseconds_of(way, x, passes[name]))
    return {name: statistics.median(of) for name, of in times.items()}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--layers", type=int, default=32)
    parser.add_argument("--hidden", type=int, default=4096)
    parser.add_argument("--intermediate", type=int, default=14336)
    parser.add_argument("--without-gate", action="store_true", help="down(relu(up n)^2) in place of the gated MLP")
    parser.add_argument("--batch", type=int, nargs="+", default=[1, 16, 256])
    parser.add_argument("--mode", default="reduce-overhead", help="of torch.compile")
    parser.add_argument("--json", help="write the table there as well")
    options = parser.parse_args()
    torch.manual_seed(0)
    name = torch.cuda.get_device_name()
    print(
        f"{name}, torch {torch.__version__}; {options.layers} layers, {options.hidden} x {options.intermediate}, {options.mode}"
    )
    points = []
    with torch.inference_mode():
        kind: Any = UngatedMlp if options.without_gate else Mlp
        plain = [kind(options.hidden, options.intermediate) for _ in range(options.layers)]
        stacks = {"bf16": nn.Sequential(*(Layer(mlp, options.hidden) for mlp in plain))}
        if not options.without_gate:
            stacks["bf16 stacked"] = nn.Sequential(*(Layer(StackedMlp(mlp), options.hidden) for mlp in plain))
        stacks |= {"W4A16": ours(plain, options.hidden, "bf16"), "W4A4": ours(plain, options.hidden, "nvfp4")}
        for m in options.batch:
            torch._dynamo.reset()  # a graph of its own for each number of rows
            x = torch.randn(m, options.hidden, dtype=torch.bfloat16, device="cuda")
            compiled = {
                way: torch.compile(stack, mode=options.mode, fullgraph=True, dynamic=False) for way, stack in stacks.items()
            }
            errors = {way: relative_error(stacks[way][0].mlp(x), plain[0](x)) for way in ("W4A16", "W4A4")}
            times = median_milliseconds(compiled, x)
            base = min(of for way, of in times.items() if way.startswith("bf16"))
            points.append({"batch": m, "milliseconds": times, "error": errors})
            print(
                f"batch {m}: "
                + ", ".join(f"{way} {of:.3f} ms ({of / base:.2f})" for way, of in times.items())
                + "; error of an MLP "
                + ", ".join(f"{way} {of:.3f}" for way, of in errors.items()),
                flush=True,
            )
    if options.json:
        report = {
            "device": name,
            "torch": torch.__version__,
            "layers": options.layers,
            "hidden": options.hidden,
            "intermediate": options.intermediate,
            "without_gate": options.without_gate,
            "mode": options.mode,
            "points": points,
        }
        pathlib.Path(options.json).write_text(json.dumps(report, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
