"""Weights made ready once: gate and up of a layer (Weights), one matrix (LinearWeights), and the products of experts."""
from __future__ import annotations

from typing import Any, Literal, Optional

import torch
from torch import Tensor

from ._arguments import checked
from ._container import Container
from ._errors import InvalidArgument
from ._names import OwnLayout, ScaleLayout
from ._operands import Scalar, Shape, codes_of, linear_scales, scales_of, shard_range, slice_rows
from ._operators import refuse_grad, tensor
from .torch import QuantizedTensor, call, check_out_dtype, number, offsets_of, quantize

_ops = torch.ops.dualgemm
_NO_SCALE = "must be an nn.Linear of bfloat16, float16 or float32, in_features a multiple of 16"


def quantized_weight(name: str, weight: Tensor, four_over_six: bool) -> QuantizedTensor:
    """Codes, linear scales and global scale of a float matrix [N, K] or [E, N, K]; one global scale for each matrix."""
    if not tensor(name, weight).is_floating_point() or weight.dim() not in (2, 3) or weight.shape[-1] % 16 or weight.numel() == 0:
        raise InvalidArgument(name, f"{weight.dtype} {list(weight.shape)}", _NO_SCALE)
    if weight.device.type == "meta":
        raise InvalidArgument(name, "on the meta device", "must have its values")
    weight = weight.detach()
    if weight.dim() == 2:
        return quantize(weight if weight.stride(-1) == 1 else weight.contiguous(), four_over_six=four_over_six)
    parts = [quantize(one.contiguous(), four_over_six=four_over_six) for one in weight]
    return QuantizedTensor(torch.stack([part.codes for part in parts]),
                           torch.stack([part.scales.view(torch.uint8) for part in parts]).view(torch.float8_e4m3fn),
                           torch.cat([part.global_scale for part in parts]))


def _weight_of(name: str, linear: Any) -> Tensor:
    if not isinstance(linear, torch.nn.Linear):
        raise InvalidArgument(name, type(linear).__name__, _NO_SCALE)
    return linear.weight


