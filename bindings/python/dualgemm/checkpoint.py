"""NVFP4 checkpoints: ModelOpt, compressed-tensors, torchao, GGUF, separate or stacked, read by libdualgemm_checkpoint."""

from __future__ import annotations

import os
import re
import warnings
from collections.abc import Callable, Sequence
from typing import Any, Optional, Union

import torch
from torch import nn

from ._arguments import checked
from ._errors import DualGemmError, InvalidArgument, Unsupported, printable
from ._activations import Act
from ._experts import form_of, is_experts
from ._floats import check_forward, check_shape
from ._marking import mark_for_saving
from ._modules import InputType, NVFP4Linear, check_input_type
from ._opened import Checkpoint, LinearLayer, open_checkpoint
from ._replace import is_inside, matching, put_modules, warn_left
from .nn import GatedExperts, GatedMLP
from .weights import LinearWeights


def module_names(prefix: str) -> list[str]:
    """By which names a model may know a layer or a tensor of a checkpoint."""
    names = [prefix, prefix.replace(".block_sparse_moe", ".mlp")]
    if gguf := re.fullmatch(r"blk\.(\d+)(\.shexp)?", prefix):
        mlp = f"model.layers.{gguf[1]}.mlp"
        names += [f"{mlp}.shared_expert", f"{mlp}.shared_experts"] if gguf[2] else [mlp, f"{mlp}.experts"]
    return names


def prefixes_of(checkpoint: Checkpoint, model_names: Sequence[str]) -> dict[str, str]:
    """Module name -> prefix of the checkpoint: equal, or one is the other without its first parts ("model.")."""
    known = {name: prefix for prefix in (*checkpoint.layers(), *checkpoint.expert_layers()) for name in module_names(prefix)}
    found: dict[str, str] = {}
    for name in model_names:
        near = [name] if name in known else [one for one in known if one.endswith(f".{name}") or name.endswith(f".{one}")]
        if len({known[one] for one in near}) == 1:
            found[name] = known[near[0]]
    return found


def _device_of(module: nn.Module) -> torch.device:
    tensor = next(iter((*module.parameters(), *module.buffers())), None)
    return torch.device("cpu") if tensor is None or tensor.device.type == "meta" else tensor.device


class Inputs:
    """How the inputs of a model's layers are read: in 16 bits, or quantised as the checkpoint says of each layer.

    Quantised: with the input scale that was calibrated, or each row with its own where the config calls that layer's
    activations dynamic. A layer of neither, whose input scale is absent or was never written (0, NaN), stays in 16 bits.
    """

    def __init__(self, checkpoint: Checkpoint, input_dtype: InputType, max_input_scale: bool = False) -> None:
        self.checkpoint, self.input_dtype, self.max_input_scale = checkpoint, input_dtype, max_input_scale
        self.without: list[str] = []
        self._dynamic: Optional[set[str]] = None

    def _is_dynamic(self, module: str) -> bool:
        if self._dynamic is None:
            self._dynamic = {layer.module for layer in self.checkpoint.linear_layers() if layer.activations == "dynamic"}
        return any(one == module or one.startswith(f"{module}.") for one in self._dynamic)

    def of(self, module: str, scale: Callable[[], Optional[float]], part: str = "") -> tuple[InputType, Optional[float]]:
        """The input of the layers at or below ``module``, whose calibrated scale ``scale()`` is. part: of it, for people."""
        if self.input_dtype != "nvfp4":
            return self.input_dtype, None
        found = scale()
        if found is not None or self._is_dynamic(module):
            return "nvfp4", found
        self.without.append(f"{module}{part}")
        return "bf16", None

    def warn(self, stacklevel: int) -> None:
        if self.without:
            names = ", ".join(printable(name, 100) for name in self.without[:3])
            warnings.warn(
                f"{len(self.without)} layers have no input scale, or one that was never written (0, NaN), and stay W4A16, "
                f"with activations in 16 bits: {names}",
                stacklevel=stacklevel,
            )


