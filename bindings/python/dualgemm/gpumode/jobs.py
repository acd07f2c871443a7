"""What the spawned process does for one case: test, warm, measure, profile. Results are plain dictionaries."""

from __future__ import annotations

import time
from dataclasses import asdict
from typing import Any, TypeAlias

import torch
from torch import Tensor

from .cases import Case
from .device import Device
from .faults import Fault
from .loading import Kernel
from .submissions import task
from .timing import Rules, Stats

INPUT_NAMES = ("a", "b1", "b2", "sfa", "sfb1", "sfb2", "sfa_permuted", "sfb1_permuted", "sfb2_permuted")
PROFILED_CALLS = 5
Data: TypeAlias = task.input_t


def cloned(tensor: Tensor) -> Tensor:
    """As bytes where elements are bytes: torch does little with float4 itself."""
    return tensor.view(torch.uint8).clone().view(tensor.dtype) if tensor.element_size() == 1 else tensor.clone()


class Jobs:
    """One submission on one device."""

    def __init__(self, kernel: Kernel, device_name: str | None) -> None:
        self.kernel, self.device = kernel, Device(device_name)

    def _input(self, case: Case) -> Data:
        return task.generate_input(**asdict(case), device=self.device.torch_device)

    def _checked_call(self, data: Data, expected: Tensor) -> None:
        """On a clone, which is freed afterwards: its addresses return with other contents."""
        clone = tuple(cloned(tensor) for tensor in data)
        output = self.kernel(clone)
        self.device.synchronize()
        message = task.compare(output, expected)
        for name, before, after in zip(INPUT_NAMES, data, clone):
            if after.shape != before.shape or not torch.equal(after.view(torch.uint8), before.view(torch.uint8)):
                message = f"{name}: written to; must be left as it was"
                break
        if message:
            raise Fault(message)

    def test(self, case: dict[str, int]) -> dict[str, Any]:
        data = self._input(Case(**case))
        self._checked_call(data, task.ref_kernel(data))
        return {}

    def measure(self, case: dict[str, int], rules: dict[str, Any]) -> dict[str, Any]:
        """Every input once on a clone, checked; then rounds on the originals."""
        limits, first = Rules(**rules), Case(**case)
        inputs, references = [], []
        for number in range(1, limits.inputs + 1):
            data = self._input(first.later(number))
            expected = task.ref_kernel(data)
            self._checked_call(data, expected)
            inputs.append(data)
            references.append(expected if limits.checks_rounds else None)
        cleared = self.device.hold_dummy(limits.clear_bytes)
        times: list[float] = []
        begin = time.monotonic()
        while not limits.are_done(times, time.monotonic() - begin):
            times.append(self._round(inputs, references) / len(inputs))
        self.device.release_dummy()
        return {"stats": asdict(Stats.of(times)), "cleared_bytes": cleared}

    def _round(self, inputs: list[Data], references: list[Tensor | None]) -> float:
        outputs: list[object] = []

        def calls() -> None:
            for data in inputs:
                outputs.append(self.kernel(data))

        if references[0] is not None:
            for data in inputs:
                data[-1].fill_(float("nan"))  # the result of an earlier round must not pass again
        self.device.synchronize()
        self.device.clear_cache()
        nanoseconds = self.device.nanoseconds(calls)
        for number, (output, expected) in enumerate(zip(outputs, references), 1):
            message = task.compare(output, expected) if expected is not None else ""
            if message:
                raise Fault(f"input {number} of a timed round: {message}")
        return nanoseconds

    def profile(self, case: dict[str, int]) -> dict[str, Any]:
        """A table of torch.profiler, of calls after one that is not counted."""
        data = self._input(Case(**case))
        self._checked_call(data, task.ref_kernel(data))
        activities = [torch.profiler.ProfilerActivity.CPU]
        if self.device.is_cuda:
            activities.append(torch.profiler.ProfilerActivity.CUDA)
        with torch.profiler.profile(activities=activities, acc_events=True) as profiler:
            for _ in range(PROFILED_CALLS):
                self.kernel(data)
            self.device.synchronize()
        order = "self_cuda_time_total" if self.device.is_cuda else "self_cpu_time_total"
        table = profiler.key_averages().table(sort_by=order, row_limit=12, max_name_column_width=60)
        return {"calls": PROFILED_CALLS, "table": table}
