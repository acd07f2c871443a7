"""DTensor's rules for the operators.

One mesh dimension at a time, and every combination over several:
    replicate  everything
    rows       of a, a_scales (linear), a_row_scale (and linear's residual) -> rows of d
    columns    rows of gate and up, their scales, biases -> columns of d. Swizzled scales: only where every shard starts a new
               tile, N % (128 * processes) == 0
    layers     [L, ...] of everything -> [L, ...] of d
    k          linear only, linear scales, without bias, residual and activation: columns of a and w -> Partial(sum)
Alphas of one layer are replicated. Packed weights are bytes: glu_packed knows rows, and linear's packed and grouped calls are
replicated. What no rule allows is redistributed.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Optional

import torch
from torch.distributed.tensor import DTensor, Partial, Placement, Replicate, Shard
from torch.distributed.tensor.experimental import register_sharding

from .._errors import InvalidArgument
from .. import _operators  # noqa: F401  defines the operators

_ops = torch.ops.dualgemm
Rule = tuple[Placement, dict[str, Placement]]
"""Where d lies, and every argument that does not have to be replicated."""


class _Call:
    """Shapes of a call, by argument. Arguments: DTensorSpecs or DTensors, both of which have ndim and shape."""

    def __init__(self, tensors: dict[str, Any], processes: int, scale_layout: str, is_layered: bool) -> None:
        self.is_layered = is_layered
        self.tensors = {name: tensor for name, tensor in tensors.items() if hasattr(tensor, "placements")}
        self.processes = processes
        self.scale_layout = scale_layout

    def __getitem__(self, name: str) -> Any:
        return self.tensors.get(name)

    def ndim(self, name: str) -> int:
        return len(self.tensors[name].shape)

    def is_linear(self, scales: str, values: str) -> bool:
        """Whether scales have the dimensions of what they scale."""
        return self.scale_layout != "swizzled_128x4" and self.ndim(scales) == self.ndim(values)


def _rows(call: _Call, row_tensors: tuple[str, ...]) -> list[Rule]:
    """row_tensors: of d's shape."""
    rules: list[Rule] = []
    first = 1 if call.is_layered else 0
    if call["a_scales"] is not None and not call.is_linear("a_scales", "a"):
        return rules
    last = call.ndim("a") - 1
    for dim in range(first, last):
        sharded: dict[str, Placement] = {name: Shard(dim) for name in ("a", "a_scales", *row_tensors) if call[name] is not None}
        if call["a_row_scale"] is not None:
            if call.ndim("a_row_scale") == last:
                sharded["a_row_scale"] = Shard(dim)
            # Flat: the same rows only where a is flat, too, or shards are even.
            elif dim == 0 and (last == 1 or call["a"].shape[0] % call.processes == 0):
                sharded["a_row_scale"] = Shard(0)
            else:
                continue
        rules.append((Shard(dim), sharded))
    return rules


def _columns(call: _Call, weights: dict[str, str], biases: tuple[str, ...], column_tensors: tuple[str, ...]) -> list[Rule]:
    """weights: with the names of their scales. column_tensors: of d's shape."""
    sharded: dict[str, Placement] = {}
    for weight, scales in weights.items():
        dim = call.ndim(weight) - 2
        sharded[weight] = Shard(dim)
        if call.is_linear(scales, weight):
            sharded[scales] = Shard(dim)
        elif dim == 0 and call.ndim(scales) <= 2 and call[weight].shape[0] % (128 * call.processes) == 0:
            sharded[scales] = Shard(0)
        else:
            return []
    for bias in biases:
        if call[bias] is not None:
            if call.ndim(bias) != call.ndim("weight") - 1:
                return []
            sharded[bias] = Shard(call.ndim(bias) - 1)
    last = call.ndim("a") - 1
    sharded.update({name: Shard(last) for name in column_tensors if call[name] is not None})
    return [(Shard(last), sharded)]


def _layers(call: _Call) -> list[Rule]:
    # The 6-D view has layers last. A flat tensor has them one after the other: its shards are theirs only where they are even.
    if not call.is_layered or call["weight"].shape[0] % call.processes:
        return []
    if any(call.ndim(name) == 6 for name in call.tensors):
        return []
    return [(Shard(0), {name: Shard(0) for name in call.tensors})]


def glu_rules(tensors: dict[str, Any], processes: int, scale_layout: str) -> list[Rule]:
    call = _Call(tensors | {"weight": tensors["gate"]}, processes, scale_layout, len(tensors["gate"].shape) == 3)
    return [
        (Replicate(), {}),
        *_rows(call, ("out",)),
        *_columns(call, {"gate": "gate_scales", "up": "up_scales"}, ("bias_gate", "bias_up"), ("out",)),
        *_layers(call),
    ]


