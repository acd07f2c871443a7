"""MXFP4 experts of the plug-in for vLLM, against a stand-in with its names; scripts/test_engines runs gpt-oss in vLLM itself."""

from __future__ import annotations

import sys
import types
from typing import Any, Optional

import pytest
import torch
from torch import Tensor, nn

from dualgemm._errors import FileError, Unsupported
from dualgemm._mxfp4 import as_nvfp4, decode
from dualgemm.integrations import _vllm_experts, _vllm_mxfp4 as plugin
from vllm_stand_in import TOP_K, Named, Platform, common, config, install

EXPERTS, HIDDEN, N = 4, 64, 96


class Method:
    """GptOssMxfp4MoEMethod as far as the plug-in takes it for granted."""

    def __init__(self, moe: Any) -> None:
        self.moe, self.set_up = moe, False
        self.mxfp4_backend, self.experts_cls = sys.modules[plugin._USER].select_mxfp4_moe_backend(moe)  # type: ignore[attr-defined]

    def _setup_kernel(self, layer: Any, *tensors: Tensor) -> None:
        self.set_up = True

    def get_fused_moe_quant_config(self, layer: Any) -> Any:
        quant = types.SimpleNamespace(w1_bias=getattr(layer, "w13_bias", None), w2_bias=getattr(layer, "w2_bias", None))
        quant.gemm1_clamp_limit, quant.gemm1_alpha, quant.gemm1_beta = 7.0, 1.702, 1.0
        quant._w1, quant._w2 = types.SimpleNamespace(scale=0), types.SimpleNamespace(scale=0)
        return quant


class Packed(Method):
    """CompressedTensorsW4A4Mxfp4MoEMethod."""

    def __init__(self, moe: Any) -> None:
        self.moe, self.set_up = moe, False
        self.mxfp4_backend, self.experts_cls = Named("MARLIN"), type("MarlinExperts", (), {})

    def process_weights_after_loading(self, layer: Any) -> None:
        self.set_up = True

    def get_fused_moe_quant_config(self, layer: Any) -> Any:
        quant = super().get_fused_moe_quant_config(layer)
        quant.gemm1_clamp_limit = quant.gemm1_alpha = quant.gemm1_beta = None
        return quant


class Triton:
    pass


@pytest.fixture
def vllm(monkeypatch: pytest.MonkeyPatch) -> Any:
    platform, answer, is_on, takes_all = Platform(), ["MARLIN"], [True], [False]

    def select(config: Any, activation_key: Any = None) -> Any:
        if not answer[0]:
            raise NotImplementedError("No MXFP4 MoE backend")
        return Named(answer[0]), Triton

    def kernel(experts_cls: Any, moe_config: Any, moe_quant_config: Any, **named: Any) -> Any:
        return types.SimpleNamespace(fused_experts=experts_cls(moe_config, moe_quant_config))

    made = {"Mxfp4MoeBackend": types.SimpleNamespace(MARLIN=Named("MARLIN")), "make_mxfp4_moe_kernel": kernel}
    first = made | {"select_mxfp4_moe_backend": select, "GptOssMxfp4MoEMethod": type("GptOss", (Method,), {})}
    first["GptOssMxfp4MoEMethod"]._setup_kernel = lambda *arguments: Method._setup_kernel(*arguments)
    second = made | {"CompressedTensorsW4A4Mxfp4MoEMethod": type("Packed", (Packed,), {})}
    install(monkeypatch, {plugin._USER: first, plugin._PACKED_USER: second, **common(platform)})
    _vllm_experts.experts_class.cache_clear()
    for _ in range(2):  # vLLM calls plug-ins more than once
        plugin.offer("_mark", lambda: is_on[0], lambda: takes_all[0])
    user, packed = sys.modules[plugin._USER], sys.modules[plugin._PACKED_USER]
    yield types.SimpleNamespace(answer=answer, is_on=is_on, takes_all=takes_all, user=user, packed=packed)
    _vllm_experts.experts_class.cache_clear()


def gpt_oss(**changes: Any) -> Any:
    return config(**{"activation": Named("swigluoai"), **changes})


