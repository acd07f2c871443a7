"""transformers (>= 5): fused MLPs by KernelConfig, and NVFP4 models on any GPU or CPU without a quantiser.

transformers' own NVFP4 quantiser wants compute capability 10, one CUDA device and full-precision weights. load() reads what is
quantised already, in ModelOpt's and in compressed-tensors' names:

    model = dualgemm.integrations.transformers.load("model-nvfp4/", device="cuda", dtype=torch.bfloat16)

save_pretrained() of such a model writes what load() and transformers with this package read; export() what others read.

A float model that is loaded by transformers gets fused MLPs by

    from_pretrained("model/", kernel_config=KernelConfig({(("mlp", "model.layers.*.mlp"),): "org/repo:DualGemmGatedMLP"}))

where the repository's package does ``from dualgemm.integrations.transformers import DualGemmGatedMLP, DualGemmGatedMLPLayout``,
or, without any of it, by dualgemm.replace_mlps(model).
"""

from __future__ import annotations

from typing import Any, Optional

import torch
import transformers
from torch import Tensor, nn

from .._errors import InvalidArgument
from .._activations import activation_of
from ..nn import GatedMLP, PackedModule
from . import _saved  # noqa: F401  tells transformers of models that save_pretrained() has written
from ._export import as_floats, export
from ._load import load


# ---- fused modules of KernelConfig -------------------------------------------------------------------------------------------


class DualGemmGatedMLP(nn.Module):
    """What runs: a forward alone, which KernelConfig puts into DualGemmGatedMLPLayout."""

    can_torch_compile = True
    has_backward = False

    def forward(self: Any, hidden_states: Tensor) -> Tensor:
        """The float modules where a gradient is wanted, else NVFP4, made of them at the first call that is not compiled."""
        wants_float = torch.is_grad_enabled() or self.is_quantizing
        if self.quantized is None and not wants_float and not torch.compiler.is_compiling():
            self.quantize()
        if self.quantized is None or wants_float:
            result: Tensor = self.float_forward(hidden_states)
        else:
            result = self.quantized(hidden_states)
        return result


class DualGemmGatedMLPLayout(nn.Module):
    """What holds the parameters: those of the float MLP under their own names, so that its checkpoint loads as it is.

    Built from the MLP that it replaces, pattern "model.layers.*.mlp", or in the place of its class, from the config.
    quantize() makes NVFP4 of gate and up, and drops their float weights unless keep_float; training needs them.
    """

    keep_float = False

    def __init__(self, *children: Any) -> None:
        super().__init__()
        if len(children) != 1:
            raise InvalidArgument(
                "children", f"{len(children)} modules", 'must be the whole MLP: one pattern, "model.layers.*.mlp"'
            )
        source = children[0]
        if isinstance(source, nn.Module):
            for name, child in source.named_children():
                self.add_module(name, child)
            activation: Any = source
        else:  # a config, as LlamaMLP takes it
            hidden, inner, bias = source.hidden_size, source.intermediate_size, bool(getattr(source, "mlp_bias", False))
            self.gate_proj, self.up_proj = nn.Linear(hidden, inner, bias=bias), nn.Linear(hidden, inner, bias=bias)
            self.down_proj = nn.Linear(inner, hidden, bias=bias)
            name = getattr(source, "hidden_act", None) or source.hidden_activation
            activation = self.act_fn = transformers.activations.ACT2FN[name]
        if not all(isinstance(getattr(self, name, None), nn.Linear) for name in ("gate_proj", "up_proj", "down_proj")):
            raise InvalidArgument(
                "children", type(source).__name__, "must have gate_proj, up_proj and down_proj, each an nn.Linear"
            )
        if not hasattr(self, "act_fn"):
            self.act_fn = activation.act_fn
        self.activation = activation_of(activation if isinstance(source, nn.Module) else self)
        self.quantized: Optional[GatedMLP] = None
        self.is_quantizing = False

    def float_forward(self, hidden_states: Tensor) -> Tensor:
        """down(act(gate(x)) * up(x)) by the float modules."""
        result: Tensor = self.down_proj(self.act_fn(self.gate_proj(hidden_states)) * self.up_proj(hidden_states))
        return result

    def quantize(self, **kw: Any) -> DualGemmGatedMLPLayout:
        """kw: as GatedMLP.from_float(). Packed for the device that the module is on."""
        self.is_quantizing = True  # from_float() sends rows through this module
        try:
            made = GatedMLP.from_float(self, activation=self.activation, **kw)
        finally:
            self.is_quantizing = False
        self.quantized = made.finalize(a_dtype=self.gate_proj.weight.dtype)
        if not self.keep_float:
            self.gate_proj, self.up_proj = nn.Identity(), nn.Identity()  # type: ignore[assignment]
        return self

    forward = DualGemmGatedMLP.forward


__all__ = ["DualGemmGatedMLP", "DualGemmGatedMLPLayout", "PackedModule", "as_floats", "export", "load"]
