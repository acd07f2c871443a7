"""MLPs without a gate, dense and experts: y = down(act(up(x))), up and down in NVFP4 (Nemotron-H and 3)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Optional

import torch
from torch import Tensor, nn

from ._activations import ACTIVATIONS
from ._arguments import checked
from ._errors import InvalidArgument
from ._floats import float_ungated
from ._modules import InputType, NVFP4Linear, saved_by_name
from ._operators import tensor
from ._routing import experts_step
from .weights import LinearWeights, check_container


_Rows = tuple[Tensor, Optional[Tensor], Optional[Tensor]]
"""Values, their scales, a factor for each."""


class _Ungated(NVFP4Linear):
    """Own buffers are those of up, and its product writes act(up(x)), in NVFP4 where ``down`` takes it so."""

    down: nn.Module

    def __init__(
        self,
        hidden_size: int,
        intermediate_size: int,
        *,
        activation: str,
        bias: bool,
        input_dtype: InputType,
        input_scale: Optional[float],
        num_experts: int,
        device: Any,
    ) -> None:
        if activation not in ACTIVATIONS:
            raise InvalidArgument("activation", repr(activation), f"must be one of {', '.join(ACTIVATIONS)}")
        super().__init__(
            hidden_size,
            intermediate_size,
            bias=bias,
            input_dtype=input_dtype,
            input_scale=input_scale,
            num_experts=num_experts,
            device=device,
        )
        self.hidden_size, self.intermediate_size = hidden_size, intermediate_size
        self.activation = activation

    def saved_arguments(self) -> dict[str, Any]:
        return {"activation": self.activation}

    def _through(self, down: NVFP4Linear, x: _Rows, dtype: torch.dtype) -> Tensor:
        """down(act(up(x))) of rows that are ready."""
        if down.output_scale is not None:
            codes, scales = self.product_nvfp4(*x, down.output_scale, activation=self.activation)
            return down.product(codes, scales, None, dtype)
        h = self.product(*x, dtype, activation=self.activation)
        return down.product(*down._quantized(h), dtype)

    def extra_repr(self) -> str:
        return f"{super().extra_repr()}, {self.activation}, no gate"


@saved_by_name
class MLP(_Ungated):
    """down(act(up x)) without a gate, up in NVFP4; ``down`` is any module, as GatedMLP's. Own buffers are those of up:
    w_codes [N, K/2], w_scales, alpha, bias. The activation is part of the product.

    activation: one that has no numbers, as silu. input_dtype and input_scale: as GatedMLP's.
    """

    @checked
    def __init__(
        self,
        hidden_size: int,
        intermediate_size: int,
        down: nn.Module,
        *,
        activation: str,
        bias: bool = False,
        input_dtype: InputType = "bf16",
        input_scale: Optional[float] = None,
        device: Any = None,
    ) -> None:
        super().__init__(
            hidden_size,
            intermediate_size,
            activation=activation,
            bias=bias,
            input_dtype=input_dtype,
            input_scale=input_scale,
            num_experts=0,
            device=device,
        )
        if not isinstance(down, nn.Module):
            raise InvalidArgument("down", type(down).__name__, "must be an nn.Module")
        self.down = down

    @classmethod
    def from_weights(  # type: ignore[override]
        cls, up: LinearWeights, down: nn.Module, *, input_scale: Optional[float] = None, **kw: Any
    ) -> MLP:
        """Takes the tensors of up. kw: as __init__."""
        check_container("up", up, LinearWeights)
        made = cls(up.k, up.n, down, input_scale=input_scale, device="meta", **kw)
        return made._take(up, made._input_scale or 1.0)

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
    ) -> MLP:
        """From a float MLP: up_proj and down_proj (Nemotron), fc1 and fc2, wi and wo; otherwise as GatedMLP.from_float()."""
        parts = float_ungated(mlp, activation)
        up = LinearWeights.from_linear(parts.up, four_over_six=four_over_six, prepare=False)
        down: nn.Module = parts.down
        if quantize_down:
            down = NVFP4Linear.from_float(parts.down, input_dtype=input_dtype, four_over_six=four_over_six)
        made = cls.from_weights(up, down, activation=parts.activation.name, input_dtype=input_dtype, input_scale=input_scale)
        return made.train(mlp.training)

    @classmethod
    def from_linears(cls, up: NVFP4Linear, down: nn.Module, *, activation: str) -> MLP:
        """Takes the buffers of ``up``, packed or not."""
        made = cls(
            up.in_features,
            up.out_features,
            down,
            activation=activation,
            bias=up.bias is not None,
            input_dtype=up.input_dtype,
            input_scale=up._input_scale,
            device="meta",
        )
        for name, buffer in up._buffers.items():
            made.register_buffer(name, buffer)
        made.hadamard = up.hadamard
        made.a_dtype = up.a_dtype
        made._put_absent_last()
        return made

    @classmethod
    def from_saved(cls, saved: dict[str, Any], inner: Callable[[dict[str, Any]], nn.Module], **common: Any) -> MLP:
        return cls(int(saved["k"]), int(saved["n"]), inner(saved["down"]), activation=str(saved["activation"]), **common)

    def forward(self, x: Tensor) -> Tensor:
        """[..., hidden_size] to what ``down`` makes of [..., intermediate_size], of the dtype of x. x.requires_grad:
        InvalidArgument."""
        if tensor("x", x).dim() == 1:
            return self.forward(x[None])[0]
        rows = self._rows_of(x)
        if isinstance(self.down, NVFP4Linear) and self.down.output_scale is not None:
            return self._through(self.down, rows, x.dtype)
        h: Tensor = self.product(*rows, x.dtype, activation=self.activation)
        result: Tensor = self.down(h)
        return result


@saved_by_name
class Experts(_Ungated):
    """The experts of a mixture whose MLPs have no gate. Own buffers are those of up, w_codes [E, N, K/2] and so on; ``down`` is an
    NVFP4Linear of as many experts.

    activation: as MLP's. input_dtype, scales and router_weight_on_input: as GatedExperts'.
    """

    down: NVFP4Linear

    @checked
    def __init__(
        self,
        num_experts: int,
        hidden_size: int,
        intermediate_size: int,
        *,
        activation: str,
        bias: bool = False,
        input_dtype: InputType = "bf16",
        input_scale: Optional[float] = None,
        down_input_scale: Optional[float] = None,
        router_weight_on_input: bool = False,
        device: Any = None,
    ) -> None:
        if num_experts < 1:
            raise InvalidArgument("num_experts", str(num_experts), "must be >= 1")
        common: dict[str, Any] = dict(bias=bias, input_dtype=input_dtype, num_experts=num_experts, device=device)
        super().__init__(hidden_size, intermediate_size, activation=activation, input_scale=input_scale, **common)
        self.num_experts, self.router_weight_on_input = num_experts, router_weight_on_input
        self.down = NVFP4Linear(intermediate_size, hidden_size, input_scale=down_input_scale, **common)

    @classmethod
    def from_weights(  # type: ignore[override]
        cls, up: LinearWeights, down: LinearWeights, *, input_scale: Optional[float] = None, **kw: Any
    ) -> Experts:
        """Takes the tensors of both, [E, N, K/2] and [E, K, N/2]. kw: as __init__."""
        check_container("up", up, LinearWeights)
        check_container("down", down, LinearWeights)
        made = cls(up.num_experts, up.k, up.n, input_scale=input_scale, device="meta", **kw)
        made.down._take(down, made.down._input_scale or 1.0)
        return made._take(up, made._input_scale or 1.0)

    @classmethod
    def from_saved(cls, saved: dict[str, Any], inner: Callable[[dict[str, Any]], nn.Module], **common: Any) -> Experts:
        flag = bool(saved.get("router_weight_on_input", False))
        sizes = (int(saved["experts"]), int(saved["k"]), int(saved["n"]))
        made = cls(*sizes, activation=str(saved["activation"]), router_weight_on_input=flag, **common)
        made.down = inner(saved["down"])  # type: ignore[assignment]
        return made

    def saved_arguments(self) -> dict[str, Any]:
        return super().saved_arguments() | ({"router_weight_on_input": True} if self.router_weight_on_input else {})

    def forward(
        self,
        x: Tensor,
        topk_ids: Optional[Tensor] = None,
        topk_weights: Optional[Tensor] = None,
        expert_map: Optional[Tensor] = None,
    ) -> Tensor:
        """As GatedExperts.forward()."""
        act = {"activation": self.activation}
        return experts_step(self, self.down, x, topk_ids, topk_weights, act, self.router_weight_on_input, expert_map)
