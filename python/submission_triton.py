"""Triton: one kernel for both products and the activation, tile sizes tuned for each shape. Needs a GPU.

Blackwell multiplies codes (tl.dot_scaled). Others decode the weights inside the kernel, A in one before it.
"""

import torch
import triton

try:
    from task import input_t, output_t
except ImportError:
    from .task import input_t, output_t
try:
    from by_device import has_fp4_gemms
except ImportError:
    from .by_device import has_fp4_gemms
try:
    from triton_kernels import decode_rows, dual_gemm, dual_gemm_scaled
except ImportError:
    from .triton_kernels import decode_rows, dual_gemm, dual_gemm_scaled


def config(rows: int, columns: int, depth: int, warps: int, stages: int, **more: int) -> triton.Config:
    return triton.Config({"BM": rows, "BN": columns, "BK": depth, **more}, num_warps=warps, num_stages=stages)


# The split of k stays with the peer's benchmark: it is for fewer rows than the challenge has.
tiles = (64, 64, 128, 4, 3), (64, 128, 64, 8, 4), (128, 64, 64, 4, 4), (128, 128, 64, 8, 3), (256, 64, 64, 8, 3)
scaled_tiles = (128, 64, 256, 4, 3), (128, 128, 256, 8, 3), (128, 128, 128, 4, 4)
shape = ["M", "N", "K"]
decoding = triton.autotune([config(*tile, SPLIT=1, GROUP=8) for tile in tiles], key=shape)(dual_gemm)
scaled = triton.autotune([config(*tile) for tile in scaled_tiles], key=shape)(dual_gemm_scaled)


def custom_kernel(data: input_t) -> output_t:
    """The 10-tuple of task.py; returns its c, written. N % 128 == K % 256 == 0, as in the challenge."""
    m, n, k = data[9].shape[0], data[9].shape[1], 2 * data[0].shape[1]
    if data[9].device.type != "cuda":
        raise RuntimeError(f"device: {data[9].device}; Triton needs a GPU")
    if n % 128 or k % 256:
        raise ValueError(f"n, k: {n}, {k}; must be multiples of 128 and 256")

    def grid(tile: dict[str, int]) -> tuple[int, int]:
        return triton.cdiv(m, tile["BM"]) * (n // tile["BN"]), 1

    for l in range(data[9].shape[2]):
        a, b1, b2, sfa, sfb1, sfb2 = (x[:, :, l].view(torch.uint8) for x in data[:6])
        c = data[9][:, :, l]
        if has_fp4_gemms(c.device):
            scaled[grid](a, sfa, b1, sfb1, b2, sfb2, c, m, n, k)
            continue
        half = torch.empty((m, k), dtype=torch.float16, device=c.device)
        decode_rows[(m, k // 256)](a, sfa, half, k, COLS=256, num_warps=4)
        decoding[grid](half, b1, sfb1, b2, sfb2, c, m, n, k, 1.0)
    return data[9]
