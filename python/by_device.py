"""What differs by device: GPUs with FP4 GEMMs (Blackwell) multiply codes, all others exactly decoded values."""

from functools import cache

import torch
from torch import Tensor

# A matrix as this device's GEMM takes it: codes and swizzled scales, or decoded values and None.
Operand = tuple[Tensor, Tensor | None]


@cache
def has_fp4_gemms(device: torch.device) -> bool:
    return device.type == "cuda" and torch.cuda.get_device_capability(device)[0] >= 10


@cache
def pairs(device: torch.device) -> Tensor:
    """[256, 2]: both values of a byte of codes, low nibble first. A constant, so that keeping it is safe."""
    values = [0.0, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 6.0]
    table = torch.tensor(values + [-x for x in values])
    byte = torch.arange(256)
    # fp16 holds every product of a code and a scale (6 bits, 2^-10 to 2688); a CPU multiplies in fp32.
    dtype = torch.float16 if device.type == "cuda" else torch.float32
    return torch.stack((table[byte & 15], table[byte >> 4]), dim=1).to(device, dtype)


def decoded(codes: Tensor, scales: Tensor) -> Tensor:
    """Codes [rows, K/2] and linear scales [rows, K/16] to [rows, K], exactly."""
    table = pairs(codes.device)
    values = table.index_select(0, codes.view(torch.uint8).flatten().int())
    factors = scales.to(table.dtype)[:, :, None]
    return values.view(*scales.shape, 16).mul_(factors).view(codes.shape[0], -1)


def with_converted_scales(codes: Tensor, scales: Tensor) -> Operand:
    """From linear scales [rows, K/16], which FP4 GEMMs cannot read: padded and swizzled, a copy each time."""
    if not has_fp4_gemms(codes.device):
        return decoded(codes, scales), None
    rows, columns = scales.shape
    tiles, groups = -(-rows // 128), -(-columns // 4)
    padded = torch.zeros((tiles * 128, groups * 4), dtype=torch.uint8, device=codes.device)
    padded[:rows, :columns] = scales.view(torch.uint8)
    swizzled = padded.view(tiles, 4, 32, groups, 4).permute(0, 3, 2, 1, 4).flatten()
    return codes, swizzled.view(scales.dtype)


def with_scales_as_they_lie(codes: Tensor, scales: Tensor, permuted: Tensor) -> Operand:
    """The 5-D permuted scales are the swizzled layout as it lies: this permute is contiguous, flat it is a view."""
    if not has_fp4_gemms(codes.device):
        return decoded(codes, scales), None
    return codes, permuted.permute(2, 4, 0, 1, 3).flatten()


def product(x: Operand, w: Operand) -> Tensor:
    """x w^T, FP32 [M, N]. FP16 would not pass the check."""
    if x[1] is not None and w[1] is not None:
        return torch._scaled_mm(x[0], w[0].t(), x[1], w[1], out_dtype=torch.float32)
    if x[0].dtype == torch.float16:
        return torch.mm(x[0], w[0].t(), out_dtype=torch.float32)
    return torch.mm(x[0], w[0].t())


def write_gated(gate: Tensor, up: Tensor, out: Tensor) -> None:
    """out = fp16(silu(gate) * up)."""
    out.copy_(torch.nn.functional.silu(gate).mul_(up))


def two_products(data: tuple[Tensor, ...]) -> Tensor:
    """C by two products one after the other, scales as they lie."""
    a, b1, b2, sfa, sfb1, sfb2, sfa_permuted, sfb1_permuted, sfb2_permuted, c = data
    for l in range(c.shape[2]):
        x = with_scales_as_they_lie(a[:, :, l], sfa[:, :, l], sfa_permuted[..., l])
        gate = product(x, with_scales_as_they_lie(b1[:, :, l], sfb1[:, :, l], sfb1_permuted[..., l]))
        up = product(x, with_scales_as_they_lie(b2[:, :, l], sfb2[:, :, l], sfb2_permuted[..., l]))
        write_gated(gate, up, c[:, :, l])
    return c
