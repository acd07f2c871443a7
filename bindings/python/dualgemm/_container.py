"""What Weights and LinearWeights have in common: tensors by name, prepared or not; moving, saving, cutting."""

from __future__ import annotations

from collections.abc import Mapping
from multiprocessing.reduction import ForkingPickler
from typing import Any, ClassVar, Optional, TypeVar

import torch
from torch import Tensor

from ._arguments import checked, device_of
from ._errors import InvalidArgument, Unsupported
from ._operands import (
    Scalar,
    Shape,
    activation_kind,
    aligned,
    bias_of,
    codes_of,
    compact,
    factor_of,
    read_header,
    scales_of,
    slice_rows,
)
from ._operators import refuse_grad, tensor
from ._quantized import QuantizedTensor, call

_DTYPES = (torch.bfloat16, torch.float16, torch.float32, torch.uint8)  # by their number in a state
_Self = TypeVar("_Self", bound="Container")


def activation_dtype(dtype: torch.dtype) -> torch.dtype:
    activation_kind(dtype)
    return torch.uint8 if dtype == torch.float4_e2m1fn_x2 else dtype


def same_kind(one: torch.device, other: torch.device) -> bool:
    """Do both take the same packed bytes?"""
    return one.type == other.type and (
        one.type != "cuda" or torch.cuda.get_device_capability(one) == torch.cuda.get_device_capability(other)
    )


def packs_by_rows(device: torch.device) -> bool:
    """Does a device prepare other bytes for other activations? A CPU's fit all."""
    return device.type == "cuda"


def packed_or_none(operator: Any, tensors: list[Tensor], a_dtype: torch.dtype) -> Optional[Tensor]:
    """Prepared bytes, or None where this device has nothing to prepare."""
    if tensors[0].device.type == "meta":
        return None
    try:
        packed: Tensor = call(operator, *tensors, a_dtype=a_dtype)
    except Unsupported:
        return None
    return packed if packed.numel() else None


