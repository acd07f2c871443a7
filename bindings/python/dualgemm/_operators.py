"""torch.ops.dualgemm: schemas and tags. The kernels are in _torch.so, on torch's stable ABI, the fakes in _schemas.py.

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

_FACTORS = (
    "Tensor? alpha_gate=None, Tensor? alpha_up=None, Tensor? a_row_scale=None, Tensor? bias_gate=None, "
    "Tensor? bias_up=None, *, str activation='silu', float? act_alpha=None, float? act_beta=None, "
    "float? act_limit=None"
)
_CHOICE = "str scale_layout='auto', bool batch_invariant=False, str strategy='auto', str config=''"
_A = "Tensor a, Tensor? a_scales"
_GATE_UP = "Tensor gate, Tensor gate_scales, Tensor up, Tensor up_scales"
_ANY_WEIGHTS = "Tensor? gate, Tensor? gate_scales, Tensor? up, Tensor? up_scales, Tensor? packed, SymInt n, SymInt l"
_LINEAR = (
    "Tensor? w, Tensor? w_scales, Tensor? packed, SymInt n, SymInt l, Tensor? offsets=None, Tensor? m_indices=None, "
    "Tensor? masked_m=None, Tensor? alpha=None, Tensor? bias=None, Tensor? residual=None, Tensor? a_row_scale=None, *"
)

# name -> arguments up to the output's; where a product's D is wide, there is an out_dtype and a form with out.
_WIDE = {
    "glu": (f"{_A}, {_GATE_UP}, {_FACTORS}", _CHOICE),
    "glu_packed": (f"{_A}, Tensor packed, SymInt n, SymInt l, {_FACTORS}", _CHOICE),
    "m_grouped_glu_contiguous": (f"{_A}, {_ANY_WEIGHTS}, Tensor? offsets, Tensor? m_indices, {_FACTORS}", _CHOICE),
    "m_grouped_glu_masked": (f"{_A}, {_ANY_WEIGHTS}, Tensor masked_m, {_FACTORS}", _CHOICE),
    "linear": (f"{_A}, {_LINEAR}", _CHOICE),
}
_QUANTIZE = "Tensor x, Tensor? global_scale=None, *, str scale_layout='linear', bool four_over_six=False, bool per_row=False"
_NVFP4 = f"{_A}, {_ANY_WEIGHTS}, float d_global_scale, {_FACTORS}, str d_scale_layout='linear', {_CHOICE}"


def _schemas() -> list[str]:
    schemas = []
    for name, (first, last) in _WIDE.items():
        schemas.append(f"{name}({first}, ScalarType? out_dtype=None, {last}) -> Tensor")
        schemas.append(f"{name}.out({first}, {last}, Tensor(a!) out) -> ()")
    return schemas + [
        f"glu_nvfp4({_NVFP4}) -> (Tensor, Tensor)",
        f"glu_nvfp4.out({_NVFP4}, Tensor(a!) out_codes, Tensor(b!) out_scales) -> ()",
        f"pack_weights({_GATE_UP}, *, ScalarType a_dtype, str scale_layout='auto') -> Tensor",
        "pack_linear(Tensor w, Tensor w_scales, *, ScalarType a_dtype, str scale_layout='auto') -> Tensor",
        f"quantize_nvfp4({_QUANTIZE}) -> (Tensor, Tensor, Tensor)",
        f"quantize_nvfp4.out({_QUANTIZE}, Tensor(a!) out_codes, Tensor(b!) out_scales, Tensor(c!) out_global_scale) -> ()",
        "dequantize_nvfp4(Tensor codes, Tensor scales, Tensor global_scale, *, ScalarType dtype=float, "
        "str scale_layout='auto') -> Tensor",
    ]


def _load() -> None:
    if _TORCH < (2, 10):
        raise ImportError(f"dualgemm.torch: torch {torch.__version__}; must be 2.10 or newer")
    if not PATH.exists():
        raise ImportError(
            f"dualgemm.torch: {PATH} is missing; the package was built without torch's headers: install torch "
            "and build it again"
        )
    library = torch.library.Library("dualgemm", "DEF")
    for schema in _schemas():
        library.define(schema, tags=(torch.Tag.pt2_compliant_tag, torch.Tag.needs_fixed_stride_order))
    torch.ops.load_library(str(PATH))
    globals()["_KEPT"] = library  # its end would take the schemas away
    _schemas.register()
    _vmap.register()


def tensor(name: str, value: Any) -> Tensor:
    """``value``, if it is a tensor."""
    if not isinstance(value, Tensor):
        raise InvalidArgument(name, type(value).__name__, "must be a tensor")
    return value


def device_of(device: Any) -> torch.device:
    """What a ``device`` argument means, with its index."""
    try:
        return torch.empty(0, device=device).device
    except (TypeError, ValueError, RuntimeError) as error:
        raise InvalidArgument("device", repr(device), f"must be a device that is here: {str(error).splitlines()[0]}") from None


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
