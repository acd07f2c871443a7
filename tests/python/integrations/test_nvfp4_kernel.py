"""transformers' NVFP4Config and NVFP4Linear on this library, on a CPU: a float checkpoint becomes NVFP4 while it is loaded."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn

import dualgemm as dg
from dualgemm.integrations import nvfp4_kernel as kernel
from models import saved_llama

transformers = pytest.importorskip("transformers")
if not hasattr(transformers, "NVFP4Config"):
    pytest.skip("a transformers without NVFP4Config", allow_module_level=True)


@pytest.fixture
def ours(monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """use(), taken back afterwards."""
    from transformers.integrations import nvfp4
    from transformers.quantizers.quantizer_nvfp4 import NVFP4HfQuantizer

    monkeypatch.setattr(nvfp4, "load_nvfp4_kernel", nvfp4.load_nvfp4_kernel)
    monkeypatch.setattr(NVFP4HfQuantizer, "validate_environment", NVFP4HfQuantizer.validate_environment)
    kernel.use()
    yield nvfp4


def saved(folder: Path) -> Path:
    return saved_llama(folder, 2, torch.float32, hidden_size=64, intermediate_size=144, vocab_size=96)


def load(folder: Path, **named: Any) -> Any:
    named = {"quantization_config": transformers.NVFP4Config(), "dtype": torch.float32} | named
    return transformers.AutoModelForCausalLM.from_pretrained(folder, **named).eval()


def decoded(model: nn.Module, layers: Any) -> nn.Module:
    """The same with nn.Linear of exactly decoded weights."""
    plain = copy.deepcopy(model)
    for name, module in model.named_modules():
        if isinstance(module, layers.NVFP4Linear):
            codes = dg.QuantizedTensor(module.weight, module.weight_sf_rowmajor, module.weight_global_scale)
            linear = nn.Linear(module.in_features, module.out_features, bias=False)
            linear.weight.data = dg.dequantize(codes)
            parent, _, child = name.rpartition(".")
            setattr(plain.get_submodule(parent), child, linear)
    return plain


def test_float_checkpoint_becomes_nvfp4(ours: Any, tmp_path: Path) -> None:
    model = load(saved(tmp_path))
    kinds = [type(module).__name__ for module in model.modules()]
    assert kinds.count("NVFP4Linear") == 14 and model.lm_head.weight.dtype == torch.float32
    plain = decoded(model, ours)
    ids = torch.randint(0, 96, (3, 11), generator=torch.Generator().manual_seed(1))
    with torch.no_grad():
        torch.testing.assert_close(model(ids).logits, plain(ids).logits, rtol=1e-4, atol=1e-4)
        answers = [one.generate(ids, max_new_tokens=8, do_sample=False) for one in (model, plain)]
    assert torch.equal(*answers)
    # What is loaded is near the floats that it was made of.
    floats = load(tmp_path, quantization_config=None)
    wanted = floats.model.layers[0].mlp.up_proj.weight.detach()
    moved = (model.model.layers[0].mlp.up_proj(torch.eye(64)).T - wanted).norm() / wanted.norm()
    assert 0.01 < float(moved) < 0.2


def test_compiles(ours: Any, tmp_path: Path) -> None:
    model = load(saved(tmp_path), dtype=torch.bfloat16)
    layer = model.model.layers[0].mlp.gate_proj
    x = torch.randn(5, 64, dtype=torch.bfloat16)
    with torch.no_grad():
        assert torch.equal(torch.compile(layer, fullgraph=True, backend="aot_eager")(x), layer(x))


def test_packed_weights() -> None:
    weight = torch.randn(200, 80)
    w = kernel.pack(weight, device="cpu")
    assert tuple(w.sf.shape) == kernel.swizzled_sf_shape(200, 80) == (256, 2)
    assert (w.n, w.k, tuple(w.qweight.shape), w.qweight.dtype) == (200, 80, (200, 40), torch.uint8)
    flat = w.sf.contiguous().view(torch.uint8).reshape(-1)
    assert torch.equal(dg.unswizzle_scales(flat, 200, 5), w.sf_rowmajor)
    x = torch.randn(2, 3, 80, dtype=torch.float16)
    y = kernel.gemm(w, x)
    want = x.double() @ dg.dequantize(dg.QuantizedTensor(w.qweight, w.sf_rowmajor, w.global_scale)).double().T
    assert y.dtype == torch.float16 and tuple(y.shape) == (2, 3, 200)
    torch.testing.assert_close(y.double(), want, rtol=2e-3, atol=2e-3 * float(want.abs().max()))
    assert tuple(kernel.gemm(w, x[:, :0]).shape) == (2, 0, 200)


def test_devices(ours: Any) -> None:
    from transformers.quantizers.quantizer_nvfp4 import NVFP4HfQuantizer

    def device_of(device_map: Any) -> torch.device:
        quantizer = NVFP4HfQuantizer(transformers.NVFP4Config(), pre_quantized=False)
        quantizer.validate_environment(device_map=device_map)
        found: torch.device = quantizer.quantization_device
        return found

    for device_map in (None, "cpu", {"": torch.device("cpu")}, {"model": "cpu", "lm_head": "cpu"}):
        assert device_of(device_map) == torch.device("cpu")
    for device_map in ({"": 1}, 1, "cuda:1"):
        assert device_of(device_map) == torch.device("cuda", 1)
    for device_map in ({"model": "cpu", "lm_head": "disk"}, "disk", "meta", "auto", {"a": 0, "b": 1}):
        with pytest.raises(dg.Unsupported, match="device"):
            device_of(device_map)
    with pytest.raises(ValueError, match="quantises float checkpoints"):
        NVFP4HfQuantizer(transformers.NVFP4Config(), pre_quantized=True).validate_environment()


def test_bad_input() -> None:
    with pytest.raises(dg.InvalidArgument, match="k a positive multiple of 16"):
        kernel.swizzled_sf_shape(16, 24)
    with pytest.raises(dg.InvalidArgument, match="must be 2"):
        kernel.pack(torch.zeros(2, 3, 16))
    with pytest.raises(dg.InvalidArgument, match="its last dimension must be 32"):
        kernel.gemm(kernel.pack(torch.ones(16, 32)), torch.ones(2, 16))


def test_another_transformers(monkeypatch: pytest.MonkeyPatch) -> None:
    from transformers.integrations import nvfp4

    monkeypatch.delattr(nvfp4, "NVFP4Kernel")
    with pytest.raises(dg.Unsupported, match="has no NVFP4Linear"):
        kernel.use()
