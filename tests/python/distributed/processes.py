"""Gloo processes on the CPU that live for a whole test session: starting one takes seconds."""

from __future__ import annotations

import datetime
import multiprocessing
import os
import tempfile
import traceback
from collections.abc import Callable
from typing import Any

_SECONDS = 30


def _serve(rank: int, world: int, meeting_point: str, connection: Any) -> None:
    os.environ["DUALGEMM_NUM_THREADS"] = "1"
    import torch
    import torch.distributed as dist

    torch.set_num_threads(1)
    dist.init_process_group(
        "gloo", init_method=f"file://{meeting_point}", rank=rank, world_size=world, timeout=datetime.timedelta(seconds=_SECONDS)
    )
    while True:
        job = connection.recv()
        if job is None:
            break
        function, arguments = job
        try:
            connection.send((True, function(rank, world, *arguments)))
        except BaseException:  # all of it is the caller's to see
            connection.send((False, traceback.format_exc()))
    dist.destroy_process_group()


class Processes:
    """run(f, *arguments) calls f(rank, world, *arguments) in each process; f must be a module's function."""

    def __init__(self, world: int) -> None:
        self.world = world
        self._processes: list[Any] = []

    def _start(self) -> None:
        context = multiprocessing.get_context("spawn")
        meeting_point = tempfile.mktemp(prefix="dualgemm_gloo_")
        self._connections = []
        for rank in range(self.world):
            ours, theirs = context.Pipe()
            process = context.Process(target=_serve, args=(rank, self.world, meeting_point, theirs), daemon=True)
            process.start()
            self._processes.append(process)
            self._connections.append(ours)

    def run(self, function: Callable[..., Any], *arguments: Any) -> list[Any]:
        if not self._processes:
            self._start()
        for connection in self._connections:
            connection.send((function, arguments))
        answers: list[Any] = []
        for connection in self._connections:
            answers.append(connection.recv() if connection.poll(4 * _SECONDS) else (False, "no answer"))
        if not all(fine for fine, _ in answers):
            self._kill()  # the group is not whole any more
            raise AssertionError("\n".join(f"rank {rank}: {text}" for rank, (fine, text) in enumerate(answers) if not fine))
        return [result for _, result in answers]

    def _kill(self) -> None:
        for process in self._processes:
            process.kill()
        self._processes = []

    def stop(self) -> None:
        if self._processes:
            for connection in self._connections:
                connection.send(None)
            for process in self._processes:
                process.join(10)
            self._kill()
