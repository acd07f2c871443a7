"""NVFP4 experts of vLLM: one call of this library for a mixture's whole step, in the place of Marlin's or of emulation.

vLLM asks select_nvfp4_moe_backend() for the class of a layer's experts, and hands the choice to convert_to_nvfp4_moe_kernel_format()
and make_nvfp4_moe_quant_config(). Around these three the plug-in answers with a class of its own where vLLM has none (a CPU), or would
take Marlin or emulation (Hopper): codes and scales as the checkpoint has them, packed once, gate and up with global scales of their
own, activations in 16 bits, for checkpoints with 4-bit activations, too, as Marlin's are.
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

from ._packed_experts import gate_and_up, pack_experts
from ._vllm_linear import is_cpu, is_hopper

_log = logging.getLogger("vllm.dualgemm")
_ops = torch.ops.dualgemm
MOE = "vllm.model_executor.layers.fused_moe"
_ORACLE = f"{MOE}.oracle.nvfp4"
_SELECT, _CONVERT, _CONFIG = "select_nvfp4_moe_backend", "convert_to_nvfp4_moe_kernel_format", "make_nvfp4_moe_quant_config"
# Modules that take the functions by their names: those that were imported before are told of ours.
_USERS = (
    "vllm.model_executor.layers.quantization.modelopt",
    "vllm.model_executor.layers.quantization.compressed_tensors.compressed_tensors_moe.compressed_tensors_moe_w4a4_nvfp4",
    "vllm.model_executor.layers.quantization.quark.quark_moe",
)
_ACTIVATIONS = {
    "silu": "silu",
    "gelu": "gelu_erf",
    "gelu_tanh": "gelu_tanh",
    "swigluoai": "swiglu_oai",
    "swigluoai_uninterleave": "swiglu_oai",
    "silu_no_mul": "silu",
    "gelu_no_mul": "gelu_erf",
    "gelu_tanh_no_mul": "gelu_tanh",
    "relu2_no_mul": "relu2",
}
INTERLEAVED = ("swigluoai",)
"""Activations of layers whose rows are gate's and up's in turn."""


class _Backend:
    """Stands where vLLM has a member of its enumeration."""

    value = name = "DUALGEMM"


OURS = _Backend()


def _activation(activation: Any, limit: Optional[float], alpha: Optional[float], beta: Optional[float]) -> dict[str, Any]:
    """The operator's arguments for vLLM's activation and the numbers of its quantisation config."""
    kind = _ACTIVATIONS[activation.value]
    if kind == "swiglu_oai":
        return {"activation": kind, "act_alpha": alpha, "act_beta": beta, "act_limit": limit}
    if limit is not None and kind == "silu":
        return {"activation": "clamped_swiglu", "act_limit": limit}
    return {"activation": kind}


def _take_weights(experts: Any, layer: Any) -> None:
    """Packs, and leaves the packed bytes, [experts, bytes], in the place of the codes: no second copy stays."""
    gated = bool(experts.moe_config.is_act_and_mul)
    names = ("w13_weight", "w13_weight_scale", "w2_weight", "w2_weight_scale")
    w13, s13, w2, s2 = (getattr(layer, name).data for name in names)
    in_turn = experts.moe_config.activation.value in INTERLEAVED
    packed, packed_down, experts.n = pack_experts(w13, s13, w2, s2, gated, in_turn, experts.moe_config.in_dtype)
    experts.gated, experts.layers = gated, w13.shape[0]
    nothing = s13.new_empty(0)
    for name, kept in zip(names, (packed, nothing, packed_down, nothing)):
        setattr(layer, name, torch.nn.Parameter(kept, requires_grad=False))
    config = experts.quant_config
    config._w1.scale = config._w2.scale = None
    experts.alphas = layer.dualgemm_alphas
    experts.batch_invariant = bool(importlib.import_module("vllm.envs").VLLM_BATCH_INVARIANT)
    first: Optional[Tensor] = config.w1_bias
    experts.biases = [None, first, config.w2_bias]
    if first is not None and gated:
        experts.biases[:2] = [first[:, part].contiguous() for part in gate_and_up(experts.n, in_turn)]


def _arguments(
    experts: Any,
    x: Tensor,
    w1: Tensor,
    w2: Tensor,
    ids: Tensor,
    weights: Optional[Tensor],
    expert_map: Optional[Tensor],
    activation: Any,
) -> tuple[list[Any], dict[str, Any]]:
    """Those of the operator."""
    config = experts.quant_config
    return [
        x,
        ids if ids.dtype in (torch.int32, torch.int64) else ids.to(torch.int32),
        weights,
        expert_map,
        *[None] * 4,
        w1.view(-1),
        None,
        None,
        w2.view(-1),
        experts.n,
        experts.layers,
        *experts.alphas,
        *experts.biases,
        *[None] * 4,
    ], {
        "gated": experts.gated,
        "batch_invariant": experts.batch_invariant,
        **_activation(activation, config.gemm1_clamp_limit, config.gemm1_alpha, config.gemm1_beta),
    }


def _best(scores: Tensor, top_k: int, renormalize: bool, by: Optional[Tensor] = None) -> tuple[Tensor, Tensor]:
    """Weights and ids of the largest scores, or of those where ``by`` is largest."""
    ids = (scores if by is None else by).topk(top_k, dim=-1).indices
    weights = scores.gather(-1, ids)
    return weights / weights.sum(-1, keepdim=True) if renormalize else weights, ids


_ROUTINGS: dict[str, Callable[[Tensor, int, Optional[Tensor]], tuple[Tensor, Tensor]]] = {
    "Default": lambda logits, k, _: _best(logits.softmax(-1), k, False),
    "Renormalize": lambda logits, k, _: _best(logits.softmax(-1), k, True),
    "RenormalizeNaive": lambda logits, k, _: _best(logits.softmax(-1), k, True),
    "Sigmoid": lambda logits, k, _: _best(logits.sigmoid(), k, False),
    "SigmoidRenorm": lambda logits, k, _: _best(logits.sigmoid(), k, True),
    "Llama4": lambda logits, k, _: _best(logits.sigmoid(), k, False),
    "MiniMax2": lambda logits, k, bias: _best(logits.sigmoid(), k, True, None if bias is None else logits.sigmoid() + bias),
    "DeepSeekV3": lambda logits, k, bias: _best(logits.sigmoid(), k, True, None if bias is None else logits.sigmoid() + bias),
}
"""What vLLM's routers on GPUs do, by the names of RoutingMethodType; without groups of experts."""


