"""The plug-in for vLLM: against a stand-in with its names, and against its interface files where they are."""

from __future__ import annotations

import ast
import logging
import os
import sys
import types
from typing import Any

import pytest
import torch
from engines import definition, parameters, sources
from torch import Tensor, nn

import dualgemm
from dualgemm.integrations import _vllm_linear, vllm as plugin
from dualgemm.integrations._merged import is_plain_forward

HIDDEN, N = 64, 48


class SiluAndMul(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        gate, up = x.chunk(2, -1)
        return nn.functional.silu(gate) * up


class GeluAndMul(SiluAndMul):
    pass


class NvFp4LinearKernel:
    """Shuffles what it is given, as real ones do, and knows how to use that."""

    def process_weights_after_loading(self, layer: Any) -> None:
        layer.weight = nn.Parameter(layer.weight.flip(0), requires_grad=False)
        layer.shuffled = True

    def apply_weights(self, layer: Any, x: Tensor, bias: Any = None) -> Tensor:
        assert layer.shuffled
        return dualgemm.linear(x, layer.weight.flip(0), w_scales=layer.weight_scale, alpha=layer.weight_global_scale.reshape(1))


class Scheme:
    def __init__(self) -> None:
        self.kernel = NvFp4LinearKernel()


class Merged(nn.Module):
    def __init__(self, widths: tuple[int, int] = (N, N)) -> None:
        super().__init__()
        quantized = dualgemm.quantize(torch.randn(sum(widths), HIDDEN), global_scale=0.01)
        self.weight = nn.Parameter(quantized.codes, requires_grad=False)
        self.weight_scale = nn.Parameter(quantized.scales, requires_grad=False)
        self.weight_global_scale = nn.Parameter(torch.tensor(0.01), requires_grad=False)
        self.logical_widths = list(widths)
        self.scheme = Scheme()
        self.bias = None

    def forward(self, x: Tensor) -> tuple[Tensor, None]:
        return self.scheme.kernel.apply_weights(self, x, self.bias), None


class Down(nn.Linear):
    def forward(self, x: Tensor) -> Any:
        return super().forward(x), None


class MLP(nn.Module):
    def __init__(self, act_fn: nn.Module | None = None, widths: tuple[int, int] = (N, N)) -> None:
        super().__init__()
        self.gate_up_proj = Merged(widths)
        self.act_fn = act_fn or SiluAndMul()
        self.down_proj = Down(N, HIDDEN, bias=False)

    def forward(self, x: Tensor) -> Tensor:
        gate_up, _ = self.gate_up_proj(x)
        x = self.act_fn(gate_up)
        x, _ = self.down_proj(x)
        return x


class ScaledMLP(MLP):
    def forward(self, x: Tensor) -> Tensor:
        gate_up, _ = self.gate_up_proj(x)
        x = self.act_fn(gate_up)
        x, _ = self.down_proj(x)
        return x * 2


class Model(nn.Module):
    def __init__(self, mlp: nn.Module) -> None:
        super().__init__()
        self.mlp = mlp


@pytest.fixture
def engine(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Modules with vLLM's names."""

    def process_weights_after_loading(model: nn.Module, model_config: Any, target_device: Any) -> None:
        for layer in model.modules():
            if isinstance(layer, Merged):
                layer.scheme.kernel.process_weights_after_loading(layer)

    monkeypatch.setenv("OMP_WAIT_POLICY", "ACTIVE")  # the user's stays
    loader = {"process_weights_after_loading": process_weights_after_loading}
    contents: dict[str, dict[str, Any]] = {
        "vllm.model_executor.kernels.linear.nvfp4.base": {"NvFp4LinearKernel": NvFp4LinearKernel},
        "vllm.envs": {"VLLM_BATCH_INVARIANT": False, "compile_factors": lambda: {"VLLM_USE_AOT_COMPILE": True}},
        "vllm.model_executor.model_loader.utils": loader,
        "vllm.model_executor.model_loader.base_loader": loader,
    }
    for path, content in contents.items():
        for end in range(1, path.count(".") + 2):
            name = ".".join(path.split(".")[:end])
            if name not in sys.modules or not name.startswith("vllm"):
                monkeypatch.setitem(sys.modules, name, types.ModuleType(name))
        for key, value in content.items():
            monkeypatch.setattr(sys.modules[path], key, value, raising=False)
    return sys.modules["vllm.model_executor.model_loader.base_loader"]


def _load(engine: Any, model: nn.Module) -> None:
    engine.process_weights_after_loading(model, None, torch.device("cpu"))


def test_replaces_what_fits(engine: Any, caplog: pytest.LogCaptureFixture) -> None:
    torch.manual_seed(0)
    plain, replaced = Model(MLP()), Model(MLP())
    replaced.load_state_dict(plain.state_dict())
    _load(engine, plain)
    plugin.register()
    with caplog.at_level(logging.INFO):
        _load(engine, replaced)
    assert "1 MLPs replaced" in caplog.text
    x = torch.randn(5, HIDDEN)
    with torch.no_grad():
        torch.testing.assert_close(replaced.mlp(x), plain.mlp(x), rtol=1e-4, atol=1e-5)
        assert "forward" in vars(replaced.mlp) and not hasattr(replaced.mlp.gate_up_proj, "shuffled")
        # The layer by itself: both products.
        torch.testing.assert_close(replaced.mlp.gate_up_proj(x)[0], plain.mlp.gate_up_proj(x)[0], rtol=1e-4, atol=1e-5)
        compiled = torch.compile(replaced.mlp, fullgraph=True, backend="aot_eager")
        torch.testing.assert_close(compiled(x), plain.mlp(x), rtol=1e-4, atol=1e-5)
        # LoRA puts a layer of its own around it.
        layer = replaced.mlp.gate_up_proj
        replaced.mlp.gate_up_proj = nn.Sequential(layer)
        torch.testing.assert_close(replaced.mlp(x), plain.mlp(x), rtol=1e-4, atol=1e-5)


def test_explains(engine: Any, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch) -> None:
    """A line for each layer that something computes: one that is taken, one that is not, one in 16 bits, experts."""
    model = Model(MLP())
    model.other = ScaledMLP()
    model.plain, model.experts = nn.Linear(2, 2), nn.Module()
    model.plain.quant_method = NvFp4LinearKernel()  # type: ignore[assignment]
    model.experts.dualgemm_alphas = [None, None, None]  # type: ignore[assignment]
    plugin.register()
    said: dict[str, list[str]] = {"1": [], "explain": []}
    for switch, lines in said.items():
        monkeypatch.setenv("DUALGEMM_VLLM", switch)
        caplog.clear()
        with caplog.at_level(logging.INFO):
            _load(engine, model)
        lines += caplog.messages
    assert not any(": mlp" in line for line in said["1"])
    for line in (
        "dualgemm: mlp: dualgemm, gate, up and activation in one pass",
        "dualgemm: other.gate_up_proj: vLLM, NvFp4LinearKernel",
        "dualgemm: plain: vLLM, NvFp4LinearKernel",
        "dualgemm: experts: dualgemm, the experts' whole step",
    ):
        assert line in said["explain"], line


@pytest.mark.parametrize("kept_as", ["weight_scale_2", "weight_global_scale"])
def test_gate_and_up_keep_their_global_scales(engine: Any, kept_as: str) -> None:
    """ModelOpt's multipliers, compressed-tensors' divisors; vLLM makes one of two."""
    torch.manual_seed(0)
    model = Model(MLP())
    layer = model.mlp.gate_up_proj
    own = torch.tensor([0.001, 0.004])
    if kept_as == "weight_scale_2":
        layer.weight_scale_2 = nn.Parameter(own, requires_grad=False)
    else:
        layer.weight_packed = layer.weight
        layer.weight_global_scale = nn.Parameter(1 / own, requires_grad=False)

    name = "weight_scale_2" if kept_as == "weight_scale_2" else "weight_packed"  # what vLLM's loader deletes
    weights = dualgemm.Weights.from_stacked(layer.weight.data, layer.weight_scale.data, alpha_gate=0.001, alpha_up=0.004)
    original = engine.process_weights_after_loading

    def process_all(model: nn.Module, *arguments: Any) -> None:
        for one in model.modules():
            if isinstance(one, Merged) and hasattr(one, name):
                one.weight_global_scale = nn.Parameter(own.max(), requires_grad=False)
                delattr(one, name)
        original(model, *arguments)

    plugin._around(process_all)(model, None, torch.device("cpu"))
    x = torch.randn(5, HIDDEN)
    with torch.no_grad():
        wanted = model.mlp.down_proj(weights(x))[0]
        torch.testing.assert_close(model.mlp(x), wanted, rtol=1e-5, atol=1e-6)
        plugin._around(process_all)(model, None, torch.device("cpu"))  # again, with nothing new
        torch.testing.assert_close(model.mlp(x), wanted, rtol=1e-5, atol=1e-6)
        # Loaded again, as in training by reinforcement: other global scales.
        if kept_as == "weight_scale_2":
            layer.weight_scale_2 = nn.Parameter(own * torch.tensor([1, 3]), requires_grad=False)
        else:
            layer.weight_packed = layer.weight
            layer.weight_global_scale = nn.Parameter(1 / (own * torch.tensor([1, 3])), requires_grad=False)
        plugin._around(process_all)(model, None, torch.device("cpu"))
        torch.testing.assert_close(model.mlp(x), 3 * wanted, rtol=1e-5, atol=1e-5)


def _class_named(name: str, forward: Any) -> type[nn.Module]:
    return type(name, (nn.Module,), {"forward": forward})


def test_what_the_forward_computes_is_asked(engine: Any, caplog: pytest.LogCaptureFixture) -> None:
    """Under the right name, and with the right source: a clamp at 30, a factor, gate for up."""

    def clamped(self: Any, x: Tensor) -> Tensor:
        gate, up = x.chunk(2, -1)
        return nn.functional.silu(gate.clamp(max=30)) * up

    def scaled(self: Any, x: Tensor) -> Tensor:
        gate, up = x.chunk(2, -1)
        return nn.functional.silu(gate) * up * 1.1

    def swapped(self: Any, x: Tensor) -> Tensor:
        up, gate = x.chunk(2, -1)
        return nn.functional.silu(gate) * up

    plugin.register()
    for forward in (clamped, scaled, swapped):
        model = Model(MLP(_class_named("SiluAndMul", forward)()))
        layer, down = model.mlp.gate_up_proj, model.mlp.down_proj
        with caplog.at_level(logging.INFO):
            _load(engine, model)
        assert "forward" not in vars(model.mlp) and "computes something else" in caplog.text
        assert model.mlp.gate_up_proj is layer and model.mlp.down_proj is down
        caplog.clear()
    model = Model(MLP(_class_named("SiluAndMul", lambda self, x: 1 / 0)()))
    with caplog.at_level(logging.INFO):
        _load(engine, model)
    assert "forward" not in vars(model.mlp) and "ZeroDivisionError" in caplog.text


@pytest.fixture
def linear_layers(engine: Any, monkeypatch: pytest.MonkeyPatch) -> Any:
    """What vLLM's linear layers know of the plug-in, on a CPU or a GPU; Marlin's is all that it has, and not on a CPU."""

    class MarlinNvFp4LinearKernel(NvFp4LinearKernel):
        def __init__(self, config: Any = None) -> None:
            if on.cpu:
                raise ValueError("Forced NVFP4 kernel MarlinNvFp4LinearKernel is not supported")

    class Base:
        def __init__(self, config: Any) -> None:
            assert self.is_supported()[0] and self.can_implement(config)[0]  # type: ignore[attr-defined]

    package: Any = types.ModuleType("vllm.model_executor.kernels.linear")
    package.MarlinNvFp4LinearKernel = MarlinNvFp4LinearKernel
    package._get_linear_backend = lambda: on.backend
    package.init_nvfp4_linear_kernel = lambda use_a16=False: on.kernel()
    inner: Any = types.ModuleType("vllm.model_executor.kernels.linear.nvfp4")
    inner.NvFp4LinearKernel, inner.NvFp4LinearLayerConfig = Base, object
    user: Any = types.ModuleType("vllm.model_executor.layers.quantization.modelopt")
    user.init_nvfp4_linear_kernel = package.init_nvfp4_linear_kernel
    user.MarlinNvFp4LinearKernel = MarlinNvFp4LinearKernel
    on = types.SimpleNamespace(
        cpu=True, capability=90, backend="auto", kernel=MarlinNvFp4LinearKernel, package=package, user=user
    )
    platforms: Any = types.ModuleType("vllm.platforms")
    platforms.current_platform = types.SimpleNamespace(
        is_cpu=lambda: on.cpu, is_cuda=lambda: not on.cpu, is_device_capability=lambda asked: asked == on.capability
    )
    for module in (package, inner, user, platforms):
        monkeypatch.setitem(sys.modules, module.__name__, module)
    sys.modules["vllm.envs"].VLLM_BATCH_INVARIANT = False  # type: ignore[attr-defined]
    plugin.register()
    plugin.register()
    return on


def test_openmp_may_sleep_on_a_cpu(linear_layers: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    assert os.environ["OMP_WAIT_POLICY"] == "ACTIVE"
    monkeypatch.delenv("OMP_WAIT_POLICY")
    linear_layers.cpu = False
    plugin.register()
    assert "OMP_WAIT_POLICY" not in os.environ
    linear_layers.cpu = True
    plugin.register()
    assert os.environ["OMP_WAIT_POLICY"] == "PASSIVE"


def _is_ours(kernel: Any) -> bool:
    return type(kernel).__name__ == "DualGemmNvFp4LinearKernel"


def test_linear_layers_on_a_cpu(linear_layers: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where vLLM raises, or makes Marlin's by its name."""
    for make in (linear_layers.package.init_nvfp4_linear_kernel, linear_layers.user.init_nvfp4_linear_kernel):
        kernel = make(use_a16=True)
        assert _is_ours(kernel)
    assert _is_ours(linear_layers.user.MarlinNvFp4LinearKernel(None))
    layer = Merged()
    kernel.process_weights_after_loading(layer)
    x, bias = torch.randn(2, 5, HIDDEN), torch.randn(2 * N)
    w = dualgemm.dequantize(dualgemm.QuantizedTensor(layer.weight.data, layer.weight_scale.data, torch.tensor([0.01])))
    torch.testing.assert_close(kernel.apply_weights(layer, x, bias), x @ w.T + bias, rtol=1e-4, atol=1e-4)
    half = kernel.apply_weights(layer, x.half(), bias.half())
    torch.testing.assert_close(half.float(), x @ w.T + bias, rtol=2e-3, atol=1e-2)
    layer.weight_scale = nn.Parameter(layer.weight_scale.data[:-1], requires_grad=False)
    with pytest.raises(ValueError, match="dualgemm: weight"):
        kernel.process_weights_after_loading(layer)
    monkeypatch.setenv("DUALGEMM_VLLM", "0")
    with pytest.raises(ValueError, match="Marlin"):
        linear_layers.package.init_nvfp4_linear_kernel()


def test_linear_layers_on_a_gpu(linear_layers: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Compute capability 9.0, where vLLM chose Marlin or emulation by itself; everywhere else its own answer stays."""
    on, init = linear_layers, linear_layers.package.init_nvfp4_linear_kernel
    on.cpu = False
    emulation = type("EmulationNvFp4LinearKernel", (), {})
    for chosen in (on.package.MarlinNvFp4LinearKernel, emulation):
        on.kernel = chosen
        kernel = init()
        assert _is_ours(kernel) and isinstance(kernel.other, chosen)
    assert _is_ours(on.user.MarlinNvFp4LinearKernel(None))
    for name, value in (("kernel", type("CutlassNvFp4LinearKernel", (), {})), ("backend", "marlin"), ("capability", 80)):
        before = getattr(on, name)
        setattr(on, name, value)
        assert type(init()) is on.kernel
        setattr(on, name, before)

    def refuse() -> Any:
        raise ValueError("Forced NVFP4 kernel MarlinNvFp4LinearKernel is not supported")

    on.kernel, before = refuse, on.kernel
    with pytest.raises(ValueError, match="Marlin"):
        init()
    on.kernel = before
    monkeypatch.setenv("DUALGEMM_VLLM", "0")
    assert type(init()) is on.kernel and not _is_ours(on.user.MarlinNvFp4LinearKernel(None))


def test_packed_linear_layers(linear_layers: Any, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch) -> None:
    """Packed bytes stand in the place of the codes; what cannot be packed goes to vLLM's kernel, with a word."""
    on = linear_layers
    on.cpu = False
    _vllm_linear._say_once.cache_clear()
    kernel, layer = on.package.init_nvfp4_linear_kernel(), Merged()
    with caplog.at_level("INFO", "vllm.dualgemm"):
        kernel.process_weights_after_loading(layer)
    assert layer.shuffled and f"left to vLLM: {2 * N} outputs" in caplog.text
    assert layer.dualgemm_left.startswith(f"vLLM, MarlinNvFp4LinearKernel: {2 * N} outputs")
    assert kernel.apply_weights(layer, torch.randn(3, HIDDEN)).shape == (3, 2 * N)
    monkeypatch.setattr(sys.modules["vllm.envs"], "VLLM_BATCH_INVARIANT", True)  # Marlin is not
    kernel, layer = on.package.init_nvfp4_linear_kernel(), Merged()
    kernel.process_weights_after_loading(layer)
    x = torch.randn(3, HIDDEN, dtype=torch.bfloat16)
    assert kernel.batch_invariant and torch.equal(kernel.apply_weights(layer, x)[:1], kernel.apply_weights(layer, x[:1]))
    monkeypatch.setattr(sys.modules["vllm.envs"], "VLLM_BATCH_INVARIANT", False)
    monkeypatch.setattr(_vllm_linear, "FEWEST_OUTPUTS", 2 * N)
    for columns in (HIDDEN, HIDDEN - 8):
        kernel, layer = on.package.init_nvfp4_linear_kernel(), Merged()
        x, bias = torch.randn(2, 5, HIDDEN, dtype=torch.bfloat16), torch.randn(2 * N, dtype=torch.bfloat16)
        layer.params_dtype = torch.bfloat16  # type: ignore[assignment]
        w = dualgemm.dequantize(dualgemm.QuantizedTensor(layer.weight.data, layer.weight_scale.data, torch.tensor([0.01])))
        whole, bytes_before = layer.weight_scale, layer.weight.nbytes + layer.weight_scale.nbytes
        if columns != HIDDEN:
            layer.weight_scale = nn.Parameter(whole.data[:, :-1], requires_grad=False)
        with caplog.at_level("INFO", "vllm.dualgemm"):
            kernel.process_weights_after_loading(layer)
        if columns != HIDDEN:
            layer.weight_scale = whole
            assert layer.shuffled and "a linear layer is left to vLLM: weight" in caplog.text
        else:
            assert layer.weight_scale.numel() == 0 and layer.weight.nbytes <= 1.05 * bytes_before + 4096
            d = kernel.apply_weights(layer, x, bias).float()
            torch.testing.assert_close(d, x.float() @ w.T + bias.float(), rtol=2e-2, atol=1e-1)


class GatedExpertMLP(MLP):
    def __init__(self, expert_gate: nn.Module | None) -> None:
        super().__init__()
        self.expert_gate = expert_gate

    def forward(self, x: Tensor) -> Tensor:
        gate_up, _ = self.gate_up_proj(x)
        out = self.act_fn(gate_up)
        out, _ = self.down_proj(out)
        if self.expert_gate is not None:
            out = torch.sigmoid(self.expert_gate(x)[0]) * out
        return out


def test_an_expert_gate_that_is_not_there(engine: Any) -> None:
    plugin.register()
    for gate, taken in ((None, True), (Down(HIDDEN, 1), False)):
        model = Model(GatedExpertMLP(gate))
        _load(engine, model)
        assert ("forward" in vars(model.mlp)) == taken


def test_unknown_words_are_named(engine: Any, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> None:
    monkeypatch.setenv("DUALGEMM_VLLM", "explain,mxpf4")
    with caplog.at_level("WARNING", logger="vllm.dualgemm"):
        plugin.register()
    assert "DUALGEMM_VLLM has 'mxpf4': must be of 0, 1, explain, mxfp4" in caplog.text


def test_kept_compiled_models_know_of_it(engine: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    envs = sys.modules["vllm.envs"]
    before = envs.compile_factors()
    plugin.register()
    plugin.register()
    assert envs.compile_factors() == before | {"DUALGEMM_VLLM": envs.compile_factors()["DUALGEMM_VLLM"]}
    keys = [envs.compile_factors()["DUALGEMM_VLLM"]]
    for words in ("1", "explain", "explain,mxfp4"):
        monkeypatch.setenv("DUALGEMM_VLLM", words)
        keys.append(envs.compile_factors()["DUALGEMM_VLLM"])
    assert keys[:3] == keys[:1] * 3 and keys[3] != keys[0]  # what is said changes no key, what is computed does
    monkeypatch.setenv("DUALGEMM_VLLM", "0")
    assert envs.compile_factors() == before
    model = Model(MLP())
    _load(engine, model)
    assert "forward" not in vars(model.mlp)
    monkeypatch.delenv("DUALGEMM_VLLM")
    monkeypatch.delattr(envs, "compile_factors")
    monkeypatch.setenv("VLLM_DISABLE_COMPILE_CACHE", "0")
    plugin.register()
    assert os.environ["VLLM_DISABLE_COMPILE_CACHE"] == "1"  # a key that cannot know of it: no cache


def test_twice_is_once(engine: Any) -> None:
    plugin.register()
    function = engine.process_weights_after_loading
    plugin.register()
    assert engine.process_weights_after_loading is function
    model = Model(MLP())
    _load(engine, model)
    forward = vars(model.mlp)["forward"]
    _load(engine, model)
    assert vars(model.mlp)["forward"] is forward


@pytest.mark.parametrize(
    "mlp,reason",
    [
        (lambda: MLP(GeluAndMul()), "activation GeluAndMul"),
        (ScaledMLP, "forward does more"),
        (lambda: MLP(widths=(40, 56)), "parts of"),
    ],
)
def test_leaves_what_does_not_fit(engine: Any, caplog: pytest.LogCaptureFixture, mlp: Any, reason: str) -> None:
    plugin.register()
    model = Model(mlp())
    with caplog.at_level(logging.INFO):
        _load(engine, model)
    assert reason in caplog.text and len(caplog.records) == 1
    assert "forward" not in vars(model.mlp) and model.mlp.gate_up_proj.shuffled
    assert model.mlp.gate_up_proj(torch.randn(2, HIDDEN))[0].shape == (2, 2 * N)


@pytest.mark.parametrize("break_it", ["vllm.envs", "vllm.model_executor.kernels.linear.nvfp4.base"])
def test_a_changed_engine_starts(
    engine: Any, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch, break_it: str
) -> None:
    plugin.register()
    monkeypatch.setitem(sys.modules, break_it, types.ModuleType(break_it))
    model = Model(MLP())
    with caplog.at_level(logging.INFO):
        _load(engine, model)
    assert "not used" in caplog.text and "forward" not in vars(model.mlp) and model.mlp.gate_up_proj.shuffled


def test_without_vllm_or_switched_off(engine: Any, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch) -> None:
    original = engine.process_weights_after_loading
    monkeypatch.setenv("DUALGEMM_VLLM", "0")
    plugin.register()
    assert engine.process_weights_after_loading is original
    monkeypatch.delenv("DUALGEMM_VLLM")
    monkeypatch.setitem(sys.modules, "vllm.model_executor.model_loader.utils", None)
    with caplog.at_level(logging.INFO):
        plugin.register()
    assert "not used" in caplog.text and engine.process_weights_after_loading is original


def test_forwards() -> None:
    plain = "def forward(self, x):\n    {a}\n    {b}\n    {c}\n    return x"
    up, act, down = "y, _ = self.gate_up_proj(x)", "x = self.act_fn(y)", "x, _ = self.down_proj(x)"
    assert is_plain_forward(plain.format(a=up, b=act, c=down))
    assert is_plain_forward(plain.format(a=up, b="x = maybe_fused_act_quant(self.act_fn, y, self.down_proj)", c=down))
    for a, b, c in (
        (up, "x = self.act_fn(x)", down),
        (up, act, "x, _ = self.down_proj(y)"),
        (up, act, "x, _ = self.w2(x)"),
        ("y, _ = self.gate_up_proj(2 * x)", act, down),
        ("y, z = self.gate_up_proj(x)", act, down),
        (up, act + "\n    x *= 2", down),
        (up, "x = self.act_fn(y, 7)", down),
    ):
        assert not is_plain_forward(plain.format(a=a, b=b, c=c))
    gate = "if self.expert_gate is not None:\n        x = 2 * x"
    with_gate = plain.format(a=up, b=act, c=down + f"\n    {gate}")
    assert not is_plain_forward(with_gate) and is_plain_forward(with_gate, ["expert_gate"])
    assert not is_plain_forward(with_gate.replace("expert_gate", "other"), ["expert_gate"])
    assert not is_plain_forward("def forward(self, x, y):\n    return x")
    assert not is_plain_forward("this is not Python")


def test_interface_files() -> None:
    """What the plug-in relies on is in the sources of vLLM."""
    root = sources("vllm") / "model_executor"
    base = root / "kernels/linear/nvfp4/base.py"
    assert parameters(base, "NvFp4LinearKernel.process_weights_after_loading") == ["self", "layer"]
    assert parameters(base, "NvFp4LinearKernel.apply_weights") == ["self", "layer", "x", "bias"]
    loader = root / "model_loader"
    assert parameters(loader / "utils.py", "process_weights_after_loading")[0] == "model"
    assert "process_weights_after_loading(model, model_config, target_device)" in (loader / "base_loader.py").read_text()
    assert "requires_unquantized_input" in (root / "layers/fusion/quant_activation.py").read_text()
    assert definition(root / "layers/activation.py", "SiluAndMul")
    # Both formats: the kernel is the last to see the weights, which have their standard names then.
    tensors = root / "layers/quantization/compressed_tensors/schemes/compressed_tensors_w4a4_nvfp4.py"
    modelopt = root / "layers/quantization/modelopt.py"
    for file, name in ((tensors, "CompressedTensorsW4A4Fp4"), (modelopt, "ModelOptLinearMethod")):
        method = definition(file, f"{name}.process_weights_after_loading")
        assert isinstance(method, ast.FunctionDef)
        assert ast.unparse(method.body[-1]) == "self.kernel.process_weights_after_loading(layer)"
        assert "layer.logical_widths = output_partition_sizes" in ast.unparse(definition(file, f"{name}.create_weights"))
    assert "layer.weight_global_scale" in tensors.read_text() and "layer.weight_global_scale" in modelopt.read_text()


def test_models() -> None:
    """MLPs of real models: plain ones are taken, those with factors of their own are not."""
    models = sources("vllm") / "model_executor/models"

    def is_plain(file: str, name: str) -> bool:
        return is_plain_forward(ast.unparse(definition(models / file, f"{name}.forward")))

    for file, name in (
        ("llama.py", "LlamaMLP"),
        ("qwen2.py", "Qwen2MLP"),
        ("mistral.py", "MistralMLP"),
        ("glm4_moe.py", "Glm4MoeMLP"),
    ):
        assert is_plain(file, name), name
    for file, name in (("falcon_h1.py", "FalconH1MLP"), ("qwen3_moe.py", "Qwen3MoeMLP"), ("zamba2.py", "Zamba2MLP")):
        assert not is_plain(file, name), name
    for file, name in (("qwen2_moe.py", "Qwen2MoeMLP"), ("qwen3_moe.py", "Qwen3MoeMLP")):
        forward = ast.unparse(definition(models / file, f"{name}.forward"))
        assert is_plain_forward(forward, ["expert_gate"]), name
