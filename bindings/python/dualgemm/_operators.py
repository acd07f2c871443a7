"""torch.ops.dualgemm, loaded: what _schemas.py defines, with the kernels of _torch.so, on torch's stable ABI.

Importing this module loads that library, once.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torch.autograd import forward_ad

from . import _schemas, _vmap
from . import _library  # loads libdualgemm first: _torch.so then finds it by its soname
from ._errors import InvalidArgument

_TORCH = tuple(int(part) for part in torch.__version__.split("+")[0].split(".")[:2])
PATH = _library.file_of_package("_torch.so")


def _load() -> None:
    if _TORCH < (2, 10):
        raise ImportError(f"dualgemm.torch: torch {torch.__version__}; must be 2.10 or newer")
    if not PATH.exists():
        raise ImportError(
            f"dualgemm.torch: {PATH} is missing; the package was built without torch's headers: install torch "
            "and build it again"
        )
    library = torch.library.Library("dualgemm", "DEF")
    for schema in (form for operator in _schemas.OPERATORS.values() for form in operator.forms()):
        library.define(schema, tags=(torch.Tag.pt2_compliant_tag, torch.Tag.needs_fixed_stride_order))
    torch.ops.load_library(str(PATH))
    globals()["_KEPT"] = library  # its end would take the schemas away
    _schemas.register_fakes()
    _vmap.register()


def tensor(name: str, value: Any) -> Tensor:
    """``value``, if it is a tensor."""
    if not isinstance(value, Tensor):
        raise InvalidArgument(name, type(value).__name__, "must be a tensor")
    return value


def wants_derivative() -> bool:
    """Whether torch is recording for backward, or inside a level of forward mode; cheap."""
    return torch.is_grad_enabled() or forward_ad._current_level >= 0


def check_no_grad(**tensors: Any) -> None:
    """Forward only: InvalidArgument for a tensor that wants a gradient or carries a tangent."""
    for name, tensor in tensors.items():
        if not isinstance(tensor, Tensor):
            continue
        if tensor.requires_grad and torch.is_grad_enabled():
            raise InvalidArgument(
                name,
                "requires_grad",
                "must not: the product has no backward; call it, or the whole model, "
                "under torch.no_grad() or torch.inference_mode(), or pass x.detach()",
            )
        if forward_ad._current_level >= 0 and forward_ad.unpack_dual(tensor).tangent is not None:
            raise InvalidArgument(name, "with a tangent", "must have none: the product has no forward-mode derivative")


def refuse_grad(**tensors: Any) -> None:
    """check_no_grad() where a derivative would be wanted."""
    if wants_derivative():
        check_no_grad(**tensors)


def check_storage(name: str, tensor: Tensor) -> Tensor:
    """The tensor. InvalidArgument if its storage ends before its elements: torch's own operators would read behind it."""
    if not isinstance(tensor, Tensor):
        raise InvalidArgument(name, type(tensor).__name__, "must be a tensor")
    if torch.compiler.is_compiling() or tensor.numel() == 0 or tensor.layout != torch.strided or tensor.device.type == "meta":
        return tensor
    if torch._C._functorch.is_functorch_wrapped_tensor(tensor):
        return tensor  # without a storage of its own
    last = tensor.storage_offset() + sum((size - 1) * stride for size, stride in zip(tensor.shape, tensor.stride()))
    held = tensor.untyped_storage().nbytes()
    if held < (last + 1) * tensor.element_size():
        raise InvalidArgument(name, f"a storage of {held} bytes", "must hold its elements; was it freed?")
    return tensor


_load()
