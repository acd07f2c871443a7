"""CuTe DSL's kernels below ``ptxsim exec``: arrays that have pointers for them.

    import ptxsim.cute
    x = ptxsim.cute.array(numpy_array)        # memory of the GPU that is not there
    function(x.pointer(), ...)                # of @cute.jit, which launches the kernel
    x.numpy()

A test with the mark ``ptxsim`` (pytest_plugin.py) needs no more; a program that ``ptxsim exec`` starts has to keep the PTX
(docs/exec.md).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ptxsim import _device

# Types that both have, by NumPy's name.
_KINDS = ("float16", "float32", "float64", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64")


class Array(_device.Array):
    def pointer(self, kind: Any = None, align: int = 256) -> Any:
        """A ``cute.Pointer`` to global memory. ``kind``: CuTe DSL's type, where it is none of NumPy's."""
        import cutlass
        from cutlass import cute
        from cutlass.cute.runtime import make_ptr

        if kind is None:
            if self.dtype.name not in _KINDS:
                raise TypeError(f"dtype {self.dtype}: must be one of {', '.join(_KINDS)}, or give kind")
            kind = getattr(cutlass, self.dtype.name.capitalize())
        return make_ptr(kind, self.data_ptr(), cute.AddressSpace.gmem, assumed_align=align)


def array(values: np.ndarray) -> Array:
    """A copy of the array in the memory of the GPU."""
    return Array(values)
