"""Kinds of arguments, checked where a caller hands them over and not where Python, torch or ctypes first trip over them."""

from __future__ import annotations

import functools
import inspect
import operator
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar, cast

from ._errors import InvalidArgument

if TYPE_CHECKING:
    import torch

_Function = TypeVar("_Function", bound=Callable[..., Any])
_NAMES = ("Activation", "InputType", "OwnLayout", "ScaleLayout", "Strategy", "str")  # what are texts, by their annotations


def _shown(value: Any) -> str:
    """A value, where it is short and not an object of others, whose repr() may be anything; else its type."""
    return repr(value) if value is None or type(value) in (bool, int, float, complex, str, bytes) else type(value).__name__


def flag(name: str, value: Any) -> None:
    """True or False, NumPy's, too; nothing that is only taken for one of them."""
    if not isinstance(value, bool) and type(value).__name__ not in ("bool", "bool_"):
        raise InvalidArgument(name, _shown(value), "must be True or False")


def text(name: str, value: Any) -> None:
    """A str that the library can take: it ends a text at a zero, and half a pair of UTF-16 is no UTF-8."""
    if not isinstance(value, str) or "\0" in value or any("\ud800" <= one <= "\udfff" for one in value):
        raise InvalidArgument(name, _shown(value), "must be a text, without zeros and surrogates")


def whole(name: str, value: Any) -> None:
    try:
        found = None if isinstance(value, bool) else operator.index(value)
    except (TypeError, ValueError, RuntimeError):
        found = None
    if found is None or not -(2**63) <= found < 2**63:
        raise InvalidArgument(name, _shown(value), "must be an integer of 64 bits")


def real(name: str, value: Any) -> None:
    try:
        if not isinstance(value, (str, bytes)):
            float(value)
            return
    except (TypeError, ValueError, OverflowError, RuntimeError):
        pass
    raise InvalidArgument(name, _shown(value), "must be one number")


def dtype(name: str, value: Any) -> None:
    if type(value).__name__ != "dtype" or type(value).__module__ != "torch":
        raise InvalidArgument(name, _shown(value), "must be a torch.dtype")


def device_of(device: Any) -> torch.device:
    """What a ``device`` argument means, with its index."""
    import torch  # here, since the package is used without it, too

    try:
        return torch.empty(0, device=device).device
    except (TypeError, ValueError, RuntimeError) as error:
        raise InvalidArgument("device", repr(device), f"must be a device that is here: {str(error).splitlines()[0]}") from None


def device(name: str, value: Any) -> None:
    if value is not None:
        device_of(value)


def _kind_of(name: str, annotation: str) -> Callable[[str, Any], None] | None:
    kinds: dict[str, Callable[[str, Any], None]] = {
        "bool": flag,
        "int": whole,
        "float": real,
        "torch.dtype": dtype,
        **dict.fromkeys(_NAMES, text),
    }
    plain = annotation.removeprefix("Optional[").removesuffix("]") if annotation.startswith("Optional[") else annotation
    plain = plain.removesuffix(" | None")
    if name == "device" and plain == "Any":
        return device
    kind = kinds.get(plain)
    if plain.startswith("Literal["):
        kind = text if plain[len("Literal[")] in "\"'" else whole
    if kind is None or plain == annotation:
        return kind
    given = kind

    def or_none(name: str, value: Any) -> None:
        if value is not None:
            given(name, value)

    return or_none


def checked(function: _Function) -> _Function:
    """The function; an argument that is not of the kind that its annotation names (a flag, an integer, a number, a text, a
    dtype, a device) raises InvalidArgument. Other annotations are the function's own to check."""
    parameters = inspect.signature(function).parameters
    kinds = {
        name: kind for name, parameter in parameters.items() if (kind := _kind_of(name, str(parameter.annotation))) is not None
    }
    names = list(parameters)

    @functools.wraps(function)
    def call(*arguments: Any, **named: Any) -> Any:
        for name, value in (*zip(names, arguments), *named.items()):
            if name in kinds:
                kinds[name](name, value)
        return function(*arguments, **named)

    return cast(_Function, call)
