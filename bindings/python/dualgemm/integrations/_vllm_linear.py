"""NVFP4 linear layers of vLLM: on a CPU, where vLLM has no kernel for them, and on Hopper, where it takes Marlin or emulation.

vLLM asks init_nvfp4_linear_kernel() for the kernel of a layer; on a CPU it finds none, and raises. Around that function the
plug-in answers with a kernel of its own. On a CPU codes and scales stay as the checkpoint has them, on a GPU they are packed
once, and the packed bytes take their place. Activations stay in 16 bits, for checkpoints with 4-bit activations, too, as
Marlin's do. What the library cannot multiply goes to the kernel that vLLM chose.
"""

from __future__ import annotations

import functools
import importlib
import logging
import sys
from collections.abc import Callable
from typing import Any, Optional

import torch
from torch import Tensor

from .._errors import DualGemmError, InvalidArgument
from .._explain import explain
from .._products import linear
from .._quantized import call

_log = logging.getLogger("vllm.dualgemm")
_ops = torch.ops.dualgemm
_LINEAR = "vllm.model_executor.kernels.linear"
KERNEL = "DualGemmNvFp4LinearKernel"
_FUNCTION, _MARLIN, _EMULATION = "init_nvfp4_linear_kernel", "MarlinNvFp4LinearKernel", "EmulationNvFp4LinearKernel"
FEWEST_OUTPUTS = 4096
"""Below it Marlin is the faster at 32 to 128 rows, 1.5 to 1.8 times at (2048, 4096), though 0.45 at 1 to 8 and from 1024 on
(bench/python/engine_linear.py, H100, 2026-11-27); a layer's weights can have one order only."""
# Modules that take the function by its name: those that were imported before are told of ours.
_USERS = (
    "vllm.model_executor.layers.quantization.compressed_tensors.schemes.compressed_tensors_w4a4_nvfp4",
    "vllm.model_executor.layers.quantization.compressed_tensors.schemes.compressed_tensors_w4a16_nvfp4",
    "vllm.model_executor.layers.quantization.modelopt",
    "vllm.model_executor.layers.quantization.quark.schemes.quark_nvfp4",
)


def platform() -> Any:
    return importlib.import_module("vllm.platforms").current_platform


def is_cpu() -> bool:
    return bool(platform().is_cpu())


def is_hopper() -> bool:
    return bool(platform().is_cuda() and platform().is_device_capability(90))


@functools.cache
def _say_once(reason: str) -> None:
    _log.info("dualgemm: a linear layer is left to vLLM: %s", reason)


def _keep(layer: Any, **tensors: Tensor) -> None:
    """As plain parameters: vLLM's are subclasses for loading."""
    for name, value in tensors.items():
        setattr(layer, name, torch.nn.Parameter(value.detach(), requires_grad=False))


