"""Linear layers of FP8 checkpoints, by torch: what lies beside NVFP4 in models of mixed precision."""

from __future__ import annotations

from typing import Any, Literal, Optional

import torch
from torch import Tensor, nn
from torch.nn import functional

from ._arguments import checked
from ._errors import InvalidArgument, Unsupported

Product = Literal["fp8", "16 bits", "16 bits, scaled after", "16 bits, block by block"]
_E4M3 = torch.float8_e4m3fn
_LARGEST = 448.0  # of E4M3
_ROWS_AT_ONCE = 1024  # while decoding, which takes 8 bytes for each weight
_LEAST_SCALE = {torch.float16: 2.0**-15}  # below it codes of E4M3 would lose bits


def _multiplies_fp8(device: torch.device, n: int, k: int) -> bool:
    """Whether torch's own product takes matrices of this shape there: compute capability 8.9 and multiples of 16."""
    return (
        device.type == "cuda"
        and torch.version.hip is None
        and torch.cuda.get_device_capability(device) >= (8, 9)
        and n % 16 == 0
        and k % 16 == 0
    )


def _power_of_two(scales: Tensor, dtype: torch.dtype) -> Tensor:
    """The largest power of two up to each scale, within what codes times it are exact in."""
    exponents = torch.frexp(scales.double()).exponent - 1
    found = torch.ldexp(torch.ones_like(scales, dtype=torch.float64), exponents)
    return found.clamp(min=_LEAST_SCALE.get(dtype, 2.0**-110), max=2.0**110).float()