def check_packed(operator: Any, matrices: int, packed: Tensor, shape: Shape, a_dtype: torch.dtype) -> None:
    """Refuses bytes of another shape, or of a format that the device they lie on does not take for these activations."""
    found = read_header(packed)
    # All of a header follows from the device, the shape and a_dtype: prepare zeros (of experts two, a single one may differ).
    experts = min(shape.experts, 2)
    sizes = (experts, shape.n, shape.k // 2) if experts else (shape.n, shape.k // 2)
    codes = torch.zeros(sizes, dtype=torch.uint8, device=packed.device)
    scales = torch.zeros((*sizes[:-1], shape.k // 16), dtype=torch.uint8, device=packed.device)
    here = packed_or_none(operator, [codes, scales] * matrices, a_dtype)
    wanted = None if here is None else read_header(here)
    if wanted is None or wanted[:2] != found[:2]:
        raise Unsupported(
            "packed",
            f"format {found.format}, version {found.version}",
            f"must be what {packed.device} prepares; make the weights anew from the checkpoint there",
        )
    if wanted != found or packed.numel() != found.expert_bytes * shape.layers:
        raise InvalidArgument(
            "packed",
            f"{packed.numel()} bytes, in parts of {found.expert_bytes}",
            f"must be {shape.layers} parts of {wanted.expert_bytes}, of a matrix {shape.n} x {shape.k}",
        )


def choose_operands(
    original: list[Optional[Tensor]], packed: Optional[Tensor], x: Tensor, a_dtype: torch.dtype, strategy: str = "auto"
) -> tuple[list[Optional[Tensor]], Optional[Tensor]]:
    """(codes and scales, None) or (None for each, packed): what a call with these activations runs on."""
    if packed is None:
        return original, None
    fits = not packs_by_rows(x.device) or activation_kind(x.dtype) == activation_kind(a_dtype)
    if original[0] is not None and (not fits or strategy != "auto"):
        return original, None
    if not fits:  # the bytes would be read as others: on a GPU the operator does not look at them
        raise Unsupported(
            "x",
            str(x.dtype),
            f"the weights are packed for {activation_kind(a_dtype)}: pack with a_dtype={x.dtype}, or with keep_original=True",
        )
    return [None] * len(original), packed


def _rebuilt(kind: type[Container], state: dict[str, Any]) -> Container:
    made = kind.__new__(kind)
    made.__setstate__(state)
    return made


def _shared(container: Container) -> tuple[Any, ...]:
    """For another process: shared memory, views as they are, nothing copied."""
    return _rebuilt, (type(container), container._pickled(compacted=False))


class Container:
    """A plain container of tensors; immutable. Base of Weights and LinearWeights."""

    _matrices: ClassVar[tuple[str, ...]]
    _factors: ClassVar[tuple[str, ...]]
    _biases: ClassVar[tuple[str, ...]]

    def __init_subclass__(cls) -> None:
        ForkingPickler.register(cls, _shared)

    def __init__(self, tensors: dict[str, Tensor], shape: Shape, a_dtype: torch.dtype) -> None:
        self._tensors, self._shape, self._a_dtype = tensors, shape, a_dtype

    @staticmethod
    def _pack_operator() -> Any:
        raise NotImplementedError

    @classmethod
    def _make(
        cls: type[_Self],
        matrices: list[tuple[Tensor, Tensor]],
        factors: list[Scalar],
        biases: list[Optional[Tensor]],
        *,
        prepare: bool,
        keep_original: bool,
        a_dtype: torch.dtype,
        scale_layout: str,
    ) -> _Self:
        tensors: dict[str, Tensor] = {}
        first: Optional[Shape] = None
        for name, (codes, scales) in zip(cls._matrices, matrices):
            codes, shape = codes_of(name, codes)
            if first is not None and shape != first:
                raise InvalidArgument(
                    name, f"shape {list(codes.shape)}", f"must be that of {cls._matrices[0]}: {list(matrices[0][0].shape)}"
                )
            first = shape
            if tensor(f"{name}_scales", scales).device != codes.device or codes.device != matrices[0][0].device:
                raise InvalidArgument(
                    f"{name}_scales", f"{codes.device} and {scales.device}", "codes and scales must be on one device"
                )
            tensors[name] = codes
            tensors[f"{name}_scales"] = scales_of(f"{name}_scales", scales, shape, scale_layout)
        assert first is not None
        device = matrices[0][0].device
        for name, value in zip(cls._factors, factors):
            tensors[name] = factor_of(name, value, device, first.layers)
        given = [bias_of(name, bias, first) for name, bias in zip(cls._biases, biases)]
        present = [bias for bias in given if bias is not None]
        for name, bias in zip(cls._biases, given):
            if present:  # of two, a missing one is zeros; two dtypes become float32
                filled = torch.zeros_like(present[0]) if bias is None else bias
                tensors[name] = filled.to(device, present[0].dtype if len({b.dtype for b in present}) == 1 else torch.float32)
        made = cls(tensors, first, activation_dtype(a_dtype))
        return made.prepare(keep_original=keep_original) if prepare else made

    @checked
    def prepare(self: _Self, *, keep_original: bool = False) -> _Self:
        """Packed for activations of ``a_dtype`` on this device; itself where the device has nothing to prepare."""
        if self.is_packed:
            return self
        if not self._has_original:
            raise Unsupported(type(self).__name__, "no tensors", "must hold the checkpoint's")
        packed = packed_or_none(self._pack_operator(), [self._tensors[name] for name in self._original_names()], self._a_dtype)
        if packed is None:
            return self
        kept = {name: tensor for name, tensor in self._tensors.items() if keep_original or name not in self._original_names()}
        return type(self)({**kept, "packed": packed}, self._shape, self._a_dtype)

    @classmethod
    def _original_names(cls) -> list[str]:
        return [name for matrix in cls._matrices for name in (matrix, f"{matrix}_scales")]

    @property
    def _has_original(self) -> bool:
        return self._matrices[0] in self._tensors

    @property
    def n(self) -> int:
        """Rows of one matrix: columns of the result."""
        return self._shape.n

    @property
    def k(self) -> int:
        """Columns of one matrix, in values."""
        return self._shape.k

    @property
    def num_experts(self) -> int:
        """1 for weights without that dimension."""
        return self._shape.layers

    @property
    def is_packed(self) -> bool:
        return "packed" in self._tensors

    @property
    def packed(self) -> Optional[Tensor]:
        """uint8 [bytes], opaque (docs/formats.md, "Prepared weights"), or None."""
        return self._tensors.get("packed")

    @property
    def a_dtype(self) -> torch.dtype:
        """For which activations a GPU packs: bfloat16, float16 (NVFP4 too), float32, or uint8 (NVFP4). A CPU's bytes fit
        all."""
        return self._a_dtype

    @property
    def device(self) -> torch.device:
        return self._tensors[self._factors[0]].device

    def __repr__(self) -> str:
        experts = f"{self._shape.experts} x " if self._shape.experts else ""
        state = "packed" if self.is_packed else "not packed"
        return f"<dualgemm.{type(self).__name__} {experts}{self.n} x {self.k}, {state}, {self.device}>"

    def _operands_for(self, x: Tensor, strategy: str) -> tuple[list[Optional[Tensor]], Optional[Tensor]]:
        return choose_operands(
            [self._tensors.get(name) for name in self._original_names()],
            self._tensors.get("packed"),
            x,
            self._a_dtype,
            strategy,
        )

    def _rows_of(
        self, x: Any, x_scales: Optional[Tensor], factors: list[Any], named: dict[str, Any]
    ) -> tuple[Tensor, Optional[Tensor], list[Any]]:
        """Activations with their scales; a QuantizedTensor's global scale goes into the factors, or is one of each row."""
        for name in self._biases:
            if name in named:
                raise InvalidArgument(name, "given", "must be that of the weights")
        refuse_grad(**dict(zip(self._factors, factors)), a_row_scale=named.get("a_row_scale"))
        own = [
            self._tensors[name] if value is None else factor_of(name, value, self.device, self._shape.layers)
            for name, value in zip(self._factors, factors)
        ]
        if isinstance(x, QuantizedTensor):
            if x_scales is not None:
                raise InvalidArgument("x_scales", "given", "must be None for a QuantizedTensor")
            refuse_grad(x=x.global_scale)
            if x.global_scale.numel() == 1:
                own = [factor * x.global_scale for factor in own]
            elif named.get("a_row_scale") is None:
                named["a_row_scale"] = x.global_scale
            else:
                raise InvalidArgument("a_row_scale", "given", "x has one scale for each row already")
            x, x_scales = x.codes, x.scales
        if tensor("x", x).dim() < 1:
            raise InvalidArgument("x", "shape []", f"must be [..., {self.k}]")
        columns = x.shape[-1] * (1 if x.is_floating_point() and x.dtype != torch.float4_e2m1fn_x2 else 2)
        if columns != self.k:
            raise InvalidArgument("x", f"{columns} columns", f"must be the {self.k} of the weights")
        if named.get("a_row_scale") is not None:
            row_scale = tensor("a_row_scale", named["a_row_scale"])
            if row_scale.layout != torch.strided:
                raise InvalidArgument("a_row_scale", str(row_scale.layout), "must be strided")
            named["a_row_scale"] = row_scale.reshape(-1)
        layout = named.pop("scale_layout", "auto")  # that of x: the weights know theirs
        if not isinstance(layout, str):
            raise InvalidArgument("scale_layout", type(layout).__name__, "must be auto, linear or swizzled_128x4")
        if x_scales is not None and layout == "swizzled_128x4" and x_scales.dim() != 6:
            x_scales = x_scales.reshape(x.shape[0], -1) if self._shape.experts and x.dim() == 3 else x_scales.reshape(-1)
        elif layout not in ("auto", "linear", "swizzled_128x4"):
            raise InvalidArgument("scale_layout", repr(layout), "must be auto, linear or swizzled_128x4")
        return x, x_scales, own

    # ---- moving and saving ---------------------------------------------------------------------------------------------------

    def to(self: _Self, device: Any) -> _Self:
        """On another device. Weights packed for a device of another kind are packed anew from the originals, if kept, or
        refused."""
        target = device_of(device)
        if target == self.device:
            return self
        moved = {name: tensor.to(target) for name, tensor in self._tensors.items() if name != "packed"}
        if not self.is_packed:
            return type(self)(moved, self._shape, self._a_dtype)
        if self._has_original:
            return type(self)(moved, self._shape, self._a_dtype).prepare(keep_original=True)
        if not same_kind(target, self.device):
            raise Unsupported(
                "device",
                str(target),
                f"the weights are packed for {self.device}: make them there, with prepare=False and "
                ".prepare() after .to(), or with keep_original=True",
            )
        return type(self)({**moved, "packed": self._tensors["packed"].to(target)}, self._shape, self._a_dtype)

    def state_dict(self) -> dict[str, Tensor]:
        """All of it as tensors, for torch.save, safetensors or pickle; from_state_dict() is the inverse.

        ``shape`` is int64 [n, k, experts, a_dtype]; ``packed`` stands for what it was made of, unless that was kept.
        """
        described = [*self._shape, _DTYPES.index(self._a_dtype)]
        shape = torch.tensor(described, dtype=torch.int64, device="cpu")
        return {"shape": shape, **{name: compact(tensor) for name, tensor in self._tensors.items()}}

    @classmethod
    def from_state_dict(cls: type[_Self], state: Mapping[str, Tensor]) -> _Self:
        """From state_dict(). Packed bytes must be of a format that their device takes, else Unsupported."""
        if not isinstance(state, Mapping) or not all(isinstance(value, Tensor) for value in state.values()):
            raise InvalidArgument("state", type(state).__name__, f"must be the tensors of {cls.__name__}.state_dict()")
        names = {*cls._original_names(), *cls._factors, *cls._biases, "packed", "shape"}
        unknown = sorted(set(state) - names)
        if unknown or not {"shape", *cls._factors} <= set(state) or ("packed" not in state and cls._matrices[0] not in state):
            raise InvalidArgument(
                "state", ", ".join(unknown or sorted(state)) or "empty", f"must be of {cls.__name__}.state_dict()"
            )
        described = state["shape"].reshape(-1).tolist()
        if (
            len(described) != 4
            or not all(isinstance(value, int) for value in described)
            or not 0 <= described[3] < len(_DTYPES)
        ):
            raise InvalidArgument("state", f"shape {described}", "must be [n, k, experts, number of a_dtype]")
        n, k, experts, number = described
        shape, a_dtype = Shape(n, k, experts), _DTYPES[number]
        tensors = {name: tensor for name, tensor in state.items() if name != "shape"}
        for name in cls._matrices:
            if name in tensors:
                tensors[name], found = codes_of(name, tensors[name])
                if found != shape:
                    raise InvalidArgument(
                        name, f"shape {list(tensors[name].shape)}", f"must be {n} x {k // 2}, as ``shape`` says"
                    )
                tensors[f"{name}_scales"] = scales_of(f"{name}_scales", tensors[f"{name}_scales"], shape, "auto")
        if "packed" in tensors:
            check_packed(cls._pack_operator(), len(cls._matrices), tensors["packed"], shape, a_dtype)
            tensors["packed"] = aligned(tensors["packed"])
        return cls(tensors, shape, a_dtype)

    def _pickled(self, compacted: bool) -> dict[str, Any]:
        # No tensor but those that live as long as this container: a spawned process gets them by file descriptors, which end
        # with their tensor. As bytes: plain pickle cannot read float8 back.
        kept = {name: compact(tensor) if compacted else tensor for name, tensor in self._tensors.items()}
        as_bytes = {
            name: tensor.view(torch.uint8) if tensor.dtype == torch.float8_e4m3fn else tensor for name, tensor in kept.items()
        }
        return {"shape": [*self._shape, _DTYPES.index(self._a_dtype)], **as_bytes}

    def __getstate__(self) -> dict[str, Any]:
        return self._pickled(compacted=True)

    def __setstate__(self, state: dict[str, Any]) -> None:
        shape = state["shape"]  # a tensor in pickles of older versions
        tensors = {**state, "shape": shape if isinstance(shape, Tensor) else torch.tensor(shape, device="cpu")}
        self.__dict__.update(self.from_state_dict(tensors).__dict__)

    def _with_rows(self: _Self, rows: slice) -> _Self:
        """These rows of every matrix: views, and biases cut; unpacked."""
        if not self._has_original:
            raise Unsupported(
                "shard", "packed weights", "needs the originals: prepare=False or keep_original=True, then .prepare()"
            )
        tensors = {name: self._tensors[name] for name in self._factors}
        for name in self._matrices:
            tensors[name] = self._tensors[name][..., rows, :]
            tensors[f"{name}_scales"] = slice_rows(self._tensors[f"{name}_scales"], self._shape, rows)
        for name in self._biases:
            if name in self._tensors:
                tensors[name] = self._tensors[name][..., rows].contiguous()
        return type(self)(tensors, self._shape._replace(n=rows.stop - rows.start), self._a_dtype)
