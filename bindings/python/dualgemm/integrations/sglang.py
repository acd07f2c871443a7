"""SGLang: dense NVFP4 MLPs in one pass, and experts in one call. Entry point `sglang.srt.plugins`: installing the package
switches it on.

By SGLang's own hooks, for the MLPs of Llama and of Qwen2 and Qwen3 (_MLPS) with NVFP4 weights of ModelOpt, and of
compressed-tensors where SGLang multiplies them with 16-bit activations (Marlin, below Blackwell): gate_up_proj's weights stay as
the checkpoint has them (no second copy), forward calls dualgemm.glu() on bfloat16 activations and then the engine's down_proj.
gate and up keep global scales of their own, where SGLang takes the larger of the two, or refuses. Code that calls gate_up_proj
itself gets the two products from dualgemm.linear(). Mixtures of experts: _sglang_experts.py.

Left as it is: everything else, other linear layers among it; activations of another dtype than bfloat16; checkpoints with AWQ's
scales; all of SGLang with DUALGEMM_SGLANG=0.

Tested with SGLang 0.5.23's own hooks, MLPs and experts' classes on a CPU, against the sources of what is hooked, and on
stand-ins. Its engine has not been run with it, nor has any GPU; nothing has been measured.
"""

from __future__ import annotations

import ast
import importlib
import inspect
import logging
import os
import textwrap
from collections.abc import Callable
from typing import Any, Optional

import torch
from torch import Tensor

from . import _sglang_experts as experts
from ._merged import gated, reason_against, reason_of_forward, side_by_side

_log = logging.getLogger("sglang.dualgemm")
_METHOD = "sglang.srt.layers.quantization.modelopt_quant.ModelOptFp4LinearMethod"
_SCHEME = "sglang.srt.layers.quantization.compressed_tensors.schemes.compressed_tensors_w4a16_nvfp4.CompressedTensorsW4A16Fp4"
_SUBMODULES = {"gate_up_proj", "act_fn", "down_proj", "dual_gemm", "activation_quant"}
_registered = False


def is_known_forward(source: str) -> bool:
    """Whether an MLP's forward uses none but the submodules it is known to use, and computes nothing itself."""
    nodes = list(ast.walk(ast.parse(textwrap.dedent(source))))
    used = {
        node.attr
        for node in nodes
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == "self"
    }
    return {"gate_up_proj", "act_fn", "down_proj"} <= used <= _SUBMODULES and not any(
        isinstance(node, (ast.BinOp, ast.AugAssign)) for node in nodes
    )


def _mark(result: Any, mlp: Any, *arguments: Any, **named: Any) -> None:
    """After an MLP's __init__."""
    try:
        layer = mlp.gate_up_proj
        layer.dualgemm_wanted = (
            type(mlp.act_fn).__name__ == "SiluAndMul"
            and getattr(layer, "bias", None) is None
            and is_known_forward(inspect.getsource(inspect.unwrap(type(mlp).forward)))
        )
        if layer.dualgemm_wanted and (reason := reason_of_forward(mlp)) is not None:
            layer.dualgemm_wanted = False
            _log.info("dualgemm: an MLP left to SGLang: %s", reason)
    except Exception as error:  # whatever another version has changed, the engine must start
        _log.info("dualgemm: an MLP left to SGLang: %s: %s", type(error).__name__, error)


def _reason_against(method: Any, layer: Any) -> Optional[str]:
    if getattr(getattr(method, "quant_config", None), "is_awq", False):
        return "AWQ's scales of activations"
    count = _factors(layer).numel()
    return f"{count} global scales" if count != 2 else reason_against(*_matrices(layer), layer.logical_widths)


