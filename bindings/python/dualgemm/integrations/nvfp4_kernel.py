"""The four entry points that transformers' NVFP4Linear wants of a kernel, on this library: any GPU or CPU that it runs on.

NVFP4Config makes NVFP4 of a float checkpoint's linear layers while they are loaded. transformers takes the kernel for it from its
hub, and wants compute capability 10; after

    dualgemm.integrations.nvfp4_kernel.use()

it takes these, and the model may lie on any one device:

    from_pretrained("model/", quantization_config=transformers.NVFP4Config(), device_map="cpu")

Activations stay in the type that they have (W4A16). Tested with transformers 5.24 on a CPU.
"""

from __future__ import annotations

import importlib
from typing import Any, NamedTuple

import torch
from torch import Tensor

from .._errors import InvalidArgument, Unsupported
from .._products import linear
from .._quantized import quantize, swizzle_scales


class PackedWeight(NamedTuple):
    """A layer's weights, [N, K], in NVFP4."""

    qweight: Tensor  # uint8 [N, K/2]: E2M1 codes, the even one of two in the low bits
    sf: Tensor  # int32 [N rounded up to 128, K/16 rounded up to 4, over 4]: E4M3 scales, swizzled
    global_scale: Tensor  # float32 [1], dequantising
    n: int
    k: int
    sf_rowmajor: Tensor  # uint8 [N, K/16]: E4M3 scales


def swizzled_sf_shape(n: int, k: int) -> tuple[int, int]:
    """The shape of PackedWeight.sf."""
    if n < 1 or k < 16 or k % 16 != 0:
        raise InvalidArgument("n, k", f"{n}, {k}", "n must be >= 1, k a positive multiple of 16")
    return -(-n // 128) * 128, -(-k // 64)


def pack(weight: Tensor, device: Any = None) -> PackedWeight:
    """Quantises a matrix [N, K] in float32, fp16 or bf16 with its own global scale, on ``device``, the matrix's by default."""
    if weight.dim() != 2:
        raise InvalidArgument("weight", f"{weight.dim()} dimensions", "must be 2, [N, K]")
    n, k = weight.shape
    shape = swizzled_sf_shape(n, k)
    quantized = quantize(weight.detach().to(device if device is not None else weight.device))
    sf = swizzle_scales(quantized.scales).view(torch.uint8).reshape(-1).view(torch.int32).reshape(shape)
    scales = quantized.scales.view(torch.uint8)
    return PackedWeight(quantized.codes, sf, quantized.global_scale.reshape(1), n, k, scales)


def gemm(packed_weight: PackedWeight, input: Tensor) -> Tensor:
    """input [..., K] in float32, fp16 or bf16 times the weights' transpose: [..., N], of input's type."""
    w = packed_weight
    if input.shape[-1] != w.k:
        raise InvalidArgument("input", f"{list(input.shape)}", f"its last dimension must be {w.k}")
    rows = input.reshape(-1, w.k)
    d = linear(rows, w.qweight, w_scales=w.sf_rowmajor, alpha=w.global_scale, out_dtype=input.dtype)
    return d.reshape(*input.shape[:-1], w.n)


def _one_device(device_map: Any) -> torch.device:
    devices = set(device_map.values()) if isinstance(device_map, dict) else {"cpu" if device_map is None else device_map}
    if len(devices) != 1:
        raise Unsupported("device_map", str(device_map), "must name one device")
    found = devices.pop()
    try:
        device = torch.device("cuda", found) if isinstance(found, int) else torch.device(found)
    except (RuntimeError, TypeError):
        device = None
    if device is None or device.type not in ("cpu", "cuda"):
        raise Unsupported("device_map", str(device_map), "must be a CPU or a CUDA device")
    return device


def _validate_environment(self: Any, device_map: Any = None, **_: Any) -> None:
    if self.pre_quantized:
        raise ValueError("NVFP4Config quantises float checkpoints; dualgemm.integrations.transformers.load() reads NVFP4 ones")
    self.quantization_device = _one_device(device_map)


def use() -> None:
    """NVFP4Config and NVFP4Linear of transformers take this library from here on; Unsupported: they are not as expected."""
    try:
        layers = importlib.import_module("transformers.integrations.nvfp4")
        quantizer = importlib.import_module("transformers.quantizers.quantizer_nvfp4").NVFP4HfQuantizer
        kernel = layers.NVFP4Kernel(PackedWeight=PackedWeight, gemm=gemm, pack=pack, swizzled_sf_shape=swizzled_sf_shape)
        layers.load_nvfp4_kernel  # noqa: B018
    except (ImportError, AttributeError, TypeError) as error:
        transformers = importlib.import_module("transformers")
        raise Unsupported("transformers", transformers.__version__, f"has no NVFP4Linear as of 5.24: {error}") from None
    setattr(layers, "load_nvfp4_kernel", lambda: kernel)
    quantizer.validate_environment = _validate_environment
