"""The plug-in in SGLang itself, on a CPU: its hooks, its MLPs, ModelOpt's format, compressed-tensors' classes; not its engine, which
wants a GPU.

Skipped where SGLang cannot be imported. It need not have all that it asks for:  pip install --no-deps sglang, then what
`import sglang.srt.models.llama` names.
"""

from __future__ import annotations

import importlib.util
from collections.abc import Iterator
from typing import Any

import pytest
import torch

import dualgemm as dg
import dualgemm.torch  # registers torch.ops.dualgemm

if importlib.util.find_spec("sglang") is None:
    pytest.skip("no sglang", allow_module_level=True)
llama = pytest.importorskip("sglang.srt.models.llama", exc_type=ImportError)

from sglang.srt.distributed import init_distributed_environment, initialize_model_parallel
from sglang.srt.layers.quantization.modelopt_quant import ModelOptFp4Config
from sglang.srt.models import qwen2
from sglang.srt.plugins import load_plugins
from sglang.srt.plugins.hook_registry import HookRegistry
from sglang.srt.server_args import ServerArgs, set_global_server_args_for_scheduler

HIDDEN, N = 64, 96
SCALES = 0.001, 0.0015  # of gate and of up: SGLang's own path takes the larger for both


@pytest.fixture(scope="module")
def engine() -> Iterator[None]:
    set_global_server_args_for_scheduler(ServerArgs(model_path="none", device="cpu"))
    if not torch.distributed.is_initialized():
        init_distributed_environment(1, 0, "tcp://127.0.0.1:0", 0, "gloo")
        initialize_model_parallel("gloo")
    load_plugins()
    yield


@pytest.mark.parametrize("name", ["LlamaMLP", "Qwen2MLP"])
def test_an_mlp_of_sglang(engine: None, name: str) -> None:
    before = torch.get_default_dtype()
    torch.set_default_dtype(torch.bfloat16)  # as its loader does
    try:
        config = ModelOptFp4Config(
            True, group_size=16, exclude_modules=["model.layers.0.mlp.down_proj"], packed_modules_mapping={}
        )
        cls = {"LlamaMLP": llama.LlamaMLP, "Qwen2MLP": qwen2.Qwen2MLP}[name]
        mlp: Any = cls(HIDDEN, N, "silu", quant_config=config, prefix="model.layers.0.mlp")
    finally:
        torch.set_default_dtype(before)
    torch.manual_seed(0)
    parts = [dg.quantize(torch.randn(N, HIDDEN) * 0.1, global_scale=scale) for scale in SCALES]
    layer = mlp.gate_up_proj
    layer.weight.data.copy_(torch.cat([part.codes for part in parts]))
    layer.weight_scale.data.view(torch.uint8).copy_(torch.cat([part.scales.view(torch.uint8) for part in parts]))
    layer.weight_scale_2.data.copy_(torch.tensor(SCALES))
    layer.input_scale.data.fill_(0.004)
    down = torch.randn(HIDDEN, N, dtype=torch.bfloat16)
    mlp.down_proj.weight.data.copy_(down)
    layer.quant_method.process_weights_after_loading(layer)
    assert layer.dualgemm_takes and not hasattr(layer, "alpha")  # SGLang's own has not seen them

    x = torch.randn(5, HIDDEN, dtype=torch.bfloat16)
    gate, up = (x.float() @ dg.dequantize(part).T for part in parts)
    h = torch.nn.functional.silu(gate) * up
    with torch.no_grad():
        d = mlp(x)
        both = layer(x)[0]
    wanted = (h.bfloat16() @ down.T).float()
    torch.testing.assert_close(d.float(), wanted, rtol=2**-7, atol=1e-2 * float(wanted.abs().max()))
    torch.testing.assert_close(both.float(), torch.cat([gate, up], -1), rtol=2**-8, atol=1e-3 * float(gate.abs().max()))


