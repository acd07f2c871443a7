"""The plug-in in vLLM itself, on a CPU: its loader, its LlamaMLP, its NVFP4 formats; not its engine, which wants kernels of its own.

Skipped where vLLM cannot be imported. Its wheel for CUDA will do, with VLLM_TARGET_DEVICE=cpu; it need not have all that it
asks for:  pip install --no-deps vllm, then what `import vllm.model_executor.models.llama` names.
"""

from __future__ import annotations

import importlib.util
import os
import types
from collections.abc import Iterator
from typing import Any

import pytest
import torch

import dualgemm as dg
import dualgemm.torch  # registers torch.ops.dualgemm

if importlib.util.find_spec("vllm") is None:
    pytest.skip("no vllm", allow_module_level=True)
os.environ.setdefault("VLLM_TARGET_DEVICE", "cpu")
llama = pytest.importorskip("vllm.model_executor.models.llama", exc_type=ImportError)

from vllm.config import VllmConfig, set_current_vllm_config
from vllm.distributed import ensure_model_parallel_initialized, init_distributed_environment
from vllm.model_executor.kernels.linear import register_linear_kernel
from vllm.model_executor.kernels.linear.nvfp4.emulation import EmulationNvFp4LinearKernel
from vllm.model_executor.layers.quantization.compressed_tensors.compressed_tensors import CompressedTensorsConfig
from vllm.model_executor.layers.quantization.modelopt import ModelOptNvFp4Config
from vllm.model_executor.model_loader import base_loader
from vllm.platforms import PlatformEnum

HIDDEN, N = 64, 96
WEIGHT_SCALE, INPUT_SCALE = 0.001, 0.004
GROUP = {"num_bits": 4, "type": "float", "strategy": "tensor_group", "group_size": 16, "symmetric": True}
FORMATS = {
    "compressed-tensors": lambda: CompressedTensorsConfig.from_config(
        {
            "quant_method": "compressed-tensors",
            "format": "nvfp4-pack-quantized",
            "ignore": [],
            "config_groups": {
                "group_0": {
                    "targets": ["Linear"],
                    "weights": {**GROUP, "dynamic": False},
                    "input_activations": {**GROUP, "dynamic": "local"},
                }
            },
        }
    ),
    "modelopt": lambda: ModelOptNvFp4Config.from_config(
        {
            "quant_method": "modelopt",
            "quantization": {"quant_algo": "NVFP4", "kv_cache_quant_algo": None, "group_size": 16, "exclude_modules": []},
        }
    ),
}


@pytest.fixture(scope="module")
def engine() -> Iterator[None]:
    register_linear_kernel(EmulationNvFp4LinearKernel, PlatformEnum.CPU, "nvfp4")  # vLLM lists none for CPUs
    with set_current_vllm_config(VllmConfig()):
        if not torch.distributed.is_initialized():
            init_distributed_environment(1, 0, "tcp://127.0.0.1:0", 0, "gloo")
        ensure_model_parallel_initialized(1, 1)
        yield


def quantized(rows: int, columns: int, seed: int) -> dg.QuantizedTensor:
    torch.manual_seed(seed)
    return dg.quantize(torch.randn(rows, columns) * 0.1, global_scale=WEIGHT_SCALE)


def fill(layer: Any, weight: dg.QuantizedTensor, name: str) -> None:
    """As a checkpoint of that format has it."""
    is_divisor = name == "compressed-tensors"
    (layer.weight_packed if is_divisor else layer.weight).data.copy_(weight.codes)
    layer.weight_scale.data.view(torch.uint8).copy_(weight.scales.view(torch.uint8))
    (layer.weight_global_scale if is_divisor else layer.weight_scale_2).data.fill_(
        1 / WEIGHT_SCALE if is_divisor else WEIGHT_SCALE
    )
    (layer.input_global_scale if is_divisor else layer.input_scale).data.fill_(1 / INPUT_SCALE if is_divisor else INPUT_SCALE)


def loaded(name: str, monkeypatch: pytest.MonkeyPatch) -> Any:
    before = torch.get_default_dtype()
    torch.set_default_dtype(torch.bfloat16)  # as vLLM's loader does
    try:
        mlp = llama.LlamaMLP(HIDDEN, N, "silu", quant_config=FORMATS[name](), prefix="model.layers.0.mlp")
    finally:
        torch.set_default_dtype(before)
    fill(mlp.gate_up_proj, quantized(2 * N, HIDDEN, 0), name)
    fill(mlp.down_proj, quantized(HIDDEN, N, 1), name)
    config = types.SimpleNamespace(word_embeddings_untied_by_checkpoint=False, quantization=name, dtype=torch.bfloat16)
    base_loader.process_weights_after_loading(torch.nn.ModuleDict({"mlp": mlp}), config, torch.device("cpu"))
    return mlp


@pytest.mark.parametrize("name", FORMATS)
def test_an_mlp_of_vllm(engine: None, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    from vllm.plugins import load_plugins_by_group

    plain = loaded(name, monkeypatch)
    assert "forward" not in vars(plain)
    for module in ("utils", "base_loader"):  # put back what register() changes
        target = f"vllm.model_executor.model_loader.{module}"
        monkeypatch.setattr(f"{target}.process_weights_after_loading", base_loader.process_weights_after_loading)
    load_plugins_by_group("vllm.general_plugins")["dualgemm"]()
    mlp = loaded(name, monkeypatch)
    assert "forward" in vars(mlp)

    x = torch.randn(5, HIDDEN, dtype=torch.bfloat16)
    weight = dg.dequantize(quantized(2 * N, HIDDEN, 0))
    both = x.float() @ weight.T
    h = torch.nn.functional.silu(both[:, :N]) * both[:, N:]
    with torch.no_grad():
        seen: list[torch.Tensor] = []
        handle = mlp.down_proj.register_forward_pre_hook(lambda module, inputs: seen.append(inputs[0]))
        d = mlp(x)
        handle.remove()
        torch.testing.assert_close(
            seen[0].float(), h, rtol=2**-8, atol=1e-3 * float(h.abs().max())
        )  # one rounding, to bfloat16
        torch.testing.assert_close(d, mlp.down_proj(h.bfloat16())[0], rtol=0.05, atol=0.05 * float(d.abs().max()))
        # vLLM's kernel quantises x as well: so far apart may they be, and no farther.
        expected = plain(x)
        assert float((d - expected).float().norm() / expected.float().norm()) < 0.3
        torch.testing.assert_close(mlp.gate_up_proj(x)[0].float(), both, rtol=2**-8, atol=1e-3 * float(both.abs().max()))