def random_layer(spread: int = 3) -> tuple[Any, list[Tensor]]:
    """A layer as vLLM has loaded it, rows of gate and up in turn; and the decoded matrices."""
    layer: Any = nn.Module()
    decoded = []
    for name, rows, columns in (("w13", 2 * N, HIDDEN), ("w2", HIDDEN, N)):
        codes = torch.randint(0, 256, (EXPERTS, rows, columns // 2), dtype=torch.uint8)
        scales = torch.randint(122 - spread, 123, (EXPERTS, rows, columns // 32), dtype=torch.uint8)
        scales[0, 0, 0], scales[0, 2, 0] = 122, 122 - spread  # both of gate
        decoded.append(decode(name, codes, scales, torch.float64))
        setattr(layer, f"{name}_weight", nn.Parameter(codes, requires_grad=False))
        setattr(layer, f"{name}_weight_scale", nn.Parameter(scales, requires_grad=False))
        setattr(layer, f"{name}_bias", nn.Parameter(torch.randn(EXPERTS, rows).to(torch.bfloat16), requires_grad=False))
    layer._expert_routing_tables = lambda: None
    return layer, decoded


def set_up(vllm: Any, layer: Any, **changes: Any) -> Any:
    method = vllm.user.GptOssMxfp4MoEMethod(gpt_oss(**changes))
    tensors = [layer.w13_weight, layer.w2_weight, layer.w13_weight_scale, layer.w2_weight_scale, layer.w13_bias, layer.w2_bias]
    method._setup_kernel(layer, *tensors)
    return method


def expected(x: Tensor, logits: Tensor, layer: Any, decoded: list[Tensor], is_oai: bool) -> Tensor:
    y = torch.zeros(x.shape, dtype=torch.float64)
    weights, ids = logits.double().softmax(-1).topk(TOP_K)
    weights = weights / weights.sum(-1, keepdim=True)
    first, down = (getattr(layer, name, None) for name in ("w13_bias", "w2_bias"))
    for token, row in enumerate(x.double()):
        for expert, weight in zip(ids[token].tolist(), weights[token]):
            both = decoded[0][expert] @ row + (0 if first is None else first[expert].double())
            if is_oai:
                gate, up = both[0::2].clamp(max=7), both[1::2].clamp(-7, 7)
                h = gate * torch.sigmoid(1.702 * gate) * (up + 1)
            else:
                h = nn.functional.silu(both[:N]) * both[N:]
            y[token] += weight * (decoded[1][expert] @ h + (0 if down is None else down[expert].double()))
    return y


def check(method: Any, layer: Any, decoded: list[Tensor], is_oai: bool) -> None:
    x, logits = torch.randn(9, HIDDEN).to(torch.bfloat16), torch.randn(9, EXPERTS)
    want = expected(x, logits, layer, decoded, is_oai)
    experts = method.moe_kernel.fused_experts
    y = experts.apply(x, layer.w13_weight, layer.w2_weight, logits, method.moe.activation, EXPERTS, None, None, False)
    assert float((y.double() - want).abs().max()) <= 0.02 * float(want.abs().max())
    assert _vllm_experts.taken(nn.Sequential(layer)) == 1


def test_takes_and_leaves(vllm: Any) -> None:
    def ours(**changes: Any) -> bool:
        return hasattr(vllm.user.select_mxfp4_moe_backend(gpt_oss(**changes))[1], "instead")

    for backend in ("MARLIN", "EMULATION"):
        vllm.answer[0] = backend
        assert ours()
    for backend in ("CPU", "TRITON"):
        vllm.answer[0], vllm.takes_all[0] = backend, False
        assert not ours()
        vllm.takes_all[0] = True
        assert ours()
    vllm.answer[0] = "FLASHINFER_TRTLLM_MXFP4_BF16"
    assert not ours()
    vllm.answer[0] = ""
    assert ours()  # vLLM has nothing, as in its batch-invariant mode
    with pytest.raises(NotImplementedError, match="No MXFP4"):
        ours(activation=Named("xielu"))
    vllm.answer[0] = "MARLIN"
    assert not ours(moe_backend="marlin")
    vllm.is_on[0] = False
    assert not ours()


@pytest.mark.parametrize("spread", [0, 3, 17])
def test_computes_gpt_oss(vllm: Any, spread: int) -> None:
    torch.manual_seed(5)
    layer, decoded = random_layer(spread)
    method = set_up(vllm, layer)
    assert not method.set_up
    check(method, layer, decoded, True)


@pytest.mark.parametrize("behind", ["MARLIN", ""])
def test_exponents_too_far_apart(vllm: Any, behind: str) -> None:
    vllm.answer[0] = behind
    layer, _ = random_layer(18)
    before = layer.w13_weight.clone()
    if not behind:
        with pytest.raises(ValueError, match="expert 0: exponents from -23 to -5, 18 apart"):
            set_up(vllm, layer)
        return
    method = set_up(vllm, layer)
    assert method.set_up and method.experts_cls is Triton
    assert torch.equal(layer.w13_weight, before) and layer.w13_weight_scale.dtype == torch.uint8


def test_computes_compressed_tensors(vllm: Any) -> None:
    torch.manual_seed(6)
    layer, decoded = random_layer()
    for name in ("w13", "w2"):
        setattr(layer, f"{name}_weight_packed", getattr(layer, f"{name}_weight"))
        delattr(layer, f"{name}_weight")
        delattr(layer, f"{name}_bias")
    method = vllm.packed.CompressedTensorsW4A4Mxfp4MoEMethod(config())
    method.process_weights_after_loading(layer)
    assert not method.set_up and not hasattr(layer, "w13_weight_packed")
    check(method, layer, decoded, False)
    vllm.is_on[0] = False
    method = vllm.packed.CompressedTensorsW4A4Mxfp4MoEMethod(config())
    method.process_weights_after_loading(layer)
    assert method.set_up


@pytest.mark.parametrize(("parts", "alternate"), [(1, False), (2, False), (2, True)])
def test_as_nvfp4_is_exact(parts: int, alternate: bool) -> None:
    torch.manual_seed(7)
    codes = torch.randint(0, 256, (3, 8, 32), dtype=torch.uint8)
    scales = torch.randint(100, 118, (3, 8, 2), dtype=torch.uint8)
    codes[1, 2, :16], scales[1, 2, 0] = 0x80, 3  # zeros do not count
    made, factors = as_nvfp4("w", codes, scales, parts, alternate)
    assert made.shape == (3, 8, 4) and factors.shape == (3, parts)
    table = torch.tensor([0, 0.5, 1, 1.5, 2, 3, 4, 6, 0, -0.5, -1, -1.5, -2, -3, -4, -6], dtype=torch.float64)
    values = table[torch.stack((codes & 15, codes >> 4), -1).long()].reshape(3, 8, 64)
    rows = torch.arange(8)
    of_row = rows % parts if alternate else rows * parts // 8
    found = values * made.double().repeat_interleave(16, -1) * factors.double()[:, of_row][..., None]
    assert torch.equal(found, decode("w", codes, scales, torch.float64))


def test_as_nvfp4_refuses() -> None:
    codes, scales = torch.full((2, 4, 16), 0x11, dtype=torch.uint8), torch.full((2, 4, 1), 120, dtype=torch.uint8)
    scales[1, 3, 0] = 102
    with pytest.raises(Unsupported, match="expert 1: exponents from -25 to -7, 18 apart"):
        as_nvfp4("w", codes, scales, 1, False)
    scales[0, 1, 0] = 255
    with pytest.raises(FileError, match="NaN"):
        as_nvfp4("w", codes, scales, 1, False)


def test_a_changed_vllm_starts(vllm: Any) -> None:
    del sys.modules["vllm.model_executor.layers.fused_moe.modular_kernel"].FusedMoEExpertsMonolithic  # type: ignore[attr-defined]
    chosen: Optional[Any] = vllm.user.select_mxfp4_moe_backend(gpt_oss())[1]
    assert chosen is Triton
