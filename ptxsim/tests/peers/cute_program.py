"""A program with CuTe DSL's launcher, for `ptxsim exec`: it compiles while it runs, and its host code encodes the tensor maps.

CUTE_DSL_KEEP=ptx,cubin CUTE_DSL_DUMP_DIR=dump ptxsim exec --device b200 --ptx dump -- python ptxsim/tests/peers/cute_program.py
"""

import cute_kernels
import cutlass
import numpy as np
from cuda.bindings import driver
from cutlass import cute
from cutlass.cute.runtime import make_ptr


def checked(result: tuple):
    if result[0] != driver.CUresult.CUDA_SUCCESS:
        raise RuntimeError(f"libcuda: {result[0]}; must be CUDA_SUCCESS")
    return result[1] if len(result) == 2 else None


class DeviceArray:
    def __init__(self, values: np.ndarray) -> None:
        self.shape, self.dtype, self.bytes = values.shape, values.dtype, values.nbytes
        self.address = int(checked(driver.cuMemAlloc(self.bytes)))
        checked(driver.cuMemcpyHtoD(self.address, values.ctypes.data, self.bytes))

    def pointer(self):
        kind = {"float16": cutlass.Float16, "float32": cutlass.Float32}[self.dtype.name]
        return make_ptr(kind, self.address, cute.AddressSpace.gmem, assumed_align=256)

    def taken(self) -> np.ndarray:
        values = np.empty(self.shape, self.dtype)
        checked(driver.cuMemcpyDtoH(values.ctypes.data, self.address, self.bytes))
        checked(driver.cuMemFree(self.address))
        return values


def launched(function, inputs: list[np.ndarray], shape: tuple[int, ...], *numbers: int) -> np.ndarray:
    arrays = [DeviceArray(values) for values in [*inputs, np.zeros(shape, np.float32)]]
    function(*[array.pointer() for array in arrays], *numbers)
    return [array.taken() for array in arrays][-1]


def main() -> None:
    checked(driver.cuInit(0))
    device = checked(driver.cuDeviceGet(0))
    checked(driver.cuCtxSetCurrent(checked(driver.cuDevicePrimaryCtxRetain(device))))
    major = checked(driver.cuDeviceGetAttribute(driver.CUdevice_attribute.CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, device))
    random = np.random.default_rng(5)
    x, y = random.standard_normal((2, 1000)).astype(np.float32)
    np.testing.assert_array_equal(launched(cute_kernels.add, [x, y], x.shape, x.size), x + y)
    m, n, k = 128, 128, 192
    a, b = random.integers(-2, 3, (m, k)).astype(np.float16), random.integers(-2, 3, (n, k)).astype(np.float16)
    product = {9: cute_kernels.product_wgmma, 10: cute_kernels.product_tcgen05}[major]
    np.testing.assert_array_equal(launched(product, [a, b], (m, n), m, n, k), a.astype(np.float32) @ b.astype(np.float32).T)
    print("CuTe DSL's launcher: right")


if __name__ == "__main__":
    main()