def gated_module(
    checkpoint: Checkpoint,
    prefix: str,
    module: nn.Module,
    activation: Act,
    *,
    device: Any,
    dtype: Optional[torch.dtype],
    inputs: Inputs,
) -> Any:
    """GatedMLP, or GatedExperts, of a checkpoint's layer, in the place of ``module``, of the same shape, or InvalidArgument.
    activation: check_forward(module). dtype: of a down that is not NVFP4."""
    max_input_scale = inputs.max_input_scale
    common: dict[str, Any] = dict(device=device, prepare=False, pre_quant_scale=True, hadamard=True)
    weights = checkpoint.weights(prefix, max_input_scale=max_input_scale, **common)
    down = checkpoint.down(prefix, **common)
    factors, down_factors = checkpoint.pre_quant_scale(prefix), checkpoint.down_pre_quant_scale(prefix)
    rotation, down_rotation = checkpoint.hadamard(prefix), checkpoint.down_hadamard(prefix)
    input_dtype, scale = inputs.of(prefix, lambda: checkpoint.input_scale(prefix, max_input_scale=max_input_scale))
    down_dtype, down_scale = inputs.of(prefix, lambda: checkpoint.down_input_scale(prefix), " (down)")
    if weights._shape.experts:
        if not isinstance(down, LinearWeights):
            raise Unsupported(f"{prefix}, down", "not NVFP4", "experts must be NVFP4 altogether")
        if down_dtype != input_dtype:  # experts have one way for both
            input_dtype, scale, down_scale = "bf16", None, None
        experts = GatedExperts.from_weights(
            weights,
            down,
            **activation.options(),
            input_dtype=input_dtype,
            input_scale=scale,
            down_input_scale=down_scale,
            bias=weights.bias_gate is not None,
            by_rows=is_experts(module) and form_of(module).by_rows,
        )
        check_shape(module, weights.n, weights.k)
        experts.down.set_pre_quant_scale(down_factors).set_hadamard(down_rotation)
        return experts.set_pre_quant_scale(factors).set_hadamard(rotation)
    inner: nn.Module
    if isinstance(down, LinearWeights):
        inner = NVFP4Linear.from_weights(down, input_dtype=down_dtype, input_scale=down_scale)
        inner.set_pre_quant_scale(down_factors).set_hadamard(down_rotation)
    elif down_factors is not None or down_rotation:
        raise Unsupported(f"{prefix}, down", "an input to change (AWQ, a rotation) and no NVFP4", "only NVFP4 layers have one")
    else:
        inner = down.to(dtype=dtype)
    made = GatedMLP.from_weights(weights, inner, **activation.options(), input_dtype=input_dtype, input_scale=scale)
    check_shape(module, weights.n, weights.k)
    return made.set_pre_quant_scale(factors).set_hadamard(rotation)


@checked
def from_pretrained(
    model: nn.Module,
    path: Union[str, os.PathLike[str]],
    *,
    match: str = r".*",
    skip: Sequence[str] = (),
    device: Any = None,
    input_dtype: InputType = "bf16",
    finalize: bool = True,
    max_input_scale: bool = False,
    allow_nan: bool = False,
) -> nn.Module:
    """Puts the MLPs and experts of an NVFP4 checkpoint in the place of those of a Hugging Face ``model``; returns it.

    Modules are found by their names; the rest of the model is left as it is. device: None, that of the module replaced.
    input_dtype: "bf16", activations in 16 bits; "nvfp4", quantised with the checkpoint's input scales, or each row with its
    own where the config says dynamic; layers of neither stay in 16 bits, and a warning counts them. finalize: pack for that device. allow_nan: as open_checkpoint(). Modules that do not fit are left
    and named in a warning; InvalidArgument if none fits.
    """
    check_input_type(input_dtype)
    replaced: dict[str, nn.Module] = {}
    left: dict[str, str] = {}
    with open_checkpoint(path, allow_nan=allow_nan) as checkpoint:
        inputs = Inputs(checkpoint, input_dtype, max_input_scale)
        modules = matching(model, match, skip)
        for name, prefix in prefixes_of(checkpoint, list(modules)).items():
            module = modules[name]
            if is_inside(name, replaced):
                continue
            try:
                place = _device_of(module) if device is None else device
                old_dtype = next((parameter.dtype for parameter in module.parameters()), None)
                with torch.no_grad():
                    made = gated_module(
                        checkpoint, prefix, module, check_forward(module), device=place, dtype=old_dtype, inputs=inputs
                    )
            except DualGemmError as error:
                left[name] = str(error)
                continue
            made.train(module.training)
            if finalize:
                made.finalize()
            replaced[name] = made
        if not replaced:
            near = ", ".join(list(checkpoint.layers())[:3])
            raise InvalidArgument(
                "model",
                "; ".join(f"{n}: {why}" for n, why in left.items()) or "no module of such a name",
                f"must have MLPs as in {os.fspath(path)}: {near or 'none at all'}",
            )
    put_modules(model, replaced)
    mark_for_saving(model)
    warn_left(left)
    inputs.warn(stacklevel=4)
    return model


__all__ = ["Checkpoint", "LinearLayer", "from_pretrained", "gated_module", "module_names", "open_checkpoint", "prefixes_of"]
