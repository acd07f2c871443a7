"""NVFP4 linear layers of vLLM on a CPU, where vLLM itself has no kernel for them.

vLLM asks init_nvfp4_linear_kernel() for the kernel of a layer; on a CPU it finds none, and raises. Around that function the
plug-in answers with a kernel of its own: codes and scales stay as the checkpoint has them, activations stay in 16 bits, for
checkpoints with 4-bit activations, too, as Marlin's on GPUs do.
"""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable
from typing import Any, Optional

import torch
from torch import Tensor

from .._errors import DualGemmError
from .._explain import explain
from .._products import linear

_LINEAR = "vllm.model_executor.kernels.linear"
KERNEL = "DualGemmNvFp4LinearKernel"
_FUNCTION, _MARLIN = "init_nvfp4_linear_kernel", "MarlinNvFp4LinearKernel"
# Modules that take the function by its name: those that were imported before are told of ours.
_USERS = (
    "vllm.model_executor.layers.quantization.compressed_tensors.schemes.compressed_tensors_w4a4_nvfp4",
    "vllm.model_executor.layers.quantization.compressed_tensors.schemes.compressed_tensors_w4a16_nvfp4",
    "vllm.model_executor.layers.quantization.modelopt",
    "vllm.model_executor.layers.quantization.quark.schemes.quark_nvfp4",
)


def _is_cpu() -> bool:
    return bool(importlib.import_module("vllm.platforms").current_platform.is_cpu())


def kernel_class(base: Any) -> Any:
    """A kernel of vLLM's interface, NvFp4LinearKernel."""

    class DualGemmNvFp4LinearKernel(base):
        @classmethod
        def is_supported(cls, compute_capability: Optional[int] = None) -> tuple[bool, Optional[str]]:
            return (True, None) if _is_cpu() else (False, "it is for CPUs")

        @classmethod
        def can_implement(cls, config: Any) -> tuple[bool, Optional[str]]:
            return True, None

        def process_weights_after_loading(self, layer: Any) -> None:
            """A reason where the library cannot multiply the layer, else nothing changes."""
            weight, scales = layer.weight, layer.weight_scale
            if weight.dtype != torch.uint8 or tuple(scales.shape) != (weight.shape[0], weight.shape[1] // 8):
                raise ValueError(
                    f"dualgemm: weight {weight.dtype} {list(weight.shape)}, scales {list(scales.shape)}; must be uint8 [N, K/2] "
                    "and [N, K/16]"
                )
            try:
                explain(torch.empty((1, weight.shape[1] * 2), dtype=torch.bfloat16), weight)
            except DualGemmError as error:
                raise ValueError(f"dualgemm: {error}") from None
            for name in ("weight", "weight_scale"):  # vLLM's parameters are subclasses for loading
                setattr(layer, name, torch.nn.Parameter(getattr(layer, name).detach(), requires_grad=False))
            self.batch_invariant = bool(importlib.import_module("vllm.envs").VLLM_BATCH_INVARIANT)
            alpha = layer.weight_global_scale.detach().float().reshape(-1)[:1].contiguous()
            layer.register_buffer("dualgemm_alpha", alpha, persistent=False)

        def apply_weights(self, layer: Any, x: Tensor, bias: Optional[Tensor] = None) -> Tensor:
            d = linear(
                x.reshape(-1, x.shape[-1]),
                layer.weight,
                w_scales=layer.weight_scale,
                alpha=layer.dualgemm_alpha,
                batch_invariant=self.batch_invariant,
            ).reshape(*x.shape[:-1], layer.weight.shape[0])
            return d if bias is None else d + bias

    return DualGemmNvFp4LinearKernel


def _around(original: Callable[..., Any], mark: str, is_on: Callable[[], bool]) -> Callable[..., Any]:
    def init(*arguments: Any, **named: Any) -> Any:
        if not is_on() or not _is_cpu():
            return original(*arguments, **named)
        package = importlib.import_module(f"{_LINEAR}.nvfp4")
        return kernel_class(package.NvFp4LinearKernel)(package.NvFp4LinearLayerConfig())

    setattr(init, mark, original)
    return init


def offer(mark: str, is_on: Callable[[], bool]) -> None:
    """Puts the kernel before those of vLLM, on CPUs. Raises whatever a changed vLLM makes of it."""
    package = importlib.import_module(_LINEAR)
    original = getattr(package, _FUNCTION)
    if hasattr(original, mark):
        return
    ours = _around(original, mark, is_on)
    users = [package, *(sys.modules[name] for name in _USERS if name in sys.modules)]
    for module in users:
        if getattr(module, _FUNCTION, None) is original:
            setattr(module, _FUNCTION, ours)
    if not is_on() or not _is_cpu():
        return
    # ModelOpt's W4A16 asks for Marlin's by its name, which is for GPUs alone.
    marlin = getattr(package, _MARLIN, None)
    for module in users:
        if marlin is not None and getattr(module, _MARLIN, None) is marlin:
            setattr(module, _MARLIN, kernel_class(importlib.import_module(f"{_LINEAR}.nvfp4").NvFp4LinearKernel))