def test_dense_weights_of_compressed_tensors(engine: None) -> None:
    from sglang.srt.layers.quantization.compressed_tensors.schemes.compressed_tensors_w4a16_nvfp4 import (
        CompressedTensorsW4A16Fp4,
    )

    torch.manual_seed(1)
    layer, scheme = torch.nn.Module(), CompressedTensorsW4A16Fp4()
    scheme.create_weights(layer, [N, N], HIDDEN, torch.bfloat16, None)
    parts = [dg.quantize(torch.randn(N, HIDDEN) * 0.1, global_scale=scale) for scale in SCALES]
    one: Any = layer
    one.weight_packed.data.copy_(torch.cat([part.codes for part in parts]))
    one.weight_scale.data.view(torch.uint8).copy_(torch.cat([part.scales.view(torch.uint8) for part in parts]))
    one.weight_global_scale.data.copy_(1 / torch.tensor(SCALES))
    one.dualgemm_wanted = True  # an MLP's __init__ says so
    scheme.process_weights_after_loading(layer)
    assert one.dualgemm_takes
    x = torch.randn(5, HIDDEN, dtype=torch.bfloat16)
    both = scheme.apply_weights(layer, x)
    wanted = torch.cat([x.float() @ dg.dequantize(part).T for part in parts], -1)
    torch.testing.assert_close(both.float(), wanted, rtol=2**-8, atol=1e-3 * float(wanted.abs().max()))


def test_experts_of_compressed_tensors(engine: None) -> None:
    from sglang.srt.layers.moe import MoeRunnerConfig
    from sglang.srt.layers.moe.token_dispatcher.standard import StandardDispatchOutput
    from sglang.srt.layers.moe.topk import StandardTopKOutput
    from sglang.srt.layers.quantization.compressed_tensors.schemes.compressed_tensors_w4a16_nvfp4_moe import (
        CompressedTensorsW4A16Nvfp4MoE,
    )

    torch.manual_seed(2)
    experts, top_k = 4, 2
    layer, scheme = torch.nn.Module(), CompressedTensorsW4A16Nvfp4MoE(has_input_global_scale=True)
    one: Any = layer
    one.moe_runner_config = MoeRunnerConfig(num_experts=experts, top_k=top_k, params_dtype=torch.bfloat16)
    scheme.create_weights(layer, experts, HIDDEN, N, torch.bfloat16)
    scheme.create_moe_runner(layer, one.moe_runner_config)
    decoded = []
    for expert in range(experts):
        parts = [dg.quantize(torch.randn(N, HIDDEN) * 0.1, global_scale=scale) for scale in SCALES]
        down = dg.quantize(torch.randn(HIDDEN, N))
        one.w13_weight_packed.data[expert] = torch.cat([part.codes for part in parts])
        one.w13_weight_scale.data[expert] = torch.cat([part.scales for part in parts])
        one.w13_weight_global_scale.data[expert] = 1 / torch.tensor(SCALES)  # SGLang refuses two that differ
        one.w2_weight_packed.data[expert], one.w2_weight_scale.data[expert] = down.codes, down.scales
        one.w2_weight_global_scale.data[expert] = 1 / down.global_scale.reshape(())
        decoded.append([dg.dequantize(each) for each in (*parts, down)])
    scheme.process_weights_after_loading(layer)
    x, logits = torch.randn(9, HIDDEN, dtype=torch.bfloat16), torch.randn(9, experts)
    weights, ids = logits.softmax(-1).topk(top_k)
    topk = StandardTopKOutput(weights, ids.to(torch.int32), logits)
    y = scheme.apply_weights(layer, StandardDispatchOutput(x, None, topk)).hidden_states
    wanted = torch.zeros(9, HIDDEN)
    for token, row in enumerate(x.float()):
        for id, weight in zip(ids[token].tolist(), weights[token]):
            gate, up, down = decoded[id]
            wanted[token] += weight * ((torch.nn.functional.silu(row @ gate.T) * (row @ up.T)) @ down.T)
    torch.testing.assert_close(y.float(), wanted, rtol=2**-7, atol=1e-2 * float(wanted.abs().max()))


def test_the_hooks_are_in_place(engine: None) -> None:
    from sglang.srt.layers.quantization.modelopt_quant import ModelOptFp4LinearMethod, ModelOptNvFp4FusedMoEMethod

    for function in (
        ModelOptNvFp4FusedMoEMethod.apply,
        ModelOptNvFp4FusedMoEMethod.process_weights_after_loading,
        ModelOptFp4LinearMethod.apply,
        ModelOptFp4LinearMethod.process_weights_after_loading,
        llama.LlamaMLP.forward,
        qwen2.Qwen2MLP.forward,
    ):
        assert hasattr(function, "__wrapped__"), function
    assert HookRegistry
