"""Rows of tokens to their experts and back, on the device, without a look at what goes where."""

from __future__ import annotations

from typing import NamedTuple, Optional

import torch
from torch import Tensor

from ._errors import InvalidArgument
from ._operators import tensor


class Route(NamedTuple):
    """The rows that experts get, sorted by expert."""

    of_row: Tensor
    """int32 [rows]: each row's expert; -1: none"""
    source: Tensor
    """[rows]: the token that it is"""
    order: Tensor
    """[rows]: its place among tokens * k"""
    wanted: Tensor
    """bool [tokens, k]: there is such an expert"""


def route(tokens: int, topk_ids: Optional[Tensor], topk_weights: Optional[Tensor], experts: int) -> Route:
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
    wanted = (topk_ids >= 0) & (topk_ids < experts)
    ids = torch.where(wanted, topk_ids, experts).reshape(-1)
    sorted_ids, order = torch.sort(ids, stable=True)
    of_row = torch.where(sorted_ids < experts, sorted_ids, -1).to(torch.int32)
    return Route(of_row, order // topk_ids.shape[1], order, wanted)


def gather(
    routed: Route, rows: Tensor, scales: Optional[Tensor], row_scale: Optional[Tensor]
) -> tuple[Tensor, Optional[Tensor], Optional[Tensor]]:
    """Rows of experts of rows of tokens, which were quantised once, not once for each expert."""
    source = routed.source
    if scales is None:
        return rows.index_select(0, source), None, row_scale
    found = None if row_scale is None else row_scale.index_select(0, source)
    return rows.index_select(0, source), scales.view(torch.uint8).index_select(0, source), found


def weights_of_rows(routed: Route, topk_weights: Tensor, row_scale: Optional[Tensor]) -> Tensor:
    """float32 [rows]: the router's weight of each row of experts, 0 for one of none, times the row's own scale."""
    weights = torch.where(routed.wanted, topk_weights, 0).float().reshape(-1).index_select(0, routed.order)
    return weights if row_scale is None else weights * row_scale


def combine(routed: Route, y: Tensor, topk_weights: Optional[Tensor]) -> Tensor:
    """float32 [tokens, columns]: the weighted sum of each token's experts, in the order of its ids; None: every weight is 1."""
    order, (tokens, top_k) = routed.order, routed.wanted.shape
    back = torch.empty_like(order).scatter_(0, order, torch.arange(order.shape[0], device=y.device, dtype=order.dtype))
    of_token = y.index_select(0, back).view(tokens, top_k, y.shape[-1]).float()
    factors = routed.wanted.float() if topk_weights is None else torch.where(routed.wanted, topk_weights, 0).float()
    return (of_token * factors.unsqueeze(-1)).sum(1)
