"""The GPU MODE challenge "NVFP4 dual GEMM": C = silu(A B1^T) * (A B2^T). Gate is B1, Up is B2, D is C.

The 10-tuple, in order; memory of everything has L slowest:
    a, b1, b2            [M or N, K/2, L]  float4_e2m1fn_x2, low nibble = even k
    sfa, sfb1, sfb2      [M or N, K/16, L] float8_e4m3fn, linear
    the same three       [32, 4, ceil(rows/128), 4, ceil(K/64), L]: a view of the swizzled 128x4 layout
    c                    [M, N, L] float16, to be written and returned
"""

import torch
from torch import Tensor

input_t = tuple[Tensor, Tensor, Tensor, Tensor, Tensor, Tensor, Tensor, Tensor, Tensor, Tensor]
output_t = Tensor

SEED = 1111
TOLERANCE = 1e-3  # relative and absolute
# The bits that a random byte of codes keeps: +-{0, 1/2, 1, 3/2}.
CODE_MASK = 0xBB


def _cases(*shapes: tuple[int, int, int]) -> list[dict[str, int]]:
    return [{"m": m, "n": n, "k": k, "l": 1, "seed": SEED} for m, n, k in shapes]


TEST_CASES = _cases(
    (1536, 512, 7168),
    (256, 512, 256),
    (1536, 512, 7168),
    (3072, 1024, 1536),
    (7168, 1024, 256),
    (7168, 2304, 2048),
    (4608, 384, 7168),
    (7168, 384, 2304),
    (512, 768, 7168),
    (4096, 768, 512),
)
BENCHMARK_CASES = _cases((256, 4096, 7168), (512, 4096, 7168), (256, 3072, 4096), (512, 3072, 7168))


def swizzled_view(linear: Tensor) -> Tensor:
    """Scales [rows, K/16, L] as 6-D: (i, j, l) at [i % 32, i % 128 // 32, i // 128, j % 4, j // 4, l]; padding 0."""
    rows, columns, batches = linear.shape
    tiles, groups = -(-rows // 128), -(-columns // 4)
    padded = torch.zeros((batches, tiles * 128, groups * 4), dtype=torch.uint8, device=linear.device)
    padded[:, :rows, :columns] = linear.view(torch.uint8).permute(2, 0, 1)
    memory = padded.view(batches, tiles, 4, 32, groups, 4).permute(0, 1, 4, 3, 2, 5).contiguous()
    return memory.view(linear.dtype).permute(3, 4, 1, 5, 2, 0)


def generate_input(m: int, n: int, k: int, l: int, seed: int, device: torch.device | str | None = None) -> input_t:
    """Random codes and scales in [0, 1), made on `device` (None: the GPU if there is one). k % 16 == 0.

    c is full of NaN, so that an element that the kernel leaves unwritten cannot pass.
    """
    device = torch.device(device or ("cuda" if torch.cuda.is_available() else "cpu"))
    generator = torch.Generator(device).manual_seed(seed)

    def codes(rows: int) -> Tensor:
        bits = torch.randint(0, 256, (l, rows, k // 2), dtype=torch.uint8, device=device, generator=generator)
        return (bits & CODE_MASK).view(torch.float4_e2m1fn_x2).permute(1, 2, 0)

    def scales(rows: int) -> Tensor:
        values = torch.rand((l, rows, k // 16), device=device, generator=generator)
        return values.to(torch.float8_e4m3fn).permute(1, 2, 0)

    a, b1, b2 = codes(m), codes(n), codes(n)
    sfa, sfb1, sfb2 = scales(m), scales(n), scales(n)
    c = torch.full((l, m, n), float("nan"), dtype=torch.float16, device=device).permute(1, 2, 0)
    return a, b1, b2, sfa, sfb1, sfb2, swizzled_view(sfa), swizzled_view(sfb1), swizzled_view(sfb2), c


def _values(codes: Tensor, scales: Tensor) -> Tensor:
    """[rows, K] in float64, exact. By bits, not by a table: the judge shares nothing with the submissions."""
    byte = codes.view(torch.uint8)
    nibble = torch.stack((byte & 15, byte >> 4), dim=-1).flatten(-2)
    normal = ((nibble & 6) != 0).to(torch.uint8)  # with a hidden bit, and an exponent that counts from 1
    twice = (((nibble & 1) | (normal << 1)) << ((nibble >> 1 & 3) - normal)).float()
    signed = torch.where(nibble >= 8, -twice, twice).view(*scales.shape, 16)
    return (signed * (scales.float() / 2)[:, :, None]).flatten(1).double()


def ref_kernel(data: input_t) -> output_t:
    """C as fp16 [M, N, L], from the linear scales, in float64 on every device.

    The challenge compares with two FP4 GEMMs, which Blackwell alone has; exact operands judge there as well.
    """
    a, b1, b2, sfa, sfb1, sfb2, _, _, _, c = data
    out = torch.empty_like(c)
    for l in range(c.shape[2]):
        x = _values(a[:, :, l], sfa[:, :, l])
        gate, up = (x @ _values(b[:, :, l], sf[:, :, l]).T for b, sf in ((b1, sfb1), (b2, sfb2)))
        out[:, :, l] = (gate * torch.sigmoid(gate) * up).half()
    return out


def compare(output: object, expected: Tensor) -> str:
    """What is wrong with an output, or nothing: |out - expected| <= 1e-3 + 1e-3 |expected|, NaN and inf in place."""
    if not isinstance(output, Tensor):
        return f"output: {type(output).__name__}; must be a tensor"
    for what in ("shape", "dtype", "device"):
        observed, wanted = getattr(output, what), getattr(expected, what)
        if observed != wanted:
            return f"output: {what} {observed}; must be {wanted}".replace("torch.Size", "")
    out, ref = output.float(), expected.float()
    close = torch.isclose(out, ref, rtol=TOLERANCE, atol=TOLERANCE, equal_nan=True)
    wrong = int((~close).sum())
    if wrong == 0:
        return ""
    first = tuple((~close).nonzero()[0].tolist())
    return (
        f"output: {wrong} of {out.numel()} elements differ, first {list(first)}: {out[first].item():g} "
        f"and not {ref[first].item():g}; |difference| must be <= {TOLERANCE:g} + {TOLERANCE:g} |expected|"
    )


def check_implementation(data: input_t, output: object) -> tuple[bool, str]:
    """(right, what is wrong) of what custom_kernel(data) returned; its inputs must still be what they were."""
    message = compare(output, ref_kernel(data))
    return not message, message
