"""The plug-in's experts for SGLang, against stand-ins of what it reads; test_sglang_run.py has SGLang's own classes."""

from __future__ import annotations

import sys
import types
from typing import Any

import pytest
import torch
from torch import Tensor, nn

import dualgemm as dg
import dualgemm.torch  # registers torch.ops.dualgemm
from dualgemm.integrations import _sglang_experts as plugin

EXPERTS, HIDDEN, N, TOP_K = 4, 64, 48, 2


class CombineInput:
    def __init__(self, hidden_states: Tensor) -> None:
        self.hidden_states = hidden_states


@pytest.fixture(autouse=True)
def sglang(monkeypatch: pytest.MonkeyPatch) -> None:
    for path in (plugin._STANDARD, plugin._MARLIN):
        for end in range(1, path.count(".") + 2):
            name = ".".join(path.split(".")[:end])
            monkeypatch.setitem(sys.modules, name, types.ModuleType(name))
    sys.modules[plugin._STANDARD].StandardCombineInput = CombineInput  # type: ignore[attr-defined]
    unpack = lambda packed: (packed >> 16, (packed & 0xFFFF).to(torch.uint16).view(torch.bfloat16).float())
    sys.modules[plugin._MARLIN]._fused_unpack_packed_topk = unpack  # type: ignore[attr-defined]


def config(**changes: Any) -> Any:
    values = dict(activation="silu", is_gated=True, gemm1_alpha=None, swiglu_limit=None, no_combine=False)
    values |= dict(routed_scaling_factor=None, apply_router_weight_on_input=False, params_dtype=torch.bfloat16)
    return types.SimpleNamespace(**values | changes)


def random_layer(gated: bool, packed: bool) -> tuple[Any, list[list[Tensor]]]:
    """A layer as SGLang has loaded it, and each expert's decoded [gate, up, down], or [up, down]."""
    layer: Any = nn.Module()
    decoded = []
    parts: dict[str, list[Tensor]] = {}
    for _ in range(EXPERTS):
        first = [dg.quantize(torch.randn(N, HIDDEN)) for _ in range(2 if gated else 1)]
        down = dg.quantize(torch.randn(HIDDEN, N))
        decoded.append([dg.dequantize(one).double() for one in (*first, down)])
        for name, ones in (("w13", first), ("w2", [down])):
            parts.setdefault(f"{name}_weight", []).append(torch.cat([one.codes for one in ones]))
            parts.setdefault(f"{name}_weight_scale", []).append(torch.cat([one.scales for one in ones]))
            factors = torch.stack([one.global_scale.reshape(()) for one in ones])
            parts.setdefault(f"{name}_factors", []).append(factors if name == "w13" and gated else factors[0])
    for name, each in parts.items():
        tensor = torch.stack(each)
        if name.endswith("_factors"):
            name = name.replace("_factors", "_weight_global_scale" if packed else "_weight_scale_2")
            tensor = 1 / tensor if packed else tensor
        elif packed and name.endswith("weight"):
            name += "_packed"
        setattr(layer, name, nn.Parameter(tensor, requires_grad=False))
    return layer, decoded


def method_of(**changes: Any) -> Any:
    marlin = types.SimpleNamespace(is_marlin=lambda: True)
    return types.SimpleNamespace(moe_runner_config=config(**changes), _moe_runner_backend=marlin)


def expected(x: Tensor, ids: Tensor, weights: Tensor, decoded: list[list[Tensor]], limit: float | None = None) -> Tensor:
    y = torch.zeros(x.shape, dtype=torch.float64)
    for token, row in enumerate(x.double()):
        for id, weight in zip(ids[token].tolist(), weights[token].double()):
            if id < 0:
                continue
            *first, up, down = decoded[id]
            gate, other = row @ first[0].T if first else None, row @ up.T
            if gate is None:
                h = other.relu() ** 2
            elif limit is None:
                h = nn.functional.silu(gate) * other
            else:
                h = nn.functional.silu(gate.clamp(max=limit)) * other.clamp(-limit, limit)
            y[token] += weight * (h @ down.T)
    return y


def never(*_: Any) -> Any:
    raise AssertionError("SGLang's own was called")


def dispatched(x: Tensor, topk: Any) -> Any:
    return types.SimpleNamespace(hidden_states=x, topk_output=topk)


@pytest.mark.parametrize("packed", [False, True], ids=["modelopt", "compressed_tensors"])
@pytest.mark.parametrize("kind", ["silu", "clamped", "relu2", "scaled"])
def test_computes(kind: str, packed: bool) -> None:
    torch.manual_seed(3)
    gated, limit = kind != "relu2", 0.5 if kind == "clamped" else None
    layer, decoded = random_layer(gated, packed)
    factor = 2.5 if kind == "scaled" else None
    method = method_of(
        is_gated=gated, activation="silu" if gated else "relu2", swiglu_limit=limit, routed_scaling_factor=factor
    )
    (plugin.process_packed if packed else plugin.process_modelopt)(never, method, layer)
    assert not hasattr(layer, "w13_weight_packed") and layer.w13_weight.shape[0] == EXPERTS
    x = torch.randn(7, HIDDEN).to(torch.bfloat16)
    weights, ids = torch.randn(7, EXPERTS).softmax(-1).topk(TOP_K)
    ids[2, 1] = -1  # of another rank
    topk = types.SimpleNamespace(topk_weights=weights, topk_ids=ids)
    y = plugin.apply(never, method, layer, dispatched(x, topk)).hidden_states
    want = expected(x, ids, weights * (factor or 1), decoded, limit)
    assert y.dtype == x.dtype and float((y.double() - want).abs().max()) <= 0.02 * float(want.abs().max())
    # Weights and ids in one tensor.
    bits = weights.to(torch.bfloat16).view(torch.uint16).to(torch.int32)
    both = types.SimpleNamespace(packed_topk_ids=ids.to(torch.int32) << 16 | bits)
    again = plugin.apply(never, method, layer, dispatched(x, both)).hidden_states
    assert float((again.double() - want).abs().max()) <= 0.03 * float(want.abs().max())


@pytest.mark.parametrize("changes", [{"activation": "gelu"}, {"no_combine": True}, {"gemm1_alpha": 1.702}, {"is_gated": False}])
def test_leaves(changes: dict[str, Any]) -> None:
    layer, _ = random_layer(True, True)
    method, before = method_of(**changes), layer.w13_weight_packed
    assert plugin.process_packed(lambda *_: "theirs", method, layer) == "theirs"
    assert layer.w13_weight_packed is before
    assert plugin.apply(lambda *_: "theirs", method, layer, None) == "theirs"
    other, _ = random_layer(True, False)
    method._moe_runner_backend.is_marlin = lambda: False
    assert plugin.process_modelopt(lambda *_: "theirs", method_of(), other) is None
    assert plugin.process_modelopt(lambda *_: "theirs", method, other) == "theirs"


def test_a_changed_sglang_starts() -> None:
    layer, _ = random_layer(True, True)
    assert plugin.process_packed(lambda *_: "theirs", types.SimpleNamespace(), layer) == "theirs"
    assert plugin.process_modelopt(lambda *_: "theirs", types.SimpleNamespace(), layer) == "theirs"
