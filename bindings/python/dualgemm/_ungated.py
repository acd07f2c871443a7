"""Experts without a gate: y = down(act(up(x))), up and down in NVFP4 (Nemotron-H and 3)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Optional

from torch import Tensor, nn

from ._activations import ACTIVATIONS, Act
from ._arguments import checked
from ._errors import InvalidArgument
from ._modules import InputType, NVFP4Linear, saved_by_name
from ._operators import check_storage, refuse_grad, tensor
from ._routing import combine, gather, route
from .weights import LinearWeights, check_container


@saved_by_name
class Experts(NVFP4Linear):
    """The experts of a mixture whose MLPs have no gate. Own buffers are those of up, w_codes [E, N, K/2] and so on; ``down`` is an
    NVFP4Linear of as many experts. The activation is torch's, between two grouped products.

    activation: one that has no numbers, as silu. input_dtype and scales: as GatedExperts'.
    """

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
        device: Any = None,
    ) -> None:
        if num_experts < 1:
            raise InvalidArgument("num_experts", str(num_experts), "must be >= 1")
        if activation not in ACTIVATIONS:
            raise InvalidArgument("activation", repr(activation), f"must be one of {', '.join(ACTIVATIONS)}")
        common: dict[str, Any] = dict(bias=bias, input_dtype=input_dtype, num_experts=num_experts, device=device)
        super().__init__(hidden_size, intermediate_size, input_scale=input_scale, **common)
        self.num_experts, self.hidden_size, self.intermediate_size = num_experts, hidden_size, intermediate_size
        self.activation = activation
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
        made = cls(int(saved["experts"]), int(saved["k"]), int(saved["n"]), activation=str(saved["activation"]), **common)
        made.down = inner(saved["down"])  # type: ignore[assignment]
        return made

    def saved_arguments(self) -> dict[str, Any]:
        return {"activation": self.activation}

    def forward(self, x: Tensor, topk_ids: Optional[Tensor] = None, topk_weights: Optional[Tensor] = None) -> Tensor:
        """As GatedExperts.forward()."""
        refuse_grad(x=tensor("x", x))
        self._check_columns(x)
        tokens = check_storage("x", x).reshape(-1, self.hidden_size)
        routed = route(tokens.shape[0], topk_ids, topk_weights, self.num_experts)
        assert topk_weights is not None
        rows, scales, row_scale = gather(routed, *self._quantized(tokens.contiguous()))
        h = Act(self.activation).of(self.product(rows, scales, row_scale, x.dtype, m_indices=routed.of_row))
        h, h_scales, h_row_scale = self.down._quantized(h)
        y = self.down.product(h, h_scales, h_row_scale, x.dtype, m_indices=routed.of_row)
        return combine(routed, y, topk_weights).to(x.dtype).view(x.shape)

    def extra_repr(self) -> str:
        return f"{super().extra_repr()}, {self.activation}, no gate"
