"""Where the command lies, and what ``ptxsim exec`` needs beside it."""

from __future__ import annotations

import os
import pathlib
import shutil
import sys

_INSTALLED = pathlib.Path(__file__).resolve().parent / "_files"


def _link(folder: pathlib.Path) -> None:
    """libcuda.so.1 must be the library that ``exec`` preloads, by another name: a copy would have a state of its own."""
    library = folder / "lib" / "ptxsim"
    if (library / "libptxsim_cuda.so").exists() and not (library / "libcuda.so.1").is_symlink():
        try:
            os.symlink("libptxsim_cuda.so", library / "libcuda.so.1")
        except FileExistsError:
            pass  # another process was the first


def _writable_copy() -> pathlib.Path:
    """A copy of an installation that only an administrator may change."""
    cache = pathlib.Path(os.environ.get("XDG_CACHE_HOME") or pathlib.Path.home() / ".cache") / "ptxsim"
    program = _INSTALLED / "bin" / "ptxsim"
    state = program.stat()
    copy = cache / f"{state.st_mtime_ns:x}-{state.st_size:x}"
    if not copy.exists():
        cache.mkdir(parents=True, exist_ok=True)
        part = cache / f"part-{os.getpid()}"
        shutil.copytree(_INSTALLED, part)
        try:
            part.rename(copy)
        except OSError:
            shutil.rmtree(part)  # another process was the first
    _link(copy)
    return copy


def command() -> pathlib.Path:
    """The program ``ptxsim``: $PTXSIM, the package's own, or the one in PATH.

    Raises FileNotFoundError where there is none.
    """
    if os.environ.get("PTXSIM"):
        return pathlib.Path(os.environ["PTXSIM"])
    program = _INSTALLED / "bin" / "ptxsim"
    if program.exists():
        try:
            _link(_INSTALLED)
        except OSError:
            program = _writable_copy() / "bin" / "ptxsim"
        return program
    found = shutil.which("ptxsim")
    if found is None:
        raise FileNotFoundError("no program ptxsim: not in the package, not in PATH, and PTXSIM does not name it")
    return pathlib.Path(found)


def main() -> None:
    """The command of the package: the program, with the same arguments."""
    program = str(command())
    os.execv(program, [program, *sys.argv[1:]])
