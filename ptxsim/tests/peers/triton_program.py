"""A program with Triton's launcher, for `ptxsim exec`: it compiles while it runs, and its launcher encodes the tensor maps.

    TRITON_CACHE_DIR=cache ptxsim exec --device h200 --ptx cache -- python ptxsim/tests/peers/triton_program.py

Triton's own driver asks PyTorch for the device; this one needs no PyTorch, and gives arrays of NumPy to kernels.
"""

import ctypes

import numpy as np
import triton
import triton.language as tl
from triton.backends.nvidia import driver as nvidia
from triton.runtime import driver
from triton.tools.tensor_descriptor import TensorDescriptor

cuda = ctypes.CDLL("libcuda.so.1")


def check(status: int) -> None:
    if status != 0:
        raise RuntimeError(f"libcuda: status {status}; must be 0")


class Driver(nvidia.CudaDriver):
    def __init__(self) -> None:
        device, context = ctypes.c_int(), ctypes.c_void_p()
        check(cuda.cuInit(0))
        check(cuda.cuDevicePrimaryCtxRetain(ctypes.byref(context), device))
        check(cuda.cuCtxSetCurrent(context))
        self.utils, self.launcher_cls = nvidia.CudaUtils(), nvidia.CudaLauncher

    def get_current_device(self) -> int:
        return 0

    def get_current_stream(self, device: int = 0) -> int:
        return 0

    def get_device_capability(self, device: int = 0) -> tuple[int, int]:
        return 9, 0


class DeviceArray:
    """What Triton asks of a tensor."""

    def __init__(self, values: np.ndarray) -> None:
        self.shape, self.dtype = values.shape, values.dtype
        address, self.bytes = ctypes.c_uint64(), ctypes.c_size_t(values.nbytes)
        check(cuda.cuMemAlloc_v2(ctypes.byref(address), self.bytes))
        self.address = address.value
        check(cuda.cuMemcpyHtoD_v2(address, values.ctypes.data_as(ctypes.c_void_p), self.bytes))

    def data_ptr(self) -> int:
        return self.address

    def values(self) -> np.ndarray:
        values = np.empty(self.shape, self.dtype)
        check(cuda.cuMemcpyDtoH_v2(values.ctypes.data_as(ctypes.c_void_p), ctypes.c_uint64(self.address), self.bytes))
        return values

    def free(self) -> None:
        check(cuda.cuMemFree_v2(ctypes.c_uint64(self.address)))


@triton.jit
def product(of_a, of_b, of_c, k, TILE_M: tl.constexpr, TILE_N: tl.constexpr, TILE_K: tl.constexpr):
    row, col = tl.program_id(0) * TILE_M, tl.program_id(1) * TILE_N
    acc = tl.zeros((TILE_M, TILE_N), tl.float32)
    for begin in range(0, k, TILE_K):
        acc = tl.dot(of_a.load([row, begin]), of_b.load([col, begin]).T, acc)
    of_c.store([row, col], acc)


def main() -> None:
    driver.set_active(Driver())
    random, m, n, k = np.random.default_rng(1), 192, 96, 160
    a, b = random.integers(-2, 3, (m, k)).astype(np.float16), random.integers(-2, 3, (n, k)).astype(np.float16)
    arrays = [DeviceArray(a), DeviceArray(b), DeviceArray(np.zeros((m, n), np.float32))]
    tiles = [[128, 64], [64, 64], [128, 64]]
    maps = [TensorDescriptor(array, list(array.shape), [array.shape[1], 1], tile) for array, tile in zip(arrays, tiles)]
    product[(2, 2)](*maps, k, TILE_M=128, TILE_N=64, TILE_K=64)
    np.testing.assert_array_equal(arrays[2].values(), a.astype(np.float32) @ b.astype(np.float32).T)
    for array in arrays:
        array.free()
    print("Triton's launcher: right")


if __name__ == "__main__":
    main()
