"""vLLM: dense NVFP4 MLPs in one pass, and experts in one call. Entry point `vllm.general_plugins`, so that installing the package switches it on.

An MLP of a model fits whose forward is down_proj(act_fn(gate_up_proj(x))) and nothing else (an expert_gate that is None aside),
whose act_fn is SiluAndMul and whose gate_up_proj has an NVFP4 kernel (compressed-tensors or ModelOpt). Then gate_up_proj's
weights stay as the checkpoint has them: the engine's kernel never shuffles them, and there is no second copy. Gate and up keep
global scales of their own, where vLLM takes the larger of the two. The MLP's forward calls dualgemm.glu() on activations of 16
bits and then the engine's down_proj. Code that calls gate_up_proj itself (LoRA does) gets the two products from
dualgemm.linear().

vLLM keeps compiled models on disk. That the plug-in acts, and its version, is a part of their key: neither finds what was
compiled for the other.

On a CPU, for which vLLM has no NVFP4 kernel, every NVFP4 linear layer runs on this library (_vllm_linear.py): dense models of
compressed-tensors and ModelOpt are served, with activations in 16 bits. So do, on a GPU of compute capability 9.0, those that
vLLM would give to Marlin, where this library is the faster, and to emulation.

A mixture's experts (_vllm_experts.py) run on this library where vLLM would take Marlin or emulation on a GPU of compute
capability 9.0, and on a CPU, where vLLM has no kernel; a backend that was asked for by name stays. MXFP4 experts
(_vllm_mxfp4.py) likewise, read as NVFP4; those of vLLM's kernels that are not Marlin stay unless they are asked for.

Everything else is left as it is, with one line in the log saying why; so is all of vLLM with DUALGEMM_VLLM=0. The variable
may have other words, with commas between them: with explain the log names every layer and what computes it, with mxfp4 the
library takes gpt-oss's experts from vLLM's Triton and CPU kernels, too.
VLLM_BATCH_INVARIANT=1 is obeyed. Weights loaded from vLLM's weight cache are processed already: left, too.

What the MLP's forward computes is asked, too: rows of every magnitude, with stand-ins for its two products.

Tested with the loader and LlamaMLP of vLLM 0.24.0 and 0.33.0 on a CPU, in both formats, against its interface files, and on a stand-in
that has their names; its server on a CPU (scripts/test_engines) and its engine on an H100 and an H200 (scripts/engine_gpu), both 0.24.0.
"""

from __future__ import annotations

import functools
import importlib
import logging
import os
import types
from typing import Any, Optional

from torch import Tensor, nn

from .._errors import printable
from .._library import version
from ._merged import gated, has_plain_forward, reason_against, reason_of_forward, side_by_side
from . import _vllm_experts, _vllm_linear, _vllm_mxfp4

_log = logging.getLogger("vllm.dualgemm")  # below vLLM's own logger, which has handlers
_SWITCH, _WORDS = "DUALGEMM_VLLM", ("0", "1", "explain", "mxfp4")
_MARK = "_dualgemm_original"
# Where load_model() finds the function by name.
_LOADERS = ("vllm.model_executor.model_loader.utils", "vllm.model_executor.model_loader.base_loader")
_FUNCTION = "process_weights_after_loading"


class _Kernel:
    """In the place of a gate_up_proj's NVFP4 kernel; for every other layer, and where weights turn out not to fit, that
    kernel.
    """

    def __init__(self, kernel: Any, layer: nn.Module, batch_invariant: bool) -> None:
        self._kernel, self._layer, self._batch_invariant = kernel, layer, batch_invariant
        self.wanted_unquantized = getattr(layer, "requires_unquantized_input", False)
        self.reason: Optional[str] = "its weights were not processed"

    @property
    def kernel(self) -> Any:
        return self._kernel

    def __getattr__(self, name: str) -> Any:
        return getattr(self._kernel, name)

    def process_weights_after_loading(self, layer: nn.Module) -> None:
        if layer is self._layer:
            weights: Any = layer
            self.reason = reason_against(weights.weight, weights.weight_scale, weights.logical_widths)
            if self.reason is None and weights.dualgemm_alphas.numel() != 2:
                self.reason = f"{weights.dualgemm_alphas.numel()} global scales"
        if layer is not self._layer or self.reason is not None:
            self._kernel.process_weights_after_loading(layer)
            return
        # vLLM's parameters are subclasses for loading; kernels leave plain ones behind.
        for name in ("weight", "weight_scale", "weight_global_scale"):
            setattr(layer, name, nn.Parameter(getattr(layer, name).detach(), requires_grad=False))

    def apply_weights(self, layer: nn.Module, x: Tensor, bias: Optional[Tensor] = None) -> Tensor:
        if layer is not self._layer or self.reason is not None:
            result: Tensor = self._kernel.apply_weights(layer, x, bias)
            return result
        d = side_by_side(x, *self.operands(), self._batch_invariant)
        return d if bias is None else d + bias

    def operands(self) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        layer: Any = self._layer
        return layer.weight, layer.weight_scale, layer.dualgemm_alphas[:1], layer.dualgemm_alphas[1:]

    def gated(self, x: Tensor) -> Tensor:
        return gated(x, *self.operands(), self._batch_invariant)


