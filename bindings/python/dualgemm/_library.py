"""libdualgemm through ctypes: found beside this file, or where DUALGEMM_LIBRARY says. Needs no other package."""
from __future__ import annotations

import ctypes
import os
import pathlib
from typing import Any, TypeVar

from ._errors import Unsupported, error_of

_FOLDER = pathlib.Path(__file__).parent / "lib"
_Struct = TypeVar("_Struct", bound=ctypes.Structure)


def _load(name: str, variable: str) -> ctypes.CDLL:
    path = os.environ.get(variable) or str(_FOLDER / name)
    try:
        return ctypes.CDLL(path)
    except OSError as error:
        raise ImportError(f"dualgemm: {path} cannot be loaded ({error}); reinstall the package or set {variable}") from error


def _text(function: Any) -> Any:
    function.restype = ctypes.c_char_p
    return function


# A subinterpreter would share the library's threads and torch's operators with the main one.
def refuse_subinterpreter() -> None:
    try:
        import _interpreters as interpreters  # Python 3.13
    except ImportError:
        try:
            import _xxsubinterpreters as interpreters  # type: ignore[no-redef, import-not-found]
        except ImportError:
            return
    current, main = interpreters.get_current(), interpreters.get_main()
    as_number = (lambda one: one[0] if isinstance(one, tuple) else int(one))
    if as_number(current) != as_number(main):
        raise ImportError("dualgemm: imported in a subinterpreter; must be imported in the main interpreter")


refuse_subinterpreter()
c = _load("libdualgemm.so.0", "DUALGEMM_LIBRARY")
for _name in ("version", "status_name", "last_error_message", "strategy_name", "device_name", "isa_name", "regime_name",
              "data_type_name", "prepared_format_name"):
    _text(getattr(c, f"dualgemm_{_name}"))
c.dualgemm_plan_destroy.restype = None
c.dualgemm_plan_destroy.argtypes = [ctypes.c_void_p]


def check(status: int) -> None:
    """Raises what the library's last call on this thread reported."""
    if status:
        raise error_of(c.dualgemm_status_name(status).decode(), c.dualgemm_last_error_message().decode(errors="replace"))


def new(struct: type[_Struct], name: str) -> _Struct:
    """A struct with the library's defaults, by dualgemm_<name>_init()."""
    value = struct()
    check(getattr(c, f"dualgemm_{name}_init")(ctypes.byref(value), ctypes.c_uint64(ctypes.sizeof(struct))))
    return value


def parse(what: str, name: str) -> int:
    """The number of an enumerator: parse("strategy", "fused")."""
    if not isinstance(name, str):
        raise error_of("invalid_argument", f"{what}: {name!r}; must be a name")
    number = ctypes.c_int32()
    check(getattr(c, f"dualgemm_parse_{what}")(name.encode(), ctypes.byref(number)))
    return number.value


def name_of(what: str, number: int) -> str:
    """The inverse of parse()."""
    return str(getattr(c, f"dualgemm_{what}_name")(ctypes.c_int32(number)).decode())


def version() -> str:
    """Of the library that runs."""
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
    return _checkpoint
