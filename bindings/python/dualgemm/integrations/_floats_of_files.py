"""The float tensors of a folder of safetensors, put into a model under its own names; experts of modules stacked."""

from __future__ import annotations

import json
import pathlib
import re
import warnings
from collections.abc import Iterator
from typing import Any, Optional

import torch
from safetensors import safe_open
from torch import Tensor, nn

from .._errors import FileError, InvalidArgument, Unsupported
from .._fp8 import FP8Linear
from .._mxfp4 import Exponents, decode, exponents_of
from ..checkpoint import LinearLayer, module_names

FLOATS = (torch.float32, torch.bfloat16, torch.float16)
# Names of the modules of one expert: gate, up, down.
_EXPERT_PARTS = (("gate_proj", "up_proj", "down_proj"), ("w1", "w3", "w2"))


def _paths(folder: pathlib.Path) -> list[pathlib.Path]:
    index = folder / "model.safetensors.index.json"
    if not index.exists():
        return sorted(folder.glob("*.safetensors"))
    try:
        return [folder / name for name in sorted(set(json.loads(index.read_text())["weight_map"].values()))]
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise FileError(str(index), f"{type(error).__name__}: {error}", "must be JSON with a weight_map") from None


class FloatFiles:
    """Where each tensor lies, and what was not taken of it."""

    def __init__(self, folder: pathlib.Path) -> None:
        self._where: dict[str, pathlib.Path] = {}
        for path in _paths(folder):
            try:
                with safe_open(str(path), framework="pt", device="cpu") as file:
                    self._where.update(dict.fromkeys(file.keys(), path))
            except Exception as error:  # safetensors has a class of errors of its own
                raise FileError(str(path), str(error), "must be a safetensors file") from None
        self._key_of = {name: key for key in self._where for name in reversed(module_names(key))}
        self._refused: dict[str, str] = {}

    def _tensors(self, keys: list[str]) -> Iterator[tuple[str, Tensor]]:
        """File by file."""
        by_path: dict[pathlib.Path, list[str]] = {}
        for key in keys:
            by_path.setdefault(self._where[key], []).append(key)
        for path, inside in by_path.items():
            with safe_open(str(path), framework="pt", device="cpu") as file:
                for key in inside:
                    yield key, file.get_tensor(key)

    def load(self, model: nn.Module, dtype: torch.dtype, device: torch.device) -> None:
        """Every parameter and persistent buffer that the files hold as floats."""
        wanted = {name: tensor.shape for name, tensor in model.state_dict(keep_vars=True).items()}
        names = {self._key_of[name]: name for name in wanted if name in self._key_of}
        for key, tensor in self._tensors(list(names)):
            name = names[key]
            if tensor.dtype not in FLOATS or tensor.shape != wanted[name]:
                self._refused[name] = (
                    f"in the files as {str(tensor.dtype).removeprefix('torch.')} {list(tensor.shape)}, "
                    f"wanted as floats {list(wanted[name])}"
                )
                continue  # NVFP4: the reader's
            _put(model, name, tensor.to(device=device, dtype=dtype, copy=True))
        for name, parameter in list(model.named_parameters()):
            if parameter.device.type != "meta":
                continue
            if (found := self._stacked(name, parameter, dtype)) is not None:
                _put(model, name, found.to(device))

    def load_mxfp4(self, model: nn.Module, dtype: torch.dtype, device: torch.device, refuse: bool) -> None:
        """Every parameter that is still missing and that the files hold as MXFP4, decoded, with a warning. refuse: Unsupported
        instead."""
        for name, parameter in list(model.named_parameters()):
            if parameter.device.type != "meta":
                continue
            parts = self._mxfp4_parts(name, parameter)
            if parts and (made := self._decoded(name, parameter, parts, dtype, refuse)) is not None:
                _put(model, name, made.to(device))

    def _mxfp4_parts(self, name: str, parameter: Any) -> list[tuple[str, str]]:
        """Codes and exponents of what makes a parameter: by gpt-oss's names, or by those under which others keep NVFP4; one
        pair, or those of every expert in turn."""

        def pair(weight: str) -> Optional[tuple[str, str]]:
            stem = weight.removesuffix(".weight")
            pairs = [(f"{weight}_blocks", f"{weight}_scales")]
            if stem != weight:
                pairs += [(f"{stem}.weight_packed", f"{stem}.weight_scale"), (weight, f"{stem}.weight_scale")]
            for codes, scales in pairs:
                if codes in self._key_of and scales in self._key_of:
                    return self._key_of[codes], self._key_of[scales]
            return None

        parent, _, last = name.rpartition(".")
        if (whole := pair(name)) is not None:
            return [whole]
        if last not in ("gate_up_proj", "down_proj") or parameter.dim() != 3:
            return []
        for gate, up, down in _EXPERT_PARTS:
            parts = (gate, up) if last == "gate_up_proj" else (down,)
            found = [pair(f"{parent}.{expert}.{part}.weight") for expert in range(parameter.shape[0]) for part in parts]
            if None not in found:
                return [one for one in found if one is not None]
        return []

    def _decoded(
        self, name: str, parameter: Any, parts: list[tuple[str, str]], dtype: torch.dtype, refuse: bool
    ) -> Optional[Tensor]:
        """``parts`` as the parameter has them: below each other, or as gpt-oss's, [E, K, R] of rows [E, R, K]."""
        widest, where, stored = Exponents(0, 0), parts[0][1], 0
        made: list[Tensor] = []
        for codes_name, scales_name in parts:
            found = dict(self._tensors([codes_name, scales_name]))
            codes, scales = found[codes_name], found[scales_name]
            if codes.dtype != torch.uint8 or scales.element_size() != 1 or scales.numel() * 16 != codes.numel():
                return None  # not MXFP4
            codes = codes.reshape(*scales.shape[:-1], -1)
            for matrix in range(scales.shape[0] if scales.dim() == 3 else 1):
                one = exponents_of(*((codes[matrix], scales[matrix]) if scales.dim() == 3 else (codes, scales)))
                if one.span >= widest.span:
                    widest, where = one, scales_name
            stored += codes.nbytes + scales.nbytes
            made.append(decode(scales_name, codes, scales, dtype))
        said = f"exponents from {widest.least} to {widest.most}, {widest.span} apart"
        if refuse:
            raise Unsupported(where, said, "must lie within 17 of each other to be exact as NVFP4")
        whole = made[0] if len(made) == 1 else torch.cat(made).reshape(parameter.shape)
        if whole.dim() == 3 and whole.shape != parameter.shape:
            whole = whole.transpose(1, 2).contiguous()
        if whole.shape != parameter.shape:
            self._refused[name] = f"in the files as MXFP4 {list(whole.shape)}, wanted {list(parameter.shape)}"
            return None
        warnings.warn(
            f"{name}: {where} has {said}; not taken as NVFP4, decoded to {whole.nbytes} bytes from {stored}", stacklevel=6
        )
        return whole

    def _stacked(self, name: str, parameter: Any, dtype: torch.dtype) -> Optional[Tensor]:
        """experts.gate_up_proj [E, 2N, K] or experts.down_proj [E, K, N] of experts that are modules in the files."""
        parent, _, last = name.rpartition(".")
        if last not in ("gate_up_proj", "down_proj") or parameter.dim() != 3:
            return None
        for gate, up, down in _EXPERT_PARTS:
            parts = (gate, up) if last == "gate_up_proj" else (down,)
            keys = {
                self._key_of.get(f"{parent}.{expert}.{part}.weight"): (expert, index)
                for expert in range(parameter.shape[0])
                for index, part in enumerate(parts)
            }
            if None in keys:
                continue
            made = torch.empty(parameter.shape, dtype=dtype)
            rows = parameter.shape[1] // len(parts)
            for key, tensor in self._tensors([key for key in keys if key is not None]):
                if tensor.dtype not in FLOATS or list(tensor.shape) != [rows, parameter.shape[2]]:
                    self._refused[name] = f"{key} is {str(tensor.dtype).removeprefix('torch.')} {list(tensor.shape)}"
                    return None
                expert, index = keys[key]
                made[expert, index * rows : (index + 1) * rows] = tensor
            return made
        return None

    def module_of(self, name: str) -> str:
        """The files' name of a model's linear layer; "" where they have no weight for it."""
        return self._key_of.get(f"{name}.weight", "").removesuffix(".weight")

    def fp8_linear(self, linear: nn.Linear, layer: LinearLayer, dtype: torch.dtype, device: torch.device) -> FP8Linear:
        """What stands for ``linear``, whose bias was loaded; ``layer``: what the files have of it."""
        names = [f"{layer.module}.{end}" for end in ("weight", "weight_scale", "weight_scale_inv", "input_scale")]
        found = {
            name.rpartition(".")[2]: tensor for name, tensor in self._tensors([name for name in names if name in self._where])
        }
        weight = found["weight"]
        if (layer.n, layer.k) != (linear.out_features, linear.in_features):
            raise FileError(
                layer.module,
                f"{layer.n} x {layer.k}",
                f"must be {linear.out_features} x {linear.in_features}, as config.json says",
            )
        scales = found.get("weight_scale", found.get("weight_scale_inv"))
        if scales is None:
            raise FileError(layer.module, "FP8 without scales", "must have a weight_scale")
        block = {"block": layer.block, "group": (1, layer.block[1])}.get(layer.granularity, (0, 0))
        try:
            return FP8Linear(
                weight.to(device),
                scales.to(device),
                block=block,
                bias=None if linear.bias is None else linear.bias.detach(),
                activations="dynamic" if layer.activations == "local" else layer.activations,  # type: ignore[arg-type]
                input_scale=found.get("input_scale"),
                dtype=dtype,
            )
        except InvalidArgument as error:
            raise FileError(f"{layer.module}.{error.argument}", error.observed, error.rule) from None

    def load_fp8_experts(
        self, model: nn.Module, layers: dict[str, LinearLayer], dtype: torch.dtype, device: torch.device
    ) -> None:
        """Every parameter of experts that is still missing and that the files hold as FP8 modules, decoded and rounded to
        ``dtype``, with a warning."""
        for name, parameter in list(model.named_parameters()):
            parent, _, last = name.rpartition(".")
            if parameter.device.type != "meta" or last not in ("gate_up_proj", "down_proj") or parameter.dim() != 3:
                continue
            for gate, up, down in _EXPERT_PARTS:
                parts = (gate, up) if last == "gate_up_proj" else (down,)
                modules = [[f"{parent}.{expert}.{part}" for part in parts] for expert in range(parameter.shape[0])]
                found = [[layers.get(self.module_of(one)) for one in of_expert] for of_expert in modules]
                if all(one is not None and one.format in ("fp8", "mxfp8") for of_expert in found for one in of_expert):
                    self._put_fp8_experts(model, name, parameter, found, dtype, device)
                    break

    def _put_fp8_experts(
        self,
        model: nn.Module,
        name: str,
        parameter: Tensor,
        found: list[list[Optional[LinearLayer]]],
        dtype: torch.dtype,
        device: torch.device,
    ) -> None:
        rows, columns = parameter.shape[1] // len(found[0]), parameter.shape[2]
        made = torch.empty(parameter.shape, dtype=dtype)
        for expert, of_expert in enumerate(found):
            for place, layer in enumerate(of_expert):
                assert layer is not None
                blank = nn.Linear(columns, rows, bias=False, device="meta")
                decoded = self.fp8_linear(blank, layer, torch.float32, torch.device("cpu")).decoded()
                made[expert, place * rows : (place + 1) * rows] = decoded
        warnings.warn(
            f"{name}: experts in FP8, which this library does not multiply; decoded to {made.nbytes} bytes, rounded to "
            f"{str(dtype).removeprefix('torch.')}",
            stacklevel=6,
        )
        _put(model, name, made.to(device))

    def refused(self, name: str) -> Optional[str]:
        """Why a tensor of this name, which the files have, was not taken; None: they have none, or it was."""
        return self._refused.get(name)

    def seen(self, name: str) -> Optional[str]:
        """What the files have near a tensor that was not taken; None: nothing."""
        parent, _, last = name.rpartition(".")
        near = [key for key in self._where if parent and re.match(rf"{re.escape(parent)}\.", key)]
        return f"the files have {len(near)} tensors there, such as {near[0]}" if near else None


def _put(model: nn.Module, name: str, tensor: Tensor) -> None:
    parent, _, last = name.rpartition(".")
    owner = model.get_submodule(parent)
    if last in owner._parameters:
        owner._parameters[last] = nn.Parameter(tensor, requires_grad=False)
    else:
        owner._buffers[last] = tensor
