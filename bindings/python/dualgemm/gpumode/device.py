"""What the harness asks of a device: to finish, to forget what its caches hold, and how long calls took."""

from __future__ import annotations

import time
from collections.abc import Callable

import torch

# More than most last level caches; writing 62.5 GiB would take longer than everything that is measured.
MOST_CPU_CLEAR_BYTES = 256 << 20


class Device:
    """ "cpu", "cuda", or None for the GPU if there is one."""

    def __init__(self, name: str | None) -> None:
        self.torch_device = torch.device(name or ("cuda" if torch.cuda.is_available() else "cpu"))
        self.is_cuda = self.torch_device.type == "cuda"
        self._dummy: torch.Tensor | None = None

    def describe(self) -> str:
        return torch.cuda.get_device_name() if self.is_cuda else f"CPU, {torch.get_num_threads()} threads"

    def synchronize(self) -> None:
        if self.is_cuda:
            torch.cuda.synchronize()

    def hold_dummy(self, clear_bytes: int) -> int:
        """Allocates what clear_cache() writes, at most half of a GPU's free memory, or 256 MiB; says how many bytes."""
        self._dummy = None
        most = torch.cuda.mem_get_info()[0] // 2 if self.is_cuda else MOST_CPU_CLEAR_BYTES
        count = max(1, min(clear_bytes, most) // 4)
        self._dummy = torch.empty(count, dtype=torch.float32, device=self.torch_device)
        return 4 * count

    def release_dummy(self) -> None:
        self._dummy = None

    def clear_cache(self) -> None:
        if self._dummy is not None:
            self._dummy.fill_(42.0)

    def nanoseconds(self, calls: Callable[[], None]) -> float:
        """The time of `calls`, from the first launch to the last one's end; what went before has ended."""
        if not self.is_cuda:
            begin = time.perf_counter_ns()
            calls()
            return float(time.perf_counter_ns() - begin)
        first, last = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        first.record()
        calls()
        last.record()
        last.synchronize()
        return first.elapsed_time(last) * 1e6
