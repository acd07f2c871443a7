"""A plug-in of pytest for tests of Triton's and Gluon's kernels that want PyTorch's tensors on a GPU: below `ptxsim exec`, a
tensor of device "cuda" is one of the CPU, and what a kernel is given is a copy in the memory that ptxsim watches.

PyTorch computes what results are compared with, on the CPU.
"""

from __future__ import annotations

import ctypes
from types import SimpleNamespace
from typing import Any

import numpy as np
import ptxsim.triton as on_gpu
import torch
import triton
from torch.overrides import TorchFunctionMode
from triton._C.libtriton import nvidia
from triton.backends.compiler import GPUTarget
from triton.experimental.gluon.nvidia.hopper import TensorDescriptor as GluonDescriptor
from triton.experimental.gluon.nvidia.hopper import TensorDescriptorIm2Col
from triton.runtime.jit import JITFunction
from triton.tools.tensor_descriptor import TensorDescriptor

DESCRIPTORS = (TensorDescriptor, GluonDescriptor, TensorDescriptorIm2Col)
MULTIPROCESSORS = 16  # CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT


class OnTheCpu(TorchFunctionMode):
    def __torch_function__(self, function: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = dict(kwargs or {})
        if "device" in kwargs:
            kwargs["device"] = "cpu"
        if function is torch.Tensor.to:
            args = tuple("cpu" if isinstance(arg, str) and arg.startswith("cuda") else arg for arg in args)
        return function(*args, **kwargs)


class Copies:
    """Copies of whole storages: tensors that share memory share it there, too."""

    def __init__(self) -> None:
        self.copies: dict[int, tuple[Any, Any]] = {}

    def address(self, tensor: torch.Tensor) -> int:
        storage = tensor.untyped_storage()
        if storage.data_ptr() not in self.copies:
            values = torch.empty(0, dtype=torch.uint8).set_(storage)
            self.copies[storage.data_ptr()] = (values, on_gpu.array(values.numpy()))
        return self.copies[storage.data_ptr()][1].data_ptr() + tensor.storage_offset() * tensor.element_size()

    def of(self, argument: Any) -> Any:
        if isinstance(argument, torch.Tensor):
            return Given(self.address(argument), argument)
        if isinstance(argument, DESCRIPTORS):
            fields = {**vars(argument), "base": self.of(argument.base)}
            copy = object.__new__(type(argument))
            copy.__dict__.update(fields)
            return copy
        return argument

    def bring_back(self) -> None:
        for values, copy in self.copies.values():
            values.copy_(torch.from_numpy(copy.numpy()))


class Given:
    """What Triton's launcher asks of a tensor."""

    def __init__(self, address: int, tensor: torch.Tensor) -> None:
        self.address, self.dtype, self.shape = address, tensor.dtype, tensor.shape
        self.stride, self.numel, self.element_size = tensor.stride, tensor.numel, tensor.element_size

    def data_ptr(self) -> int:
        return self.address


def run(self: JITFunction, *args: Any, grid: Any, warmup: bool, **kwargs: Any) -> Any:
    copies = Copies()
    given = [copies.of(argument) for argument in args]
    named = {name: copies.of(argument) for name, argument in kwargs.items()}
    result = RUN(self, *given, grid=grid, warmup=warmup, **named)
    copies.bring_back()
    return result


def capability(device: Any = None) -> tuple[int, int]:
    return triton.runtime.driver.active.get_device_capability()


def properties(device: Any = None) -> SimpleNamespace:
    count = ctypes.c_int()
    ctypes.CDLL("libcuda.so.1").cuDeviceGetAttribute(ctypes.byref(count), MULTIPROCESSORS, 0)
    return SimpleNamespace(multi_processor_count=count.value)


GPUTarget.is_cuda_backend = lambda self: self.backend == "cuda"  # a name that tutorials use, and Triton 3.8 has not
RUN = JITFunction.run
JITFunction.run = run
nvidia.cublas.CublasLt = lambda workspace: None  # what tutorials compare their times with
torch.cuda.is_available = lambda: True
torch.cuda.get_device_capability = capability
torch.cuda.get_device_properties = properties
torch.cuda.synchronize = lambda device=None: None
on_gpu.array(np.zeros(1))  # Triton's driver from here on
OnTheCpu().__enter__()