def _kernel_holder(layer: Any) -> Optional[Any]:
    """The object whose ``kernel`` multiplies the layer: compressed-tensors' scheme, ModelOpt's method; None: there is none."""
    base = importlib.import_module("vllm.model_executor.kernels.linear.nvfp4.base").NvFp4LinearKernel
    for holder in (getattr(layer, "scheme", None), getattr(layer, "quant_method", None)):
        if isinstance(getattr(holder, "kernel", None), (base, _Kernel)):
            return holder
    return None


def _keep_alphas(layer: Any) -> None:
    """Gate's and up's own multipliers as a buffer, before vLLM makes one of them. What ModelOpt's loader has read are
    multipliers, what compressed-tensors' has, with weight_packed beside them, divisors; both names are gone afterwards."""
    if hasattr(layer, "weight_scale_2"):
        own = layer.weight_scale_2.detach().float()
    elif hasattr(layer, "weight_packed"):
        own = 1 / layer.weight_global_scale.detach().float()
    elif hasattr(layer, "dualgemm_alphas"):
        return  # processed already
    else:
        own = layer.weight_global_scale.detach().float()
    own = own.reshape(-1)
    layer.register_buffer("dualgemm_alphas", own.repeat(2) if own.numel() == 1 else own.clone(), persistent=False)


def _reason_against(mlp: nn.Module) -> Optional[str]:
    """Why an MLP whose gate_up_proj is in NVFP4 must stay; None: it may be replaced."""
    if type(getattr(mlp, "act_fn", None)).__name__ != "SiluAndMul":
        return f"activation {type(getattr(mlp, 'act_fn', None)).__name__}"
    if not has_plain_forward(mlp):
        return "its forward does more than down_proj(act_fn(gate_up_proj(x)))"
    if getattr(mlp.gate_up_proj, "bias", None) is not None:
        return "a bias"
    if getattr(mlp.gate_up_proj, "gather_output", False):
        return "its output is gathered"
    return reason_of_forward(mlp)


def _replaced_forward(mlp: Any, layer: nn.Module, kernel: _Kernel) -> Any:
    original = mlp.forward

    def forward(self: Any, x: Any) -> Any:
        if self.gate_up_proj is not layer or not isinstance(x, Tensor):  # LoRA has put itself around it
            return original(x)
        return self.down_proj(kernel.gated(x))[0]

    return types.MethodType(forward, mlp)


def _prepare(model: nn.Module, fitting: dict[str, tuple[nn.Module, _Kernel]], left: dict[str, str]) -> None:
    """Puts _Kernel in front of the kernels of MLPs that fit; in ``left``, why others do not."""
    batch_invariant = bool(importlib.import_module("vllm.envs").VLLM_BATCH_INVARIANT)
    for name, mlp in model.named_modules():
        layer = getattr(mlp, "gate_up_proj", None)
        holder = _kernel_holder(layer) if isinstance(layer, nn.Module) else None
        if layer is None or holder is None:
            continue
        if isinstance(holder.kernel, _Kernel):  # loaded again
            _keep_alphas(layer)
            continue
        reason = _reason_against(mlp)
        if reason is not None:
            left[name] = reason
            continue
        _keep_alphas(layer)
        holder.kernel = _Kernel(holder.kernel, layer, batch_invariant)
        # Norms must not hand over what they quantised for the other kernel.
        layer.requires_unquantized_input = True
        fitting[name] = (mlp, holder.kernel)


def _finish(fitting: dict[str, tuple[nn.Module, _Kernel]], left: dict[str, str]) -> None:
    replaced = 0
    for name, (mlp, kernel) in fitting.items():
        if kernel.reason is not None:
            left[name] = kernel.reason
            mlp.gate_up_proj.requires_unquantized_input = kernel.wanted_unquantized  # type: ignore[union-attr]
        else:
            mlp.forward = _replaced_forward(mlp, mlp.gate_up_proj, kernel)  # type: ignore[arg-type]
            replaced += 1
    if replaced:
        _log.info("dualgemm: %d MLPs replaced", replaced)
    if left:
        name, reason = next(iter(left.items()))
        _log.info("dualgemm: %d NVFP4 MLPs left to vLLM, the first %s: %s", len(left), printable(name), reason)


def _who(layer: Any) -> Optional[str]:
    """What computes a layer, for `explain`; None: nothing that vLLM chose a kernel or a method for."""
    if isinstance(getattr(layer, "dualgemm_alphas", None), list):
        return "dualgemm, the experts' whole step"
    holder = _kernel_holder(layer)
    if holder is not None:
        kernel = holder.kernel
        if isinstance(kernel, _Kernel):
            return "dualgemm" if kernel.reason is None else f"vLLM, {type(kernel.kernel).__name__}: {kernel.reason}"
        name = type(kernel).__name__
        return getattr(layer, "dualgemm_left", "dualgemm") if name == _vllm_linear.KERNEL else f"vLLM, {name}"
    method = getattr(layer, "quant_method", None)
    return None if method is None else f"vLLM, {type(method).__name__}"


