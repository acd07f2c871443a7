"""A model that has modules of this package as a folder that transformers reads without it: floats, or compressed-tensors."""

from __future__ import annotations

import copy
import os
import pathlib
import shutil
import tempfile
from collections.abc import Iterator
from typing import Any, Literal, NamedTuple, Optional, Union

import torch
import transformers
from huggingface_hub import save_torch_state_dict
from torch import Tensor, nn

from .._arguments import checked
from .._errors import FileError, InvalidArgument, Unsupported
from .._experts import form_of, parts_of
from .._floats import linear_names, ungated_names
from .._fp8 import FP8Linear
from .._modules import PackedModule
from .._operands import linear_scales
from .._quantized import QuantizedTensor, dequantize, transform_rows
from .._ungated import MLP, Experts
from ..nn import GatedExperts, GatedMLP
from ._floats_of_files import FLOATS
from ._meta import parameters_on_meta

Format = Literal["floats", "compressed-tensors"]
_OURS = (PackedModule, FP8Linear)


class Matrix(NamedTuple):
    """One matrix of a module: codes [N, K/2] with linear scales, as files have them, and the multiplier of its weights."""

    codes: Tensor
    scales: Tensor
    alpha: float
    bias: Optional[Tensor]
    owner: PackedModule
    """whose input it gets"""

    def floats(self, dtype: torch.dtype) -> Tensor:
        """[N, K], with what becomes of the input in it: x @ diag(factors) @ H @ W.T."""
        scale = torch.full((1,), self.alpha, dtype=torch.float32, device=self.codes.device)
        values = dequantize(QuantizedTensor(self.codes, self.scales, scale))
        if self.owner.hadamard:
            values = transform_rows(values, hadamard=self.owner.hadamard)  # its matrix is symmetric
        if self.owner.pre_quant_scale is not None:
            values = values * self.owner.pre_quant_scale
        return values.to("cpu", dtype)


def _matrix(name: str, module: PackedModule, which: str, alpha: str, bias: str, expert: Optional[int] = None) -> Matrix:
    codes, scales = module._buffers[f"{which}_codes"], module._buffers[f"{which}_scales"]
    if codes is None or scales is None:
        raise Unsupported(
            name,
            "packed, without its codes",
            "export before finalize(), or of finalize(keep_original=True), load(finalize=False)",
        )
    shape = module.shape
    scales = linear_scales(scales, shape).view(torch.float8_e4m3fn)
    own_bias, factor = module._buffers[bias], module._buffers[alpha]
    assert factor is not None
    if expert is not None:
        codes, scales = codes[expert], scales[expert]
        own_bias = None if own_bias is None else own_bias[expert]
    value = float(factor[expert or 0])
    if module.input_scale is not None:  # which alpha contains
        value /= float(module.input_scale)
    return Matrix(codes.view(torch.uint8), scales, value, own_bias, module)


def _gated(name: str, module: PackedModule, expert: Optional[int] = None) -> tuple[Matrix, Matrix]:
    return (
        _matrix(name, module, "gate", "alpha_gate", "bias_gate", expert),
        _matrix(name, module, "up", "alpha_up", "bias_up", expert),
    )


def _one(name: str, module: PackedModule, expert: Optional[int] = None) -> Matrix:
    return _matrix(name, module, "w", "alpha", "bias", expert)


def _outer(model: nn.Module) -> Iterator[tuple[str, nn.Module]]:
    """The modules of this package that lie in no other of them."""
    found = {name: module for name, module in model.named_modules() if isinstance(module, _OURS)}
    return ((name, module) for name, module in found.items() if name.rpartition(".")[0] not in found)


def _original(model: Any, dtype: torch.dtype) -> Any:
    """The same model as transformers builds it, its parameters on the meta device."""
    config = copy.deepcopy(model.config)
    if hasattr(config, "quantization_config"):
        del config.quantization_config
    with parameters_on_meta():
        return type(model)._from_config(config, dtype=dtype)


# ---- floats -----------------------------------------------------------------------------------------------------------------


def _real(module: nn.Module, dtype: torch.dtype) -> None:
    """Memory for the parameters of a module, zeros."""
    for owner in module.modules():
        for key, parameter in owner._parameters.items():
            if parameter is not None and parameter.device.type == "meta":
                owner._parameters[key] = nn.Parameter(torch.zeros(parameter.shape, dtype=dtype), requires_grad=False)


