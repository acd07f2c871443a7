"""NVFP4 matrices as buffers of a module: they move, save and load as such, prepared or not. And one linear layer of them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar, Literal, Optional, TypeVar

import torch
from torch import Tensor, nn

from . import _container as container
from ._arguments import checked
from ._container import Container, activation_dtype, check_packed, choose_operands, same_kind
from ._errors import DualGemmError, InvalidArgument, Unsupported
from ._operands import Shape, activation_kind, aligned, compact
from ._operators import check_storage, refuse_grad, tensor
from ._quantized import call, check_transform, number
from .weights import LinearWeights, check_container

_ops = torch.ops.dualgemm
_linear = _ops.linear.default  # the overload: _ops.linear would look for one on every call
InputType = Literal["bf16", "nvfp4"]
_Self = TypeVar("_Self", bound="PackedModule")
_Kind = TypeVar("_Kind", bound="type[PackedModule]")
SAVED_KINDS: dict[str, type[PackedModule]] = {}
"""The classes that a configuration in a file may name; classes derived from them are not among these."""


def saved_by_name(kind: _Kind) -> _Kind:
    """Lets from_saved() of the class be found by its name."""
    SAVED_KINDS[kind.__name__] = kind
    return kind


def check_input_type(input_dtype: str) -> None:
    if not isinstance(input_dtype, str) or input_dtype not in ("bf16", "nvfp4"):
        raise InvalidArgument("input_dtype", repr(input_dtype), "must be bf16 or nvfp4")


class PackedModule(nn.Module):
    """Base of the modules here. Its tensors are buffers, so that no optimiser and no .to(dtype) changes them.

    MATRIX_codes is uint8, MATRIX_scales float8_e4m3fn, alphas float32 [1] or [E]; after finalize() ``packed`` stands for
    codes and scales. load_state_dict() takes either state whatever the module's own is, and packs again where it was packed.
    """

    _weights: ClassVar[type[Container]]
    _no_codes: ClassVar[list[Optional[Tensor]]]
    packed: Optional[Tensor]
    input_scale: Optional[Tensor]
    pre_quant_scale: Optional[Tensor]

    def __init_subclass__(cls, **kw: Any) -> None:
        super().__init_subclass__(**kw)
        if hasattr(cls, "_weights"):
            cls._no_codes = [None, None] * len(cls._weights._matrices)

    def __init__(self, shape: Shape, *, bias: bool, input_dtype: InputType, input_scale: Optional[float], device: Any) -> None:
        super().__init__()
        check_input_type(input_dtype)
        if input_scale is not None:
            input_scale = number("input_scale", input_scale)
            if not 0 < input_scale < float("inf"):
                raise InvalidArgument("input_scale", repr(input_scale), "must be finite and > 0")
        if any(isinstance(size, bool) or not isinstance(size, int) for size in shape):
            raise InvalidArgument("shape", f"{shape.n!r} x {shape.k!r}", "must be integers")
        if shape.experts < 0:
            raise InvalidArgument("num_experts", str(shape.experts), "must be >= 0")
        if shape.n < 1 or shape.k < 16 or shape.k % 16:
            raise InvalidArgument("shape", f"{shape.n} x {shape.k}", "must be N >= 1 by K, a positive multiple of 16")
        self.shape, self.input_dtype, self.a_dtype = shape, input_dtype, torch.bfloat16
        self.gets_quantized_rows = False  # True: GatedMLPParallel calls the product with NVFP4
        self._allocate(device)
        for name in self._weights._factors:
            self.register_buffer(name, torch.ones(shape.layers, dtype=torch.float32, device=device))
        for name in self._weights._biases:
            self.register_buffer(name, self._empty_bias(device) if bias else None)
        self.register_buffer("packed", None)
        given = None if input_scale is None or input_dtype != "nvfp4" else input_scale
        self.register_buffer(
            "input_scale", None if given is None else torch.full((1,), given, dtype=torch.float32, device=device)
        )
        self._input_scale = given  # the same as a number: an output's global scale must not be read from a GPU
        self.register_buffer("pre_quant_scale", None)
        self.hadamard = 0
        self._put_absent_last()

    def set_hadamard(self: _Self, size: int) -> _Self:
        """Each so many columns of x, behind pre_quant_scale, times a Hadamard matrix: dualgemm.transform_rows(); 0: none."""
        check_transform(None, size)
        if size not in (0, 16, 32, 64, 128, 256) or (size and self.shape.k % size):
            rule = f"must be 0, or 16, 32, 64, 128 or 256 and divide the {self.shape.k} columns"
            raise InvalidArgument("size", str(size), rule)
        self.hadamard = size
        return self

    def set_pre_quant_scale(self: _Self, factors: Optional[Tensor]) -> _Self:
        """AWQ's factors of the columns of x, [K], by which x is multiplied first, rounded once to its dtype; None: none."""
        if factors is not None:
            if not factors.is_floating_point() or list(factors.shape) != [self.shape.k]:
                raise InvalidArgument("factors", f"{factors.dtype} {list(factors.shape)}", f"must be floats [{self.shape.k}]")
            factors = factors.detach().to(self._device(), torch.float32)
        self.register_buffer("pre_quant_scale", factors)
        self._put_absent_last()
        return self

    def _sizes(self, columns: int) -> tuple[int, ...]:
        return (self.shape.experts, self.shape.n, columns) if self.shape.experts else (self.shape.n, columns)

    def _empty_bias(self, device: Any) -> Tensor:
        return torch.zeros(self._sizes(1)[:-1], dtype=torch.float32, device=device)

    def _allocate(self, device: Any) -> None:
        for name in self._weights._matrices:
            self.register_buffer(f"{name}_codes", torch.zeros(self._sizes(self.shape.k // 2), dtype=torch.uint8, device=device))
            scales = torch.zeros(self._sizes(self.shape.k // 16), dtype=torch.uint8, device=device)
            self.register_buffer(f"{name}_scales", scales.view(torch.float8_e4m3fn))

    @property
    def is_packed(self) -> bool:
        return self._buffers.get("packed") is not None

    def _device(self) -> torch.device:
        factor = self._buffers[self._weights._factors[0]]
        assert factor is not None
        return factor.device

    def _take(self: _Self, weights: Container, alpha_factor: float = 1.0) -> _Self:
        """The tensors of ``weights``; its alphas times a factor."""
        if weights._shape != self.shape:
            raise InvalidArgument(
                "weights",
                f"{weights.n} x {weights.k}, {weights.num_experts} experts",
                f"must be {self.shape.n} x {self.shape.k}, {self.shape.layers} experts",
            )
        tensors = weights._tensors
        for name in self._weights._matrices:
            for end, source in (("codes", name), ("scales", f"{name}_scales")):
                self.register_buffer(f"{name}_{end}", compact(tensors[source]) if source in tensors else None)
        for name in self._weights._factors:
            self.register_buffer(name, tensors[name] * alpha_factor)
        for name in self._weights._biases:
            self.register_buffer(name, tensors.get(name))
        self.packed, self.a_dtype = tensors.get("packed"), weights.a_dtype
        if self._input_scale is not None:
            self.input_scale = torch.full((1,), self._input_scale, dtype=torch.float32, device=weights.device)
        self._put_absent_last()
        return self

    def _put_absent_last(self) -> None:
        """torch.export() numbers buffers without those that are None: they may not stand between others."""
        for name in [name for name, buffer in self._buffers.items() if buffer is None]:
            self._buffers[name] = self._buffers.pop(name)

    def saved_arguments(self) -> dict[str, Any]:
        """What from_saved() needs beside shape, input_dtype and inner modules, as JSON has it."""
        return {}

    @classmethod
    def from_saved(cls, saved: dict[str, Any], inner: Callable[[dict[str, Any]], nn.Module], **common: Any) -> PackedModule:
        """The module of a description; ``inner`` makes the modules inside of it."""
        raise NotImplementedError

    def weights(self) -> Container:
        """The same tensors as Weights (LinearWeights), not copied."""
        tensors: dict[str, Tensor] = {}
        for name in self._weights._matrices:
            for end, key in (("codes", name), ("scales", f"{name}_scales")):
                if (buffer := self._buffers.get(f"{name}_{end}")) is not None:
                    tensors[key] = buffer
        for name in (*self._weights._factors, *self._weights._biases, "packed"):
            if (buffer := self._buffers.get(name)) is not None:
                tensors[name] = buffer
        return self._weights(tensors, self.shape, self.a_dtype)

    def _rows_to_come(self, a_dtype: Optional[torch.dtype]) -> torch.dtype:
        """For what to pack. Rows of a module that does not quantise them are of 16 or 32 bits, and NVFP4 only where somebody
        else hands them over quantised."""
        wanted = activation_dtype(a_dtype or torch.bfloat16)  # refuses others
        if self.input_dtype == "nvfp4" or self.gets_quantized_rows:
            return torch.uint8
        return torch.bfloat16 if wanted == torch.uint8 else wanted

    @checked
    def finalize(self: _Self, *, a_dtype: Optional[torch.dtype] = None, keep_original: bool = False) -> _Self:
        """Packs for the device that the module is on now; where it has nothing to prepare, nothing happens.

        a_dtype: of the activations to come, 16 or 32 bits, which decides what a GPU packs; bfloat16 by default. NVFP4 follows
        from input_dtype, or from GatedMLPParallel(sequence_parallel=True): torch.uint8 is taken for it, and means bfloat16 to a
        module whose rows come in 16 bits. keep_original: the codes stay too, so that the module may move to another kind of
        device, at the price of their memory. Submodules that pack are packed as well.
        """
        wanted = self._rows_to_come(a_dtype)
        fits = activation_kind(wanted) == activation_kind(self.a_dtype) or not container.packs_by_rows(self._device())
        if self.is_packed and not fits:
            if self._buffers[f"{self._weights._matrices[0]}_codes"] is None:
                raise Unsupported(
                    "a_dtype",
                    str(wanted),
                    f"the module is packed for {activation_kind(self.a_dtype)} already, without keep_original",
                )
            self.packed = None
        if not self.is_packed:
            self.a_dtype = wanted
            self._take(self.weights().prepare(keep_original=keep_original))
        for child in self.children():
            if isinstance(child, PackedModule):
                child.finalize(a_dtype=a_dtype, keep_original=keep_original)
        return self

    def _operands_for(self, x: Tensor) -> tuple[list[Optional[Tensor]], Optional[Tensor]]:
        # Buffers are read from their dictionary here and below: nn.Module's way to them costs the host 0.3 us each.
        buffers = self._buffers
        if buffers["packed"] is not None and x.dtype == self.a_dtype:
            return self._no_codes, buffers["packed"]
        original = [buffers[f"{name}_{end}"] for name in self._weights._matrices for end in ("codes", "scales")]
        return choose_operands(original, buffers["packed"], x, self.a_dtype)

    def _check_columns(self, x: Tensor) -> None:
        if x.dim() < 1 or x.shape[-1] != self.shape.k:
            raise InvalidArgument("x", f"shape {list(x.shape)}", f"must be [..., {self.shape.k}]")

    def _rows_of(self, x: Tensor) -> tuple[Tensor, Optional[Tensor], Optional[Tensor]]:
        """What came in, checked, as _quantized() gives it."""
        refuse_grad(x=x)
        self._check_columns(x)
        return self._quantized(x if x.is_contiguous() else check_storage("x", x).contiguous())

    def _quantized(self, x: Tensor) -> tuple[Tensor, Optional[Tensor], Optional[Tensor]]:
        """Activations, their scales and one factor for each row, by input_dtype."""
        factors, size = self._buffers["pre_quant_scale"], self.hadamard
        if self.input_dtype == "bf16":
            if factors is not None or size:
                x = call(_ops.transform_rows, x, factors, hadamard=size)
            return x, None, None
        scale = self._buffers["input_scale"]
        per_row = scale is None
        codes, scales, found = call(_ops.quantize_nvfp4, x, scale, factors, per_row=per_row, hadamard=size)
        return codes, scales, found.reshape(-1) if per_row else None

    # ---- moving and loading --------------------------------------------------------------------------------------------------

    def _apply(self: _Self, fn: Callable[[Tensor], Tensor], recurse: bool = True) -> _Self:
        here = self._device()
        target = fn(torch.empty(0, dtype=torch.uint8, device=here)).device
        packs_anew = False
        if self.is_packed and "meta" not in (here.type, target.type) and not same_kind(here, target):
            packs_anew = self._buffers[f"{self._weights._matrices[0]}_codes"] is not None
            if not packs_anew:
                raise Unsupported(
                    "device",
                    str(target),
                    f"{type(self).__name__} is packed for {here}: call finalize() after .to(), or finalize(keep_original=True)",
                )
        if recurse:
            for child in self.children():
                child._apply(fn)
        if packs_anew:
            self.packed = None
        for name, buffer in self._buffers.items():
            if buffer is not None:  # as bytes: a dtype is for activations, not for codes, scales and alphas
                self._buffers[name] = fn(buffer.view(torch.uint8)).view(buffer.dtype)
        return self.finalize(a_dtype=self.a_dtype, keep_original=True) if packs_anew else self

    def _load_from_state_dict(
        self,
        state_dict: dict[str, Any],
        prefix: str,
        local_metadata: dict[str, Any],
        strict: bool,
        missing_keys: list[str],
        unexpected_keys: list[str],
        error_msgs: list[str],
    ) -> None:
        own = {
            name[len(prefix) :]: tensor
            for name, tensor in state_dict.items()
            if name.startswith(prefix) and isinstance(tensor, Tensor)
        }
        assigns = bool(local_metadata.get("assign_to_params_buffers"))
        device = self._device()
        codes = [f"{name}_codes" for name in self._weights._matrices]
        scales = [f"{name}_scales" for name in self._weights._matrices]
        was_packed = self.is_packed
        for name in codes:
            if name in own and own[name].dtype == torch.float4_e2m1fn_x2:
                own[name] = own[name].view(torch.uint8)
        for name in scales:  # copy_() would convert numbers
            if name in own and own[name].dtype == torch.uint8:
                own[name] = own[name].view(torch.float8_e4m3fn)
        has_codes = any(name in own for name in codes)
        if has_codes and self._buffers[codes[0]] is None:
            self._allocate(device)
        if "packed" in own:
            try:
                found = own["packed"] if assigns or device.type == "meta" else own["packed"].to(device)
                if found.device.type != "meta":
                    check_packed(self._weights._pack_operator(), len(codes), found, self.shape, self.a_dtype)
            except DualGemmError as error:
                error_msgs.append(f"{prefix}packed: {error}")
                return
            self.packed = torch.empty_like(found)
            for name in (*codes, *scales):
                if not has_codes:
                    setattr(self, name, None)
        elif has_codes:
            self.packed = None
        for name in (*self._weights._biases, "input_scale", "pre_quant_scale"):
            if name in own and self._buffers.get(name) is None:
                setattr(self, name, torch.empty_like(own[name], device=device))
        for name in scales:  # swizzled ones are flat
            buffer = self._buffers.get(name)
            if (
                name in own
                and buffer is not None
                and own[name].shape != buffer.shape
                and own[name].numel() == self.shape.layers * self.shape.span
            ):
                setattr(self, name, torch.empty_like(own[name], device=device))
        merged = {**state_dict, **{prefix + name: tensor for name, tensor in own.items()}}
        super()._load_from_state_dict(merged, prefix, local_metadata, strict, missing_keys, unexpected_keys, error_msgs)
        if self.packed is not None and self.packed.device.type != "meta":
            self.packed = aligned(self.packed)
        if self.input_scale is not None and self.input_scale.device.type != "meta":
            self._input_scale = float(self.input_scale)
        self._put_absent_last()
        if was_packed and not self.is_packed and self._device().type != "meta":
            PackedModule.finalize(self, a_dtype=self.a_dtype)

    def after_loading(self) -> None:
        """After a loader has put tensors in the place of the buffers: refuses packed bytes that are not this device's."""
        if self.packed is not None and self.packed.device.type != "meta":
            check_packed(self._weights._pack_operator(), len(self._weights._matrices), self.packed, self.shape, self.a_dtype)
            self.packed = aligned(self.packed)
        if self.input_scale is not None and self.input_scale.device.type != "meta":
            self._input_scale = float(self.input_scale)

    def extra_repr(self) -> str:
        experts = f"{self.shape.experts} experts, " if self.shape.experts else ""
        state = "packed" if self.is_packed else "not packed"
        return f"{experts}{self.shape.k} -> {self.shape.n}, input {self.input_dtype}, {state}"


@saved_by_name
class NVFP4Linear(PackedModule):
    """y = x @ W.T + bias with W in NVFP4: what an MLP's ``down`` may be. Buffers w_codes, w_scales, alpha, bias.

    input_dtype "bf16": x as it comes, 16 or 32 bits. "nvfp4": x quantised on the fly, each row with its own global scale, or
    all with input_scale, which is a factor of alpha then. num_experts > 0: matrices of experts, for GatedExperts.
    """

    _weights = LinearWeights
    w_codes: Optional[Tensor]
    w_scales: Optional[Tensor]
    alpha: Tensor
    bias: Optional[Tensor]

    @checked
    def __init__(
        self,
        in_features: int,
        out_features: int,
        *,
        bias: bool = False,
        input_dtype: InputType = "bf16",
        input_scale: Optional[float] = None,
        num_experts: int = 0,
        device: Any = None,
    ) -> None:
        super().__init__(
            Shape(out_features, in_features, num_experts),
            bias=bias,
            input_dtype=input_dtype,
            input_scale=input_scale,
            device=device,
        )
        self.in_features, self.out_features = in_features, out_features

    @classmethod
    def from_weights(
        cls, weights: LinearWeights, *, input_dtype: InputType = "bf16", input_scale: Optional[float] = None
    ) -> NVFP4Linear:
        """Takes the tensors; with input_scale and input_dtype "nvfp4" alpha becomes alpha * input_scale."""
        check_container("weights", weights, LinearWeights)
        made = cls(
            weights.k,
            weights.n,
            input_dtype=input_dtype,
            input_scale=input_scale,
            num_experts=weights._shape.experts,
            device="meta",
        )
        return made._take(weights, made._input_scale or 1.0)

    @classmethod
    @checked
    def from_float(
        cls,
        linear: nn.Linear,
        *,
        input_dtype: InputType = "bf16",
        input_scale: Optional[float] = None,
        four_over_six: bool = False,
    ) -> NVFP4Linear:
        """Quantises an nn.Linear of bfloat16, float16 or float32."""
        return cls.from_weights(
            LinearWeights.from_linear(linear, four_over_six=four_over_six, prepare=False),
            input_dtype=input_dtype,
            input_scale=input_scale,
        )

    @classmethod
    def from_saved(cls, saved: dict[str, Any], inner: Callable[[dict[str, Any]], nn.Module], **common: Any) -> NVFP4Linear:
        return cls(int(saved["k"]), int(saved["n"]), num_experts=int(saved["experts"]), **common)

    @property
    def output_scale(self) -> Optional[float]:
        """With which global scale the producer of x may write NVFP4 itself; None: it is to come in 16 or 32 bits."""
        if self._input_scale is None or self.hadamard or self.in_features % 16:
            return None
        return None if self._buffers["pre_quant_scale"] is not None else self._input_scale

    def forward(self, x: Tensor) -> Tensor:
        """[..., in_features] to [..., out_features] of the same dtype."""
        if tensor("x", x).dim() == 1:
            result: Tensor = self.forward(x[None])[0]
            return result
        rows, scales, row_scale = self._rows_of(x)
        return self.product(rows, scales, row_scale, x.dtype)

    def product(
        self,
        x: Tensor,
        x_scales: Optional[Tensor],
        row_scale: Optional[Tensor],
        out_dtype: torch.dtype,
        masked_m: Optional[Tensor] = None,
        activation: str = "identity",
    ) -> Tensor:
        """The product of activations that are ready; masked_m int32 [E]: of groups."""
        (codes, scales), packed = self._operands_for(x)
        factors = (self._buffers["alpha"], self._buffers["bias"], None, row_scale)
        n, layers = self.shape.n, self.shape.layers
        # An argument by name costs the host 1 us: those that are the operator's own are left out.
        named: dict[str, Any] = {} if x.dtype == out_dtype else {"out_dtype": out_dtype}
        if activation != "identity":
            named["activation"] = activation
        result: Tensor = call(_linear, x, x_scales, codes, scales, packed, n, layers, None, None, masked_m, *factors, **named)
        return result

    def product_nvfp4(
        self,
        x: Tensor,
        x_scales: Optional[Tensor],
        row_scale: Optional[Tensor],
        d_global_scale: float,
        activation: str = "identity",
    ) -> tuple[Tensor, Tensor]:
        """The same, as codes and linear scales for a next product."""
        (codes, scales), packed = self._operands_for(x)
        d, d_scales = call(
            _ops.linear_nvfp4,
            x,
            x_scales,
            codes,
            scales,
            packed,
            self.shape.n,
            self.shape.layers,
            d_global_scale,
            None,
            None,
            None,
            self.alpha,
            self.bias,
            row_scale,
            activation=activation,
        )
        return d, d_scales