@functools.cache
def kernel_class(base: Any) -> Any:
    """A kernel of vLLM's interface, NvFp4LinearKernel."""

    class DualGemmNvFp4LinearKernel(base):
        other: Any = None
        """The kernel that vLLM chose, for layers that the library cannot multiply; None: it has none."""

        @classmethod
        def is_supported(cls, compute_capability: Optional[int] = None) -> tuple[bool, Optional[str]]:
            return (True, None) if is_cpu() or is_hopper() else (False, "it is for CPUs and compute capability 9.0")

        @classmethod
        def can_implement(cls, config: Any) -> tuple[bool, Optional[str]]:
            return True, None

        def process_weights_after_loading(self, layer: Any) -> None:
            """ValueError where neither the library nor another kernel can multiply the layer."""
            reason: Any = None
            self.batch_invariant = bool(importlib.import_module("vllm.envs").VLLM_BATCH_INVARIANT)  # which Marlin is not
            marlin = type(self.other).__name__ == _MARLIN and not self.batch_invariant
            if marlin and layer.weight.shape[0] < FEWEST_OUTPUTS:
                reason = f"{layer.weight.shape[0]} outputs; from {FEWEST_OUTPUTS} on the library is the faster"
            try:
                if reason is None:
                    self._take(layer)
            except DualGemmError as error:
                reason = error
            if reason is not None:
                if self.other is None:
                    raise ValueError(f"dualgemm: {reason}")
                _say_once(str(reason))
                layer.dualgemm_rows, layer.dualgemm_left = None, f"vLLM, {type(self.other).__name__}: {reason}"
                self.other.process_weights_after_loading(layer)

        def _take(self, layer: Any) -> None:
            weight, scales = layer.weight.data, layer.weight_scale.data
            if weight.dtype != torch.uint8 or tuple(scales.shape) != (weight.shape[0], weight.shape[1] // 8):
                raise InvalidArgument(
                    f"weight {weight.dtype} {list(weight.shape)}, scales {list(scales.shape)}; must be uint8 [N, K/2] and [N, K/16]"
                )
            n = weight.shape[0]
            self.packed = not is_cpu()
            if self.packed:
                rows = getattr(layer, "params_dtype", torch.get_default_dtype())
                weight, scales = call(_ops.pack_linear, weight, scales, a_dtype=rows), scales.new_empty(0)
            else:
                explain(torch.empty((1, weight.shape[1] * 2), dtype=torch.bfloat16), weight)
            layer.dualgemm_rows = n
            _keep(layer, weight=weight, weight_scale=scales)
            alpha = layer.weight_global_scale.detach().float().reshape(-1)[:1].contiguous()
            layer.register_buffer("dualgemm_alpha", alpha, persistent=False)

        def apply_weights(self, layer: Any, x: Tensor, bias: Optional[Tensor] = None) -> Tensor:
            n = layer.dualgemm_rows
            if n is None:
                result: Tensor = self.other.apply_weights(layer, x, bias)
                return result
            rows, alpha = x.reshape(-1, x.shape[-1]), layer.dualgemm_alpha
            if bias is not None and bias.dtype not in (torch.float32, torch.bfloat16):
                bias = bias.float()
            if self.packed:
                weights, groups = (None, None, layer.weight, n, 1), [None] * 3
                d = call(_ops.linear, rows, None, *weights, *groups, alpha, bias, batch_invariant=self.batch_invariant)
            else:
                named = {"alpha": alpha, "bias": bias, "batch_invariant": self.batch_invariant}
                d = linear(rows, layer.weight, w_scales=layer.weight_scale, **named)
            return d.reshape(*x.shape[:-1], n)

    return DualGemmNvFp4LinearKernel


def _choosing(package: Any, original: Callable[..., Any], mark: str, is_on: Callable[[], bool]) -> Callable[..., Any]:
    """Around a function or class of vLLM that makes a layer's kernel."""

    def ours() -> Any:
        inner = importlib.import_module(f"{_LINEAR}.nvfp4")
        return kernel_class(inner.NvFp4LinearKernel)(inner.NvFp4LinearLayerConfig())

    def choose(*arguments: Any, **named: Any) -> Any:
        if is_on() and is_cpu():
            return ours()
        chosen = original(*arguments, **named)
        try:
            asked = getattr(package, "_get_linear_backend", lambda: "auto")()
            if not is_on() or asked != "auto" or type(chosen).__name__ not in (_MARLIN, _EMULATION) or not is_hopper():
                return chosen
            kernel = ours()
        except Exception as error:  # whatever another version of vLLM has changed, the engine must start
            _say_once(f"{type(error).__name__}: {error}")
            return chosen
        kernel.other = chosen
        return kernel

    setattr(choose, mark, original)
    return choose


def offer(mark: str, is_on: Callable[[], bool]) -> None:
    """Puts the kernel before those of vLLM. Raises whatever a changed vLLM makes of it."""
    package = importlib.import_module(_LINEAR)
    if hasattr(getattr(package, _FUNCTION), mark):
        return
    users = [sys.modules[name] for name in _USERS if name in sys.modules]
    # ModelOpt's W4A16 makes Marlin's by its name; the package itself keeps that class, which its lists hold.
    for name, modules in ((_FUNCTION, [package, *users]), (_MARLIN, users)):
        original = getattr(package, name, None)
        if original is None:
            continue
        ours = _choosing(package, original, mark, is_on)
        for module in modules:
            if getattr(module, name, None) is original:
                setattr(module, name, ours)