class Weights(Container):
    """Gate and up of one layer, or of its experts, in NVFP4. Immutable; pickles, moves, saves.

    Its state is ``packed`` where the device has something to prepare, else the four checkpoint tensors. What a GPU packs
    depends on the activations: for bfloat16 by default (``a_dtype``; uint8 or float4_e2m1fn_x2 for NVFP4, float16 serves
    NVFP4 too). A call with others raises Unsupported unless the originals were kept; a CPU's packed bytes fit all
    activations.
    """
    _matrices, _factors, _biases = ("gate", "up"), ("alpha_gate", "alpha_up"), ("bias_gate", "bias_up")

    @staticmethod
    def _pack_operator() -> Any:
        return _ops.pack_weights

    @property
    def alpha_gate(self) -> Tensor:
        """float32 [1], or [E]: input scale * weight scale."""
        return self._tensors["alpha_gate"]

    @property
    def alpha_up(self) -> Tensor:
        return self._tensors["alpha_up"]

    @property
    def bias_gate(self) -> Optional[Tensor]:
        """float32 or bfloat16 [N] or [E, N]; None: no biases."""
        return self._tensors.get("bias_gate")

    @property
    def bias_up(self) -> Optional[Tensor]:
        return self._tensors.get("bias_up")

    @classmethod
    @checked
    def from_tensors(cls, gate: Tensor, gate_scales: Tensor, up: Tensor, up_scales: Tensor, *, alpha_gate: Scalar = 1.0,
                     alpha_up: Scalar = 1.0, bias_gate: Optional[Tensor] = None, bias_up: Optional[Tensor] = None,
                     prepare: bool = True, keep_original: bool = False, a_dtype: torch.dtype = torch.bfloat16,
                     scale_layout: ScaleLayout = "auto") -> Weights:
        """gate, up: codes [N, K/2] or [E, N, K/2], uint8 or float4_e2m1fn_x2; scales float8_e4m3fn or uint8 (``dualgemm``'s
        help has the layouts). alphas: a number or float32 [1] or [E]. biases: [N] or [E, N]; of two, a missing one is zeros.

        prepare: pack for this device. The originals may be freed afterwards unless keep_original; without prepare they are
        held, not copied. Raises InvalidArgument.
        """
        return cls._make([(gate, gate_scales), (up, up_scales)], [alpha_gate, alpha_up], [bias_gate, bias_up], prepare=prepare,
                         keep_original=keep_original, a_dtype=a_dtype, scale_layout=scale_layout)

    @classmethod
    @checked
    def from_stacked(cls, gate_up: Tensor, scales: Tensor, *,
                     order: Literal["gate_up", "up_gate", "alternating"] = "gate_up", alpha_gate: Scalar = 1.0,
                     alpha_up: Scalar = 1.0, bias: Optional[Tensor] = None, prepare: bool = True, keep_original: bool = False,
                     a_dtype: torch.dtype = torch.bfloat16, scale_layout: ScaleLayout = "auto") -> Weights:
        """Codes [2N, K/2] or [E, 2N, K/2] that hold both; scales and bias in the same order of rows.

        order: "gate_up" (w13 of vLLM, SGLang, Megatron), "up_gate" (w3w1 of TensorRT-LLM, FlashInfer), "alternating" (rows 0,
        2, 4 ... are gate's: gpt-oss). Views, no copy; but swizzled scales that do not part at a multiple of 128 rows become
        linear, and those of experts are copied.
        """
        codes, shape = codes_of("gate_up", gate_up)
        flat = scales_of("scales", scales, shape, scale_layout)
        n = shape.n // 2
        halves = {"gate_up": (slice(0, n), slice(n, 2 * n)), "up_gate": (slice(n, 2 * n), slice(0, n)),
                  "alternating": (slice(0, 2 * n, 2), slice(1, 2 * n, 2))}.get(order)
        if halves is None:
            raise InvalidArgument("order", repr(order), "must be gate_up, up_gate or alternating")
        if shape.n % 2:
            raise InvalidArgument("gate_up", f"{shape.n} rows", "must be even")
        parts = [(codes[..., rows, :], slice_rows(flat, shape, rows)) for rows in halves]
        if bias is not None and (tensor("bias", bias).dim() < 1 or bias.shape[-1] != shape.n or bias.layout != torch.strided):
            raise InvalidArgument("bias", f"{bias.layout} {list(bias.shape)}", f"must be [{shape.n}] or [E, {shape.n}]")
        biases = [None if bias is None else bias[..., rows] for rows in halves]
        return cls._make(parts, [alpha_gate, alpha_up], biases, prepare=prepare, keep_original=keep_original, a_dtype=a_dtype,
                         scale_layout="auto")

    @classmethod
    @checked
    def from_linear(cls, gate: torch.nn.Linear, up: torch.nn.Linear, *, four_over_six: bool = False, prepare: bool = True,
                    keep_original: bool = False, a_dtype: Optional[torch.dtype] = None) -> Weights:
        """Quantises two nn.Linear of bfloat16, float16 or float32; each its own global scale (alpha). Biases come along.
        a_dtype: that of the weights."""
        parts = [quantized_weight(f"{name}.weight", _weight_of(name, linear), four_over_six)
                 for name, linear in (("gate", gate), ("up", up))]
        return cls.from_tensors(parts[0].codes, parts[0].scales, parts[1].codes, parts[1].scales,
                                alpha_gate=parts[0].global_scale, alpha_up=parts[1].global_scale, bias_gate=gate.bias,
                                bias_up=up.bias, prepare=prepare, keep_original=keep_original,
                                a_dtype=a_dtype or gate.weight.dtype)

    def __call__(self, x: Tensor | QuantizedTensor, x_scales: Optional[Tensor] = None, *, alpha_gate: Optional[Scalar] = None,
                 alpha_up: Optional[Scalar] = None, out: Optional[Tensor] = None, out_dtype: Optional[torch.dtype] = None,
                 **like_glu: Any) -> Tensor:
        """D [..., M, N] as glu() has it. x: bfloat16, float16, on a CPU float32 [..., M, K]; NVFP4 codes [..., M, K/2] with
        x_scales; or a QuantizedTensor, whose global scale then is a factor. scale_layout is that of x_scales. alphas: instead
        of the weights' own.
        """
        return self._glu(x, x_scales, [alpha_gate, alpha_up], None, [], out, out_dtype, like_glu)

    def _glu(self, x: Any, x_scales: Optional[Tensor], alphas: list[Any], operator: Any, groups: list[Any],
             out: Optional[Tensor], out_dtype: Optional[torch.dtype], named: dict[str, Any]) -> Tensor:
        x, x_scales, own = self._rows_of(x, x_scales, alphas, named)
        refuse_grad(x=x, out=out)
        if out is not None:
            check_out_dtype(out, out_dtype)
        matrices, packed = self._operands_for(x, named.get("strategy", "auto"))
        factors = [*own, named.pop("a_row_scale", None), self.bias_gate, self.bias_up]
        if operator is not None:
            arguments = [x, x_scales, *matrices, packed, self.n, self.num_experts, *groups, *factors]
        elif packed is not None:
            operator, arguments = _ops.glu_packed, [x, x_scales, packed, self.n, self.num_experts, *factors]
        else:
            operator, arguments = _ops.glu, [x, x_scales, *matrices, *factors]
        if out is None:
            result: Tensor = call(operator, *arguments, out_dtype=out_dtype, **named)
            return result
        call(operator.out, *arguments, **named, out=out)
        return out

    def glu_nvfp4(self, x: Tensor | QuantizedTensor, x_scales: Optional[Tensor] = None, *, d_global_scale: float | Tensor,
                  d_scale_layout: OwnLayout = "linear", alpha_gate: Optional[Scalar] = None, alpha_up: Optional[Scalar] = None,
                  **like_glu: Any) -> QuantizedTensor:
        """D in NVFP4, as the down projection wants it; N % 16 == 0. d_global_scale: dequantising multiplier, finite and > 0 (a
        tensor on a GPU is read by the host). Otherwise as a call."""
        x, x_scales, own = self._rows_of(x, x_scales, [alpha_gate, alpha_up], like_glu)
        refuse_grad(x=x)
        matrices, packed = self._operands_for(x, like_glu.get("strategy", "auto"))
        scale = number("d_global_scale", d_global_scale)
        codes, scales = call(_ops.glu_nvfp4, x, x_scales, *matrices, packed, self.n, self.num_experts, scale, *own,
                             like_glu.pop("a_row_scale", None), self.bias_gate, self.bias_up, d_scale_layout=d_scale_layout,
                             **like_glu)
        return QuantizedTensor(codes, scales, torch.full((1,), scale, dtype=torch.float32, device=x.device))

    @checked
    def shard(self, rank: int, world_size: int) -> Weights:
        """Rows [rank*N/world_size, ...) of gate and the same of up: column parallel. Any N % world_size == 0.

        Views of the originals, which packed weights must have kept; packed again if they were.
        """
        part = self._with_rows(shard_range(self.n, rank, world_size, "rows"))
        return part.prepare(keep_original=True) if self.is_packed else part


