"""libdualgemm through ctypes: found beside this file, or where DUALGEMM_LIBRARY says. Needs no other package."""

from __future__ import annotations

import ctypes
import os
import pathlib
import sys
from typing import Any, TypeVar

from ._arguments import text
from ._errors import InvalidArgument, Unsupported, error_of

_Struct = TypeVar("_Struct", bound=ctypes.Structure)


def file_of_package(name: str) -> pathlib.Path:
    """A native file of the package: of an editable installation it does not lie beside the Python files."""
    package = sys.modules[__name__.rpartition(".")[0]]
    paths = [pathlib.Path(folder) / name for folder in package.__path__]
    return next((path for path in paths if path.exists()), paths[0])


def _load(name: str, variable: str) -> ctypes.CDLL:
    path = os.environ.get(variable) or str(file_of_package(f"lib/{name}"))
    try:
        return ctypes.CDLL(path)
    except OSError as error:
        raise ImportError(f"dualgemm: {path} cannot be loaded ({error}); reinstall the package or set {variable}") from error


def _text(function: Any) -> Any:
    function.restype = ctypes.c_char_p
    return function


c = _load("libdualgemm.so.0", "DUALGEMM_LIBRARY")
for _name in (
    "version",
    "status_name",
    "last_error_argument",
    "last_error_observed",
    "last_error_rule",
    "strategy_name",
    "device_name",
    "isa_name",
    "regime_name",
    "data_type_name",
    "prepared_format_name",
):
    _text(getattr(c, f"dualgemm_{_name}"))
c.dualgemm_plan_destroy.restype = None
c.dualgemm_plan_destroy.argtypes = [ctypes.c_void_p]


def check(status: int) -> None:
    """Raises what the library's last call on this thread reported."""
    if status:
        parts = (
            getattr(c, f"dualgemm_last_error_{part}")().decode(errors="replace") for part in ("argument", "observed", "rule")
        )
        raise error_of(c.dualgemm_status_name(status).decode(), *parts)


def new(struct: type[_Struct], name: str) -> _Struct:
    """A struct with the library's defaults, by dualgemm_<name>_init()."""
    value = struct()
    check(getattr(c, f"dualgemm_{name}_init")(ctypes.byref(value), ctypes.c_uint64(ctypes.sizeof(struct))))
    return value


def parse(what: str, name: str, argument: str = "") -> int:
    """The number of an enumerator: parse("strategy", "fused"). An error is about ``argument``, by default ``what``."""
    argument = argument or what
    text(argument, name)
    number = ctypes.c_int32()
    try:
        check(getattr(c, f"dualgemm_parse_{what}")(name.encode(), ctypes.byref(number)))
    except InvalidArgument as error:
        raise InvalidArgument(argument, error.observed, error.rule) from None
    return number.value


def name_of(what: str, number: int) -> str:
    """The inverse of parse()."""
    return str(getattr(c, f"dualgemm_{what}_name")(ctypes.c_int32(number)).decode())


def version() -> str:
    """The version of the library that runs."""
    return str(c.dualgemm_version().decode())


_checkpoint: ctypes.CDLL | None = None


def checkpoint_library() -> ctypes.CDLL:
    """libdualgemm_checkpoint, loaded at the first call."""
    global _checkpoint
    if _checkpoint is None:
        try:
            _checkpoint = _load("libdualgemm_checkpoint.so.0", "DUALGEMM_CHECKPOINT_LIBRARY")
        except ImportError as error:
            raise Unsupported("checkpoint", str(error), "needs libdualgemm_checkpoint") from error
        _text(_checkpoint.dualgemm_checkpoint_layer_name)
        _checkpoint.dualgemm_checkpoint_layer_count.restype = ctypes.c_int64
        _checkpoint.dualgemm_checkpoint_layer_experts.restype = ctypes.c_int64
        _checkpoint.dualgemm_checkpoint_close.restype = None
        _checkpoint.dualgemm_checkpoint_layer_free.restype = None
        _checkpoint.dualgemm_checkpoint_linears_count.restype = ctypes.c_int64
        _checkpoint.dualgemm_checkpoint_linears_free.restype = None
    return _checkpoint