def _fill_linear(name: str, to: nn.Linear, source: nn.Module, dtype: torch.dtype) -> None:
    bias: Optional[Tensor]
    if isinstance(source, nn.Linear):
        to.weight.copy_(source.weight)
        bias = source.bias
    elif isinstance(source, FP8Linear):
        to.weight.copy_(source.decoded())
        bias = source.bias
    elif isinstance(source, PackedModule):
        matrix = _one(name, source)
        to.weight.copy_(matrix.floats(dtype))
        bias = matrix.bias
    else:
        raise Unsupported(name, type(source).__name__, "must be a linear layer")
    _fill_bias(name, to, bias)


def _fill_bias(name: str, to: nn.Linear, bias: Optional[Tensor]) -> None:
    if to.bias is not None and bias is not None:
        to.bias.copy_(bias)
    elif bias is not None and bool((bias != 0).any()):
        raise Unsupported(name, "a bias", "the model's own class has none there")


def _fill_gated(name: str, to: nn.Module, source: GatedMLP, dtype: torch.dtype) -> None:
    gate, up = _gated(name, source)
    names = linear_names(to)
    if not names:
        raise Unsupported(name, type(to).__name__, "must have gate_proj, up_proj and down_proj, or gate_up_proj")
    first = getattr(to, names[0])
    if len(names) == 3:
        for part, matrix in ((first, gate), (getattr(to, names[1]), up)):
            part.weight.copy_(matrix.floats(dtype))
            _fill_bias(name, part, matrix.bias)
    else:
        first.weight.copy_(torch.cat([gate.floats(dtype), up.floats(dtype)]))
        both = None if gate.bias is None or up.bias is None else torch.cat([gate.bias, up.bias])
        _fill_bias(name, first, both)
    _fill_linear(f"{name}.down", getattr(to, names[-1]), source.down, dtype)


def _fill_experts(name: str, to: Any, source: Union[GatedExperts, Experts], dtype: torch.dtype) -> None:
    for expert in range(source.num_experts):
        down = _one(f"{name}.down", source.down, expert)
        if isinstance(source, Experts):
            to.up_proj[expert].copy_(_one(name, source, expert).floats(dtype))
            to.down_proj[expert].copy_(down.floats(dtype))
            continue
        parts = parts_of(to, form_of(to)).of(expert)
        gate, up = _gated(name, source, expert)
        for place, matrix in ((parts.gate, gate), (parts.up, up), (parts.down, down)):
            place.copy_(matrix.floats(dtype))
        for bias, matrix in ((parts.bias_gate, gate), (parts.bias_up, up), (parts.bias_down, down)):
            if bias is not None and matrix.bias is not None:
                bias.copy_(matrix.bias)


def _fill(name: str, to: nn.Module, source: nn.Module, dtype: torch.dtype) -> None:
    _real(to, dtype)
    if isinstance(source, GatedMLP):
        _fill_gated(name, to, source, dtype)
    elif isinstance(source, (GatedExperts, Experts)):
        _fill_experts(name, to, source, dtype)
    elif isinstance(source, MLP):
        up, down = (getattr(to, one) for one in ungated_names(to))
        _fill_linear(name, up, source, dtype)
        _fill_linear(f"{name}.down", down, source.down, dtype)
    elif isinstance(to, nn.Linear):
        _fill_linear(name, to, source, dtype)
    else:
        raise Unsupported(name, type(source).__name__, f"stands for a {type(to).__name__}, which is not written")


def _take_rest(made: nn.Module, model: nn.Module, dtype: torch.dtype) -> None:
    """What is no module of this package."""
    have = dict(model.named_parameters()) | dict(model.named_buffers())
    for name, parameter in list(made.named_parameters()):
        if parameter.device.type != "meta":
            continue
        if name not in have:
            raise Unsupported(name, "is not in the model", "every parameter of the model's own class must be")
        parent, _, last = name.rpartition(".")
        value = have[name].detach().to("cpu", dtype)
        made.get_submodule(parent)._parameters[last] = nn.Parameter(value, requires_grad=False)
    for name, buffer in made.named_buffers():
        if name in have and buffer.shape == have[name].shape:
            buffer.copy_(have[name])