class FP8Linear(nn.Module):
    """y = x @ W.T + bias with W in FP8: E4M3 codes and scales for the tensor [1], each row [N, 1], or blocks [rows, columns].

    ``product`` says how it is computed. "fp8": torch's own FP8 product, the input quantised as the checkpoint says. "16 bits":
    W decoded once to the dtype of the model, exactly; "scaled after": codes times a power of two, decoded exactly, and what is
    left of the scale times the sums; "block by block": the same for each block of columns. Forward only.
    """

    weight: Tensor
    weight_scale: Tensor
    bias: Optional[Tensor]
    input_scale: Optional[Tensor]

    @checked
    def __init__(
        self,
        weight: Tensor,
        weight_scale: Tensor,
        *,
        block: tuple[int, int] = (0, 0),
        bias: Optional[Tensor] = None,
        activations: Literal["none", "static", "dynamic"] = "none",
        input_scale: Optional[Tensor] = None,
        dtype: torch.dtype = torch.bfloat16,
    ) -> None:
        """weight: float8_e4m3fn [N, K]. weight_scale: multipliers, float or E8M0 as uint8. block: the sides of a block; (0, 0):
        a scale for the tensor or for each row. activations: how the checkpoint's writer quantised the input, for "fp8"."""
        super().__init__()
        if weight.dtype != _E4M3 or weight.dim() != 2:
            raise InvalidArgument("weight", f"{weight.dtype} {list(weight.shape)}", "must be float8_e4m3fn [N, K]")
        self.out_features, self.in_features = weight.shape
        self.block, self.activations, self.dtype = (int(block[0]), int(block[1])), activations, dtype
        scales = self._checked_scales(weight_scale)
        self.register_buffer("bias", bias)
        self.register_buffer("input_scale", None)
        if activations == "static" and input_scale is not None and input_scale.numel() == 1:
            value = float(input_scale)
            if 0 < value < float("inf"):  # else one that was never written: found at run time
                self.input_scale = input_scale.detach().float().reshape(1)
        wants_fp8 = activations != "none" and self.block == (0, 0)
        if wants_fp8 and _multiplies_fp8(weight.device, self.out_features, self.in_features):
            self.product: Product = "fp8"
            self.register_buffer("weight", weight.contiguous())
            self.register_buffer("weight_scale", scales)
            return
        self._decode(weight, scales)

    def _checked_scales(self, scales: Tensor) -> Tensor:
        """float32, [1, 1], [N, 1] or one for each block."""
        n, k = self.out_features, self.in_features
        if scales.dtype == torch.uint8 or "e8m0" in str(scales.dtype):
            exponents = scales.view(torch.uint8).to(torch.int32)
            if bool((exponents == 255).any()):
                raise InvalidArgument("weight_scale", "255", "is NaN in E8M0")
            scales = torch.ldexp(
                torch.ones(exponents.shape, dtype=torch.float64, device=scales.device), exponents - 127
            ).float()
        if not scales.is_floating_point():
            raise InvalidArgument("weight_scale", str(scales.dtype), "must be floats or E8M0")
        scales = scales.detach().float()
        if not bool(torch.isfinite(scales).all()):
            raise InvalidArgument("weight_scale", "NaN or infinite", "must be finite")
        if self.block == (0, 0):
            if scales.numel() not in (1, n):
                raise InvalidArgument("weight_scale", f"shape {list(scales.shape)}", f"must hold 1 or {n}")
            return scales.reshape(-1, 1)
        rows, columns = self.block
        wanted = (-(-n // rows), -(-k // columns))
        if tuple(scales.shape) != wanted:
            raise InvalidArgument("weight_scale", f"shape {list(scales.shape)}", f"must be {list(wanted)}")
        return scales

    def _decode(self, weight: Tensor, scales: Tensor) -> None:
        """Codes times powers of two, exactly; what is left of the scales stays beside them."""
        powers = _power_of_two(scales.abs().clamp(min=torch.finfo(torch.float32).tiny), self.dtype)
        left = scales / powers  # exact: a power of two divides
        decoded = torch.empty(weight.shape, dtype=self.dtype, device=weight.device)
        step = max(1, self.block[0]) * max(1, _ROWS_AT_ONCE // max(1, self.block[0]))
        for first in range(0, self.out_features, step):
            rows = slice(first, min(first + step, self.out_features))
            exact = weight[rows].float() * self._per_element(powers, rows)  # in FP32: powers of two, far from its ends
            decoded[rows] = exact
            if not torch.equal(decoded[rows].float(), exact):
                raise Unsupported(
                    "weight_scale", f"codes times their scales in {self.dtype}", "must be exact: load in bfloat16"
                )
        if bool((left == 1).all()):
            self.product = "16 bits"
        elif self.block == (0, 0):
            self.product = "16 bits, scaled after"
        else:
            self.product = "16 bits, block by block"
        self.register_buffer("weight", decoded)
        self.register_buffer("weight_scale", left)

    def _per_element(self, scales: Tensor, rows: slice) -> Tensor:
        if self.block == (0, 0):
            return scales if scales.shape[0] == 1 else scales[rows]
        height, width = self.block
        of_rows = scales[rows.start // height : -(-rows.stop // height)]
        wide = of_rows.repeat_interleave(width, dim=1)[:, : self.in_features]
        return wide.repeat_interleave(height, dim=0)[: rows.stop - rows.start]

    def decoded(self) -> Tensor:
        """[N, K] of float32: codes times scales."""
        scales = self.weight_scale
        if self.block != (0, 0):
            scales = self._per_element(scales, slice(0, self.out_features))
        return self.weight.float() * scales

    def forward(self, x: Tensor) -> Tensor:
        """[..., in_features] to [..., out_features] of the same dtype."""
        rows = x.reshape(-1, x.shape[-1])
        if self.product == "fp8":
            y = self._fp8_product(rows)
        elif self.product == "16 bits":
            y = functional.linear(rows, self.weight.to(x.dtype))
        elif self.product == "16 bits, scaled after":
            y = functional.linear(rows, self.weight.to(x.dtype)).float() * self.weight_scale.reshape(1, -1)
        else:
            y = self._by_blocks(rows)
        if self.bias is not None:
            y = y + self.bias
        return y.to(x.dtype).reshape(*x.shape[:-1], self.out_features)

    def _by_blocks(self, x: Tensor) -> Tensor:
        rows, columns = self.block
        y = torch.zeros(x.shape[0], self.out_features, dtype=torch.float32, device=x.device)
        for number, start in enumerate(range(0, self.in_features, columns)):
            part = functional.linear(x[:, start : start + columns], self.weight[:, start : start + columns].to(x.dtype))
            y += part.float() * self.weight_scale[:, number].repeat_interleave(rows)[: self.out_features]
        return y

    def _fp8_product(self, x: Tensor) -> Tensor:
        if self.input_scale is not None:
            scale = self.input_scale.reshape(1, 1).expand(x.shape[0], 1)
        else:
            # A product: torch divides by a number on a GPU with its reciprocal, on a CPU not, and a bit of the scale moves codes.
            scale = x.abs().amax(dim=-1, keepdim=True).float().clamp(min=1e-12) * (1 / _LARGEST)
        codes = (x.float() / scale).clamp(-_LARGEST, _LARGEST).to(_E4M3)
        weight_scale = self.weight_scale.reshape(1, -1).expand(1, self.out_features)
        y: Tensor = torch._scaled_mm(
            codes, self.weight.t(), scale.contiguous(), weight_scale.contiguous(), out_dtype=torch.bfloat16
        )
        return y

    def _apply(self, fn: Any, recurse: bool = True) -> FP8Linear:
        """A dtype is for activations, not for codes and scales; a device is for all."""
        for name, buffer in self._buffers.items():
            if buffer is not None:
                self._buffers[name] = fn(buffer.view(torch.uint8)).view(buffer.dtype)
        if self.product == "fp8" and self.weight.device.type not in ("cuda", "meta"):
            self._decode(self.weight, self.weight_scale)
        return self

    def saved_arguments(self) -> dict[str, Any]:
        """What from_saved() needs, as JSON has it."""
        return {
            "n": self.out_features,
            "k": self.in_features,
            "block": list(self.block),
            "activations": self.activations,
            "dtype": str(self.dtype).removeprefix("torch."),
            "product": self.product,
        }

    @classmethod
    def from_saved(cls, saved: dict[str, Any]) -> FP8Linear:
        """The module of a description, without buffers."""
        made = cls.__new__(cls)
        nn.Module.__init__(made)
        made.out_features, made.in_features = int(saved["n"]), int(saved["k"])
        made.block = (int(saved["block"][0]), int(saved["block"][1]))
        made.activations, made.product = saved["activations"], saved["product"]
        made.dtype = getattr(torch, str(saved["dtype"]))
        for name in ("bias", "input_scale", "weight", "weight_scale"):
            made.register_buffer(name, None)
        return made

    def extra_repr(self) -> str:
        return f"{self.in_features} -> {self.out_features}, FP8, product in {self.product}"
