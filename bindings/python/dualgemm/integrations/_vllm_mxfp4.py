"""MXFP4 experts of vLLM (gpt-oss, and what compressed-tensors writes): read as NVFP4, exactly, then as every experts' layer.

Three classes hold such experts. Each chooses a class of experts when it is made, and sets its kernel up once the weights are there.
The plug-in answers the first with the class of _vllm_experts.py where vLLM would take Marlin, emulation or nothing; at the second it
turns E8M0 scales into E4M3 ones with a global scale for each expert's gate, up and down. A matrix whose exponents lie too far apart
for that goes to the class that vLLM chose.

Triton's kernels, which vLLM takes for gpt-oss on Hopper, stay by default: on an H100 ours need 0.87 to 0.96 of the time of its
decode steps but 1.04 to 1.08 at prefill, and 1.1 GiB more of 11.8, since E4M3 scales of 16 take twice the bytes (scripts/engine_gpu,
2026-11-28). So do vLLM's kernels for CPUs: on two cores of a Zen 5 ours take 1.0 to 1.2, 1.1, 0.73 and 1.17 of their time at 1, 8, 64
and 512 tokens (bench/python/mxfp4_experts_cpu.py, 2026-11-28).
"""

from __future__ import annotations

import importlib
import logging
from collections.abc import Callable
from typing import Any, Optional

import torch
from torch import Tensor

from .._errors import DualGemmError
from .._mxfp4 import as_nvfp4
from ._vllm_experts import INTERLEAVED, experts_class, reason_against
from ._vllm_linear import is_cpu

_log = logging.getLogger("vllm.dualgemm")
_USER = "vllm.model_executor.layers.quantization.mxfp4"
_SELECTS = ("select_mxfp4_moe_backend", "select_deepseek_v4_mxfp4_moe_backend")
_METHODS = ("GptOssMxfp4MoEMethod", "Mxfp4MoEMethod")
_PACKED_USER = (
    "vllm.model_executor.layers.quantization.compressed_tensors.compressed_tensors_moe.compressed_tensors_moe_w4a4_mxfp4"
)
_PACKED_METHOD = "CompressedTensorsW4A4Mxfp4MoEMethod"
# Backends of vLLM in whose place ours stands, and where it is asked for.
_BEHIND, _BEHIND_IF_ASKED = ("MARLIN", "EMULATION"), ("CPU", "TRITON", "TRITON_UNFUSED")
_NAMES = ("w13_weight", "w2_weight", "w13_weight_scale", "w2_weight_scale")


def _ours(config: Any, activation_key: Any, instead: Any) -> Any:
    """The class of experts for a layer, which remembers vLLM's; None where it does not fit, which is logged."""
    reason = reason_against(config, "mxfp4", activation_key)
    if reason is None:
        return type("DualGemmMxfp4Experts", (experts_class(is_cpu()),), {"instead": instead})
    _log.info("dualgemm: MXFP4 experts are left to vLLM: %s", reason)
    return None


def _is_ours(method: Any) -> bool:
    return hasattr(method.experts_cls, "instead")


def _selecting(
    original: Callable[..., Any], is_on: Callable[[], bool], takes_all: Callable[[], bool], marlin: Any
) -> Callable[..., Any]:
    def select(config: Any, activation_key: Any = None, **named: Any) -> Any:
        arguments = (config,) if activation_key is None else (config, activation_key)
        if not is_on() or config.moe_backend != "auto":
            return original(*arguments, **named)
        failed: Optional[Exception] = None
        backend, experts = marlin, None
        try:
            backend, experts = original(*arguments, **named)
        except (NotImplementedError, ValueError) as error:
            failed = error
        if backend.value in _BEHIND or (backend.value in _BEHIND_IF_ASKED and takes_all()):
            if ours := _ours(config, activation_key, experts):
                return backend, ours
        if failed is not None:
            raise failed
        return backend, experts

    return select


