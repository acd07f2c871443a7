"""The plug-in in SGLang itself, on a CPU: its hooks, its MLPs, ModelOpt's format; not its engine, which wants a GPU.

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


def test_the_hooks_are_in_place(engine: None) -> None:
    from sglang.srt.layers.quantization.modelopt_quant import ModelOptFp4LinearMethod

    for function in (
        ModelOptFp4LinearMethod.apply,
        ModelOptFp4LinearMethod.process_weights_after_loading,
        llama.LlamaMLP.forward,
        qwen2.Qwen2MLP.forward,
    ):
        assert hasattr(function, "__wrapped__"), function
    assert HookRegistry
