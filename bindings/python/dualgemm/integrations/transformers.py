"""transformers (>= 5): fused MLPs by KernelConfig, and NVFP4 models on any GPU or CPU without a quantiser.

transformers' own NVFP4 quantiser wants compute capability 10, one CUDA device and full-precision weights. load() reads what is
quantised already, in ModelOpt's and in compressed-tensors' names:

    model = dualgemm.integrations.transformers.load("model-nvfp4/", device="cuda", dtype=torch.bfloat16)

A float model that is loaded by transformers gets fused MLPs by

    from_pretrained("model/", kernel_config=KernelConfig({(("mlp", "model.layers.*.mlp"),): "org/repo:DualGemmGatedMLP"}))

where the repository's package does ``from dualgemm.integrations.transformers import DualGemmGatedMLP, DualGemmGatedMLPLayout``,
or, without any of it, by dualgemm.replace_mlps(model).
"""
from __future__ import annotations

import contextlib
import json
import os
import pathlib
from collections.abc import Iterator
from typing import Any, Optional, Union

import torch
import transformers
from safetensors import safe_open
from torch import Tensor, nn

from .._errors import FileError, InvalidArgument, Unsupported
from .._floats import activation_of
from .._modules import InputType, NVFP4Linear, check_input_type
from ..checkpoint import Checkpoint, gated_module, module_names, open_checkpoint, prefixes_of
from ..nn import GatedMLP, PackedModule, is_inside, set_module
from ..nn import finalize as finalize_model
from ..weights import LinearWeights

_FLOATS = (torch.float32, torch.bfloat16, torch.float16)


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
            raise InvalidArgument("children", f"{len(children)} modules",
                                  'must be the whole MLP: one pattern, "model.layers.*.mlp"')
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
            raise InvalidArgument("children",
                                  type(source).__name__, "must have gate_proj, up_proj and down_proj, each an nn.Linear")
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


# ---- NVFP4 checkpoints -------------------------------------------------------------------------------------------------------

@contextlib.contextmanager
def _parameters_on_meta() -> Iterator[None]:
    """Modules are built without memory for parameters, but with their buffers, which no checkpoint has. Not for several
    threads."""
    original = nn.Module.register_parameter

    def register(self: nn.Module, name: str, parameter: Optional[nn.Parameter]) -> None:
        if parameter is not None and parameter.device.type != "meta":
            parameter = nn.Parameter(parameter.to("meta"), requires_grad=False)
        original(self, name, parameter)

    nn.Module.register_parameter = register  # type: ignore[method-assign, assignment]
    try:
        yield
    finally:
        nn.Module.register_parameter = original  # type: ignore[method-assign]


def _files(folder: pathlib.Path) -> list[pathlib.Path]:
    index = folder / "model.safetensors.index.json"
    if index.exists():
        return [folder / name for name in sorted(set(json.loads(index.read_text())["weight_map"].values()))]
    return sorted(folder.glob("*.safetensors"))


def _load_plain(model: nn.Module, folder: pathlib.Path, dtype: torch.dtype, device: torch.device) -> None:
    """Every parameter and persistent buffer that the checkpoint holds as floats, under its own name."""
    wanted = {name: tensor.shape for name, tensor in model.state_dict(keep_vars=True).items()}
    for path in _files(folder):
        with safe_open(str(path), framework="pt", device="cpu") as file:
            for key in file.keys():
                name = next((one for one in module_names(key) if one in wanted), None)
                if name is None:
                    continue
                tensor = file.get_tensor(key)
                if tensor.dtype not in _FLOATS or tensor.shape != wanted[name]:
                    continue  # NVFP4: the reader's
                parent, _, last = name.rpartition(".")
                owner = model.get_submodule(parent)
                moved = tensor.to(device=device, dtype=dtype, copy=True)
                if last in owner._parameters:
                    owner._parameters[last] = nn.Parameter(moved, requires_grad=False)
                else:
                    owner._buffers[last] = moved


def _is_missing(module: nn.Module) -> bool:
    return any(parameter is not None and parameter.device.type == "meta" for parameter in module._parameters.values())


