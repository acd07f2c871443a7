"""Arguments of the wrong kind: every parameter of every public function takes a right one or says which it is. No TypeError of
Python's, no error of torch's or ctypes'."""
from __future__ import annotations

import inspect
import pathlib
from collections.abc import Callable
from typing import Any

import pytest
import torch
from operands import DEVICE, decoded, dg, only_on_cpu

safetensors = pytest.importorskip("safetensors.torch", reason="safetensors is not installed")
M, N, K = 4, 64, 64


class Hostile:
    """Its name in a message could be anything."""

    def __repr__(self) -> str:
        return "\x1b[2J" + "x" * 100_000


# None is a legal value of many; it is tried, too.
WRONG: dict[str, Any] = {
    "none": None, "int": 3, "negative": -1, "big": 2**70, "float": 1.5, "nan": float("nan"), "text": "\x1b[2Jfoo", "bytes": b"x",
    "list": [1, 2], "dict": {}, "set": {1}, "tuple": (1, 2, 3), "object": Hostile(), "function": len, "type": int, "complex": 1j,
    "true": True, "dtype": torch.int32, "device": torch.device("cpu"), "zero": "a\0b", "surrogate": "\ud800",
    "scalar": torch.tensor(1.0), "empty": torch.empty(0), "integers": torch.zeros(3, 3, dtype=torch.int64),
    "meta": torch.empty(4, 32, dtype=torch.uint8, device="meta"), "sparse": torch.eye(4).to_sparse(),
    "complexes": torch.zeros(2, 2, dtype=torch.complex64), "gradient": torch.zeros(4, 64, requires_grad=True),
    "module": torch.nn.Linear(3, 3),
}
try:
    import numpy

    WRONG["array"] = numpy.zeros((2, 2))
except ImportError:
    pass


