"""The plug-in's experts for vLLM, against a stand-in with its names; scripts/test_engines runs them in vLLM itself."""

from __future__ import annotations

import sys
import types
from typing import Any

import pytest
import torch
from torch import Tensor, nn

import dualgemm as dg
from dualgemm.integrations import _vllm_experts as plugin
from vllm_stand_in import MOE, TOP_K, Named, Platform, common, config, install

EXPERTS, HIDDEN, N = 4, 64, 48


class Oracle:
    """What vLLM's three functions answer and were asked."""

    answer: Any = None

    def select(self, config: Any, weight_key: Any, activation_key: Any) -> Any:
        if self.answer is None:
            raise NotImplementedError("no NVFP4 experts here")
        return Named(self.answer), object

    def convert(self, nvfp4_backend: Any, layer: Any, **named: Any) -> Any:
        return "theirs"

    def configure(self, backend: Any, **named: Any) -> Any:
        return backend


@pytest.fixture
def vllm(monkeypatch: pytest.MonkeyPatch) -> Any:
    oracle, platform = Oracle(), Platform()
    contents: dict[str, dict[str, Any]] = {
        f"{MOE}.oracle.nvfp4": {
            "select_nvfp4_moe_backend": lambda *arguments: oracle.select(*arguments),
            "convert_to_nvfp4_moe_kernel_format": lambda *arguments, **named: oracle.convert(*arguments, **named),
            "make_nvfp4_moe_quant_config": lambda backend, **named: oracle.configure(backend, **named),
            "NvFp4MoeBackend": types.SimpleNamespace(MARLIN="MARLIN"),
        },
        **common(platform),
    }
    install(monkeypatch, contents)
    plugin.experts_class.cache_clear()
    is_on = [True]
    plugin.offer("_mark", lambda: is_on[0])
    module = sys.modules[f"{MOE}.oracle.nvfp4"]
    yield types.SimpleNamespace(oracle=oracle, platform=platform, module=module, is_on=is_on)
    plugin.experts_class.cache_clear()


def select(vllm: Any, **changes: Any) -> Any:
    return vllm.module.select_nvfp4_moe_backend(config(**changes), "weights", "activations")


def test_takes_what_no_one_else_does(vllm: Any) -> None:
    assert select(vllm)[0] is plugin.OURS
    for backend in ("MARLIN", "EMULATION"):
        vllm.oracle.answer = backend
        assert select(vllm)[0] is plugin.OURS
    vllm.oracle.answer = "FLASHINFER_TRTLLM"
    assert select(vllm)[0].value == "FLASHINFER_TRTLLM"


def test_leaves_what_it_must(vllm: Any) -> None:
    vllm.oracle.answer = "MARLIN"
    assert select(vllm, moe_backend="marlin")[0].value == "MARLIN"  # asked for by name
    assert select(vllm, activation=Named("xielu"))[0].value == "MARLIN"
    assert select(vllm, routing_method=Named("Custom"))[0].value == "MARLIN"
    batched = types.SimpleNamespace(use_batched_activation_format=True)
    assert select(vllm, moe_parallel_config=batched)[0].value == "MARLIN"
    vllm.is_on[0] = False
    assert select(vllm)[0].value == "MARLIN"
    vllm.oracle.answer = None
    with pytest.raises(NotImplementedError, match="no NVFP4 experts"):
        select(vllm)
    assert vllm.module.convert_to_nvfp4_moe_kernel_format(Named("MARLIN"), None) == "theirs"


def test_gpus(vllm: Any) -> None:
    vllm.platform.on_cpu, vllm.oracle.answer = False, "MARLIN"
    assert select(vllm, routing_method=Named("Custom"))[0] is plugin.OURS  # vLLM routes there
    vllm.platform.capability = 80
    assert select(vllm)[0].value == "MARLIN"


def test_a_changed_vllm_starts(vllm: Any) -> None:
    vllm.oracle.answer = "MARLIN"
    del sys.modules[f"{MOE}.modular_kernel"].FusedMoEExpertsMonolithic  # type: ignore[attr-defined]
    assert select(vllm)[0].value == "MARLIN"


