"""What the situations of several reports are made of: small layers and checkpoints, and the values that they stand for."""

from __future__ import annotations

import json
import pathlib
import subprocess
import sys
from typing import Any

import torch
from operands import DEVICE, dg
from test_checkpoints import ROW, modelopt, quantized, save, values

K, N = 64, 96


def layer(names: Any = modelopt, prefix: str = "l.mlp", input_scale: float = 0.5) -> tuple[dict[str, torch.Tensor], list[Any]]:
    """Tensors of a gated MLP by the names of a convention, and what they were made from."""
    made = [quantized(seed, rows, columns) for seed, rows, columns in ((1, N, K), (2, N, K), (3, K, N))]
    tensors: dict[str, torch.Tensor] = {}
    for part, one in zip(("gate_proj", "up_proj", "down_proj"), made):
        tensors |= names(f"{prefix}.{part}", one, input_scale)
    return tensors, made


def experts(count: int, **kw: Any) -> tuple[dg.GatedExperts, list[list[torch.Tensor]]]:
    """GatedExperts and, in double, gate, up and down of each."""
    made = [[quantized(10 * e + i, *shape) for i, shape in enumerate(((N, K), (N, K), (K, N)))] for e in range(count)]
    gate, up, down = ([of_one[i] for of_one in made] for i in range(3))

    def stacked(parts: list[Any]) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        return (
            torch.stack([one.codes for one in parts]),
            torch.stack([one.scales.view(torch.uint8) for one in parts]).view(torch.float8_e4m3fn),
            torch.cat([one.global_scale.reshape(1) for one in parts]),
        )

    (g, gs, ga), (u, us, ua), (d, ds, da) = stacked(gate), stacked(up), stacked(down)
    weights = dg.Weights.from_tensors(g, gs, u, us, alpha_gate=ga, alpha_up=ua, prepare=False)
    module = dg.GatedExperts.from_weights(weights, dg.LinearWeights.from_tensors(d, ds, alpha=da, prepare=False), **kw)
    return module.finalize(a_dtype=ROW), [[values(one).cpu() for one in of_one] for of_one in made]


def is_close(found: torch.Tensor, wanted: torch.Tensor, rounding: float = 0.02) -> bool:
    """wanted: in double. Rows of 32 bits on a CPU, else of 16 between the layers."""
    error = float((found.double().cpu() - wanted.cpu()).norm() / wanted.norm())
    return error < (1e-4 if ROW == torch.float32 else rounding)


def swiglu_oai(gate: torch.Tensor, up: torch.Tensor, alpha: float, limit: float) -> torch.Tensor:
    gate, up = gate.clamp(max=limit), up.clamp(-limit, limit)
    return gate * torch.sigmoid(alpha * gate) * (up + 1)


def validate(path: Any) -> subprocess.CompletedProcess[str]:
    """The command that comes with the package."""
    command = [sys.executable, "-P", "-m", "dualgemm", "validate", str(path)]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def change(path: pathlib.Path, edit: Any) -> None:
    """Rewrites a safetensors file."""
    from safetensors.torch import load_file

    tensors = load_file(str(path))
    edit(tensors)
    save(path, tensors)


def edit_config(folder: pathlib.Path, **members: Any) -> None:
    config = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps(config | members))


__all__ = [
    "DEVICE",
    "K",
    "N",
    "ROW",
    "change",
    "dg",
    "edit_config",
    "experts",
    "is_close",
    "layer",
    "modelopt",
    "quantized",
    "save",
]
__all__ += ["swiglu_oai", "validate", "values"]
