"""The spawned process: holds one submission, and answers for all cases, one after the other."""
from __future__ import annotations

import json
import os
import signal
import sys
import traceback
from collections.abc import Callable
from importlib import util
from multiprocessing.connection import Connection
from pathlib import Path
from types import ModuleType
from typing import Any

from .faults import Fault

Kernel = Callable[[Any], Any]


def plain(text: str) -> str:
    """One line that any terminal shows: what a submission says may hold line ends, escapes and half characters."""
    shown = "".join(c if c.isprintable() else f"\\x{ord(c):02x}" for c in " ".join(text.split()))
    return shown.encode("utf-8", "backslashreplace").decode()


def described(error: BaseException, file: Path) -> str:
    """An exception, with the last place in the submission's folder. Never raises."""
    try:
        text = str(error)[:400]
    except Exception:  # a __str__ of the submission's
        text = "(its text cannot be had)"
    place = ""
    if isinstance(error, SyntaxError) and error.lineno:
        place = f" ({Path(error.filename or file).name}, line {error.lineno})"
    for frame in traceback.extract_tb(error.__traceback__):
        if Path(frame.filename).resolve().parent == file.parent:
            place = f" ({Path(frame.filename).name}, line {frame.lineno})"
    return f"{type(error).__name__}{': ' if text else ''}{text}{place}"


def task_module() -> ModuleType:
    from .submissions import task
    return task


def load(file: Path) -> Kernel:
    """custom_kernel of a file; beside it stands our task.py, whatever lies in its folder."""
    sys.modules["task"] = task_module()
    sys.path.insert(0, str(file.parent))
    # A name of its own, so that no module of Python or torch is hidden by it.
    name = f"submission_{file.stem}"
    spec = util.spec_from_file_location(name, file)
    if spec is None or spec.loader is None:
        raise Fault(f"{file.name}: not a Python file; must end in .py")
    module = util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    kernel = getattr(module, "custom_kernel", None)
    if not callable(kernel):
        what = "no custom_kernel" if kernel is None else f"custom_kernel is a {type(kernel).__name__}"
        raise Fault(f"{file.name}: {what}; must define custom_kernel(data)")
    return kernel


def answer(action: Callable[[], dict[str, Any]], file: Path) -> dict[str, Any]:
    try:
        return action()
    except Fault as fault:
        return {"error": plain(str(fault))}
    except BaseException as error:  # SystemExit too: a submission must not end the process unseen
        return {"error": plain(described(error, file))}


def serve(connection: Connection, path: str, device_name: str | None) -> None:
    """Loads, answers {"ready": description}, then each request of the harness with a dictionary; errors are answers, too."""
    os.environ.pop("POPCORN_FD", None)  # verdicts are the harness's to write
    os.dup2(2, 1)  # what a submission prints is talk
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the harness hears it and ends this process
    file = Path(path).resolve()

    def send(message: dict[str, Any]) -> None:
        connection.send_bytes(json.dumps(message).encode())

    state: dict[str, Any] = {}

    def begin() -> dict[str, Any]:
        from .jobs import Jobs
        state["jobs"] = Jobs(load(file), device_name)
        return {"ready": state["jobs"].device.describe()}

    first = answer(begin, file)
    send(first)
    while "error" not in first:
        try:
            request = json.loads(connection.recv_bytes())
        except EOFError:
            break
        job = getattr(state["jobs"], request.pop("job"))
        send(answer(lambda: job(**request), file))
    # Not by way of the interpreter's end: a thread that a submission has left must not hold it up.
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(0)