def _set_up(method: Any, module: Any, layer: Any, tensors: dict[str, Tensor]) -> bool:
    """Makes the layer's weights and the method's kernel ours. False, with nothing changed, where MXFP4 is not exact as NVFP4."""
    gated = bool(method.moe.is_act_and_mul)
    alternate = gated and method.moe.activation.value in INTERLEAVED
    try:
        scales, first = as_nvfp4("w13_weight", tensors["w13_weight"], tensors["w13_weight_scale"], 2 if gated else 1, alternate)
        down_scales, down = as_nvfp4("w2_weight", tensors["w2_weight"], tensors["w2_weight_scale"], 1, False)
    except DualGemmError as error:
        if method.experts_cls.instead is None:
            raise ValueError(f"dualgemm: {error}") from None
        _log.info("dualgemm: MXFP4 experts are left to vLLM: %s", error)
        method.experts_cls = method.experts_cls.instead
        return False
    for name, tensor in zip(_NAMES, (tensors["w13_weight"], tensors["w2_weight"], scales, down_scales)):
        setattr(layer, name, torch.nn.Parameter(tensor.data, requires_grad=False))
    gate, up = first[:, 0].contiguous(), first[:, -1].contiguous()
    layer.dualgemm_alphas = [gate if gated else None, up, down[:, 0].contiguous()]
    method.mxfp4_backend = module.Mxfp4MoeBackend.MARLIN  # whose configuration is one for 16-bit activations
    method.moe_quant_config = method.get_fused_moe_quant_config(layer)
    method.moe_kernel = module.make_mxfp4_moe_kernel(
        moe_quant_config=method.moe_quant_config,
        moe_config=method.moe,
        mxfp4_backend=method.mxfp4_backend,
        experts_cls=method.experts_cls,
        routing_tables=layer._expert_routing_tables(),
        layer=layer,
    )
    method.moe_kernel.fused_experts.process_weights_after_loading(layer)
    return True


def _setting_up(original: Callable[..., Any], module: Any) -> Callable[..., Any]:
    def set_up(
        self: Any, layer: Any, w13: Tensor, w2: Tensor, w13_scale: Tensor, w2_scale: Tensor, *biases: Any, **named: Any
    ) -> Any:
        if _is_ours(self) and _set_up(self, module, layer, dict(zip(_NAMES, (w13, w2, w13_scale, w2_scale)))):
            return None
        return original(self, layer, w13, w2, w13_scale, w2_scale, *biases, **named)

    return set_up


def _making(original: Callable[..., Any], is_on: Callable[[], bool]) -> Callable[..., Any]:
    """compressed-tensors asks no function for its choice."""

    def make(self: Any, moe: Any, *arguments: Any, **named: Any) -> None:
        original(self, moe, *arguments, **named)
        if is_on() and moe.moe_backend == "auto" and self.experts_cls.__name__ == "MarlinExperts":
            self.experts_cls = _ours(moe, None, self.experts_cls) or self.experts_cls

    return make


def _processing(original: Callable[..., Any], module: Any) -> Callable[..., Any]:
    packed = {name: f"{name}_packed" if name.endswith("weight") else name for name in _NAMES}

    def process(self: Any, layer: Any) -> Any:
        if _is_ours(self) and _set_up(self, module, layer, {name: getattr(layer, packed[name]) for name in _NAMES}):
            for name in _NAMES[:2]:
                delattr(layer, packed[name])
            return None
        return original(self, layer)

    return process


def _wrap(holder: Any, name: str, mark: str, around: Callable[[Any], Callable[..., Any]]) -> None:
    original = getattr(holder, name)
    if not hasattr(original, mark):
        ours = around(original)
        setattr(ours, mark, original)
        setattr(holder, name, ours)


def offer(mark: str, is_on: Callable[[], bool], takes_all: Callable[[], bool]) -> None:
    """Puts the class in front of vLLM's. takes_all: of its Triton and CPU kernels, too. Raises whatever a changed vLLM makes
    of it."""
    user = importlib.import_module(_USER)
    marlin = user.Mxfp4MoeBackend.MARLIN
    for name in _SELECTS:
        if hasattr(user, name):
            _wrap(user, name, mark, lambda original: _selecting(original, is_on, takes_all, marlin))
    for name in _METHODS:
        if hasattr(user, name):
            _wrap(getattr(user, name), "_setup_kernel", mark, lambda original: _setting_up(original, user))
    packed = importlib.import_module(_PACKED_USER)
    method = getattr(packed, _PACKED_METHOD)
    _wrap(method, "__init__", mark, lambda original: _making(original, is_on))
    _wrap(method, "process_weights_after_loading", mark, lambda original: _processing(original, packed))