def _route(
    experts: Any, x: Tensor, logits: Tensor, groups: Optional[int], top_groups: Optional[int], bias: Any, factor: Any
) -> tuple[Tensor, Tensor]:
    method, top_k = experts.moe_config.routing_method.name, experts.moe_config.experts_per_token
    if groups is None or groups <= 1:
        weights, ids = _ROUTINGS[method](logits.float(), top_k, bias)
        return weights * factor if method == "DeepSeekV3" and factor is not None else weights, ids
    weights, ids = importlib.import_module(f"{MOE}.cpu_fused_moe").grouped_topk(
        hidden_states=x,
        gating_output=logits,
        topk=top_k,
        renormalize=method != "Default",
        num_expert_group=groups,
        topk_group=top_groups,
        scoring_func="sigmoid" if method == "DeepSeekV3" else "softmax",
        routed_scaling_factor=1.0 if factor is None else factor,
        e_score_correction_bias=bias,
    )
    return weights, ids


@functools.cache
def experts_class(monolithic: bool) -> Any:
    """monolithic: routes, too, as experts for CPUs do, where vLLM's routers do not run."""
    kernels = importlib.import_module(f"{MOE}.modular_kernel")
    no_sum = importlib.import_module(f"{MOE}.topk_weight_and_reduce").TopKWeightAndReduceNoOP

    class Common:
        @staticmethod
        def activation_format() -> Any:
            return kernels.FusedMoEActivationFormat.Standard

        @staticmethod
        def _supports_current_device() -> bool:
            return is_cpu() if monolithic else is_hopper()

        @staticmethod
        def _supports_no_act_and_mul() -> bool:
            return True

        @staticmethod
        def _supports_quant_scheme(weight_key: Any, activation_key: Any) -> bool:
            return True  # it is asked where weights are NVFP4, or MXFP4

        @staticmethod
        def _supports_activation(activation: Any) -> bool:
            return activation.value in _ACTIVATIONS

        @staticmethod
        def _supports_parallel_config(parallel: Any) -> bool:
            return not parallel.use_batched_activation_format

        @staticmethod
        def _supports_batch_invariance() -> bool:
            return True

        @staticmethod
        def _supports_shape(hidden_dim: int) -> bool:
            return hidden_dim % 16 == 0

        @staticmethod
        def _supports_routing_method(routing_method: Any, weight_key: Any, activation_key: Any) -> bool:
            return not monolithic or routing_method.name in _ROUTINGS

        @staticmethod
        def _supports_router_logits_dtype(router_logits_dtype: Any, routing_method: Any) -> bool:
            return True

        @property
        def expects_unquantized_inputs(self) -> bool:
            return True

        def process_weights_after_loading(self, layer: Any) -> None:
            _take_weights(self, layer)

    if monolithic:
        base: Any = kernels.FusedMoEExpertsMonolithic

        class DualGemmRoutedExperts(Common, base):
            def apply(
                self,
                hidden_states: Tensor,
                w1: Tensor,
                w2: Tensor,
                router_logits: Tensor,
                activation: Any,
                global_num_experts: int,
                expert_map: Optional[Tensor],
                a1q_scale: Optional[Tensor],
                apply_router_weight_on_input: bool,
                num_expert_group: Optional[int] = None,
                e_score_correction_bias: Optional[Tensor] = None,
                routed_scaling_factor: Optional[float] = None,
                topk_group: Optional[int] = None,
            ) -> Tensor:
                weights, ids = _route(
                    self,
                    hidden_states,
                    router_logits,
                    num_expert_group,
                    topk_group,
                    e_score_correction_bias,
                    routed_scaling_factor,
                )
                arguments, named = _arguments(
                    self, hidden_states, w1, w2, ids.to(torch.int32), weights.float(), expert_map, activation
                )
                result: Tensor = _ops.experts(*arguments, **named, weights_on_input=apply_router_weight_on_input)
                return result

        return DualGemmRoutedExperts

    modular: Any = kernels.FusedMoEExpertsModular

    class DualGemmExperts(Common, modular):
        def finalize_weight_and_reduce_impl(self) -> Any:
            return no_sum()

        def workspace_shapes(self, M: int, N: int, K: int, *_: Any, **__: Any) -> Any:
            return (0,), (0,), (M, K)

        def moe_problem_size(self, a1: Tensor, w1: Tensor, w2: Tensor, topk_ids: Tensor) -> tuple[int, int, int, int, int]:
            return w1.shape[0], a1.shape[0], self.n, a1.shape[-1], topk_ids.shape[1]

        def apply(
            self,
            output: Tensor,
            hidden_states: Tensor,
            w1: Tensor,
            w2: Tensor,
            topk_weights: Tensor,
            topk_ids: Tensor,
            activation: Any,
            global_num_experts: int,
            expert_map: Optional[Tensor],
            a1q_scale: Optional[Tensor],
            a2_scale: Optional[Tensor],
            workspace13: Tensor,
            workspace2: Tensor,
            expert_tokens_meta: Any,
            apply_router_weight_on_input: bool,
        ) -> None:
            # With weights on the input vLLM has multiplied hidden_states by them.
            weights = None if apply_router_weight_on_input else topk_weights
            arguments, named = _arguments(self, hidden_states, w1, w2, topk_ids, weights, expert_map, activation)
            _ops.experts.out(*arguments, **named, out=output)

    return DualGemmExperts