def _load_linears(model: nn.Module, checkpoint: Checkpoint, input_dtype: InputType, device: torch.device) -> None:
    for name, module in list(model.named_modules()):
        if not isinstance(module, nn.Linear) or not _is_missing(module):
            continue
        try:
            linear = checkpoint.linear(name, device=device, prepare=False)
        except FileError:
            continue  # tied, or missing: told below
        if not isinstance(linear, LinearWeights):
            continue
        if (linear.n, linear.k) != (module.out_features, module.in_features):
            raise FileError(name, f"{linear.n} x {linear.k}",
                            f"must be {module.out_features} x {module.in_features}, as config.json says")
        scale = checkpoint.linear_input_scale(name) if input_dtype == "nvfp4" else None
        set_module(model, name, NVFP4Linear.from_weights(linear, input_dtype=input_dtype, input_scale=scale))


def _is_mlp(module: nn.Module) -> bool:
    return any(hasattr(module, name) for name in ("gate_proj", "gate_up_proj", "w1"))


def load(path: Union[str, os.PathLike[str]], *, device: Any = "cpu", dtype: Optional[torch.dtype] = None,
         input_dtype: InputType = "bf16", finalize: bool = True, max_input_scale: bool = False, model_class: Any = None,
         allow_nan: bool = False) -> Any:
    """A transformers model from the folder of an NVFP4 checkpoint (config.json and safetensors), in eval mode.

    Its MLPs become GatedMLP (experts GatedExperts), other quantised linear layers NVFP4Linear; everything else is loaded as
    it is, in ``dtype`` (None: config.json's). input_dtype: "bf16" or "nvfp4", as from_pretrained(). finalize: pack for
    ``device``, where the model then stays. model_class: AutoModelForCausalLM unless given. allow_nan: scales that are NaN or
    infinite are taken as they are. FileError: what is missing, contradicts config.json, or has such scales.
    """
    check_input_type(input_dtype)
    folder = pathlib.Path(path)
    if not (folder / "config.json").is_file():
        raise FileError("path", str(folder), "must be a folder with config.json and safetensors")
    config = transformers.AutoConfig.from_pretrained(folder)
    if hasattr(config, "quantization_config"):
        del config.quantization_config  # transformers would look for a quantiser
    dtype = dtype or getattr(config, "dtype", None) or torch.bfloat16
    if dtype not in _FLOATS:
        raise InvalidArgument("dtype", str(dtype), "must be bfloat16, float16 or float32")
    place = torch.empty(0, device=device).device
    with _parameters_on_meta():
        model = (model_class or transformers.AutoModelForCausalLM).from_config(config, dtype=dtype)
    replaced: list[str] = []
    with open_checkpoint(folder, allow_nan=allow_nan) as checkpoint, torch.no_grad():
        for name, prefix in prefixes_of(checkpoint, [name for name, _ in model.named_modules() if name]).items():
            module = model.get_submodule(name) if not is_inside(name, replaced) else None
            if module is None or not _is_mlp(module):
                continue
            try:
                made = gated_module(checkpoint, prefix, activation=activation_of(module), device=place, dtype=dtype,
                                    input_dtype=input_dtype, max_input_scale=max_input_scale)
            except Unsupported as error:
                if "NVFP4" not in str(error):
                    raise
                continue  # left in 16 bits by the checkpoint: loaded as such
            set_module(model, name, made)
            replaced.append(name)
        _load_plain(model, folder, dtype, place)
        _load_linears(model, checkpoint, input_dtype, place)
    model.tie_weights()
    missing = sorted(name for name, parameter in model.named_parameters() if parameter.device.type == "meta")
    if missing:
        raise FileError(str(folder), f"{len(missing)} tensors missing: {', '.join(missing[:5])}",
                        "must hold what config.json describes")
    with contextlib.suppress(OSError):
        model.generation_config = transformers.GenerationConfig.from_pretrained(folder)
    model.to(place).eval()
    return finalize_model(model, a_dtype=dtype) if finalize else model


__all__ = ["DualGemmGatedMLP", "DualGemmGatedMLPLayout", "PackedModule", "load"]
