"""NVFP4 experts of SGLang where it takes Marlin on Hopper: one call of this library for a mixture's whole step.

Two classes hold them, compressed-tensors' and ModelOpt's. Around what they do with loaded weights the plug-in packs, and leaves the
packed bytes in their place; around what they do with rows it calls the operator. SGLang has routed by then, and ids are those
of the local experts, -1 where a row's expert is another rank's. Gate and up keep global scales of their own, where SGLang takes
gate's for both (ModelOpt) or refuses (compressed-tensors).
"""

from __future__ import annotations

import importlib
import logging
from collections.abc import Callable
from typing import Any, Optional

import torch
from torch import Tensor, nn

from ._packed_experts import pack_experts

_log = logging.getLogger("sglang.dualgemm")
_ops = torch.ops.dualgemm
_MARLIN = "sglang.srt.layers.moe.moe_runner.marlin"
_STANDARD = "sglang.srt.layers.moe.token_dispatcher.standard"
_QUANTIZATION = "sglang.srt.layers.quantization"
PACKED = f"{_QUANTIZATION}.compressed_tensors.schemes.compressed_tensors_w4a16_nvfp4_moe.CompressedTensorsW4A16Nvfp4MoE"
MODELOPT = f"{_QUANTIZATION}.modelopt_quant.ModelOptNvFp4FusedMoEMethod"
_NAMES = ("w13_weight", "w13_weight_scale", "w2_weight", "w2_weight_scale")


def _activation(config: Any) -> Optional[dict[str, Any]]:
    """The operator's arguments for SGLang's activation; None: one that the library has not, or that is left."""
    if config.gemm1_alpha is not None or config.no_combine:
        return None
    if not config.is_gated:
        return {"activation": "relu2"} if config.activation == "relu2" else None
    if config.activation != "silu":
        return None
    limit = config.swiglu_limit
    return {"activation": "silu"} if limit is None else {"activation": "clamped_swiglu", "act_limit": limit}


def _is_here(weight: Tensor) -> bool:
    """A CPU, or Hopper: below it Marlin is the faster, and above it SGLang takes other kernels."""
    return weight.device.type == "cpu" or torch.cuda.get_device_capability(weight.device) == (9, 0)


def _take(layer: Any, config: Any, tensors: list[Tensor], first: Tensor, down: Tensor) -> Optional[str]:
    """Packs. first, down: factors of Gate and Up [experts, 2] or [experts], and of Down [experts]. The reason where it does not."""
    activation, gated = _activation(config), bool(config.is_gated)
    if activation is None:
        return f"activation {config.activation}, is_gated {config.is_gated}, gemm1_alpha {config.gemm1_alpha}"
    if not _is_here(tensors[0]):
        return "a GPU of another compute capability than 9.0"
    if getattr(layer, "w13_bias", None) is not None or getattr(layer, "inference_moe_w13_interleaved", False):
        return "biases, or rows of gate and up in turn"
    rows = getattr(layer, "params_dtype", None) or config.params_dtype
    try:
        w13, s13, w2, s2 = tensors
        packed, packed_down, n = pack_experts(w13, s13, w2, s2, gated, False, rows)
    except ValueError as error:
        return str(error)
    factors = [one.to(torch.float32).contiguous() for one in (first.reshape(tensors[0].shape[0], -1), down)]
    gate, up = factors[0][:, 0].contiguous(), factors[0][:, -1].contiguous()
    nothing = tensors[1].new_empty(0)
    for name, kept in zip(_NAMES, (packed, nothing, packed_down, nothing)):
        setattr(layer, name, nn.Parameter(kept, requires_grad=False))
    layer.dualgemm_experts = (n, tensors[0].shape[0], [gate if gated else None, up, factors[1].reshape(-1)], rows)
    layer.dualgemm_activation = {**activation, "gated": gated}
    return None


def _left(reason: str) -> None:
    _log.info("dualgemm: NVFP4 experts left to SGLang: %s", reason)


def process_packed(original: Callable[..., Any], scheme: Any, layer: Any) -> Any:
    """Around compressed-tensors' process_weights_after_loading(); its global scales are divisors."""
    try:
        tensors = [getattr(layer, f"{name}_packed" if name.endswith("weight") else name).data for name in _NAMES]
        factors = [1 / getattr(layer, f"{name}_weight_global_scale").data for name in ("w13", "w2")]
        reason = _take(layer, scheme.moe_runner_config, tensors, *factors)
    except Exception as error:  # whatever another version has changed, the engine must start
        reason = f"{type(error).__name__}: {error}"
    if reason is not None:
        _left(reason)
        return original(scheme, layer)
    for name in ("w13", "w2"):
        for what in ("weight_packed", "weight_global_scale", "input_global_scale"):
            if hasattr(layer, f"{name}_{what}"):
                delattr(layer, f"{name}_{what}")
    return None


def process_modelopt(original: Callable[..., Any], method: Any, layer: Any) -> Any:
    """Around ModelOpt's process_weights_after_loading(), where Marlin was chosen."""
    try:
        reason: Optional[str] = "another backend than Marlin"
        if method._moe_runner_backend.is_marlin():
            tensors = [getattr(layer, name).data for name in _NAMES]
            factors = [getattr(layer, f"{name}_weight_scale_2").data for name in ("w13", "w2")]
            reason = _take(layer, method.moe_runner_config, tensors, *factors)
    except Exception as error:
        reason = f"{type(error).__name__}: {error}"
    if reason is not None:
        _left(reason)
        return original(method, layer)
    return None


def apply(original: Callable[..., Any], method: Any, layer: Any, dispatch_output: Any) -> Any:
    """Around either's product."""
    taken = getattr(layer, "dualgemm_experts", None)
    if taken is None:
        return original(method, layer, dispatch_output)
    n, experts, alphas, rows = taken
    x, topk = dispatch_output.hidden_states, dispatch_output.topk_output
    if hasattr(topk, "topk_weights"):
        ids, weights = topk.topk_ids, topk.topk_weights
    else:
        ids, weights = importlib.import_module(_MARLIN)._fused_unpack_packed_topk(topk.packed_topk_ids)
    config = method.moe_runner_config
    if config.routed_scaling_factor is not None:
        weights = weights * config.routed_scaling_factor
    y = _ops.experts(
        x.to(rows),
        ids if ids.dtype in (torch.int32, torch.int64) else ids.to(torch.int32),
        weights.to(torch.float32),
        *[None] * 5,
        layer.w13_weight.view(-1),
        None,
        None,
        layer.w2_weight.view(-1),
        n,
        experts,
        *alphas,
        *[None] * 7,
        weights_on_input=bool(config.apply_router_weight_on_input),
        **layer.dualgemm_activation,
    )
    return importlib.import_module(_STANDARD).StandardCombineInput(hidden_states=y.to(x.dtype))
