"""load(): a transformers model from an NVFP4 checkpoint, with no quantiser of transformers' own."""

from __future__ import annotations

import contextlib
import functools
import os
import pathlib
from typing import Any, Literal, Optional, Union

import torch
import transformers
from torch import nn

from .._arguments import checked, device_of
from .._errors import DualGemmError, FileError, InvalidArgument, Unsupported, printable
from .._experts import is_experts, is_ungated
from .._activations import Act
from .._floats import check_forward, linear_names, ungated_names
from .._marking import mark_for_saving
from .._modules import InputType, NVFP4Linear, PackedModule, check_input_type
from .._replace import is_inside, set_module, warn_left
from ..checkpoint import Checkpoint, Inputs, gated_module, open_checkpoint, prefixes_of
from ..nn import MLP, Experts
from ..nn import finalize as finalize_model
from ..weights import LinearWeights
from ._floats_of_files import FLOATS, FloatFiles
from ._meta import parameters_on_meta
from ._saved import METHOD


def _is_missing(module: nn.Module) -> bool:
    return any(parameter is not None and parameter.device.type == "meta" for parameter in module._parameters.values())


class _Loading:
    """One model on its way from a checkpoint: what was replaced, and why anything was not."""

    def __init__(
        self,
        model: nn.Module,
        checkpoint: Checkpoint,
        device: torch.device,
        dtype: torch.dtype,
        input_dtype: InputType,
        max_input_scale: bool,
    ) -> None:
        self.model, self.checkpoint, self.device, self.dtype = model, checkpoint, device, dtype
        self.inputs = Inputs(checkpoint, input_dtype, max_input_scale)
        self.replaced: list[str] = []
        self.plain_matrices: dict[str, str] = {}  # MLPs that compute more: matrix by matrix, their own forward around
        self.reasons: dict[str, str] = {}  # of modules whose tensors were not taken

    def mlps(self) -> None:
        names = [name for name, _ in self.model.named_modules() if name]
        for name, prefix in prefixes_of(self.checkpoint, names).items():
            module = self.model.get_submodule(name)
            if is_inside(name, self.replaced) or not (is_experts(module) or linear_names(module)):
                continue
            try:
                activation = check_forward(module)
            except InvalidArgument as error:
                self.plain_matrices[name] = self.reasons[name] = str(error)
                continue
            try:
                made = gated_module(
                    self.checkpoint, prefix, module, activation, device=self.device, dtype=self.dtype, inputs=self.inputs
                )
            except Unsupported as error:
                if "NVFP4" not in str(error):
                    raise
                self.reasons[name] = str(error)
                continue  # left in 16 bits by the checkpoint: loaded as such
            set_module(self.model, name, made)
            self.replaced.append(name)

    def experts_without_gate(self, files: FloatFiles) -> None:
        """Stacked parameters of a module whose experts are modules of their own in the files."""
        formats = {layer.module: layer.format for layer in self.checkpoint.linear_layers()}
        for name, module in list(self.model.named_modules()):
            if not is_ungated(module):
                continue
            parameter: Any = module.up_proj
            count, n, k = parameter.shape
            names = [[files.module_of(f"{name}.{one}.{part}") for one in range(count)] for part in ("up_proj", "down_proj")]
            if {formats.get(one) for part in names for one in part} - {"nvfp4", "mxfp4"}:
                continue  # floats, or none at all
            try:
                act = check_forward(module)
            except InvalidArgument as error:
                self.reasons[name] = str(error)
                continue
            up, down = (self.checkpoint.linears(part, device=self.device, prepare=False) for part in names)
            if (up.n, up.k, down.n, down.k) != (n, k, k, n):
                raise FileError(name, f"{up.n} x {up.k}", f"must be {n} x {k}, as config.json says")
            scales = [[self.checkpoint.linear_input_scale(one) for one in part] for part in names]
            whole = [max(one for one in part if one) if all(part) else None for part in scales]
            input_dtype, scale = self.inputs.of(names[0][0], lambda: whole[0] if whole[1] else None, f" and {count - 1} others")
            made = Experts.from_weights(
                up,
                down,
                activation=act.name,
                bias="bias" in up._tensors,
                input_dtype=input_dtype,
                input_scale=scale,
                down_input_scale=whole[1] if scale else None,
            )
            set_module(self.model, name, made)
            self.replaced.append(name)

    def linears_without_gate(self) -> dict[str, Act]:
        """The MLPs that compute down(act(up(x))), by name, while their matrices are missing."""
        found: dict[str, Act] = {}
        for name, module in self.model.named_modules():
            names = ungated_names(module)
            if not names or not all(_is_missing(getattr(module, one)) for one in names):
                continue
            with contextlib.suppress(InvalidArgument):  # its own forward stays around its matrices
                found[name] = check_forward(module)
        return found

    def join_without_gate(self, found: dict[str, Act]) -> None:
        for name, act in found.items():
            module = self.model.get_submodule(name)
            up, down = (getattr(module, one) for one in ungated_names(module))
            if isinstance(up, NVFP4Linear) and isinstance(down, NVFP4Linear):
                set_module(self.model, name, MLP.from_linears(up, down, activation=act.name))
                self.replaced.append(name)

    def linears(self, files: FloatFiles) -> None:
        schemes = {layer.module: layer for layer in self.checkpoint.linear_layers()}
        for name, module in list(self.model.named_modules()):
            if not isinstance(module, nn.Linear):
                continue
            layer = schemes.get(files.module_of(name))
            if layer is not None and layer.hadamard and layer.format not in ("nvfp4", "mxfp4"):
                raise Unsupported(
                    name, f"{layer.format}, its input rotated by {layer.hadamard} columns", "only NVFP4 layers have such inputs"
                )
            if not _is_missing(module):
                continue
            if layer is not None and layer.format in ("fp8", "mxfp8"):
                set_module(self.model, name, files.fp8_linear(module, layer, self.dtype, self.device))
                continue
            try:
                linear = self.checkpoint.linear(name, device=self.device, prepare=False, pre_quant_scale=True, hadamard=True)
            except DualGemmError as error:
                self.reasons[name] = str(error)  # tied, or missing: told in the end
                continue
            if not isinstance(linear, LinearWeights):
                continue
            if (linear.n, linear.k) != (module.out_features, module.in_features):
                raise FileError(
                    name,
                    f"{linear.n} x {linear.k}",
                    f"must be {module.out_features} x {module.in_features}, as config.json says",
                )
            input_dtype, scale = self.inputs.of(name, functools.partial(self.checkpoint.linear_input_scale, name))
            made = NVFP4Linear.from_weights(linear, input_dtype=input_dtype, input_scale=scale)
            made.set_pre_quant_scale(self.checkpoint.linear_pre_quant_scale(name))
            set_module(self.model, name, made.set_hadamard(self.checkpoint.linear_hadamard(name)))

    def check_complete(self, folder: pathlib.Path, files: FloatFiles) -> None:
        missing = sorted(name for name, parameter in self.model.named_parameters() if parameter.device.type == "meta")
        if not missing:
            return
        told = []
        for name in missing[:5]:
            owner = name.rpartition(".")[0]
            reason = files.refused(name) or self.reasons.get(owner) or files.seen(name) or "not in the files"
            told.append(f"{printable(name, 200)} ({printable(reason, 300)})")
        raise FileError(
            str(folder),
            f"{len(missing)} tensors missing or not usable: {'; '.join(told)}",
            "must hold what config.json describes",
        )


