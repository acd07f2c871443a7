from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest
from processes import Processes

pytest.importorskip("torch", minversion="2.10")


@pytest.fixture(scope="session")
def processes() -> Iterator[Callable[[int], Processes]]:
    """processes(world): that many, started at the first run()."""
    kept: dict[int, Processes] = {}

    def of(world: int) -> Processes:
        return kept.setdefault(world, Processes(world))

    yield of
    for one in kept.values():
        one.stop()
