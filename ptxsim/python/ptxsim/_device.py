"""Memory of the GPU that is not there, below ``ptxsim exec``: libcuda's stand-in by ctypes, without PyTorch."""

from __future__ import annotations

import ctypes
import functools
from typing import Any

import numpy as np


def check(status: int, what: str) -> None:
    if status != 0:
        raise RuntimeError(f"{what}: status {status}; is the program run by `ptxsim exec`?")


@functools.cache
def cuda() -> Any:
    """libcuda's stand-in, with the first GPU's context."""
    try:
        library = ctypes.CDLL("libcuda.so.1")
    except OSError as error:
        raise RuntimeError(f"{error}; a test needs the mark `ptxsim`, and a program `ptxsim exec`") from None
    check(library.cuInit(0), "cuInit")
    device, context = ctypes.c_int(), ctypes.c_void_p()
    check(library.cuDevicePrimaryCtxRetain(ctypes.byref(context), device), "cuDevicePrimaryCtxRetain")
    check(library.cuCtxSetCurrent(context), "cuCtxSetCurrent")
    return library


class Array:
    """A copy of an array in the memory of the GPU. Freed with the last name of it."""

    def __init__(self, values: np.ndarray) -> None:
        self.shape, self.dtype = values.shape, values.dtype
        self._cuda, self._bytes = cuda(), ctypes.c_size_t(max(1, values.nbytes))
        address = ctypes.c_uint64()
        check(self._cuda.cuMemAlloc_v2(ctypes.byref(address), self._bytes), "cuMemAlloc")
        self._address = address
        values = np.ascontiguousarray(values)
        check(
            self._cuda.cuMemcpyHtoD_v2(address, values.ctypes.data_as(ctypes.c_void_p), ctypes.c_size_t(values.nbytes)),
            "cuMemcpyHtoD",
        )

    def data_ptr(self) -> int:
        return self._address.value

    def numpy(self) -> np.ndarray:
        """A copy of what it holds now."""
        values = np.empty(self.shape, self.dtype)
        check(
            self._cuda.cuMemcpyDtoH_v2(values.ctypes.data_as(ctypes.c_void_p), self._address, ctypes.c_size_t(values.nbytes)),
            "cuMemcpyDtoH",
        )
        return values

    def __del__(self) -> None:
        if hasattr(self, "_address"):
            self._cuda.cuMemFree_v2(self._address)