def _saved_method(config: Any) -> Optional[str]:
    described = getattr(config, "quantization_config", None)
    method = described.get("quant_method") if isinstance(described, dict) else getattr(described, "quant_method", None)
    return None if method is None else str(method)


def _load_saved(folder: pathlib.Path, dtype: torch.dtype, input_dtype: InputType, model_class: Any) -> nn.Module:
    """What save_pretrained() wrote after modules of this package were put into a model."""
    model: nn.Module = model_class.from_pretrained(folder, dtype=dtype)
    for name, module in model.named_modules():
        if isinstance(module, PackedModule) and input_dtype == "nvfp4" != module.input_dtype:
            raise InvalidArgument("input_dtype", repr(input_dtype), f"must be bf16, as {name} was saved")
    return model


@checked
def load(
    path: Union[str, os.PathLike[str]],
    *,
    device: Any = "cpu",
    dtype: Optional[torch.dtype] = None,
    input_dtype: InputType = "bf16",
    finalize: bool = True,
    max_input_scale: bool = False,
    model_class: Any = None,
    allow_nan: bool = False,
    wide_mxfp4: Literal["decode", "refuse"] = "decode",
) -> Any:
    """A transformers model from the folder of an NVFP4 checkpoint (config.json and safetensors), in eval mode.

    Its MLPs become GatedMLP (experts GatedExperts; without a gate MLP and Experts), other quantised linear layers NVFP4Linear; everything else is loaded as
    it is, in ``dtype`` (None: config.json's). MLPs whose class computes more than down(act(gate(x)) * up(x)), a clamp or a
    factor, keep it: their matrices become NVFP4Linear one by one, and a warning names them. input_dtype: "bf16" or "nvfp4",
    as from_pretrained(). finalize: pack for ``device``, where the model then stays. model_class: AutoModelForCausalLM unless
    given. allow_nan: scales that are NaN or infinite are taken as they are. A folder that save_pretrained() wrote after
    replace_mlps(), from_pretrained() or load() is read, too, with the input_dtype that it has. wide_mxfp4: matrices in MXFP4
    whose exponents lie further apart than 17 are no NVFP4; they are decoded once, exactly, to ``dtype``, and a warning names
    each with its bytes, or "refuse": Unsupported. FileError: what is missing, contradicts config.json or has such scales, and
    why.
    """
    if wide_mxfp4 not in ("decode", "refuse"):
        raise InvalidArgument("wide_mxfp4", repr(wide_mxfp4), "must be decode or refuse")
    check_input_type(input_dtype)
    if not isinstance(path, (str, os.PathLike)):
        raise InvalidArgument("path", type(path).__name__, "must be a path")
    folder = pathlib.Path(path)
    if not (folder / "config.json").is_file():
        raise FileError("path", str(folder), "must be a folder with config.json and safetensors")
    config = transformers.AutoConfig.from_pretrained(folder)
    dtype = dtype or getattr(config, "dtype", None) or torch.bfloat16
    if dtype not in FLOATS:
        raise InvalidArgument("dtype", str(dtype), "must be bfloat16, float16 or float32")
    place = device_of(device)
    model_class = model_class or transformers.AutoModelForCausalLM
    if _saved_method(config) == METHOD:
        model: Any = _load_saved(folder, dtype, input_dtype, model_class)
    else:
        model = _load_checkpoint(folder, config, place, dtype, input_dtype, max_input_scale, model_class, allow_nan, wide_mxfp4)
    with contextlib.suppress(OSError):
        model.generation_config = transformers.GenerationConfig.from_pretrained(folder)
    model.to(place).eval()
    return finalize_model(model, a_dtype=dtype) if finalize else model