def as_floats(model: Any, dtype: Optional[torch.dtype] = None) -> Any:
    """The transformers model of the same class and values without modules of this package, on the CPU: every quantised matrix
    decoded to ``dtype`` (None: the model's)."""
    dtype = dtype or getattr(model, "dtype", None) or torch.bfloat16
    made = _original(model, dtype)
    with torch.no_grad():
        for name, module in _outer(model):
            _fill(name, made.get_submodule(name), module, dtype)
        _take_rest(made, model, dtype)
    made.tie_weights()
    made.generation_config = copy.deepcopy(getattr(model, "generation_config", None))
    return made.eval()


# ---- compressed-tensors -----------------------------------------------------------------------------------------------------


class _Written:
    """Tensors by the names of files, and the linear layers that are NVFP4."""

    def __init__(self) -> None:
        self.tensors: dict[str, Tensor] = {}
        self.quantized: set[str] = set()
        self.scaled = 0

    def matrix(self, name: str, matrix: Matrix) -> None:
        if matrix.owner.hadamard or matrix.owner.pre_quant_scale is not None:
            raise Unsupported(name, "an input that is multiplied or rotated first", 'is written as "floats" alone')
        if not 0 < matrix.alpha < float("inf"):
            raise Unsupported(name, f"global scale {matrix.alpha}", "must be > 0 and finite")
        self.quantized.add(name)
        self.tensors |= {
            f"{name}.weight_packed": matrix.codes.cpu(),
            f"{name}.weight_scale": matrix.scales.cpu(),
            f"{name}.weight_global_scale": torch.tensor([1 / matrix.alpha], dtype=torch.float32),
        }
        if matrix.owner.input_scale is not None:
            self.tensors[f"{name}.input_global_scale"] = 1 / matrix.owner.input_scale.detach().float().cpu()
            self.scaled += 1
        if matrix.bias is not None:
            self.tensors[f"{name}.bias"] = matrix.bias.cpu()

    def linear(self, name: str, source: nn.Module, dtype: torch.dtype) -> None:
        if isinstance(source, PackedModule):
            self.matrix(name, _one(name, source))
            return
        floats: Any = source  # any layer with a weight
        weight = source.decoded() if isinstance(source, FP8Linear) else floats.weight.detach()
        self.tensors[f"{name}.weight"] = weight.to("cpu", dtype)
        if (bias := getattr(source, "bias", None)) is not None:
            self.tensors[f"{name}.bias"] = bias.detach().to("cpu", dtype)

    def module(self, name: str, to: nn.Module, source: nn.Module, dtype: torch.dtype) -> None:
        if isinstance(source, GatedMLP):
            names = linear_names(to)
            if len(names) != 3:
                raise Unsupported(name, type(to).__name__, 'gate and up in one matrix have one global scale: "floats"')
            for part, matrix in zip(names, _gated(name, source)):
                self.matrix(f"{name}.{part}", matrix)
            self.linear(f"{name}.{names[2]}", source.down, dtype)
        elif isinstance(source, MLP):
            up, down = ungated_names(to)
            self.matrix(f"{name}.{up}", _one(name, source))
            self.linear(f"{name}.{down}", source.down, dtype)
        elif isinstance(source, GatedExperts):
            if source.by_rows or source.bias_gate is not None:
                raise Unsupported(name, type(to).__name__, 'experts with biases or [E, K, 2N] are written as "floats" alone')
            for expert in range(source.num_experts):
                parts = (*_gated(name, source, expert), _one(f"{name}.down", source.down, expert))
                for part, matrix in zip(("gate_proj", "up_proj", "down_proj"), parts):
                    self.matrix(f"{name}.{expert}.{part}", matrix)
        elif isinstance(source, Experts):
            for expert in range(source.num_experts):
                self.matrix(f"{name}.{expert}.up_proj", _one(name, source, expert))
                self.matrix(f"{name}.{expert}.down_proj", _one(f"{name}.down", source.down, expert))
        else:
            self.linear(name, source, dtype)

    def config(self, plain: list[str]) -> dict[str, Any]:
        four = {"num_bits": 4, "type": "float", "strategy": "tensor_group", "group_size": 16, "symmetric": True}
        four |= {"scale_dtype": "torch.float8_e4m3fn", "actorder": None, "block_structure": None}
        if self.scaled not in (0, len(self.quantized)):
            raise Unsupported(
                "input scales", f"{self.scaled} of {len(self.quantized)} layers", 'must be of all or none; "floats" has none'
            )
        group = {
            "format": "nvfp4-pack-quantized",
            "targets": ["Linear"],
            "weights": four | {"dynamic": False},
            "input_activations": four | {"dynamic": "local"} if self.scaled else None,
            "output_activations": None,
        }
        return {
            "quant_method": "compressed-tensors",
            "format": "nvfp4-pack-quantized",
            "quantization_status": "compressed",
            "config_groups": {"group_0": group},
            "ignore": plain,
            "kv_cache_scheme": None,
        }


