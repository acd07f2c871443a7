"""Addresses of arrays of any library, by __cuda_array_interface__, __array_interface__ or __dlpack__, without NumPy or torch."""
from __future__ import annotations

import ctypes
from ctypes import c_char_p, c_int32, c_int64, c_uint8, c_uint16, c_uint64, c_void_p
from typing import Any, NamedTuple

from ._errors import InvalidArgument


class _Device(ctypes.Structure):
    _fields_ = [("kind", c_int32), ("index", c_int32)]


class _Type(ctypes.Structure):
    _fields_ = [("code", c_uint8), ("bits", c_uint8), ("lanes", c_uint16)]


class _Tensor(ctypes.Structure):  # DLTensor of DLPack, the same at the head of DLManagedTensor
    _fields_ = [("data", c_void_p), ("device", _Device), ("ndim", c_int32), ("dtype", _Type),
                ("shape", ctypes.POINTER(c_int64)), ("strides", ctypes.POINTER(c_int64)), ("byte_offset", c_uint64)]


_CPU_DEVICES = (1, 3)  # host memory, pinned host memory
_CUDA_DEVICES = (2, 13)  # device memory, managed memory
_capsule_pointer = ctypes.pythonapi.PyCapsule_GetPointer
_capsule_pointer.restype, _capsule_pointer.argtypes = c_void_p, [ctypes.py_object, c_char_p]


class Array(NamedTuple):
    """What the C call needs; ``owner`` keeps the memory alive."""
    address: int
    bytes: int
    is_cuda: bool
    is_read_only: bool
    owner: Any


def _from_interface(name: str, interface: dict[str, Any], is_cuda: bool, owner: Any) -> Array:
    if interface.get("mask") is not None:
        raise InvalidArgument(name, "a masked array", "must have no mask")
    item = int(interface["typestr"][2:])
    shape, strides = interface["shape"], interface.get("strides")
    expected = item
    for size, stride in zip(reversed(shape), reversed(strides or ())):
        if size > 1 and stride != expected:
            raise InvalidArgument(name, f"strides {strides}", "must be contiguous")
        expected *= size
    count = 1
    for size in shape:
        count *= size
    if interface.get("data") is None:
        raise InvalidArgument(name, "no address", "must lie in memory")
    address, is_read_only = interface["data"]
    return Array(int(address), count * item, is_cuda, bool(is_read_only), owner)


def _from_dlpack(name: str, value: Any) -> Array:
    try:
        capsule = value.__dlpack__()
    except (BufferError, RuntimeError, TypeError, ValueError) as error:  # sparse, on no device, with a gradient
        raise InvalidArgument(name, type(value).__name__, f"must give its memory: {error}") from None
    tensor = _Tensor.from_address(_capsule_pointer(capsule, b"dltensor"))
    if tensor.device.kind not in _CPU_DEVICES + _CUDA_DEVICES:
        raise InvalidArgument(name, f"DLPack device {tensor.device.kind}", "must lie in host or CUDA memory")
    count, expected = 1, 1
    for axis in reversed(range(tensor.ndim)):
        if tensor.strides and tensor.shape[axis] > 1 and tensor.strides[axis] != expected:
            raise InvalidArgument(name, "strided", "must be contiguous")
        expected *= tensor.shape[axis]
        count *= tensor.shape[axis]
    size = count * ((tensor.dtype.bits * tensor.dtype.lanes + 7) // 8)
    return Array((tensor.data or 0) + tensor.byte_offset, size, tensor.device.kind in _CUDA_DEVICES, False, (value, capsule))


def array_of(name: str, value: Any) -> Array:
    """The memory of ``value``, which must be contiguous; InvalidArgument if it has none of the three interfaces."""
    interface = getattr(value, "__cuda_array_interface__", None)
    if interface is not None:
        return _from_interface(name, interface, True, value)
    interface = getattr(value, "__array_interface__", None)
    if interface is not None:
        return _from_interface(name, interface, False, value)
    if hasattr(value, "__dlpack__"):
        return _from_dlpack(name, value)
    raise InvalidArgument(name, type(value).__name__,
                          "must have __array_interface__, __cuda_array_interface__ or __dlpack__")
