"""The library's errors as exceptions."""
from __future__ import annotations

import re
from typing import NoReturn

_MOST_CHARACTERS = 1000
_NAMED = {"\n": "\\n", "\r": "\\r", "\t": "\\t"}


def _cut(text: str, most: int) -> str:
    return text if len(text) <= most else f"{text[:most * 2 // 3]}... ({len(text)} characters) ...{text[-(most // 6):]}"


def printable(text: object, most: int = _MOST_CHARACTERS) -> str:
    """Foreign text (names, paths, contents of files) for people to read: what is not printable, escape sequences and marks of
    direction among it, is escaped, and of more than ``most`` characters the middle is left out. Twice is once."""
    whole = _cut(str(text), most)
    if whole.isprintable():
        return whole
    escaped = (one if one.isprintable() else _NAMED.get(one) or one.encode("unicode_escape").decode() for one in whole)
    return _cut("".join(escaped), most)


class DualGemmError(Exception):
    """What was wrong: ``argument``, what was ``observed`` there, and the ``rule`` that it breaks.

    The message is "argument: observed; rule", printable and bounded whatever was in the files that it speaks of. Nothing has
    been written when one is raised.
    """

    def __init__(self, argument: str, observed: str = "", rule: str = "") -> None:
        self.argument, self.observed, self.rule = printable(argument), printable(observed), printable(rule)
        super().__init__(f"{self.argument}: {self.observed}; {self.rule}" if rule else self.argument)

    def __reduce__(self) -> tuple[type, tuple[str, str, str]]:
        return type(self), (self.argument, self.observed, self.rule)


class InvalidArgument(DualGemmError, ValueError):
    """An argument breaks a documented rule."""


class Unsupported(DualGemmError, NotImplementedError):
    """Legal, but this strategy, device or build cannot do it."""


class WorkspaceTooSmall(DualGemmError, ValueError):
    """Fewer bytes than the plan demands."""


class OutOfMemory(DualGemmError, MemoryError):
    """An allocation failed."""


class FileError(DualGemmError, OSError):
    """A file, or a tensor in it, is missing, cannot be read or contradicts its format."""


# By the names of enums.h, DUALGEMM_STATUS_TABLE.
_BY_STATUS: dict[str, type[DualGemmError]] = {
    "invalid_argument": InvalidArgument,
    "unsupported": Unsupported,
    "overflow": InvalidArgument,
    "out_of_memory": OutOfMemory,
    "workspace_too_small": WorkspaceTooSmall,
    "not_found": FileError,
    "io_error": FileError,
    "corrupt_file": FileError,
}


def error_of(status: str, argument: str, observed: str = "", rule: str = "") -> DualGemmError:
    """The exception for the name of a status."""
    return _BY_STATUS.get(status, DualGemmError)(argument, observed, rule)


_IN_TORCH = re.compile(r"dualgemm: (\w+): (.*)", re.DOTALL)


def translate(error: RuntimeError) -> NoReturn:
    """Raises what an operator of torch.ops.dualgemm reported, or ``error`` itself if it is not ours."""
    if unknown := re.search(r"Unknown keyword argument '(\w+)'", str(error)):
        raise TypeError(f"unexpected keyword argument {unknown[1]!r}") from None
    if wrong := re.search(r"Expected a value of type '([^']+)' for argument '(\w+)' but instead found type '([^']+)'", str(error)):
        raise InvalidArgument(wrong[2], wrong[3], f"must be of type {wrong[1]}") from None
    if "stableivalue_conversions" in str(error):  # a number that is none of a dtype
        raise InvalidArgument("dtype", "a number", "must be a torch.dtype") from None
    found = _IN_TORCH.search(str(error))
    unfit = "dualgemm::", "Cannot access storage"
    if found is None and isinstance(error, NotImplementedError) and any(part in str(error) for part in unfit):
        raise Unsupported("tensors", str(error).split(". ")[0], "must be strided, on the CPU or on CUDA") from None
    if found is None:
        raise error
    message = found[2].split("\nException raised from", 1)[0]
    parts = re.fullmatch(r"([^:]*): (.*?); (.*)", message, re.DOTALL)
    raise error_of(found[1], *(parts.groups() if parts else (message,))) from None
