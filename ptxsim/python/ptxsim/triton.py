"""Triton's kernels below ``ptxsim exec``: a driver that needs no PyTorch, and arrays that kernels take.

    import ptxsim.triton
    x = ptxsim.triton.array(numpy_array)      # memory of the GPU that is not there
    kernel[(grid,)](x, ...)
    x.numpy()

Start the program with ``ptxsim exec``, or a test with the mark ``ptxsim`` (pytest_plugin.py).
"""

from __future__ import annotations

import ctypes
import functools
from typing import Any

import numpy as np


def _check(status: int, what: str) -> None:
    if status != 0:
        raise RuntimeError(f"{what}: status {status}; is the program run by `ptxsim exec`?")


@functools.cache
def _cuda() -> Any:
    """libcuda's stand-in, with Triton's driver on it."""
    from triton.backends.nvidia import driver as nvidia
    from triton.runtime import driver

    cuda = ctypes.CDLL("libcuda.so.1")
    _check(cuda.cuInit(0), "cuInit")
    device, context = ctypes.c_int(), ctypes.c_void_p()
    _check(cuda.cuDevicePrimaryCtxRetain(ctypes.byref(context), device), "cuDevicePrimaryCtxRetain")
    _check(cuda.cuCtxSetCurrent(context), "cuCtxSetCurrent")
    capability = []
    for attribute in (75, 76):  # CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, _MINOR
        value = ctypes.c_int()
        _check(cuda.cuDeviceGetAttribute(ctypes.byref(value), attribute, device), "cuDeviceGetAttribute")
        capability.append(value.value)

    class Driver(nvidia.CudaDriver):
        def __init__(self) -> None:
            self.utils, self.launcher_cls = nvidia.CudaUtils(), nvidia.CudaLauncher

        def get_current_device(self) -> int:
            return 0

        def get_current_stream(self, device: int = 0) -> int:
            return 0

        def get_device_capability(self, device: int = 0) -> tuple[int, int]:
            return capability[0], capability[1]

    driver.set_active(Driver())
    return cuda


class Array:
    """What Triton asks of a tensor. Freed with the last name of it."""

    def __init__(self, values: np.ndarray) -> None:
        self.shape, self.dtype = values.shape, values.dtype
        self._cuda, self._bytes = _cuda(), ctypes.c_size_t(max(1, values.nbytes))
        address = ctypes.c_uint64()
        _check(self._cuda.cuMemAlloc_v2(ctypes.byref(address), self._bytes), "cuMemAlloc")
        self._address = address
        values = np.ascontiguousarray(values)
        _check(
            self._cuda.cuMemcpyHtoD_v2(address, values.ctypes.data_as(ctypes.c_void_p), ctypes.c_size_t(values.nbytes)),
            "cuMemcpyHtoD",
        )

    def data_ptr(self) -> int:
        return self._address.value

    def numpy(self) -> np.ndarray:
        """A copy of what it holds now."""
        values = np.empty(self.shape, self.dtype)
        _check(
            self._cuda.cuMemcpyDtoH_v2(values.ctypes.data_as(ctypes.c_void_p), self._address, ctypes.c_size_t(values.nbytes)),
            "cuMemcpyDtoH",
        )
        return values

    def __del__(self) -> None:
        if hasattr(self, "_address"):
            self._cuda.cuMemFree_v2(self._address)


def array(values: np.ndarray) -> Array:
    """A copy of the array in the memory of the GPU."""
    return Array(values)
