"""What processes tell each other before they begin, so that all of them refuse what does not fit."""

from __future__ import annotations

from typing import Any

import torch.distributed as dist

from .._errors import InvalidArgument


def told(group: Any, mine: Any) -> list[Any]:
    """What each process of a group says, by rank; without torch.distributed initialised, this one."""
    if not dist.is_initialized():
        return [mine]
    everybody: list[Any] = [None] * dist.get_world_size(group)
    dist.all_gather_object(everybody, mine, group=group)
    return everybody


def must_agree(names: dict[str, str], said: list[dict[str, Any]]) -> None:
    """InvalidArgument, in every process the same, where they say different things; names: by key, what an error calls it."""
    for key, name in names.items():
        values = [one[key] for one in said]
        if any(value != values[0] for value in values):
            shown = ", ".join(f"{value} in process {rank}" for rank, value in enumerate(values))
            raise InvalidArgument(name, shown, "must be the same in every process")