def linear_rules(tensors: dict[str, Any], processes: int, scale_layout: str, activation: str = "identity") -> list[Rule]:
    replicate: list[Rule] = [(Replicate(), {})]
    if tensors["w"] is None or any(tensors[name] is not None for name in ("packed", "offsets", "m_indices", "masked_m")):
        return replicate
    call = _Call(tensors | {"weight": tensors["w"]}, processes, scale_layout, len(tensors["w"].shape) == 3)
    rules = replicate + _rows(call, ("residual", "out")) + _columns(call, {"w": "w_scales"}, ("bias",), ("residual", "out"))
    values_and_scales = [("a", "a_scales"), ("w", "w_scales")]
    k = call["w"].shape[-1] * 2
    if (
        activation == "identity"  # that of a sum is no sum
        and call["bias"] is None
        and call["residual"] is None
        and k % (16 * call.processes) == 0
        and all(call[scales] is None or call.is_linear(scales, values) for values, scales in values_and_scales)
    ):
        names = [name for pair in values_and_scales for name in pair if call[name] is not None]
        rules.append((Partial(), {name: Shard(call.ndim(name) - 1) for name in names}))
    return rules + _layers(call)


def glu_packed_rules(tensors: dict[str, Any], processes: int, scale_layout: str) -> list[Rule]:
    call = _Call(tensors, processes, scale_layout, tensors["l"] > 1)
    return [(Replicate(), {}), *_rows(call, ("out",))]


_RULES: dict[str, Callable[..., list[Rule]]] = {"glu": glu_rules, "glu_packed": glu_packed_rules, "linear": linear_rules}


def _rules_of(name: str, tensors: dict[str, Any], processes: int, choice: dict[str, Any]) -> list[Rule]:
    """choice: the arguments that are no tensors, by name."""
    only = {"activation": choice["activation"]} if name == "linear" and "activation" in choice else {}
    return _RULES[name](tensors, processes, choice.get("scale_layout", "auto"), **only)


def _positional(operator: Any) -> list[str]:
    return [argument.name for argument in operator._schema.arguments if not argument.kwarg_only]


def _register_functional(name: str) -> None:
    operator = getattr(_ops, name).default
    positional = _positional(operator)

    def sharding(*arguments: Any, **choice: Any) -> list[tuple[list[Optional[Placement]], list[Optional[Placement]]]]:
        tensors = dict(zip(positional, arguments))
        mesh = tensors["a"].mesh
        rules = _rules_of(name, tensors, mesh.size(), choice)
        return [
            (
                [placement],
                [
                    sharded.get(argument, Replicate()) if hasattr(value, "placements") else None
                    for argument, value in tensors.items()
                ],
            )
            for placement, sharded in rules
        ]

    register_sharding(operator)(sharding)


def _register_out(name: str) -> None:
    """d lies where ``out`` does: register_sharding has no rules for what is written, so this goes by DTensor's own methods."""
    operator = getattr(_ops, name).out
    functional = getattr(_ops, name).default
    positional = _positional(operator)

    def write(
        mode: Any, call: Any, types: Any, arguments: tuple[Any, ...] = (), choice: Optional[dict[str, Any]] = None
    ) -> None:
        choice = dict(choice or {})
        out = choice.pop("out")
        tensors = dict(zip(positional, arguments))
        mesh = next(value.device_mesh for value in (*arguments, out) if isinstance(value, DTensor))
        tensors = {
            argument: DTensor.from_local(value, mesh, [Replicate()] * mesh.ndim, run_check=False)
            if isinstance(value, torch.Tensor) and not isinstance(value, DTensor)
            else value
            for argument, value in tensors.items()
        }
        if not isinstance(out, DTensor):
            raise InvalidArgument("out", "a tensor", "must be a DTensor, as other arguments are")
        rules = _rules_of(name, tensors | {"out": out}, mesh.size(), choice)
        fitting = [next((sharded for placement, sharded in rules if placement == wanted), None) for wanted in out.placements]
        if any(sharded is None for sharded in fitting):
            d = functional(*tensors.values(), out_dtype=out.dtype, **choice)
            out.to_local().copy_(d.redistribute(mesh, out.placements).to_local())
            return
        placements = {
            argument: [sharded.get(argument, Replicate()) for sharded in fitting if sharded is not None] for argument in tensors
        }
        local = [
            value.redistribute(mesh, placements[argument]).to_local() if isinstance(value, DTensor) else value
            for argument, value in tensors.items()
        ]
        operator(*local, **choice, out=out.to_local())

    torch.library.register_torch_dispatch(f"dualgemm::{name}.out", DTensor, write)


def register() -> None:
    for name in _RULES:
        _register_functional(name)
        _register_out(name)
