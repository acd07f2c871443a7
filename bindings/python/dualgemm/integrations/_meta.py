"""A model of transformers without memory for its parameters."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from typing import Any, Optional

import torch
from torch import nn
from torch.overrides import TorchFunctionMode

_LARGE = 1 << 24
"""Elements. Experts in one tensor reach 2^33, which few machines can allocate; buffers stay far below."""


class _LargeOnMeta(TorchFunctionMode):
    """torch.empty() and the like of many elements give tensors on the meta device: what a parameter is made of."""

    _makers = (torch.empty, torch.zeros, torch.ones, torch.randn, torch.rand)

    def __torch_function__(
        self, function: Callable[..., Any], types: Any, args: tuple[Any, ...] = (), kwargs: Optional[dict[str, Any]] = None
    ) -> Any:
        kwargs = dict(kwargs or {})
        if function in self._makers and kwargs.get("device") is None:
            found = function(*args, **{**kwargs, "device": "meta"})
            if found.numel() >= _LARGE:
                return found
        return function(*args, **kwargs)


@contextlib.contextmanager
def parameters_on_meta() -> Iterator[None]:
    """Modules are built without memory for parameters, but with their buffers, which no checkpoint has. Not for several
    threads."""
    original = nn.Module.register_parameter

    def register(self: nn.Module, name: str, parameter: Optional[nn.Parameter]) -> None:
        if parameter is not None and parameter.device.type != "meta":
            parameter = nn.Parameter(parameter.to("meta"), requires_grad=False)
        original(self, name, parameter)

    nn.Module.register_parameter = register  # type: ignore[method-assign, assignment]
    try:
        with _LargeOnMeta():
            yield
    finally:
        nn.Module.register_parameter = original  # type: ignore[method-assign]
