"""A mixture's experts from a router's ids to the weighted sums: one call of the library."""

from __future__ import annotations

from typing import Any, Optional

import torch
from torch import Tensor

from ._errors import InvalidArgument
from ._modules import NVFP4Linear, PackedModule
from ._operators import check_storage, refuse_grad, tensor
from ._quantized import call

_ops = torch.ops.dualgemm


def check_router(tokens: int, topk_ids: Optional[Tensor], topk_weights: Optional[Tensor]) -> tuple[Tensor, Tensor]:
    """InvalidArgument unless ids and weights are [tokens, k]."""
    if topk_ids is None or topk_weights is None:
        raise InvalidArgument("topk_ids, topk_weights", "missing", "must be [tokens, k] both")
    if (
        tensor("topk_ids", topk_ids).dtype not in (torch.int32, torch.int64)
        or not tensor("topk_weights", topk_weights).is_floating_point()
    ):
        raise InvalidArgument(
            "topk_ids",
            f"{topk_ids.dtype}, weights {topk_weights.dtype}",
            "must be int32 or int64, with weights of a floating dtype",
        )
    if topk_ids.dim() != 2 or topk_ids.shape[0] != tokens or topk_weights.shape != topk_ids.shape:
        raise InvalidArgument(
            "topk_ids", f"{list(topk_ids.shape)}, weights {list(topk_weights.shape)}", f"must both be [{tokens}, k]"
        )
    weights = topk_weights.float() if topk_weights.dtype == torch.float64 else topk_weights
    return topk_ids.contiguous(), weights.contiguous()


def _operands(module: PackedModule, rows: Tensor, quantizes: bool) -> tuple[list[Optional[Tensor]], Optional[Tensor]]:
    """What the product of ``module`` runs on; quantizes: its rows come in NVFP4."""
    like = rows.new_empty(0, dtype=torch.uint8) if quantizes else rows
    return module._operands_for(like)


def _both_or_none(
    first: PackedModule,
    down: NVFP4Linear,
    own: tuple[list[Optional[Tensor]], Optional[Tensor]],
    inner: tuple[list[Optional[Tensor]], Optional[Tensor]],
    kinds: tuple[torch.dtype, torch.dtype],
) -> tuple[Optional[Tensor], Optional[Tensor]]:
    """The packed bytes of both, or of neither: one that is not packed is packed for this call."""
    packed, packed_down = own[1], inner[1]
    if packed is None and packed_down is not None:
        packed = call(first._weights._pack_operator(), *own[0], a_dtype=kinds[0])
    if packed is not None and packed_down is None:
        packed_down = call(down._weights._pack_operator(), *inner[0], a_dtype=kinds[1])
    return packed, packed_down


def _biases(biases: list[Optional[Tensor]], sizes: list[tuple[int, int]]) -> list[Optional[Tensor]]:
    """All of them, or none: zeros of one dtype where there is none."""
    given = [bias for bias in biases if bias is not None]
    if not given:
        return biases
    dtype = given[0].dtype if all(bias.dtype == given[0].dtype for bias in given) else torch.float32
    return [
        torch.zeros(size, dtype=dtype, device=given[0].device) if bias is None else bias.to(dtype)
        for bias, size in zip(biases, sizes)
    ]


def experts_step(
    first: PackedModule,
    down: NVFP4Linear,
    x: Tensor,
    topk_ids: Optional[Tensor],
    topk_weights: Optional[Tensor],
    act: dict[str, Any],
    on_input: bool,
    expert_map: Optional[Tensor] = None,
) -> Tensor:
    """x [..., hidden]: each row's weighted sum over its experts, of the shape and dtype of x. first: gate and up, or up alone."""
    refuse_grad(x=tensor("x", x))
    first._check_columns(x)
    tokens = check_storage("x", x).reshape(-1, first.shape.k).contiguous()
    ids, weights = check_router(tokens.shape[0], topk_ids, topk_weights)
    quantizes, quantizes_h = first.input_dtype == "nvfp4", down.input_dtype == "nvfp4"
    own, inner = _operands(first, tokens, quantizes), _operands(down, tokens, quantizes_h)
    if (own[1] is None) == (inner[1] is None):
        packed, packed_down = own[1], inner[1]
    else:
        kinds = tuple(torch.uint8 if flag else tokens.dtype for flag in (quantizes, quantizes_h))
        packed, packed_down = _both_or_none(first, down, own, inner, kinds)  # type: ignore[arg-type]
    matrices = own[0] if packed is None else [None] * len(own[0])
    gated = len(matrices) == 4
    gate_up = matrices if gated else [None, None, *matrices]
    down_codes, down_scales = inner[0] if packed_down is None else (None, None)
    buffers = first._buffers
    alphas = (buffers["alpha_gate"], buffers["alpha_up"]) if gated else (None, buffers["alpha"])
    n, layers = first.shape.n, first.shape.layers
    names = ["bias_gate", "bias_up"] if gated else ["bias"]
    sizes = [(layers, n)] * len(names) + [(layers, first.shape.k)]
    biases = _biases([*(buffers.get(name) for name in names), down.bias], sizes)
    y = call(
        _ops.experts,
        tokens,
        ids,
        weights,
        expert_map,
        *gate_up,
        packed,
        down_codes,
        down_scales,
        packed_down,
        n,
        layers,
        *alphas,
        down.alpha,
        *([None] * (3 - len(biases))),
        *biases,
        None,
        first.pre_quant_scale,
        down.pre_quant_scale,
        first.input_scale if quantizes else None,
        gated=gated,
        quantize_x=quantizes,
        quantize_h=quantizes_h,
        h_global_scale=down._input_scale if quantizes_h else None,
        x_hadamard=first.hadamard,
        h_hadamard=down.hadamard,
        weights_on_input=on_input,
        **act,
    )
    result: Tensor = y.view(x.shape)
    return result