def _multiplies(module: nn.Module) -> bool:
    """Linear layers, and routers that are none by their class."""
    weight = getattr(module, "weight", None)
    return isinstance(weight, Tensor) and weight.dim() == 2 and not isinstance(module, nn.Embedding)


def _write_compressed(model: Any, folder: pathlib.Path, dtype: torch.dtype) -> None:
    made, written = _original(model, dtype), _Written()
    inside = []
    for name, module in _outer(model):
        written.module(name, made.get_submodule(name), module, dtype)
        inside.append(name + ".")
    for name, tensor in model.state_dict().items():
        if not name.startswith(tuple(inside)):
            written.tensors[name] = tensor.detach().to("cpu", dtype if tensor.is_floating_point() else None)
    plain = sorted(name for name, one in made.named_modules() if _multiplies(one) and name not in written.quantized)
    config = copy.deepcopy(model.config)
    config.quantization_config = written.config(plain)
    if getattr(config, "tie_word_embeddings", False):
        written.tensors.pop("lm_head.weight", None)
    # One expert's matrix is a part of a larger tensor, which safetensors does not write.
    save_torch_state_dict({key: one.contiguous().clone() for key, one in written.tensors.items()}, folder)
    config.architectures = [type(model).__name__]
    config.dtype = dtype
    config.save_pretrained(folder)


@checked
def export(
    model: Any, path: Union[str, os.PathLike[str]], *, format: Format = "floats", dtype: Optional[torch.dtype] = None
) -> None:
    """Writes a transformers model that has modules of this package into a new folder, for loaders that do not know them.

    format: "floats", every quantised matrix decoded to ``dtype`` (None: the model's), factors and rotations of inputs
    multiplied into it; or "compressed-tensors", NVFP4 as it is, FP8 decoded. Activations are the business of who loads it. The
    folder appears whole, or not at all; tokenizers are not written. The codes must be there: export before finalize(), or of
    load(finalize=False) or finalize(keep_original=True). Raises InvalidArgument, Unsupported, FileError.
    """
    if format not in ("floats", "compressed-tensors"):
        raise InvalidArgument("format", repr(format), "must be floats or compressed-tensors")
    if not isinstance(model, transformers.PreTrainedModel):
        raise InvalidArgument("model", type(model).__name__, "must be a transformers model")
    if not isinstance(path, (str, os.PathLike)):
        raise InvalidArgument("path", type(path).__name__, "must be a path")
    dtype = dtype or getattr(model, "dtype", None) or torch.bfloat16
    if dtype not in FLOATS:
        raise InvalidArgument("dtype", str(dtype), "must be bfloat16, float16 or float32")
    folder = pathlib.Path(path)
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise FileError("path", str(folder), "must be new, or an empty folder")
    folder.parent.mkdir(parents=True, exist_ok=True)
    unfinished = pathlib.Path(tempfile.mkdtemp(prefix=f".{folder.name}.", dir=folder.parent))
    try:
        if format == "floats":
            as_floats(model, dtype).save_pretrained(unfinished)
        else:
            with torch.no_grad():
                _write_compressed(model, unfinished, dtype)
            if getattr(model, "generation_config", None) is not None:
                model.generation_config.save_pretrained(unfinished)
        unfinished.chmod(0o755)
        if folder.exists():
            folder.rmdir()
        unfinished.rename(folder)
    except OSError as error:
        raise FileError("path", f"{folder}: {error}", "could not be written") from None
    finally:
        shutil.rmtree(unfinished, ignore_errors=True)
