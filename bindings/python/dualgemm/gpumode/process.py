"""The harness's side of the spawned process: one that stays for all cases, with a limit on what they take together."""

from __future__ import annotations

import json
import multiprocessing
import signal
import time
from pathlib import Path
from typing import Any

from .worker import serve


class Submission:
    """A file in its process. ask() never raises for what the submission does: it answers {"error": what}.

    device: "cpu", "cuda", or None for the GPU if there is one.
    """

    def __init__(self, file: Path, device: str | None, limit_seconds: float) -> None:
        self._limit = limit_seconds
        self._end = time.monotonic() + limit_seconds
        context = multiprocessing.get_context("spawn")
        self._connection, theirs = context.Pipe()
        self._process = context.Process(target=serve, args=(theirs, str(file), device))
        self._process.start()
        theirs.close()
        first = self._receive("import")
        self.failure: str | None = first.get("error")
        self.device_name: str = first.get("ready", "")

    def __enter__(self) -> Submission:
        return self

    def __exit__(self, *_: object) -> None:
        self._connection.close()
        self._process.join(1.0)
        if self._process.is_alive():
            self._process.kill()
            self._process.join()

    def ask(self, job: str, **arguments: Any) -> dict[str, Any]:
        if self.failure is not None:
            return {"error": self.failure}
        try:
            self._connection.send_bytes(json.dumps({"job": job, **arguments}).encode())
        except OSError:
            return self._lost(job)
        return self._receive(job)

    def _receive(self, during: str) -> dict[str, Any]:
        try:
            if not self._connection.poll(max(0.0, self._end - time.monotonic())):
                self._process.kill()
                return self._over(f"{during}: no answer within the limit of {self._limit:g} s; the process was ended")
            answer = json.loads(self._connection.recv_bytes())
        except (EOFError, OSError):
            return self._lost(during)
        except ValueError:
            answer = None
        if not isinstance(answer, dict):
            self._process.kill()
            return self._over(f"{during}: an answer that is none; the process was ended")
        return answer

    def _lost(self, during: str) -> dict[str, Any]:
        self._process.join(5.0)
        code = self._process.exitcode
        if code is None:
            how = "closed its connection"
        elif code < 0:
            how = f"ended by {signal.Signals(-code).name}" if -code in set(signal.Signals) else f"ended by signal {-code}"
        else:
            how = f"ended with status {code}"
        return self._over(f"{during}: the process {how}")

    def _over(self, message: str) -> dict[str, Any]:
        self.failure = message if getattr(self, "failure", None) is None else self.failure
        return {"error": message}
