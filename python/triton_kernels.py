"""The fused kernels in Triton: of submission_triton.py, and of the peer in bench/peers/triton_dual_gemm.py."""

# mypy: allow-untyped-defs, allow-incomplete-defs
import triton
import triton.language as tl


@triton.jit
def decode(codes, scales, ROWS: tl.constexpr, COLS: tl.constexpr):
    """E2M1 codes [ROWS, COLS/2] and E4M3 scales [ROWS, COLS/16], uint8, to fp16 [ROWS, COLS]: 2^-7 of the values.

    A code's magnitude as the last two exponent bits and the first mantissa bit of fp16 is 2^-14 of its value, a scale's bits
    one place up 2^-8 of its; times 2^15 all products are exact in fp16 (multiples of 2^-17, below 2^5 * 2^3).
    """
    c = codes.to(tl.uint16)
    low = ((c & 0x07) << 9) | ((c & 0x08) << 12)
    high = ((c & 0x70) << 5) | ((c & 0x80) << 8)
    values = tl.reshape(tl.join(low, high), (ROWS, COLS // 16, 16)).to(tl.float16, bitcast=True)
    factors = ((scales.to(tl.uint16) & 0x7F) << 7).to(tl.float16, bitcast=True) * 32768.0
    return tl.reshape(values * factors.to(tl.float16)[:, :, None], (ROWS, COLS))


@triton.jit
def decode_rows(codes_ptr, scales_ptr, out_ptr, K, COLS: tl.constexpr):
    """One row and COLS columns of a: NVFP4 to fp16."""
    row = tl.program_id(0).to(tl.int64)
    col = tl.program_id(1) * COLS
    codes = tl.load(codes_ptr + row * (K // 2) + col // 2 + tl.arange(0, COLS // 2)[None, :])
    scales = tl.load(scales_ptr + row * (K // 16) + col // 16 + tl.arange(0, COLS // 16)[None, :])
    values = decode(codes, scales, 1, COLS).to(tl.float32) * 128.0
    tl.store(out_ptr + row * K + col + tl.arange(0, COLS)[None, :], values.to(tl.float16))


@triton.jit
def activate(gate, up, alpha):
    g = gate * (alpha * 128.0)
    return g / (1.0 + tl.exp(-g)) * (up * (alpha * 128.0))


@triton.jit(do_not_specialize=["M"])
def dual_gemm(
    a_ptr,
    gate_ptr,
    gate_scales_ptr,
    up_ptr,
    up_scales_ptr,
    out_ptr,
    M,
    N,
    K,
    alpha,
    BM: tl.constexpr,
    BN: tl.constexpr,
    BK: tl.constexpr,
    SPLIT: tl.constexpr,
    GROUP: tl.constexpr,
):
    """A tile of BN columns and BM rows of d; the weights are the first operand, so that a small BM costs little.

    SPLIT > 1: part program_id(1) of k, and out is [SPLIT][gate, up][M][N] in FP32. N % BN == K % (BK * SPLIT) == 0.
    """
    tiles_m = tl.cdiv(M, BM)
    tiles_n = N // BN
    tile = tl.program_id(0)
    # GROUP columns of tiles share the rows of a that lie in L2.
    group = tile // (GROUP * tiles_m)
    width = tl.minimum(tiles_n - group * GROUP, GROUP)
    in_group = tile % (GROUP * tiles_m)
    rows_m = (in_group // width) * BM + tl.arange(0, BM)
    rows_n = (group * GROUP + in_group % width) * BN + tl.arange(0, BN)
    part = tl.program_id(1)
    # Everything as a multiple of BK, so that the compiler sees how far addresses are aligned: else it loads bytes.
    steps = K // BK
    first = part * (steps // SPLIT)

    a_at = a_ptr + (rows_m.to(tl.int64)[None, :] * steps + first) * BK + tl.arange(0, BK)[:, None]
    code_at = (rows_n.to(tl.int64)[:, None] * steps + first) * (BK // 2) + tl.arange(0, BK // 2)[None, :]
    scale_at = (rows_n.to(tl.int64)[:, None] * steps + first) * (BK // 16) + tl.arange(0, BK // 16)[None, :]
    in_m = rows_m[None, :] < M
    acc_gate = tl.zeros((BN, BM), tl.float32)
    acc_up = tl.zeros((BN, BM), tl.float32)
    for _ in range(0, steps // SPLIT):
        a = tl.load(a_at, mask=in_m, other=0.0)
        gate = decode(tl.load(gate_ptr + code_at), tl.load(gate_scales_ptr + scale_at), BN, BK)
        acc_gate = tl.dot(gate, a, acc_gate)
        up = decode(tl.load(up_ptr + code_at), tl.load(up_scales_ptr + scale_at), BN, BK)
        acc_up = tl.dot(up, a, acc_up)
        a_at += BK
        code_at += BK // 2
        scale_at += BK // 16

    at = rows_m.to(tl.int64)[None, :] * N + rows_n[:, None]
    if SPLIT == 1:
        tl.store(out_ptr + at, activate(acc_gate, acc_up, alpha).to(tl.float16), mask=in_m)
    else:
        plane = M.to(tl.int64) * N
        tl.store(out_ptr + 2 * part * plane + at, acc_gate, mask=in_m)
        tl.store(out_ptr + (2 * part + 1) * plane + at, acc_up, mask=in_m)


@triton.jit(do_not_specialize=["count"])
def add_parts(parts_ptr, d_ptr, count, alpha, SPLIT: tl.constexpr, CHUNK: tl.constexpr):
    at = tl.program_id(0).to(tl.int64) * CHUNK + tl.arange(0, CHUNK)
    inside = at < count
    gate = tl.zeros((CHUNK,), tl.float32)
    up = tl.zeros((CHUNK,), tl.float32)
    for part in tl.static_range(SPLIT):
        gate += tl.load(parts_ptr + (2 * part) * count + at, mask=inside, other=0.0)
        up += tl.load(parts_ptr + (2 * part + 1) * count + at, mask=inside, other=0.0)
    tl.store(d_ptr + at, activate(gate, up, alpha).to(tl.float16), mask=inside)


@triton.jit(do_not_specialize=["M"])
def dual_gemm_scaled(
    a_ptr,
    a_scales_ptr,
    gate_ptr,
    gate_scales_ptr,
    up_ptr,
    up_scales_ptr,
    out_ptr,
    M,
    N,
    K,
    BM: tl.constexpr,
    BN: tl.constexpr,
    BK: tl.constexpr,
):
    """The same tile by FP4 tensor cores: codes and linear E4M3 scales as they are. N % BN == K % BK == 0.

    BN rows of gate and those of up are one operand of 2 BN rows: two tl.dot_scaled that share a did not compile for
    compute capability 10.0 (Triton 3.6).
    """
    tiles_m = tl.cdiv(M, BM)
    rows_m = (tl.program_id(0) % tiles_m) * BM + tl.arange(0, BM)
    in_m = rows_m[:, None] < M
    first_n = (tl.program_id(0) // tiles_m) * BN
    row_w = tl.arange(0, 2 * BN)
    rows_w = (first_n + row_w % BN).to(tl.int64)[:, None]
    is_gate = (row_w < BN)[:, None]
    steps = K // BK
    codes_k = tl.arange(0, BK // 2)[None, :]
    scales_k = tl.arange(0, BK // 16)[None, :]
    a_at = a_ptr + rows_m.to(tl.int64)[:, None] * steps * (BK // 2) + codes_k
    a_scales_at = a_scales_ptr + rows_m.to(tl.int64)[:, None] * steps * (BK // 16) + scales_k
    w_at = tl.where(is_gate, gate_ptr, up_ptr) + rows_w * steps * (BK // 2) + codes_k
    w_scales_at = tl.where(is_gate, gate_scales_ptr, up_scales_ptr) + rows_w * steps * (BK // 16) + scales_k
    acc = tl.zeros((BM, 2 * BN), tl.float32)
    for _ in range(0, steps):
        a = tl.load(a_at, mask=in_m, other=0)
        a_scales = tl.load(a_scales_at, mask=in_m, other=0).to(tl.float8e4nv, bitcast=True)
        w_scales = tl.load(w_scales_at).to(tl.float8e4nv, bitcast=True)
        acc = tl.dot_scaled(a, a_scales, "e2m1", tl.load(w_at).T, w_scales, "e2m1", acc)
        a_at += BK // 2
        a_scales_at += BK // 16
        w_at += BK // 2
        w_scales_at += BK // 16
    gate, up = tl.split(tl.trans(tl.reshape(acc, (BM, 2, BN)), 0, 2, 1))
    # activate() takes values of dual_gemm's decode, 2^-7 of what these are.
    d = activate(gate, up, 0.0078125).to(tl.float16)
    out_at = rows_m.to(tl.int64)[:, None] * N + first_n + tl.arange(0, BN)[None, :]
    tl.store(out_ptr + out_at, d, mask=in_m)
