"""Gated MLPs and experts in NVFP4 as modules, and putting them into a model. Forward only; torch.compile takes them whole."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Optional

import torch
from torch import Tensor, nn

from ._arguments import checked, flag
from ._errors import InvalidArgument, Unsupported, printable
from ._fp8 import FP8Linear
from ._experts import form_of, is_experts
from ._floats import float_experts, float_mlp, ungated_names
from ._library import parse
from ._marking import mark_for_saving
from ._modules import InputType, NVFP4Linear, PackedModule, saved_by_name
from ._names import Activation
from ._operands import Shape
from ._operators import refuse_grad, tensor
from ._quantized import call
from ._routing import experts_step
from ._replace import ONLY_DENSE, candidates, check_options, is_inside, put_modules, warn_left
from ._ungated import MLP, Experts
from .weights import LinearWeights, Weights, check_container, quantized_weight

_ops = torch.ops.dualgemm
_glu_packed = _ops.glu_packed.default


class _Gated(PackedModule):
    """Gate and up as buffers, with an activation."""

    _weights = Weights
    gate_codes: Optional[Tensor]
    gate_scales: Optional[Tensor]
    up_codes: Optional[Tensor]
    up_scales: Optional[Tensor]
    alpha_gate: Tensor
    alpha_up: Tensor
    bias_gate: Optional[Tensor]
    bias_up: Optional[Tensor]

    def __init__(
        self,
        shape: Shape,
        *,
        activation: str,
        act_alpha: Optional[float],
        act_beta: Optional[float],
        act_limit: Optional[float],
        bias: bool,
        input_dtype: InputType,
        input_scale: Optional[float],
        device: Any,
    ) -> None:
        super().__init__(shape, bias=bias, input_dtype=input_dtype, input_scale=input_scale, device=device)
        parse("activation", activation)
        self.activation = activation
        given = {"act_alpha": act_alpha, "act_beta": act_beta, "act_limit": act_limit}
        self._act = {"activation": activation} | {name: value for name, value in given.items() if value is not None}
        self._named = {} if self._act == {"activation": "silu"} else self._act  # what operators do not take anyway

    def _factors(self, row_scale: Optional[Tensor]) -> tuple[Optional[Tensor], ...]:
        buffers = self._buffers
        return buffers["alpha_gate"], buffers["alpha_up"], row_scale, buffers["bias_gate"], buffers["bias_up"]

    def extra_repr(self) -> str:
        return f"{super().extra_repr()}, {self.activation}"

    def saved_arguments(self) -> dict[str, Any]:
        return {"act": dict(self._act)}


@saved_by_name
class GatedMLP(_Gated):
    """down(act(gate x) * (up x)), gate and up in NVFP4. ``down`` is any module: nn.Linear, NVFP4Linear, RowwiseParallel's, an
    engine's.

    Buffers, not parameters: gate_codes [N, K/2], gate_scales [N, K/16], up_codes, up_scales, alpha_gate, alpha_up [1];
    bias_gate, bias_up [N] or None; K = hidden_size, N = intermediate_size. input_dtype "bf16": x as it comes, 16 or 32 bits
    (W4A16). "nvfp4": x quantised on the fly (W4A4), each row with its own global scale, or all with input_scale, which is
    then a factor of both alphas. Where ``down`` is an NVFP4Linear with an input_scale, the product writes NVFP4 itself.
    """

    @checked
    def __init__(
        self,
        hidden_size: int,
        intermediate_size: int,
        down: nn.Module,
        *,
        activation: Activation = "silu",
        act_alpha: Optional[float] = None,
        act_beta: Optional[float] = None,
        act_limit: Optional[float] = None,
        bias: bool = False,
        input_dtype: InputType = "bf16",
        input_scale: Optional[float] = None,
        device: Any = None,
    ) -> None:
        super().__init__(
            Shape(intermediate_size, hidden_size, 0),
            activation=activation,
            act_alpha=act_alpha,
            act_beta=act_beta,
            act_limit=act_limit,
            bias=bias,
            input_dtype=input_dtype,
            input_scale=input_scale,
            device=device,
        )
        if not isinstance(down, nn.Module):
            raise InvalidArgument("down", type(down).__name__, "must be an nn.Module")
        self.hidden_size, self.intermediate_size = hidden_size, intermediate_size
        self.down = down

    @classmethod
    def from_weights(
        cls,
        weights: Weights,
        down: nn.Module,
        *,
        input_scale: Optional[float] = None,
        input_dtype: InputType = "bf16",
        **kw: Any,
    ) -> GatedMLP:
        """Takes the tensors of ``weights``; with input_scale and input_dtype "nvfp4" their alphas are multiplied by it. kw:
        as __init__."""
        check_container("weights", weights, Weights)
        made = cls(weights.k, weights.n, down, input_scale=input_scale, input_dtype=input_dtype, device="meta", **kw)
        return made._take(weights, made._input_scale or 1.0)

    @classmethod
    @checked
    def from_float(
        cls,
        mlp: nn.Module,
        *,
        quantize_down: bool = False,
        four_over_six: bool = False,
        activation: Optional[str] = None,
        input_dtype: InputType = "bf16",
        input_scale: Optional[float] = None,
    ) -> GatedMLP:
        """From a float MLP: gate_proj, up_proj, down_proj (Llama, Qwen, Mistral, Gemma), w1, w3, w2, or gate_up_proj (Phi).

        The activation is recognised by its values. Rows of every magnitude are sent through ``mlp`` and through the formula:
        InvalidArgument where it computes something else, or raises. quantize_down: down becomes an NVFP4Linear; else it is
        used as it is. finalize() is left to you.
        """
        parts = float_mlp(mlp, activation, plain_down=quantize_down)
        gate, up = (
            quantized_weight(f"mlp.{name}", weight, four_over_six) for name, weight in (("gate", parts.gate), ("up", parts.up))
        )
        weights = Weights.from_tensors(
            gate.codes,
            gate.scales,
            up.codes,
            up.scales,
            alpha_gate=gate.global_scale,
            alpha_up=up.global_scale,
            bias_gate=parts.bias_gate,
            bias_up=parts.bias_up,
            prepare=False,
        )
        down = parts.down
        if quantize_down:
            down = NVFP4Linear.from_float(down, input_dtype=input_dtype, four_over_six=four_over_six)
        made = cls.from_weights(weights, down, **parts.activation.options(), input_dtype=input_dtype, input_scale=input_scale)
        return made.train(mlp.training)

    @classmethod
    def from_saved(cls, saved: dict[str, Any], inner: Callable[[dict[str, Any]], nn.Module], **common: Any) -> GatedMLP:
        return cls(int(saved["k"]), int(saved["n"]), inner(saved["down"]), **saved["act"], **common)

    def forward(self, x: Tensor) -> Tensor:
        """[..., hidden_size] to what ``down`` makes of [..., intermediate_size], of the dtype of x. x.requires_grad:
        InvalidArgument."""
        if tensor("x", x).dim() == 1:
            result: Tensor = self.forward(x[None])[0]
            return result
        rows, scales, row_scale = self._rows_of(x)
        (gate, gate_scales, up, up_scales), packed = self._operands_for(rows)
        n, factors = self.shape.n, self._factors(row_scale)
        down = self.down
        if isinstance(down, NVFP4Linear) and down.output_scale is not None:
            codes, d_scales = call(
                _ops.glu_nvfp4,
                rows,
                scales,
                gate,
                gate_scales,
                up,
                up_scales,
                packed,
                n,
                1,
                down.output_scale,
                *factors,
                **self._act,
            )
            return down.product(codes, d_scales, None, x.dtype)
        if packed is not None:
            named = self._named if rows.dtype == x.dtype else {"out_dtype": x.dtype, **self._named}
            h = call(_glu_packed, rows, scales, packed, n, 1, *factors, **named)
        else:
            h = call(_ops.glu, rows, scales, gate, gate_scales, up, up_scales, *factors, out_dtype=x.dtype, **self._act)
        result = down(h)
        return result


@saved_by_name
class GatedExperts(_Gated):
    """The experts of a mixture: gate, up and down in NVFP4, rows routed on the device, nothing synchronises.

    Buffers as GatedMLP's with a first dimension E; ``down`` is an NVFP4Linear of as many experts. input_dtype and input_scale
    as there, one scale for all experts; down_input_scale: that of ``down``. by_rows: forward(x) takes the rows of all experts in
    turn, [E * rows, hidden], as Llama-4's do, whose router weights are factors of x. router_weight_on_input: topk_weights
    multiply what goes into gate and up (in float32, behind their products), not what comes out of down.
    """

    @checked
    def __init__(
        self,
        num_experts: int,
        hidden_size: int,
        intermediate_size: int,
        *,
        activation: Activation = "silu",
        act_alpha: Optional[float] = None,
        act_beta: Optional[float] = None,
        act_limit: Optional[float] = None,
        bias: bool = False,
        input_dtype: InputType = "bf16",
        input_scale: Optional[float] = None,
        down_input_scale: Optional[float] = None,
        by_rows: bool = False,
        router_weight_on_input: bool = False,
        device: Any = None,
    ) -> None:
        if num_experts < 1:
            raise InvalidArgument("num_experts", str(num_experts), "must be >= 1")
        super().__init__(
            Shape(intermediate_size, hidden_size, num_experts),
            activation=activation,
            act_alpha=act_alpha,
            act_beta=act_beta,
            act_limit=act_limit,
            bias=bias,
            input_dtype=input_dtype,
            input_scale=input_scale,
            device=device,
        )
        self.num_experts, self.hidden_size, self.intermediate_size = num_experts, hidden_size, intermediate_size
        self.by_rows, self.router_weight_on_input = by_rows, router_weight_on_input
        self.down = NVFP4Linear(
            intermediate_size,
            hidden_size,
            bias=bias,
            input_dtype=input_dtype,
            num_experts=num_experts,
            input_scale=down_input_scale,
            device=device,
        )

    @classmethod
    def from_weights(
        cls,
        weights: Weights,
        down: LinearWeights,
        *,
        input_dtype: InputType = "bf16",
        input_scale: Optional[float] = None,
        **kw: Any,
    ) -> GatedExperts:
        """Takes the tensors of both, [E, N, K/2] and [E, K, N/2]; with input_scale (of down: down_input_scale) and input_dtype
        "nvfp4" their alphas are multiplied by it. kw: as __init__."""
        check_container("weights", weights, Weights)
        check_container("down", down, LinearWeights)
        made = cls(
            weights.num_experts, weights.k, weights.n, input_dtype=input_dtype, input_scale=input_scale, device="meta", **kw
        )
        made.down._take(down, made.down._input_scale or 1.0)
        return made._take(weights, made._input_scale or 1.0)

    @classmethod
    @checked
    def from_float(
        cls,
        experts: nn.Module,
        *,
        four_over_six: bool = False,
        activation: Optional[str] = None,
        input_dtype: InputType = "bf16",
        input_scale: Optional[float] = None,
        router_weight_on_input: bool = False,
    ) -> GatedExperts:
        """From transformers' experts: parameters gate_up_proj [E, 2N, K] and down_proj [E, K, N] (Qwen-MoE, Mixtral, DeepSeek),
        or [E, K, 2N] and [E, N, K] (Llama-4, Aria; gpt-oss, whose columns alternate, with biases). Checked as
        GatedMLP.from_float() does."""
        parts, act = float_experts(experts, activation)
        gate, up, down = (
            quantized_weight(f"experts.{name}", weight.contiguous(), four_over_six)
            for name, weight in (("gate", parts.gate), ("up", parts.up), ("down", parts.down))
        )
        bias_gate, bias_up, bias_down = (
            None if bias is None else bias.detach().float().contiguous()
            for bias in (parts.bias_gate, parts.bias_up, parts.bias_down)
        )
        weights = Weights.from_tensors(
            gate.codes,
            gate.scales,
            up.codes,
            up.scales,
            alpha_gate=gate.global_scale,
            alpha_up=up.global_scale,
            bias_gate=bias_gate,
            bias_up=bias_up,
            prepare=False,
        )
        made = cls.from_weights(
            weights,
            LinearWeights.from_tensors(down.codes, down.scales, alpha=down.global_scale, bias=bias_down, prepare=False),
            input_dtype=input_dtype,
            input_scale=input_scale,
            bias=bias_down is not None,
            by_rows=form_of(experts).by_rows,
            router_weight_on_input=router_weight_on_input,
            **act.options(),
        )
        return made.train(experts.training)

    @classmethod
    def from_saved(cls, saved: dict[str, Any], inner: Callable[[dict[str, Any]], nn.Module], **common: Any) -> GatedExperts:
        made = cls(int(saved["experts"]), int(saved["k"]), int(saved["n"]), **saved["act"], **common)
        made.by_rows = bool(saved.get("by_rows", False))
        made.router_weight_on_input = bool(saved.get("router_weight_on_input", False))
        made.down = inner(saved["down"])  # type: ignore[assignment]
        return made

    def saved_arguments(self) -> dict[str, Any]:
        flags = ("by_rows", "router_weight_on_input")
        return super().saved_arguments() | {name: True for name in flags if getattr(self, name)}

    def forward(
        self,
        x: Tensor,
        topk_ids: Optional[Tensor] = None,
        topk_weights: Optional[Tensor] = None,
        expert_map: Optional[Tensor] = None,
    ) -> Tensor:
        """x [..., hidden]; topk_ids, topk_weights [tokens, k] of as many tokens: the weighted sum of its experts for each
        row, of the shape and dtype of x. Ids outside 0 ... E-1 stand for no expert. The sum is taken in float32, in the order
        of topk_ids. by_rows: x [E * rows, hidden] alone, each expert's rows through it. expert_map: int32 [experts that ids
        name], each one's place among the E of this module, -1 where it is elsewhere.
        """
        if self.by_rows and topk_ids is None:
            return self._forward_in_turn(x)
        on_input = self.router_weight_on_input
        return experts_step(self, self.down, x, topk_ids, topk_weights, self._act, on_input, expert_map)

    def _forward_in_turn(self, x: Tensor) -> Tensor:
        refuse_grad(x=tensor("x", x))
        self._check_columns(x)
        rows = x.numel() // self.hidden_size
        if rows % self.num_experts:
            raise InvalidArgument("x", f"{rows} rows", f"must be as many for each of {self.num_experts} experts")
        each = rows // self.num_experts
        if each == 0:
            return torch.empty_like(x)
        counts = torch.full((self.num_experts,), each, dtype=torch.int32, device=x.device)
        return self.forward_masked(x.reshape(self.num_experts, each, self.hidden_size), counts).view(x.shape)

    def forward_masked(self, x: Tensor, masked_m: Tensor) -> Tensor:
        """x [E, Mmax, hidden], int32 masked_m [E] rows of each expert, on the device of x: [E, Mmax, hidden], rows beyond 0.
        For CUDA graphs and DeepEP's low latency; routing and weighting are the caller's."""
        refuse_grad(x=tensor("x", x))
        if x.dim() != 3 or x.shape[0] != self.num_experts or x.shape[2] != self.hidden_size:
            raise InvalidArgument("x", f"shape {list(x.shape)}", f"must be [{self.num_experts}, Mmax, {self.hidden_size}]")
        if self.input_dtype == "nvfp4":  # the quantiser reads every row
            inside = torch.arange(x.shape[1], device=x.device)[None, :] < masked_m[:, None]
            x = torch.where(inside.unsqueeze(-1), x, torch.zeros((), dtype=x.dtype, device=x.device))
        rows, scales, row_scale = self._quantized(x.contiguous())
        matrices, packed = self._operands_for(rows)
        h = call(
            _ops.m_grouped_glu_masked,
            rows,
            scales,
            *matrices,
            packed,
            self.shape.n,
            self.num_experts,
            masked_m,
            *self._factors(row_scale),
            out_dtype=x.dtype,
            **self._act,
        )
        h, h_scales, h_row_scale = self.down._quantized(h)
        return self.down.product(h, h_scales, h_row_scale, x.dtype, masked_m=masked_m)


def finalize(model: nn.Module, **kw: Any) -> nn.Module:
    """finalize() of every module of this package in ``model``, where it is now."""
    for module in model.modules():
        if isinstance(module, PackedModule):
            module.finalize(**kw)
    return model


@checked
def replace_mlps(
    model: nn.Module, *, match: Optional[str] = None, skip: Sequence[str] = (), without_gate: bool = False, **kw: Any
) -> list[str]:
    """Puts GatedMLP in the place of every gated MLP, GatedExperts in that of transformers' experts; returns their names.
    without_gate: and MLP in that of every MLP without a gate, as vision towers have them, too.

    match: None, whatever has the submodules of one, under any name (mlp, feed_forward, shared_expert, mlp.experts); a regular
    expression: modules whose whole name matches. ``skip``: regular expressions or names. kw: as GatedMLP.from_float().

    Modules that compute anything else, or raise, are left and named in a warning; so is that nothing was found. An error
    leaves the model as it was. finalize(), for each, once the model is where it will run.
    """
    check_options(kw)
    flag("without_gate", without_gate)
    found, left = candidates(model, match, skip, without_gate)
    replaced: dict[str, nn.Module] = {}
    made: dict[int, nn.Module] = {}  # a module that has two names stays one
    for name, module in found.items():
        if is_inside(name, replaced):
            continue
        kind: Any = GatedExperts if is_experts(module) else GatedMLP
        if without_gate and ungated_names(module):
            kind = MLP
        options = {key: value for key, value in kw.items() if kind is not GatedExperts or key not in ONLY_DENSE}
        try:
            if id(module) not in made:
                made[id(module)] = kind.from_float(module, **options)
        except (InvalidArgument, Unsupported) as error:
            left[name] = str(error)
            continue
        replaced[name] = made[id(module)]
    put_modules(model, replaced)
    if replaced:
        mark_for_saving(model)
    left = {name: reason for name, reason in left.items() if not any(is_inside(inner, [name]) for inner in replaced)}
    nothing = "" if replaced else f"nothing was replaced in {type(model).__name__}"
    if not replaced and not left and match is not None:
        nothing += f": no module's name matches {printable(match)}"
    warn_left(left, nothing)
    return list(replaced)


__all__ = ["MLP", "Experts", "FP8Linear", "GatedExperts", "GatedMLP", "NVFP4Linear", "PackedModule", "finalize", "replace_mlps"]
