"""Refuses to be imported in a subinterpreter: it would share the library's threads and torch's operators with the main one."""

from __future__ import annotations

from typing import Any


def _number(interpreter: Any) -> int:
    return int(interpreter[0] if isinstance(interpreter, tuple) else interpreter)


def _refuse() -> None:
    try:
        import _interpreters as interpreters  # Python 3.13
    except ImportError:
        try:
            import _xxsubinterpreters as interpreters
        except ImportError:
            return
    if _number(interpreters.get_current()) != _number(interpreters.get_main()):
        raise ImportError("dualgemm: imported in a subinterpreter; must be imported in the main interpreter")


_refuse()
