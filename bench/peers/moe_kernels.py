"""The kernels in Triton that the library is measured beside."""

import triton
import triton.language as tl

# Tiles of the grouped kernel: (rows, columns, elements along k, parts of k, warps, stages), and from how many to how
# many average rows of a busy expert the tile is tried. With fewer than 128 along k the scales are too few to be copied
# ahead.
GROUPED_CONFIGS = [
    ((16, 32, 256, 1, 4, 4), 1, 16),
    ((16, 64, 128, 1, 4, 4), 1, 32),
    ((16, 64, 128, 4, 4, 4), 1, 16),
    ((32, 64, 128, 1, 4, 4), 9, 64),
    ((64, 64, 128, 1, 4, 3), 17, 512),
    ((64, 128, 128, 1, 8, 3), 33, 1 << 30),
    ((128, 64, 128, 1, 4, 3), 65, 1 << 30),
    ((128, 64, 64, 1, 4, 4), 65, 1 << 30),
    ((128, 128, 128, 1, 8, 3), 65, 1 << 30),
]

# Words of a load, loads of a round, warps, programs on each SM (0: one for each round).
READ_CONFIGS = [
    (1024, 4, 8, 4),
    (1024, 4, 8, 8),
    (1024, 8, 8, 2),
    (1024, 8, 8, 4),
    (1024, 16, 8, 2),
    (2048, 4, 16, 2),
    (2048, 4, 16, 4),
    (2048, 8, 16, 2),
    (1024, 4, 8, 0),
    (1024, 8, 8, 0),
    (2048, 4, 16, 0),
]

ACTIVATE_BLOCK = 2048