def _alphas_of(layer: Any, gated: bool) -> list[Optional[Tensor]]:
    """Multipliers of gate, up and down, each expert's own: vLLM keeps gate's for both."""
    if hasattr(layer, "w13_weight_global_scale"):  # compressed-tensors: divisors
        first, down = 1 / layer.w13_weight_global_scale.data.float(), 1 / layer.w2_weight_global_scale.data.float()
    else:
        first, down = layer.w13_weight_scale_2.data.float(), layer.w2_weight_scale_2.data.float()
    first = first.reshape(first.shape[0], -1)
    up = first[:, -1].contiguous()
    return [first[:, 0].contiguous() if gated else None, up, down.reshape(-1).contiguous()]


def taken(model: torch.nn.Module) -> int:
    """Layers of the model whose experts are ours."""
    return sum(isinstance(getattr(layer, "dualgemm_alphas", None), list) for layer in model.modules())


def reason_against(config: Any, weight_key: Any, activation_key: Any) -> Optional[str]:
    """Why a layer's experts cannot be ours."""
    try:
        ours = experts_class(is_cpu())
        standard = importlib.import_module(f"{MOE}.modular_kernel").FusedMoEActivationFormat.Standard
        fits, reason = ours.is_supported_config(ours, config, weight_key, activation_key, standard)
    except Exception as error:  # whatever another version of vLLM has changed, the engine must start
        return f"{type(error).__name__}: {error}"
    return None if fits else str(reason)