class LinearWeights(Container):
    """One NVFP4 matrix, a layer's down for example; otherwise as Weights."""
    _matrices, _factors, _biases = ("w",), ("alpha",), ("bias",)

    @staticmethod
    def _pack_operator() -> Any:
        return _ops.pack_linear

    @property
    def alpha(self) -> Tensor:
        """float32 [1], or [E]: input scale * weight scale."""
        return self._tensors["alpha"]

    @property
    def bias(self) -> Optional[Tensor]:
        return self._tensors.get("bias")

    @classmethod
    @checked
    def from_tensors(cls, w: Tensor, w_scales: Tensor, *, alpha: Scalar = 1.0, bias: Optional[Tensor] = None,
                     prepare: bool = True, keep_original: bool = False, a_dtype: torch.dtype = torch.bfloat16,
                     scale_layout: ScaleLayout = "auto") -> LinearWeights:
        """w: codes [N, K/2] or [E, N, K/2]; the rest as Weights.from_tensors()."""
        return cls._make([(w, w_scales)], [alpha], [bias], prepare=prepare, keep_original=keep_original, a_dtype=a_dtype,
                         scale_layout=scale_layout)

    @classmethod
    @checked
    def from_linear(cls, linear: torch.nn.Linear, *, four_over_six: bool = False, prepare: bool = True,
                    keep_original: bool = False, a_dtype: Optional[torch.dtype] = None) -> LinearWeights:
        """Quantises an nn.Linear of bfloat16, float16 or float32; a_dtype: that of the weight."""
        w = quantized_weight("weight", _weight_of("linear", linear), four_over_six)
        return cls.from_tensors(w.codes, w.scales, alpha=w.global_scale, bias=linear.bias, prepare=prepare,
                                keep_original=keep_original, a_dtype=a_dtype or linear.weight.dtype)

    def __call__(self, x: Tensor | QuantizedTensor, x_scales: Optional[Tensor] = None, *, alpha: Optional[Scalar] = None,
                 residual: Optional[Tensor] = None, offsets: Optional[Tensor] = None, m_indices: Optional[Tensor] = None,
                 masked_m: Optional[Tensor] = None, out: Optional[Tensor] = None, out_dtype: Optional[torch.dtype] = None,
                 **like_linear: Any) -> Tensor:
        """D [..., M, N] as linear() has it; with offsets, m_indices or masked_m groups, as m_grouped_glu_* have them."""
        x, x_scales, own = self._rows_of(x, x_scales, [alpha], like_linear)
        refuse_grad(x=x, residual=residual, out=out)
        if out is not None:
            check_out_dtype(out, out_dtype)
        matrices, packed = self._operands_for(x, like_linear.get("strategy", "auto"))
        if offsets is not None:
            offsets = offsets_of(offsets, self.num_experts)
        arguments = [
            x, x_scales, *matrices, packed, self.n, self.num_experts, offsets, m_indices, masked_m, *own, self.bias, residual,
            like_linear.pop("a_row_scale", None)
        ]
        if out is None:
            result: Tensor = call(_ops.linear, *arguments, out_dtype=out_dtype, **like_linear)
            return result
        call(_ops.linear.out, *arguments, **like_linear, out=out)
        return out

    @checked
    def shard(self, rank: int, world_size: int, *, dim: Literal[0, 1] = 0) -> LinearWeights:
        """dim 0: rows, column parallel, as Weights.shard(). dim 1: columns, row parallel: K a multiple of 16 * world_size; the
        results of all ranks are to be summed, so that the bias stays with rank 0."""
        if dim == 0:
            part = self._with_rows(shard_range(self.n, rank, world_size, "rows"))
        elif dim == 1:
            columns = shard_range(self.k, rank, world_size, "columns", 16)
            part = self._with_rows(slice(0, self.n))  # refuses packed weights without originals
            tensors = dict(part._tensors)
            tensors["w"] = tensors["w"][..., columns.start // 2:columns.stop // 2]
            scales = linear_scales(tensors["w_scales"], self._shape)
            tensors["w_scales"] = scales[..., columns.start // 16:columns.stop // 16]
            if rank > 0:
                tensors.pop("bias", None)
            part = LinearWeights(tensors, Shape(self.n, columns.stop - columns.start, self._shape.experts), self._a_dtype)
        else:
            raise InvalidArgument("dim", repr(dim), "must be 0 or 1")
        return part.prepare(keep_original=True) if self.is_packed else part


def check_container(name: str, value: Any, kind: type[Container]) -> None:
    if not isinstance(value, kind):
        raise InvalidArgument(name, type(value).__name__, f"must be {kind.__name__}")


def m_grouped_glu_contiguous(a: Tensor | QuantizedTensor, w: Weights, *, a_scales: Optional[Tensor] = None,
                             offsets: Optional[Tensor] = None, m_indices: Optional[Tensor] = None, out: Optional[Tensor] = None,
                             out_dtype: Optional[torch.dtype] = None, **like_glu: Any) -> Tensor:
    """D [M, N] of a [M, K]: the rows of each expert together, no padding demanded. Nothing synchronises.

    offsets: int32 [E+1], or torch's ``offs`` [E] of ends. m_indices: int32 [M], the expert of each row, -1 = row not wanted
    (left as it is in ``out``, 0 without). Exactly one of the two, on the device of ``a``. Swizzled a_scales with offsets: each
    expert's rows start at a tile of 128; on a GPU, whose offsets the host does not read, with room for any of them, that is
    (M - 1) / 128 + min(M, E) tiles of rows.
    """
    check_container("w", w, Weights)
    if (offsets is None) == (m_indices is None):
        raise InvalidArgument("offsets", "neither" if offsets is None else "with m_indices",
                              "exactly one of offsets and m_indices must be given")
    ends = None if offsets is None else offsets_of(offsets, w.num_experts)
    return w._glu(a, a_scales,
                  [like_glu.pop("alpha_gate", None), like_glu.pop("alpha_up", None)], _ops.m_grouped_glu_contiguous,
                  [ends, m_indices], out, out_dtype, like_glu)


def m_grouped_glu_masked(a: Tensor | QuantizedTensor, w: Weights, masked_m: Tensor, *, a_scales: Optional[Tensor] = None,
                         expected_m: Optional[int] = None, out: Optional[Tensor] = None,
                         out_dtype: Optional[torch.dtype] = None, **like_glu: Any) -> Tensor:
    """D [E, Mmax, N] of a [E, Mmax, K]; masked_m: int32 [E], rows of each expert; rows beyond are neither read nor written (0
    without ``out``). expected_m: a hint as DeepGEMM has it; nothing depends on it. For CUDA graphs and DeepEP's low
    latency."""
    check_container("w", w, Weights)
    return w._glu(a, a_scales, [like_glu.pop("alpha_gate", None), like_glu.pop("alpha_up", None)], _ops.m_grouped_glu_masked,
                  [masked_m], out, out_dtype, like_glu)
