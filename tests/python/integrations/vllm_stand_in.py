"""A stand-in for vLLM: modules of its names with what the plug-in's experts take for granted."""

from __future__ import annotations

import sys
import types
from typing import Any

import pytest
import torch

MOE = "vllm.model_executor.layers.fused_moe"
TOP_K = 2


class Named:
    def __init__(self, name: str) -> None:
        self.name = self.value = name


class Standard:
    Standard = Named("standard")


class Base:
    """FusedMoEExperts as far as the plug-in takes it for granted."""

    def __init__(self, moe_config: Any, quant_config: Any) -> None:
        self.moe_config, self.quant_config = moe_config, quant_config

    @staticmethod
    def is_supported_config(cls: Any, config: Any, weight_key: Any, activation_key: Any, format: Any) -> tuple[bool, Any]:
        if not cls._supports_current_device():
            return False, "device"
        if not cls._supports_activation(config.activation):
            return False, "activation"
        if not cls._supports_parallel_config(config.moe_parallel_config):
            return False, "parallel"
        return cls._supports_routing_method(config.routing_method, weight_key, activation_key), "routing"


class Platform:
    on_cpu, capability = True, 90

    def is_cpu(self) -> bool:
        return self.on_cpu

    def is_cuda(self) -> bool:
        return not self.on_cpu

    def is_device_capability(self, wanted: int) -> bool:
        return self.capability == wanted


def config(**changes: Any) -> Any:
    values = dict(moe_backend="auto", is_act_and_mul=True, in_dtype=torch.bfloat16, activation=Named("silu"))
    values |= dict(routing_method=Named("Renormalize"), experts_per_token=TOP_K)
    values |= dict(moe_parallel_config=types.SimpleNamespace(use_batched_activation_format=False))
    return types.SimpleNamespace(**values | changes)


def common(platform: Platform) -> dict[str, dict[str, Any]]:
    """Contents of the modules that every experts' class needs, by name."""
    return {
        f"{MOE}.modular_kernel": {
            "FusedMoEActivationFormat": Standard,
            "FusedMoEExpertsMonolithic": Base,
            "FusedMoEExpertsModular": Base,
        },
        f"{MOE}.topk_weight_and_reduce": {"TopKWeightAndReduceNoOP": object},
        "vllm.platforms": {"current_platform": platform},
        "vllm.envs": {"VLLM_BATCH_INVARIANT": False},
    }


def install(monkeypatch: pytest.MonkeyPatch, contents: dict[str, dict[str, Any]]) -> None:
    for path in contents:
        for end in range(1, path.count(".") + 2):
            name = ".".join(path.split(".")[:end])
            monkeypatch.setitem(sys.modules, name, types.ModuleType(name))
    for path, content in contents.items():
        sys.modules[path].__dict__.update(content)