class MLP(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.gate_proj, self.up_proj = torch.nn.Linear(K, N, bias=False), torch.nn.Linear(K, N, bias=False)
        self.down_proj = torch.nn.Linear(N, K, bias=False)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        found: torch.Tensor = self.down_proj(torch.nn.functional.silu(self.gate_proj(x)) * self.up_proj(x))
        return found


class Model(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.mlp = MLP()


def quantized(seed: int, rows: int = N) -> dg.QuantizedTensor:
    return dg.quantize(torch.randn(rows, K, generator=torch.Generator(DEVICE).manual_seed(seed)))


def checkpoint(folder: pathlib.Path) -> str:
    tensors = {}
    for seed, name in enumerate(("gate_proj", "up_proj", "down_proj")):
        w = quantized(seed)
        tensors.update({f"mlp.{name}.weight": w.codes, f"mlp.{name}.weight_scale": w.scales,
                        f"mlp.{name}.weight_scale_2": w.global_scale.reshape(())})
    path = str(folder / "model.safetensors")
    safetensors.save_file({name: value.cpu().contiguous() for name, value in tensors.items()}, path)
    return path


# name -> how it is called, its arguments, parameters that inspect does not see
Call = tuple[Callable[..., Any], dict[str, Any], tuple[str, ...]]
LIKE_GLU = ("activation", "act_alpha", "act_beta", "act_limit", "strategy", "config", "batch_invariant", "scale_layout",
            "a_row_scale", "bias_gate", "bias_up")


def calls(folder: pathlib.Path) -> dict[str, Call]:
    a, gate, up = quantized(1, M), quantized(2), quantized(3)
    x = torch.randn(M, K, dtype=torch.bfloat16)
    four = {"gate": gate.codes, "gate_scales": gate.scales, "up": up.codes, "up_scales": up.scales}
    product = {"a": a.codes, "a_scales": a.scales, **four}
    weights = dg.Weights.from_tensors(**four, prepare=False)
    linear = dg.LinearWeights.from_tensors(gate.codes, gate.scales, prepare=False)
    path = checkpoint(folder)
    opened = dg.open_checkpoint(path)
    float_linear = torch.nn.Linear(K, N)
    host = {name: value.cpu() for name, value in product.items()}
    host["d"] = torch.empty(M, N, dtype=torch.float16, device="cpu")
    found: dict[str, Call] = {
        "quantize": (dg.quantize, {"x": x}, ()),
        "dequantize": (dg.dequantize, {"x": a}, ()),
        "swizzle_scales": (dg.swizzle_scales, {"scales": a.scales}, ()),
        "unswizzle_scales": (dg.unswizzle_scales, {"scales": dg.swizzle_scales(a.scales), "rows": M, "sf_cols": K // 16}, ()),
        "swap_nibbles": (dg.swap_nibbles, {"codes": a.codes}, ()),
        "glu": (dg.glu, product, ()),
        "glu_nvfp4": (dg.glu_nvfp4, {**product, "d_global_scale": 1.0}, LIKE_GLU[:8]),
        "linear": (dg.linear, {"a": a.codes, "a_scales": a.scales, "w": gate.codes, "w_scales": gate.scales}, ()),
        "explain": (dg.explain, {"a": a.codes, "gate": gate.codes, "up": up.codes}, ()),
        "m_grouped_glu_contiguous": (dg.m_grouped_glu_contiguous, {
            "a": x, "w": weights, "offsets": torch.tensor([0, M], dtype=torch.int32)}, LIKE_GLU),
        "m_grouped_glu_masked": (dg.m_grouped_glu_masked, {
            "a": x[None], "w": weights, "masked_m": torch.tensor([2], dtype=torch.int32)}, LIKE_GLU),
        "plan": (dg.plan, {"m": M, "n": N, "k": K}, ()),
        "run": (dg.run, {"plan": dg.plan(M, N, K), **host}, ()),
        "device_info": (dg.device_info, {}, ()),
        "Weights.from_tensors": (dg.Weights.from_tensors, four, ()),
        "Weights.from_stacked": (dg.Weights.from_stacked, {
            "gate_up": torch.cat([gate.codes, up.codes]), "scales": torch.cat([gate.scales, up.scales])}, ()),
        "Weights.from_linear": (dg.Weights.from_linear, {"gate": float_linear, "up": float_linear}, ()),
        "Weights.from_state_dict": (dg.Weights.from_state_dict, {"state": weights.state_dict()}, ()),
        "Weights.shard": (weights.shard, {"rank": 0, "world_size": 2}, ()),
        "Weights.to": (weights.to, {"device": DEVICE}, ()),
        "Weights.prepare": (weights.prepare, {}, ()),
        "Weights()": (weights, {"x": x}, LIKE_GLU),
        "Weights.glu_nvfp4": (weights.glu_nvfp4, {"x": x, "d_global_scale": 1.0}, LIKE_GLU),
        "LinearWeights.from_tensors": (dg.LinearWeights.from_tensors, {"w": gate.codes, "w_scales": gate.scales}, ()),
        "LinearWeights.from_linear": (dg.LinearWeights.from_linear, {"linear": float_linear}, ()),
        "LinearWeights.from_state_dict": (dg.LinearWeights.from_state_dict, {"state": linear.state_dict()}, ()),
        "LinearWeights.shard": (linear.shard, {"rank": 0, "world_size": 2, "dim": 0}, ()),
        "LinearWeights()": (linear, {"x": x}, ("a_row_scale", "bias", "batch_invariant", "strategy", "config", "scale_layout")),
        "GatedMLP": (dg.nn.GatedMLP, {"hidden_size": K, "intermediate_size": N, "down": torch.nn.Linear(N, K)}, ()),
        "GatedMLP.from_float": (dg.nn.GatedMLP.from_float, {"mlp": MLP()}, ()),
        "GatedMLP.from_weights": (dg.nn.GatedMLP.from_weights, {"weights": weights, "down": torch.nn.Linear(N, K)},
                                  ("activation", "act_alpha", "act_beta", "act_limit", "bias")),
        "GatedMLP.finalize": (lambda **kw: dg.nn.GatedMLP.from_float(MLP()).finalize(**kw), {}, ("a_dtype", "keep_original")),
        "GatedExperts": (dg.nn.GatedExperts, {"num_experts": 2, "hidden_size": K, "intermediate_size": N}, ()),
        "NVFP4Linear": (dg.nn.NVFP4Linear, {"in_features": K, "out_features": N}, ()),
        "NVFP4Linear.from_float": (dg.nn.NVFP4Linear.from_float, {"linear": float_linear}, ()),
        "NVFP4Linear.from_weights": (dg.nn.NVFP4Linear.from_weights, {"weights": linear}, ()),
        "replace_mlps": (lambda **kw: dg.replace_mlps(**{"model": Model(), **kw}), {"match": "mlp"},
                         ("model", "match", "skip", "quantize_down", "four_over_six", "activation", "input_dtype",
                          "input_scale")),
        "open_checkpoint": (dg.open_checkpoint, {"path": path}, ()),
        "from_pretrained": (lambda **kw: dg.from_pretrained(**{"model": Model(), **kw}), {"path": path},
                            ("model", "path", "match", "skip", "device", "input_dtype", "finalize", "max_input_scale",
                             "allow_nan")),
    }
    for name in ("experts", "weights", "input_scale", "down", "down_input_scale"):
        found[f"Checkpoint.{name}"] = getattr(opened, name), {"prefix": "mlp"}, ()
    for name in ("linear", "linear_input_scale"):
        found[f"Checkpoint.{name}"] = getattr(opened, name), {"name": "mlp.down_proj"}, ()
    return found


def parameters(function: Callable[..., Any], more: tuple[str, ...]) -> list[str]:
    named = [name for name, parameter in inspect.signature(function).parameters.items()
             if parameter.kind not in (parameter.VAR_KEYWORD, parameter.VAR_POSITIONAL)]
    return list(dict.fromkeys((*named, *more)))


@pytest.fixture(scope="module")
def every_call(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Call]:
    return calls(tmp_path_factory.mktemp("wrong_types"))


@only_on_cpu
def test_the_calls_are_right(every_call: dict[str, Call]) -> None:
    for function, arguments, _ in every_call.values():
        function(**arguments)


@only_on_cpu
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("kind", WRONG)
def test_an_argument_of_a_wrong_kind_is_named(kind: str, every_call: dict[str, Call]) -> None:
    wrong = []
    for name, (function, arguments, more) in every_call.items():
        for parameter in parameters(function, more):
            try:
                function(**{**arguments, parameter: WRONG[kind]})
            except dg.DualGemmError as error:
                if not str(error).isprintable() or len(str(error)) > 3100:
                    wrong.append(f"{name}({parameter}): a message of {len(str(error))} characters")
            except Exception as error:
                wrong.append(f"{name}({parameter}): {type(error).__name__}: {str(error)[:80]}")
    assert not wrong, "\n".join(wrong)


# Checks of arguments stand between a caller and the function; a warning is about the caller's line.
@only_on_cpu
def test_warnings_name_the_callers_file(tmp_path: pathlib.Path) -> None:
    class Odd(MLP):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return super().forward(x) * 2

    with pytest.warns(UserWarning, match="left as they are") as caught:
        model = Model()
        model.mlp = Odd()
        dg.replace_mlps(model)
    assert [one.filename for one in caught] == [__file__]
    with pytest.warns(UserWarning, match="left as they are") as caught:
        model = torch.nn.Module()
        model.mlp, model.layer = MLP(), Model()
        model.layer.mlp = Odd()
        dg.from_pretrained(model, checkpoint(tmp_path), match=r"(layer\.)?mlp")
    assert [one.filename for one in caught] == [__file__]


@only_on_cpu
@pytest.mark.parametrize("call,parameter", [
    ("Weights.from_tensors", "prepare"), ("Weights.from_linear", "keep_original"), ("Weights.from_stacked", "prepare"),
    ("LinearWeights.from_tensors", "prepare"), ("GatedMLP", "bias"), ("GatedExperts", "bias"), ("NVFP4Linear", "bias"),
    ("Checkpoint.weights", "allow_nan"), ("Checkpoint.down", "prepare"), ("Checkpoint.linear", "allow_nan"),
    ("open_checkpoint", "allow_nan"), ("from_pretrained", "finalize"), ("plan", "batch_invariant"), ("plan", "prepared"),
    ("replace_mlps", "four_over_six"), ("explain", "batch_invariant"), ("glu", "batch_invariant"), ("quantize", "per_row"),
    ("Weights.prepare", "keep_original"),
])
def test_flags_are_true_or_false(call: str, parameter: str, every_call: dict[str, Call]) -> None:
    function, arguments, _ = every_call[call]
    function(**{**arguments, parameter: False})
    for wrong in ("no", "False", [], {}):  # Python makes True or False of each
        with pytest.raises(dg.InvalidArgument) as caught:
            function(**{**arguments, parameter: wrong})
        assert caught.value.argument == parameter


@only_on_cpu
@pytest.mark.parametrize("call,change,argument", [
    ("Weights()", {"bias_gate": None}, "bias_gate"), ("LinearWeights()", {"bias": None}, "bias"),
    ("Weights.glu_nvfp4", {"bias_up": torch.zeros(N, device="cpu")}, "bias_up"),
    ("GatedExperts", {"num_experts": 0}, "num_experts"),
    ("Checkpoint.weights", {"shard": 3}, "shard"), ("Checkpoint.weights", {"prefix": 3}, "prefix"),
    ("Checkpoint.weights", {"expert": "0"}, "expert"), ("from_pretrained", {"skip": 3}, "skip"),
    ("replace_mlps", {"skip": [b"mlp"]}, "skip"),
    ("open_checkpoint", {"path": "a\0b"}, "path"), ("plan", {"device": "cpu\0x"}, "device"),
    ("explain", {"scale_layout": "rows"}, "scale_layout"), ("explain", {"a_scales": 3}, "a_scales"),
    ("GatedMLP", {"device": "nowhere"}, "device"), ("GatedMLP", {"act_alpha": "1"}, "act_alpha"),
    ("Weights.from_stacked", {"bias": torch.zeros(N, device="cpu")}, "bias"),
    ("run", {"a": torch.eye(4, device="cpu").to_sparse()}, "a"),
])
def test_the_argument_that_is_wrong_is_named(call: str, change: dict[str, Any], argument: str,
                                             every_call: dict[str, Call]) -> None:
    function, arguments, _ = every_call[call]
    with pytest.raises(dg.InvalidArgument) as caught:
        function(**{**arguments, **change})
    assert caught.value.argument == argument


# A beta of 0 is a beta: act(g) = g * sigmoid(alpha * g), and u as it is, not u + 1.
@pytest.mark.parametrize("alpha,limit", [(1.702, 7.0), (None, None), (1.0, 1.5)])
def test_a_beta_of_zero(alpha: float | None, limit: float | None) -> None:
    a, gate, up = quantized(1, M), quantized(2), quantized(3)
    g, u = (torch.from_numpy(decoded(a.codes, a.scales)) @ torch.from_numpy(decoded(w.codes, w.scales)).T *
            (a.global_scale * w.global_scale).double().cpu() for w in (gate, up))
    top = 7.0 if limit is None else limit
    g, u = g.clamp(max=top), u.clamp(-top, top)
    wanted = g * torch.sigmoid((1.702 if alpha is None else alpha) * g) * u
    act = {"activation": "swiglu_oai", "act_alpha": alpha, "act_beta": 0.0, "act_limit": limit}
    scales = {"alpha_gate": a.global_scale * gate.global_scale, "alpha_up": a.global_scale * up.global_scale}
    four = {"gate": gate.codes, "gate_scales": gate.scales, "up": up.codes, "up_scales": up.scales}
    weights = dg.Weights.from_tensors(**four, alpha_gate=gate.global_scale, alpha_up=up.global_scale, a_dtype=torch.uint8)
    module = dg.nn.GatedMLP.from_weights(weights, torch.nn.Identity(), input_dtype="nvfp4", **act)
    for found in (dg.glu(a.codes, a_scales=a.scales, **four, **scales, **act), weights(a, **act),
                  dg.dequantize(weights.glu_nvfp4(a, d_global_scale=float(wanted.abs().max()) / 2688, **act))):
        assert found.shape == wanted.shape
        assert float((found.double().cpu() - wanted).norm() / wanted.norm()) < (0.15 if found.dtype == torch.float32 else 2e-3)
    assert module._act["act_beta"] == 0.0
    for beta in (float("nan"), "0", float("inf")):
        with pytest.raises(dg.InvalidArgument):
            dg.glu(a.codes, a_scales=a.scales, **four, **{**act, "act_beta": beta})