def _load_checkpoint(
    folder: pathlib.Path,
    config: Any,
    place: torch.device,
    dtype: torch.dtype,
    input_dtype: InputType,
    max_input_scale: bool,
    model_class: Any,
    allow_nan: bool,
    wide_mxfp4: str,
) -> Any:
    if hasattr(config, "quantization_config"):
        del config.quantization_config  # transformers would look for a quantiser
    with parameters_on_meta():
        model = model_class.from_config(config, dtype=dtype)
    files = FloatFiles(folder)
    with open_checkpoint(folder, allow_nan=allow_nan) as checkpoint, torch.no_grad():
        loading = _Loading(model, checkpoint, place, dtype, input_dtype, max_input_scale)
        loading.mlps()
        loading.experts_without_gate(files)
        files.load(model, dtype, place)
        without_gate = loading.linears_without_gate()
        loading.linears(files)
        loading.join_without_gate(without_gate)
        files.load_mxfp4(model, dtype, place, wide_mxfp4 == "refuse")
        files.load_fp8_experts(model, {layer.module: layer for layer in checkpoint.linear_layers()}, dtype, place)
    model.tie_weights()
    loading.check_complete(folder, files)
    warn_left({name: f"matrix by matrix: {reason}" for name, reason in loading.plain_matrices.items()}, stacklevel=5)
    loading.inputs.warn(stacklevel=5)
    mark_for_saving(model)
    return model