def random_layer(gated: bool, modelopt: bool) -> tuple[Any, list[list[Tensor]]]:
    """A layer as vLLM has loaded it, and each expert's decoded [gate, up, down], or [up, down]."""
    layer, decoded, codes, scales, alphas = nn.Module(), [], [[], []], [[], []], [[], []]
    for _ in range(EXPERTS):
        shapes = [(N, HIDDEN)] * (2 if gated else 1) + [(HIDDEN, N)]
        quantized = [dg.quantize(torch.randn(shape)) for shape in shapes]
        decoded.append([dg.dequantize(one).double() for one in quantized])
        for side, ones in enumerate((quantized[:-1], quantized[-1:])):
            codes[side].append(torch.cat([one.codes for one in ones]))
            scales[side].append(torch.cat([one.scales for one in ones]))
            alphas[side].append(torch.stack([one.global_scale.reshape(()) for one in ones]))
    for side, name in enumerate(("w13", "w2")):
        factors = torch.stack(alphas[side])
        factors = factors if side == 0 else factors[:, 0]
        setattr(layer, f"{name}_weight", nn.Parameter(torch.stack(codes[side]), requires_grad=False))
        setattr(layer, f"{name}_weight_scale", nn.Parameter(torch.stack(scales[side]), requires_grad=False))
        kept, value = ("weight_scale_2", factors) if modelopt else ("weight_global_scale", 1 / factors)
        setattr(layer, f"{name}_{kept}", nn.Parameter(value, requires_grad=False))
    return layer, decoded


def experts_of(vllm: Any, layer: Any, gated: bool) -> Any:
    activation = Named("silu" if gated else "relu2_no_mul")
    backend, ours = select(vllm, is_act_and_mul=gated, activation=activation)
    sides = {name: getattr(layer, name) for name in ("w13_weight", "w13_weight_scale", "w2_weight", "w2_weight_scale")}
    named = {name.replace("_weight", ""): tensor for name, tensor in sides.items()}
    converted = vllm.module.convert_to_nvfp4_moe_kernel_format(
        backend, layer, **named, w13_scale_2=None, w2_scale_2=None, is_act_and_mul=gated
    )
    assert converted[0] is layer.w13_weight and converted[4] is layer.w2_weight
    assert vllm.module.make_nvfp4_moe_quant_config(backend) == "MARLIN"
    quant = types.SimpleNamespace(w1_bias=None, w2_bias=None, gemm1_clamp_limit=None, gemm1_alpha=None, gemm1_beta=None)
    quant._w1, quant._w2 = types.SimpleNamespace(scale=0), types.SimpleNamespace(scale=0)
    experts = ours(config(is_act_and_mul=gated, activation=activation), quant)
    experts.process_weights_after_loading(layer)
    model = nn.Sequential(layer)
    assert plugin.taken(model) == 1
    return experts


def expected(x: Tensor, ids: Tensor, weights: Tensor, decoded: list[list[Tensor]]) -> Tensor:
    y = torch.zeros(x.shape, dtype=torch.float64)
    for token, row in enumerate(x.double()):
        for id, weight in zip(ids[token].tolist(), weights[token].double()):
            *first, up, down = decoded[id]
            h = nn.functional.silu(row @ first[0].T) * (row @ up.T) if first else (row @ up.T).relu() ** 2
            y[token] += weight * (h @ down.T)
    return y


@pytest.mark.parametrize("modelopt", [False, True])
@pytest.mark.parametrize("gated", [True, False])
def test_computes(vllm: Any, gated: bool, modelopt: bool) -> None:
    torch.manual_seed(5)
    layer, decoded = random_layer(gated, modelopt)
    experts = experts_of(vllm, layer, gated)
    x, logits = torch.randn(7, HIDDEN).to(torch.bfloat16), torch.randn(7, EXPERTS)
    ids, weights = logits.topk(TOP_K).indices, logits.topk(TOP_K).values.softmax(-1)
    activation = experts.moe_config.activation
    y = experts.apply(x, layer.w13_weight, layer.w2_weight, logits, activation, EXPERTS, None, None, False)
    want = expected(x, ids, weights, decoded)
    assert y.dtype == torch.bfloat16
    assert float((y.double() - want).abs().max()) <= 0.02 * float(want.abs().max())

    # As on a GPU, where vLLM has routed.
    modular = plugin.experts_class(False)(experts.moe_config, experts.quant_config)
    modular.__dict__.update(experts.__dict__)
    out = torch.full_like(x, float("nan"))
    modular.apply(
        out,
        x,
        layer.w13_weight,
        layer.w2_weight,
        weights.float(),
        ids.to(torch.int32),
        activation,
        EXPERTS,
        None,
        None,
        None,
        x,
        x,
        None,
        False,
    )
    assert torch.equal(out, y)
