"""The spawned process: holds one submission, and answers for all cases, one after the other."""

from __future__ import annotations

import json
import os
import signal
import sys
import traceback
from collections.abc import Callable
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

from .faults import Fault
from .loading import load


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
