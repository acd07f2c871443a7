"""The plug-in for SGLang: its own hook registry where its sources are, on a stand-in with its names."""

from __future__ import annotations

import ast
import enum
import importlib.util
import logging
import sys
import types
from collections.abc import Callable
from typing import Any

import pytest
import torch
from engines import definition, parameters, sources
from torch import Tensor, nn

import dualgemm
from dualgemm.integrations import sglang as plugin

HIDDEN, N = 64, 48


class SiluAndMul(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        gate, up = x.chunk(2, -1)
        return nn.functional.silu(gate) * up


class ModelOptFp4LinearMethod:
    def __init__(self) -> None:
        self.quant_config = types.SimpleNamespace(is_awq=False)

    def process_weights_after_loading(self, layer: Any) -> None:
        layer.weight = nn.Parameter(layer.weight.flip(0), requires_grad=False)
        layer.shuffled = True

    def apply(self, layer: Any, x: Tensor, bias: Any = None) -> Tensor:
        weight = layer.weight.flip(0)
        return torch.cat(
            [
                dualgemm.linear(x, weight[part], w_scales=layer.weight_scale[part], alpha=layer.weight_scale_2[i : i + 1])
                for i, part in enumerate((slice(0, N), slice(N, None)))
            ],
            -1,
        )


class Merged(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        quantized = dualgemm.quantize(torch.randn(2 * N, HIDDEN), global_scale=0.01)
        self.weight = nn.Parameter(quantized.codes, requires_grad=False)
        self.weight_scale = nn.Parameter(quantized.scales, requires_grad=False)
        self.weight_scale_2 = nn.Parameter(torch.tensor([0.01, 0.02]), requires_grad=False)
        self.logical_widths = [N, N]
        self.quant_method = ModelOptFp4LinearMethod()

    def forward(self, x: Tensor) -> Any:
        return self.quant_method.apply(self, x, None), None


class Down(nn.Linear):
    batch: Any = "not said"

    def forward(self, x: Tensor, forward_batch: Any = "not said") -> Any:
        self.batch = forward_batch
        return super().forward(x), None


class LlamaMLP(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.gate_up_proj, self.act_fn = Merged(), SiluAndMul()
        self.down_proj = Down(N, HIDDEN, bias=False, dtype=torch.bfloat16)

    def forward(self, x: Tensor, forward_batch: Any = None) -> Tensor:
        gate_up, _ = self.gate_up_proj(x)
        x = self.act_fn(gate_up)
        x, _ = self.down_proj(x)
        return x


class Qwen2MLP(LlamaMLP):
    def __init__(self) -> None:
        super().__init__()

    def forward(self, x: Tensor, forward_batch: Any = None) -> Tensor:
        gate_up, _ = self.gate_up_proj(x)
        x = self.act_fn(gate_up)
        x, _ = self.down_proj(x, forward_batch=forward_batch)
        return x


class _HookType(enum.Enum):
    AFTER = 1
    AROUND = 2


class _Registry:
    """What register() uses of SGLang's, for where its sources are not."""

    hooks: list[tuple[str, Callable[..., Any], _HookType]]

    def register(self, target: str, hook: Any, kind: _HookType) -> None:
        self.hooks.append((target, hook, kind))

    def apply_hooks(self) -> None:
        for target, hook, kind in self.hooks:
            path, _, name = target.rpartition(".")
            module, _, owner = path.rpartition(".")
            cls = getattr(sys.modules.get(module), owner, None)
            if cls is None:  # SGLang's own logs it
                continue
            setattr(cls, name, self._wrapped(getattr(cls, name), hook, kind))

    @staticmethod
    def _wrapped(original: Any, hook: Any, kind: _HookType) -> Any:
        def wrapper(*arguments: Any, **named: Any) -> Any:
            if kind == _HookType.AROUND:
                return hook(original, *arguments, **named)
            result = original(*arguments, **named)
            hook(result, *arguments, **named)
            return result

        wrapper.__wrapped__ = original  # type: ignore[attr-defined]
        return wrapper


def _hook_registry(real: bool) -> Any:
    if not real:
        registry = _Registry()
        registry.hooks = []
        return types.SimpleNamespace(HookRegistry=registry, HookType=_HookType)
    file = sources("sglang") / "srt/plugins/hook_registry.py"
    spec = importlib.util.spec_from_file_location("sglang_hook_registry", file)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(params=[False, True], ids=["stand_in", "registry_of_sglang"])
def engine(request: Any, monkeypatch: pytest.MonkeyPatch) -> Any:
    hooks = _hook_registry(request.param)
    hooked = ("__init__", "forward", "process_weights_after_loading", "apply")
    classes = {
        cls.__name__: type(cls.__name__, (cls,), {name: vars(cls)[name] for name in hooked if name in vars(cls)})
        for cls in (ModelOptFp4LinearMethod, LlamaMLP, Qwen2MLP)
    }
    places = {
        "sglang.srt.layers.quantization.modelopt_quant": "ModelOptFp4LinearMethod",
        "sglang.srt.models.llama": "LlamaMLP",
        "sglang.srt.models.qwen2": "Qwen2MLP",
    }
    parts = [path.split(".") for path in (*places, "sglang.srt.plugins.hook_registry")]
    names = {".".join(part[:end]) for part in parts for end in range(1, len(part) + 1)}
    for name in sorted(names):
        module = types.ModuleType(name)
        module.__path__ = []  # type: ignore[attr-defined]
        monkeypatch.setitem(sys.modules, name, module)
        if "." in name:
            setattr(sys.modules[name.rpartition(".")[0]], name.rpartition(".")[2], module)
    for path, name in places.items():
        setattr(sys.modules[path], name, classes[name])
    registry = sys.modules["sglang.srt.plugins.hook_registry"]
    registry.HookRegistry, registry.HookType = hooks.HookRegistry, hooks.HookType  # type: ignore[attr-defined]
    monkeypatch.setattr(plugin, "_registered", False)
    monkeypatch.setattr(sys.modules[__name__], "ModelOptFp4LinearMethod", classes["ModelOptFp4LinearMethod"])
    return types.SimpleNamespace(registry=hooks.HookRegistry, **classes)


def _made(cls: Any) -> Any:
    """With a forward whose source can be found, as a class of a file has."""
    torch.manual_seed(0)
    mlp = cls.__new__(cls)
    cls.__init__(mlp)
    return mlp


@pytest.mark.parametrize("name", ["LlamaMLP", "Qwen2MLP"])
def test_replaces_what_fits(engine: Any, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    cls = getattr(engine, name)
    base = {"LlamaMLP": LlamaMLP, "Qwen2MLP": Qwen2MLP}[name]
    monkeypatch.setattr(cls, "__init__", lambda self: base.__init__(self))
    plain = _made(cls)
    plain.gate_up_proj.quant_method.process_weights_after_loading(plain.gate_up_proj)
    x = torch.randn(5, HIDDEN, dtype=torch.bfloat16)
    with torch.no_grad():
        expected, gate_up = plain(x, "a batch"), plain.gate_up_proj(x)[0]
        expected32 = plain.gate_up_proj(x.float())[0]
    plugin.register()
    plugin.register()
    engine.registry.apply_hooks()
    mlp = _made(cls)
    layer = mlp.gate_up_proj
    layer.quant_method.process_weights_after_loading(layer)
    assert layer.dualgemm_takes and not hasattr(layer, "shuffled")
    with torch.no_grad():
        # The activation sees values that bfloat16 has not rounded.
        torch.testing.assert_close(mlp(x, "a batch"), expected, rtol=0, atol=0.02 * float(expected.abs().max()))
        assert mlp.down_proj.batch == ("a batch" if name == "Qwen2MLP" else "not said")
        torch.testing.assert_close(layer(x)[0], gate_up)
        torch.testing.assert_close(layer(x.float())[0], expected32)
    # What does not fit goes the old way, with a line in the log.
    other = _made(cls)
    other.gate_up_proj.quant_method.quant_config.is_awq = True
    other.gate_up_proj.quant_method.process_weights_after_loading(other.gate_up_proj)
    assert other.gate_up_proj.shuffled
    with torch.no_grad():
        torch.testing.assert_close(other(x), expected)


def test_without_sglang_or_switched_off(engine: Any, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> None:
    original = engine.LlamaMLP.forward
    monkeypatch.setenv("DUALGEMM_SGLANG", "0")
    plugin.register()
    engine.registry.apply_hooks()
    assert engine.LlamaMLP.forward is original
    monkeypatch.delenv("DUALGEMM_SGLANG")
    monkeypatch.setitem(sys.modules, "sglang.srt.plugins.hook_registry", None)
    with caplog.at_level(logging.INFO):
        plugin.register()
    assert "not used" in caplog.text


def test_forwards() -> None:
    body = (
        "def forward(self, x):\n    y, _ = self.gate_up_proj(x)\n    x = self.act_fn(y)\n"
        "    x, _ = self.down_proj(x)\n    return x"
    )
    assert plugin.is_known_forward(body)
    assert not plugin.is_known_forward(body + " * 2")
    assert not plugin.is_known_forward(body.replace("return x", "return self.scale(x)"))


def test_interface_files() -> None:
    root = sources("sglang") / "srt"
    method = root / "layers/quantization/modelopt_quant.py"
    assert parameters(method, "ModelOptFp4LinearMethod.process_weights_after_loading") == ["self", "layer"]
    assert parameters(method, "ModelOptFp4LinearMethod.apply") == ["self", "layer", "x", "bias"]
    created = ast.unparse(definition(method, "ModelOptFp4LinearMethod.create_weights"))
    for text in ("'weight_scale_2'", "'weight_scale'", "'weight'", "layer.logical_widths = output_partition_sizes"):
        assert text in created
    for file, name, down in (
        ("llama.py", "LlamaMLP", "self.down_proj(x)"),
        ("qwen2.py", "Qwen2MLP", "self.down_proj(x, forward_batch=forward_batch)"),
    ):
        forward = definition(root / "models" / file, f"{name}.forward")
        assert plugin.is_known_forward(ast.unparse(forward)) and down in ast.unparse(forward)
        assert parameters(root / "models" / file, f"{name}.forward") == ["self", "x", "forward_batch"]
    schemes = root / "layers/quantization/compressed_tensors/schemes"
    dense, experts = schemes / "compressed_tensors_w4a16_nvfp4.py", schemes / "compressed_tensors_w4a16_nvfp4_moe.py"
    assert parameters(dense, "CompressedTensorsW4A16Fp4.process_weights_after_loading") == ["self", "layer"]
    assert parameters(dense, "CompressedTensorsW4A16Fp4.apply_weights") == ["self", "layer", "x", "bias"]
    assert parameters(experts, "CompressedTensorsW4A16Nvfp4MoE.apply_weights") == ["self", "layer", "dispatch_output"]
    assert parameters(method, "ModelOptNvFp4FusedMoEMethod.apply") == ["self", "layer", "dispatch_output"]
    assert definition(root / "plugins/hook_registry.py", "HookRegistry.register")