@triton.jit
def decode(codes, scales, ROWS: tl.constexpr, COLS: tl.constexpr):
    """E2M1 codes [ROWS, COLS/2] and E4M3 scales [ROWS, COLS/16], uint8, to bf16 [ROWS, COLS]: 2^-8 of the values.

    A code's magnitude as the last two exponent bits and the first mantissa bit of bf16 is 2^-126 of its value (a subnormal
    too), a scale's bits in the same places 2^-120 of its; times 2^120 and 2^118 all products are exact.
    """
    c = codes.to(tl.uint16)
    low = ((c & 0x07) << 6) | ((c & 0x08) << 12)
    high = ((c & 0x70) << 2) | ((c & 0x80) << 8)
    values = tl.reshape(tl.join(low, high), (ROWS, COLS // 16, 16)).to(tl.bfloat16, bitcast=True)
    factors = ((scales.to(tl.uint16) & 0x7F) << 4).to(tl.bfloat16, bitcast=True).to(tl.float32) * 1.329227995784916e36
    return tl.reshape(values * (factors * 3.323069989462290e35).to(tl.bfloat16)[:, :, None], (ROWS, COLS))


@triton.jit
def activate(gate, up):
    return gate / (1.0 + tl.exp(-gate)) * up


@triton.jit
def grouped_dual_gemm(
    a_ptr,
    gate_ptr,
    gate_scales_ptr,
    up_ptr,
    up_scales_ptr,
    alpha_gate_ptr,
    alpha_up_ptr,
    tiles_ptr,
    out_ptr,
    parts_stride,
    N,
    K,
    BM: tl.constexpr,
    BN: tl.constexpr,
    BK: tl.constexpr,
    SPLIT: tl.constexpr,
    UNIT: tl.constexpr,
):
    """A tile of BN columns and up to BM rows of one expert; the weights are the first operand, so that a small BM costs little.

    tiles: expert, first row and end of each tile of rows, a fourth word unused. a and out have the experts' rows one after the
    other. SPLIT > 1: part program_id(1) of k, and out is [SPLIT][gate, up][rows][N] in FP32, alphas applied; parts_stride is
    rows * N. N % BN == 0. UNIT, which divides K, is BK, or less, and then SPLIT is 1 and the last step is cut.
    """
    tiles_n = N // BN
    tile = tl.program_id(0)
    expert = tl.load(tiles_ptr + 4 * (tile // tiles_n)).to(tl.int64)
    begin = tl.load(tiles_ptr + 4 * (tile // tiles_n) + 1)
    end = tl.load(tiles_ptr + 4 * (tile // tiles_n) + 2)
    rows_m = begin + tl.arange(0, BM)
    rows_n = (tile % tiles_n) * BN + tl.arange(0, BN)
    in_m = rows_m[None, :] < end
    part = tl.program_id(1)
    # Everything as a multiple of UNIT, so that the compiler sees how far addresses are aligned: else it loads bytes.
    units = K // UNIT
    first = part * (units // SPLIT)

    weight_rows = (expert * N + rows_n)[:, None]
    k_a, k_codes, k_scales = tl.arange(0, BK)[:, None], tl.arange(0, BK // 2)[None, :], tl.arange(0, BK // 16)[None, :]
    a_at = a_ptr + (rows_m.to(tl.int64)[None, :] * units + first) * UNIT + k_a
    code_at = (weight_rows * units + first) * (UNIT // 2) + k_codes
    scale_at = (weight_rows * units + first) * (UNIT // 16) + k_scales
    acc_gate = tl.zeros((BN, BM), tl.float32)
    acc_up = tl.zeros((BN, BM), tl.float32)
    for unit in range(0, units // SPLIT, BK // UNIT):
        if UNIT == BK:
            a = tl.load(a_at, mask=in_m, other=0.0)
            gate_codes, up_codes = tl.load(gate_ptr + code_at), tl.load(up_ptr + code_at)
            gate_scales, up_scales = tl.load(gate_scales_ptr + scale_at), tl.load(up_scales_ptr + scale_at)
        else:
            left = units - unit
            a = tl.load(a_at, mask=in_m & (k_a < left * UNIT), other=0.0)
            in_codes, in_scales = k_codes < left * (UNIT // 2), k_scales < left * (UNIT // 16)
            gate_codes, up_codes = tl.load(gate_ptr + code_at, in_codes, 0), tl.load(up_ptr + code_at, in_codes, 0)
            gate_scales = tl.load(gate_scales_ptr + scale_at, in_scales, 0)
            up_scales = tl.load(up_scales_ptr + scale_at, in_scales, 0)
        acc_gate = tl.dot(decode(gate_codes, gate_scales, BN, BK), a, acc_gate)
        acc_up = tl.dot(decode(up_codes, up_scales, BN, BK), a, acc_up)
        a_at += BK
        code_at += BK // 2
        scale_at += BK // 16

    acc_gate *= tl.load(alpha_gate_ptr + expert) * 256.0
    acc_up *= tl.load(alpha_up_ptr + expert) * 256.0
    at = rows_m.to(tl.int64)[None, :] * N + rows_n[:, None]
    if SPLIT == 1:
        tl.store(out_ptr + at, activate(acc_gate, acc_up).to(out_ptr.dtype.element_ty), mask=in_m)
    else:
        tl.store(out_ptr + 2 * part * parts_stride + at, acc_gate, mask=in_m)
        tl.store(out_ptr + (2 * part + 1) * parts_stride + at, acc_up, mask=in_m)


@triton.jit(do_not_specialize=["count"])
def add_parts(parts_ptr, d_ptr, count, SPLIT: tl.constexpr, CHUNK: tl.constexpr):
    at = tl.program_id(0).to(tl.int64) * CHUNK + tl.arange(0, CHUNK)
    inside = at < count
    gate = tl.zeros((CHUNK,), tl.float32)
    up = tl.zeros((CHUNK,), tl.float32)
    for part in tl.static_range(SPLIT):
        gate += tl.load(parts_ptr + (2 * part) * count + at, mask=inside, other=0.0)
        up += tl.load(parts_ptr + (2 * part + 1) * count + at, mask=inside, other=0.0)
    tl.store(d_ptr + at, activate(gate, up).to(d_ptr.dtype.element_ty), mask=inside)


@triton.jit
def activate_products(
    gate_ptr, up_ptr, d_ptr, count, alpha_gate, alpha_up, N: tl.constexpr, STRIDE: tl.constexpr, BLOCK: tl.constexpr
):
    """d [rows, N] of two products whose rows are STRIDE apart; count is rows * N, N and STRIDE multiples of 16."""
    at = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    inside = at < count
    from_ = at // N * STRIDE + at % N
    gate = tl.load(gate_ptr + from_, mask=inside, other=0.0).to(tl.float32) * alpha_gate
    up = tl.load(up_ptr + from_, mask=inside, other=0.0).to(tl.float32) * alpha_up
    tl.store(d_ptr + at, activate(gate, up).to(d_ptr.dtype.element_ty), mask=inside)


def activate_all(gate, up, d, alpha_gate, alpha_up):
    """d = silu(alpha_gate gate) * (alpha_up up); d is tight, gate and up have rows as far apart."""
    activate_products[(triton.cdiv(d.numel(), ACTIVATE_BLOCK),)](
        gate, up, d, d.numel(), alpha_gate, alpha_up, N=d.shape[1], STRIDE=gate.stride(0), BLOCK=ACTIVATE_BLOCK, num_warps=4
    )


@triton.jit
def read(data_ptr, out_ptr, words, BLOCK: tl.constexpr, LOADS: tl.constexpr):
    """Every word of data once. out: an exclusive or for each program, so that no load is left out."""
    rounds = tl.cdiv(words, BLOCK * LOADS)
    total = tl.zeros((BLOCK,), tl.int32)
    for number in range(tl.program_id(0), rounds, tl.num_programs(0)):
        at = number * (BLOCK * LOADS) + tl.arange(0, BLOCK)
        for i in tl.static_range(LOADS):
            total ^= tl.load(data_ptr + at + i * BLOCK, mask=at + i * BLOCK < words, other=0)
    tl.store(out_ptr + tl.program_id(0), tl.xor_sum(total, axis=0))
