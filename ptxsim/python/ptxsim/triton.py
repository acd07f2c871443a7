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

import numpy as np

from ptxsim._device import Array, check, cuda


@functools.cache
def _set_driver() -> None:
    """Puts Triton on libcuda's stand-in."""
    from triton.backends.nvidia import driver as nvidia
    from triton.runtime import driver

    library, capability = cuda(), []
    for attribute in (75, 76):  # CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, _MINOR
        value = ctypes.c_int()
        check(library.cuDeviceGetAttribute(ctypes.byref(value), attribute, ctypes.c_int()), "cuDeviceGetAttribute")
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


def array(values: np.ndarray) -> Array:
    """A copy of the array in the memory of the GPU: what Triton asks of a tensor."""
    _set_driver()
    return Array(values)