def _selecting(original: Callable[..., Any], is_on: Callable[[], bool]) -> Callable[..., Any]:
    def select(config: Any, weight_key: Any, activation_key: Any) -> Any:
        if not is_on():
            return original(config, weight_key, activation_key)
        failed: Optional[Exception] = None
        chosen: Any = (None, None)
        try:
            chosen = original(config, weight_key, activation_key)
        except (NotImplementedError, ValueError) as error:
            failed = error
        if config.moe_backend == "auto" and (failed is not None or chosen[0].value in ("MARLIN", "EMULATION")):
            reason = reason_against(config, weight_key, activation_key)
            if reason is None:
                return OURS, experts_class(is_cpu())
            _log.info("dualgemm: experts are left to vLLM: %s", reason)
        if failed is not None:
            raise failed
        return chosen

    return select


def _converting(original: Callable[..., Any]) -> Callable[..., Any]:
    def convert(nvfp4_backend: Any, layer: Any, *arguments: Any, **named: Any) -> Any:
        if nvfp4_backend is not OURS:
            return original(nvfp4_backend, layer, *arguments, **named)
        layer.dualgemm_alphas = _alphas_of(layer, bool(named["is_act_and_mul"]))
        return (
            named["w13"],
            named["w13_scale"],
            named["w13_scale_2"],
            None,
            named["w2"],
            named["w2_scale"],
            named["w2_scale_2"],
            None,
        )

    return convert


def _configuring(original: Callable[..., Any], marlin: Any) -> Callable[..., Any]:
    def configure(backend: Any, *arguments: Any, **named: Any) -> Any:
        return original(marlin if backend is OURS else backend, *arguments, **named)

    return configure


def offer(mark: str, is_on: Callable[[], bool]) -> None:
    """Puts the class in front of vLLM's. Raises whatever a changed vLLM makes of it."""
    oracle = importlib.import_module(_ORACLE)
    if hasattr(getattr(oracle, _SELECT), mark):
        return
    users = [oracle, *(sys.modules[name] for name in _USERS if name in sys.modules)]
    marlin = oracle.NvFp4MoeBackend.MARLIN
    for name, around in (
        (_SELECT, lambda original: _selecting(original, is_on)),
        (_CONVERT, _converting),
        (_CONFIG, lambda original: _configuring(original, marlin)),
    ):
        original = getattr(oracle, name)
        ours = around(original)
        setattr(ours, mark, original)
        for module in users:
            if getattr(module, name, None) is original:
                setattr(module, name, ours)