def _explain(model: nn.Module) -> None:
    for name, layer in model.named_modules():
        merged = _kernel_holder(getattr(layer, "gate_up_proj", None))
        who = _who(layer)
        if merged is not None and isinstance(merged.kernel, _Kernel) and merged.kernel.reason is None:
            who = "dualgemm, gate, up and activation in one pass"
        if who is not None:
            _log.info("dualgemm: %s: %s", printable(name), who)


def _around(original: Any) -> Any:
    def process(model: nn.Module, *arguments: Any, **named: Any) -> Any:
        fitting: dict[str, tuple[nn.Module, _Kernel]] = {}
        left: dict[str, str] = {}
        if not _is_on():
            return original(model, *arguments, **named)
        try:
            _prepare(model, fitting, left)
        except Exception as error:  # whatever another version of vLLM has changed, the engine must start
            _log.info("dualgemm: not used: %s: %s", type(error).__name__, error)
        result = original(model, *arguments, **named)
        _finish(fitting, left)
        if experts := _vllm_experts.taken(model):
            _log.info("dualgemm: experts of %d layers", experts)
        if "explain" in _words():
            try:
                _explain(model)
            except Exception as error:
                _log.info("dualgemm: no explanation: %s: %s", type(error).__name__, error)
        return result

    setattr(process, _MARK, original)
    return process


def _words() -> list[str]:
    """What the variable says, in alphabetical order."""
    return sorted(word for word in os.environ.get(_SWITCH, "1").split(",") if word)


def _is_on() -> bool:
    return "0" not in _words()


def _takes_all_mxfp4() -> bool:
    return "mxfp4" in _words()


def _with_factor(original: Any) -> Any:
    """Around vllm.envs.compile_factors(), from which the keys of all kept compiled models are made."""

    def compile_factors(*arguments: Any, **named: Any) -> Any:
        factors = original(*arguments, **named)
        if not _is_on():
            return factors
        choices = ["weights as in the checkpoint", *(["all of MXFP4"] if _takes_all_mxfp4() else [])]
        return {**factors, _SWITCH: ", ".join([version(), *choices])}

    setattr(compile_factors, _MARK, original)
    return compile_factors


def _separate_caches() -> None:
    envs = importlib.import_module("vllm.envs")
    original = getattr(envs, "compile_factors", None)
    if original is None:
        os.environ["VLLM_DISABLE_COMPILE_CACHE"] = "1"
        _log.info("dualgemm: vLLM's cache of compiled models is switched off: its key has no place for this plug-in")
    elif not hasattr(original, _MARK):
        setattr(envs, "compile_factors", _with_factor(original))


def _let_openmp_sleep() -> None:
    """On a CPU, where vLLM starts its workers after this, as processes of their own. OpenMP's threads, which attention runs on,
    spin on after each of its loops, on the cores that this library's threads want: a decode step of 8 sequences took 22 ms, and
    13.3 with threads that sleep (4 layers of 2048 x 8192, threads not bound, 2 cores of a Zen 5, 2026-11-28)."""
    try:
        if _vllm_linear.is_cpu() and "OMP_WAIT_POLICY" not in os.environ:
            os.environ["OMP_WAIT_POLICY"] = "PASSIVE"
            _log.info("dualgemm: OMP_WAIT_POLICY=PASSIVE is set for vLLM's workers")
    except Exception as error:
        _log.info("dualgemm: OMP_WAIT_POLICY is left: %s: %s", type(error).__name__, error)


def register() -> None:
    """Called by vLLM in each of its processes, perhaps more than once. Changes nothing where vLLM is not as expected."""
    if not _is_on():
        return
    for word in _words():
        if word not in _WORDS:
            _log.warning("dualgemm: %s has '%s': must be of %s", _SWITCH, printable(word), ", ".join(_WORDS))
    try:  # asks CUDA nothing: processes may be forked after this
        importlib.import_module("vllm.model_executor.kernels.linear.nvfp4.base").NvFp4LinearKernel  # noqa: B018
        modules = [importlib.import_module(name) for name in _LOADERS]
        originals = [getattr(module, _FUNCTION) for module in modules]
        _separate_caches()
    except Exception as error:  # an import of a changed vLLM may raise anything
        _log.info("dualgemm: not used: %s: %s", type(error).__name__, error)
        return
    _let_openmp_sleep()
    for what, offer in (
        ("linear layers", _vllm_linear.offer),
        ("experts", _vllm_experts.offer),
        ("MXFP4 experts", functools.partial(_vllm_mxfp4.offer, takes_all=_takes_all_mxfp4)),
    ):
        try:
            offer(_MARK, _is_on)
        except Exception as error:
            _log.info("dualgemm: %s are left to vLLM: %s: %s", what, type(error).__name__, error)
    for module, original in zip(modules, originals):
        if not hasattr(original, _MARK):
            setattr(module, _FUNCTION, _around(original))
