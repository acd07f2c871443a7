"""save_pretrained() of a transformers model that has modules of this package, and back: quant_method "dualgemm" of config.json.

The configuration describes every such module: its class, shape, activation, and the dtype and shape of each buffer, packed or
not. transformers' loader builds the model, this quantiser puts the described modules in their places, and the loader fills
them. It is registered when dualgemm.integrations.transformers is imported.
"""

from __future__ import annotations

from typing import Any

import torch
import transformers
from torch import nn
from transformers.quantizers.auto import register_quantization_config, register_quantizer
from transformers.quantizers.base import HfQuantizer
from transformers.utils.quantization_config import QuantizationConfigMixin

from .._errors import DualGemmError, FileError, Unsupported
from .._fp8 import FP8Linear
from .._modules import SAVED_KINDS, PackedModule
from .._replace import put_modules

METHOD = "dualgemm"


def _dtype_name(dtype: torch.dtype) -> str:
    return str(dtype).removeprefix("torch.")


def _dtype(name: Any) -> torch.dtype:
    found = getattr(torch, str(name), None)
    if not isinstance(found, torch.dtype):
        raise FileError("quantization_config", f"dtype {name}", "must be one of torch's")
    return found


def _buffers(module: nn.Module) -> dict[str, list[Any]]:
    return {
        key: [_dtype_name(buffer.dtype), list(buffer.shape)] for key, buffer in module._buffers.items() if buffer is not None
    }


def _described(name: str, module: nn.Module) -> dict[str, Any]:
    if isinstance(module, nn.Linear):
        return {
            "kind": "Linear",
            "n": module.out_features,
            "k": module.in_features,
            "bias": module.bias is not None,
            "dtype": _dtype_name(module.weight.dtype),
        }
    if type(module) is FP8Linear:
        return {"kind": "FP8Linear", "buffers": _buffers(module)} | module.saved_arguments()
    kind = type(module).__name__
    if not isinstance(module, PackedModule) or SAVED_KINDS.get(kind) is not type(module):
        raise Unsupported(
            name, kind, f"must be one of {', '.join(SAVED_KINDS)} or an nn.Linear to be saved by save_pretrained()"
        )
    made = {
        "kind": kind,
        "n": module.shape.n,
        "k": module.shape.k,
        "experts": module.shape.experts,
        "input_dtype": module.input_dtype,
        "a_dtype": _dtype_name(module.a_dtype),
        "buffers": _buffers(module),
    }
    if module.hadamard:
        made["hadamard"] = module.hadamard
    down = module._modules.get("down")
    return made | module.saved_arguments() | ({} if down is None else {"down": _described(f"{name}.down", down)})


def description(model: nn.Module) -> dict[str, Any]:
    """What config.json says of the modules of this package in ``model``."""
    found = {name: module for name, module in model.named_modules() if isinstance(module, (PackedModule, FP8Linear))}
    outer = {name: module for name, module in found.items() if name.rpartition(".")[0] not in found}
    return {"quant_method": METHOD, "modules": {name: _described(name, module) for name, module in outer.items()}}


def _built(described: dict[str, Any]) -> nn.Module:
    """On the meta device, with the buffers that the files have."""
    if described["kind"] == "Linear":
        n, k = int(described["n"]), int(described["k"])
        return nn.Linear(k, n, bias=bool(described["bias"]), device="meta", dtype=_dtype(described["dtype"]))
    buffers = described["buffers"]
    made: Any
    if described["kind"] == "FP8Linear":
        made = FP8Linear.from_saved(described)
    else:
        made = SAVED_KINDS[described["kind"]].from_saved(described, _built, input_dtype=described["input_dtype"], device="meta")
        made.a_dtype = _dtype(described["a_dtype"])
        made.set_hadamard(int(described.get("hadamard", 0)))
    for name in list(made._buffers):
        made._buffers[name] = None
        if name in buffers:
            dtype, shape = buffers[name]
            made._buffers[name] = torch.empty(shape, dtype=_dtype(dtype), device="meta")
    if unknown := sorted(set(buffers) - set(made._buffers)):
        raise FileError("quantization_config", f"buffer {unknown[0]}", f"must be one of {', '.join(made._buffers)}")
    if isinstance(made, PackedModule):
        made._put_absent_last()
    return made


@register_quantization_config(METHOD)
class SavedConfig(QuantizationConfigMixin):
    """quantization_config of config.json."""

    def __init__(self, modules: Any = None, **_: Any) -> None:
        self.quant_method = METHOD  # type: ignore[assignment]  # not one of transformers' own
        self.modules: dict[str, dict[str, Any]] = dict(modules or {})


@register_quantizer(METHOD)
class SavedQuantizer(HfQuantizer):
    """What transformers asks when it reads or writes such a model."""

    requires_calibration = True
    is_trainable = False

    def is_serializable(self, *_: Any, **__: Any) -> bool:
        return True

    def _process_model_before_weight_loading(self, model: nn.Module, **_: Any) -> nn.Module:
        modules = getattr(self.quantization_config, "modules", None)
        if not modules:
            raise FileError(
                "config.json",
                "quantization_config without modules",
                "must describe them: the model was saved through another one that has it inside",
            )
        try:
            put_modules(model, {name: _built(one) for name, one in modules.items()})
        except (AttributeError, KeyError, TypeError, ValueError) as error:
            raise FileError(
                "config.json",
                f"quantization_config: {type(error).__name__}: {error}",
                "must describe modules of this model, as save_pretrained() wrote them",
            ) from error
        return model

    def _process_model_after_weight_loading(self, model: nn.Module, **_: Any) -> nn.Module:
        for name, module in model.named_modules():
            if isinstance(module, PackedModule):
                try:
                    module.after_loading()
                except DualGemmError as error:
                    raise type(error)(name, *(f"{error.argument}: {error.observed}", error.rule)) from None
        return model

    def get_state_dict_and_metadata(self, model: Any, *_: Any, **__: Any) -> tuple[None, dict[str, str]]:
        described = description(model)
        self.quantization_config = SavedConfig(**described)
        model.config.quantization_config = self.quantization_config
        return None, {}


def mark(model: nn.Module) -> None:
    """Has save_pretrained() of every transformers model in ``model`` describe what it writes. A model that another quantiser
    looks after stays its."""
    for inner in model.modules():
        if isinstance(inner, transformers.PreTrainedModel) and getattr(inner, "hf_quantizer", None) is None:
            if getattr(inner.config, "quantization_config", None) is None:
                inner.config.quantization_config = SavedConfig()
            inner.hf_quantizer = SavedQuantizer(SavedConfig())  # type: ignore[assignment]  # no module