def _process(original: Callable[..., Any], method: Any, layer: Any) -> Any:
    """Around process_weights_after_loading(): leaves the weights of what is wanted as they are."""
    layer.dualgemm_takes = False
    if not getattr(layer, "dualgemm_wanted", False):
        return original(method, layer)
    try:
        reason = _reason_against(method, layer)
    except Exception as error:  # whatever another version has changed, the engine must start
        reason = f"{type(error).__name__}: {error}"
    if reason is not None:
        _log.info("dualgemm: an NVFP4 MLP left to SGLang: %s", reason)
        return original(method, layer)
    layer.dualgemm_takes, layer.dualgemm_factors = True, _factors(layer)
    return None


def _matrices(layer: Any) -> tuple[Tensor, Tensor]:
    """Codes and scales. SGLang's parameters are subclasses for loading, which operators need not know."""
    codes = layer.weight_packed if hasattr(layer, "weight_packed") else layer.weight
    return codes.data, layer.weight_scale.data


def _factors(layer: Any) -> Tensor:
    """Multipliers of gate and up. compressed-tensors keeps divisors."""
    divisors = getattr(layer, "weight_global_scale", None)
    return layer.weight_scale_2.data.float() if divisors is None else 1 / divisors.data.float()


def _operands(layer: Any) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    codes, scales = _matrices(layer)
    return codes, scales, layer.dualgemm_factors[:1], layer.dualgemm_factors[1:]


def _apply(original: Callable[..., Any], method: Any, layer: Any, x: Any, bias: Optional[Tensor] = None) -> Any:
    """Around apply()."""
    if not getattr(layer, "dualgemm_takes", False):
        return original(method, layer, x, bias)
    d = side_by_side(x, *_operands(layer), False)
    return d if bias is None else d + bias


def _takes(mlp: Any, x: Any) -> bool:
    return getattr(mlp.gate_up_proj, "dualgemm_takes", False) and isinstance(x, Tensor) and x.dtype == torch.bfloat16


def _forward_llama(original: Callable[..., Any], mlp: Any, x: Any, forward_batch: Any = None) -> Any:
    """Around an MLP's forward."""
    if not _takes(mlp, x):
        return original(mlp, x, forward_batch)
    return mlp.down_proj(gated(x, *_operands(mlp.gate_up_proj), False))[0]


def _forward_qwen(original: Callable[..., Any], mlp: Any, x: Any, forward_batch: Any = None) -> Any:
    """The same where down_proj is told what batch it is."""
    if not _takes(mlp, x):
        return original(mlp, x, forward_batch)
    return mlp.down_proj(gated(x, *_operands(mlp.gate_up_proj), False), forward_batch=forward_batch)[0]


_MLPS = {"sglang.srt.models.llama.LlamaMLP": _forward_llama, "sglang.srt.models.qwen2.Qwen2MLP": _forward_qwen}


def register() -> None:
    """Called by SGLang in each of its processes. Changes nothing where SGLang is not as expected."""
    global _registered
    if _registered or os.environ.get("DUALGEMM_SGLANG", "1") == "0":
        return
    try:  # asks CUDA nothing: processes may be forked after this
        hooks = importlib.import_module("sglang.srt.plugins.hook_registry")
        registry, kinds = hooks.HookRegistry, hooks.HookType
        after, around = kinds.AFTER, kinds.AROUND
    except Exception as error:  # an import of a changed SGLang may raise anything
        _log.info("dualgemm: not used: %s: %s", type(error).__name__, error)
        return
    for holder, name, process, apply in (
        (_METHOD, "apply", _process, _apply),
        (_SCHEME, "apply_weights", _process, _apply),
        (experts.MODELOPT, "apply", experts.process_modelopt, experts.apply),
        (experts.PACKED, "apply_weights", experts.process_packed, experts.apply),
    ):
        registry.register(f"{holder}.process_weights_after_loading", process, around)
        registry.register(f"{holder}.{name}", apply, around)
    for mlp, forward in _MLPS.items():
        registry.register(f"{mlp}.__init__", _mark, after)
        registry.register(f"{mlp}.forward", forward, around)
    _registered = True
