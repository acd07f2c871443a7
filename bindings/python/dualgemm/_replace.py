"""Which modules of a model are replaced, putting others in their places, all or none, and saying what was left."""

from __future__ import annotations

import re
import warnings
from collections.abc import Iterable, Sequence
from typing import Any, Optional

from torch import nn

from ._arguments import flag, text
from ._errors import InvalidArgument, printable
from ._activations import ACTIVATIONS
from ._experts import is_experts
from ._floats import linear_names, ungated_names
from ._modules import PackedModule, check_input_type

_OPTIONS = {"quantize_down", "four_over_six", "activation", "input_dtype", "input_scale"}
ONLY_DENSE = {"quantize_down"}
# Names that models give to what stands where a gated MLP may stand.
_MLP_NAMES = re.compile(r"(.*\.)?(mlp|feed_?forward|ffn|block_sparse_moe|moe|experts|shared_experts?|shared_mlp)")
_MOST_NAMED = 20


def set_module(model: nn.Module, name: str, module: nn.Module) -> None:
    parent, _, last = name.rpartition(".")
    setattr(model.get_submodule(parent), last, module)


def warn_left(left: dict[str, str], before: str = "", stacklevel: int = 4) -> None:
    """One warning that names what was left, and why."""
    if not left and not before:
        return
    shown = [f"{printable(name)} ({reason})" for name, reason in list(left.items())[:_MOST_NAMED]]
    if len(left) > _MOST_NAMED:
        shown.append(f"and {len(left) - _MOST_NAMED} more")
    text = f"left as they are: {'; '.join(shown)}" if left else ""
    warnings.warn(f"dualgemm: {'; '.join(part for part in (before, text) if part)}", stacklevel=stacklevel)


def matching(model: nn.Module, match: str, skip: Sequence[str]) -> dict[str, nn.Module]:
    """Modules by all of their names, outer before inner; ``skip``: regular expressions or names."""
    if not isinstance(model, nn.Module):
        raise InvalidArgument("model", type(model).__name__, "must be an nn.Module")
    try:
        skip = [skip] if isinstance(skip, str) else list(skip)
    except TypeError:
        raise InvalidArgument("skip", type(skip).__name__, "must be regular expressions or names") from None
    if not all(isinstance(one, str) for one in (match, *skip)):
        raise InvalidArgument("skip", ", ".join(type(one).__name__ for one in skip[:3]), "must be regular expressions or names")
    try:
        wanted, unwanted = re.compile(match), [re.compile(one) for one in skip]
    except (re.error, TypeError) as error:
        raise InvalidArgument("match", f"{match!r}, skip {skip!r}", f"must be regular expressions: {error}") from None
    return {
        name: module
        for name, module in model.named_modules(remove_duplicate=False)
        if name and wanted.fullmatch(name) and name not in skip and not any(one.fullmatch(name) for one in unwanted)
    }


def is_inside(name: str, outer: Iterable[str]) -> bool:
    return any(name.startswith(f"{one}.") for one in outer)


def _looks_like_one(module: nn.Module, without_gate: bool) -> bool:
    return is_experts(module) or bool(linear_names(module)) or (without_gate and bool(ungated_names(module)))


def candidates(
    model: nn.Module, match: Optional[str], skip: Sequence[str], without_gate: bool = False
) -> tuple[dict[str, nn.Module], dict[str, str]]:
    """What is to be replaced, and what stands where an MLP may stand and does not look like one."""
    found = matching(model, ".*" if match is None else match, skip)
    done = {name for name, module in model.named_modules(remove_duplicate=False) if isinstance(module, PackedModule)}
    found = {name: module for name, module in found.items() if name not in done and not is_inside(name, done)}
    if match is not None:
        return found, {}
    gated = {name: module for name, module in found.items() if _looks_like_one(module, without_gate)}
    others = {
        name: f"{type(module).__name__} has no gate_proj, up_proj and down_proj"
        for name, module in found.items()
        if name not in gated
        and _MLP_NAMES.fullmatch(name)
        and any(True for _ in module.parameters())
        and not is_inside(name, gated)
        and not any(is_inside(one, [name]) for one in (*gated, *done))
    }
    outermost = {name: why for name, why in others.items() if not is_inside(name, others)}
    return gated, outermost


def check_options(options: dict[str, Any]) -> None:
    """What every module would refuse is the caller's mistake, not a reason to leave them all."""
    if unknown := sorted(set(options) - _OPTIONS):
        raise TypeError(f"replace_mlps() got an unexpected keyword argument {unknown[0]!r}")
    check_input_type(options.get("input_dtype", "bf16"))
    scale, activation = options.get("input_scale"), options.get("activation")
    if activation is not None:
        text("activation", activation)
    for name in ("four_over_six", "quantize_down"):
        flag(name, options.get(name, False))
    if scale is not None and not (isinstance(scale, (int, float)) and 0 < scale < float("inf")):
        raise InvalidArgument("input_scale", repr(scale), "must be finite and > 0")
    if activation is not None and activation not in (*ACTIVATIONS, "swiglu_oai"):
        raise InvalidArgument("activation", repr(activation), f"must be one of {', '.join((*ACTIVATIONS, 'swiglu_oai'))}")


def put_modules(model: nn.Module, new: dict[str, nn.Module]) -> None:
    """All of them or, if the model refuses one, none."""
    old = {name: model.get_submodule(name) for name in new}
    try:
        for name, module in new.items():
            set_module(model, name, module)
    except BaseException:
        for name, module in old.items():
            set_module(model, name, module)
        raise
