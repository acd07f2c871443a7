"""Triton kernels that multiply: by pointers, by tensor descriptors, persistent, with roles for warps, with scaled blocks."""

import triton
import triton.language as tl


@triton.jit
def product(a, b, c, m, n, k, TILE_M: tl.constexpr, TILE_N: tl.constexpr, TILE_K: tl.constexpr):
    """C = A * B^T, operands by masked pointers, copied ahead as num_stages says."""
    rows, cols, ks = (
        tl.program_id(0) * TILE_M + tl.arange(0, TILE_M),
        tl.program_id(1) * TILE_N + tl.arange(0, TILE_N),
        tl.arange(0, TILE_K),
    )
    SUM: tl.constexpr = tl.int32 if a.dtype.element_ty == tl.int8 else tl.float32
    acc = tl.zeros((TILE_M, TILE_N), SUM)
    for begin in range(0, k, TILE_K):
        at = begin + ks
        x = tl.load(a + rows[:, None] * k + at[None, :], mask=(rows[:, None] < m) & (at[None, :] < k), other=0.0)
        y = tl.load(b + cols[None, :] * k + at[:, None], mask=(cols[None, :] < n) & (at[:, None] < k), other=0.0)
        acc = tl.dot(x, y, acc, out_dtype=SUM)
    tl.store(c + rows[:, None] * n + cols[None, :], acc.to(c.dtype.element_ty), mask=(rows[:, None] < m) & (cols[None, :] < n))


@triton.jit
def product_described(
    a, b, c, m, n, k, TILE_M: tl.constexpr, TILE_N: tl.constexpr, TILE_K: tl.constexpr, SPECIALIZE: tl.constexpr
):
    """The same, persistent, by tensor descriptors that the kernel makes; SPECIALIZE: loads and MMAs in warps of their own."""
    of_a = tl.make_tensor_descriptor(a, [m, k], [k, 1], [TILE_M, TILE_K])
    of_b = tl.make_tensor_descriptor(b, [n, k], [k, 1], [TILE_N, TILE_K])
    of_c = tl.make_tensor_descriptor(c, [m, n], [n, 1], [TILE_M, TILE_N])
    tiles_n = tl.cdiv(n, TILE_N)
    for tile in tl.range(
        tl.program_id(0), tl.cdiv(m, TILE_M) * tiles_n, tl.num_programs(0), flatten=True, warp_specialize=SPECIALIZE
    ):
        row, col = tile // tiles_n * TILE_M, tile % tiles_n * TILE_N
        acc = tl.zeros((TILE_M, TILE_N), tl.float32)
        for begin in range(0, k, TILE_K):
            acc = tl.dot(of_a.load([row, begin]), of_b.load([col, begin]).T, acc)
        of_c.store([row, col], acc.to(c.dtype.element_ty))


@triton.jit
def product_split(a, b, c, m, n, k, TILE_M: tl.constexpr, TILE_N: tl.constexpr, TILE_K: tl.constexpr, SPLIT: tl.constexpr):
    """Split along k: every program adds its part to C by atomics."""
    rows, cols = tl.program_id(0) * TILE_M + tl.arange(0, TILE_M), tl.program_id(1) * TILE_N + tl.arange(0, TILE_N)
    ks = tl.arange(0, TILE_K)
    acc = tl.zeros((TILE_M, TILE_N), tl.float32)
    for begin in range(tl.program_id(2) * TILE_K, k, TILE_K * SPLIT):
        x = tl.load(a + rows[:, None] * k + (begin + ks)[None, :])
        y = tl.load(b + cols[None, :] * k + (begin + ks)[:, None])
        acc = tl.dot(x, y, acc)
    tl.atomic_add(c + rows[:, None] * n + cols[None, :], acc, sem="relaxed")


@triton.jit
def product_in_order(
    a, b, c, locks, m, n, k, TILE_M: tl.constexpr, TILE_N: tl.constexpr, TILE_K: tl.constexpr, SPLIT: tl.constexpr
):
    """Split along k: the parts of a tile are added one after the other, a lock says whose turn it is (stream-K's way)."""
    tile_m, tile_n, part = tl.program_id(0), tl.program_id(1), tl.program_id(2)
    rows, cols, ks = tile_m * TILE_M + tl.arange(0, TILE_M), tile_n * TILE_N + tl.arange(0, TILE_N), tl.arange(0, TILE_K)
    acc = tl.zeros((TILE_M, TILE_N), tl.float32)
    for begin in range(part * TILE_K, k, TILE_K * SPLIT):
        x = tl.load(a + rows[:, None] * k + (begin + ks)[None, :])
        y = tl.load(b + cols[None, :] * k + (begin + ks)[:, None])
        acc = tl.dot(x, y, acc)
    lock = locks + tile_m * tl.num_programs(1) + tile_n
    to = c + rows[:, None] * n + cols[None, :]
    while tl.atomic_cas(lock, part, part, sem="acquire") != part:
        pass
    if part > 0:
        acc += tl.load(to)
    tl.store(to, acc)
    tl.debug_barrier()
    tl.atomic_xchg(lock, part + 1, sem="release")


@triton.jit
def scaled_product(
    a,
    a_scales,
    b,
    b_scales,
    c,
    m,
    n,
    k,
    FORMAT_A: tl.constexpr,
    FORMAT_B: tl.constexpr,
    BLOCK: tl.constexpr,
    TILE_M: tl.constexpr,
    TILE_N: tl.constexpr,
    TILE_K: tl.constexpr,
):
    """Block-scaled operands, one scale for BLOCK elements along k; two FP4 codes a byte."""
    A_BYTE: tl.constexpr = 2 if FORMAT_A == "e2m1" else 1
    B_BYTE: tl.constexpr = 2 if FORMAT_B == "e2m1" else 1
    rows, cols = tl.program_id(0) * TILE_M + tl.arange(0, TILE_M), tl.program_id(1) * TILE_N + tl.arange(0, TILE_N)
    a_ks, b_ks, blocks = tl.arange(0, TILE_K // A_BYTE), tl.arange(0, TILE_K // B_BYTE), tl.arange(0, TILE_K // BLOCK)
    acc = tl.zeros((TILE_M, TILE_N), tl.float32)
    for begin in range(0, k, TILE_K):
        x = tl.load(a + rows[:, None] * (k // A_BYTE) + (begin // A_BYTE + a_ks)[None, :])
        y = tl.load(b + cols[None, :] * (k // B_BYTE) + (begin // B_BYTE + b_ks)[:, None])
        xs = tl.load(a_scales + rows[:, None] * (k // BLOCK) + (begin // BLOCK + blocks)[None, :])
        ys = tl.load(b_scales + cols[:, None] * (k // BLOCK) + (begin // BLOCK + blocks)[None, :])
        acc = tl.dot_scaled(x, xs, FORMAT_A, y, ys, FORMAT_B, acc)
    tl.store(c + rows[:, None] * n + cols[None, :], acc)


@triton.jit
def grouped_products(
    a, b, c, group_rows, n, k, GROUPS: tl.constexpr, TILE_M: tl.constexpr, TILE_N: tl.constexpr, TILE_K: tl.constexpr
):
    """Groups of rows, each with a B of its own; programs walk through the tiles of all groups."""
    tile, first_tile, first_row = tl.program_id(0), 0, 0
    tiles_n = tl.cdiv(n, TILE_N)
    cols_of_tile, ks = tl.arange(0, TILE_N), tl.arange(0, TILE_K)
    for group in range(GROUPS):
        rows = tl.load(group_rows + group)
        tiles = tl.cdiv(rows, TILE_M) * tiles_n
        while tile < first_tile + tiles:
            at = tile - first_tile
            row, cols = at // tiles_n * TILE_M + tl.arange(0, TILE_M), at % tiles_n * TILE_N + cols_of_tile
            acc = tl.zeros((TILE_M, TILE_N), tl.float32)
            for begin in range(0, k, TILE_K):
                x = tl.load(a + (first_row + row)[:, None] * k + (begin + ks)[None, :], mask=row[:, None] < rows, other=0.0)
                y = tl.load(b + (group * n + cols)[None, :] * k + (begin + ks)[:, None])
                acc = tl.dot(x, y, acc)
            tl.store(c + (first_row + row)[:, None] * n + cols[None, :], acc.to(c.dtype.element_ty), mask=row[:, None] < rows)
            tile += tl.num_programs(0)
        first_tile += tiles
        first_row += rows


@triton.jit
def attention(
    q,
    k,
    v,
    o,
    length,
    factor,
    HEAD: tl.constexpr,
    TILE_M: tl.constexpr,
    TILE_N: tl.constexpr,
    CAUSAL: tl.constexpr,
    SPECIALIZE: tl.constexpr,
    STORE_BY_TMA: tl.constexpr,
):
    """softmax(Q K^T) V of one head a program, in one pass; factor: of the logits, for exp2."""
    first, head = tl.program_id(0) * TILE_M, tl.program_id(1)
    rows = head * length
    of_q = tl.make_tensor_descriptor(q, [tl.num_programs(1) * length, HEAD], [HEAD, 1], [TILE_M, HEAD])
    of_k = tl.make_tensor_descriptor(k, [tl.num_programs(1) * length, HEAD], [HEAD, 1], [TILE_N, HEAD])
    of_v = tl.make_tensor_descriptor(v, [tl.num_programs(1) * length, HEAD], [HEAD, 1], [TILE_N, HEAD])
    mine = of_q.load([rows + first, 0])
    largest, total = tl.full((TILE_M,), float("-inf"), tl.float32), tl.zeros((TILE_M,), tl.float32)
    acc = tl.zeros((TILE_M, HEAD), tl.float32)
    for begin in tl.range(0, first + TILE_M if CAUSAL else length, TILE_N, warp_specialize=SPECIALIZE):
        s = tl.dot(mine, of_k.load([rows + begin, 0]).T) * factor
        if CAUSAL:
            s = tl.where((first + tl.arange(0, TILE_M))[:, None] >= (begin + tl.arange(0, TILE_N))[None, :], s, float("-inf"))
        now = tl.maximum(largest, tl.max(s, 1))
        p = tl.exp2(s - now[:, None])
        shrink = tl.exp2(largest - now)
        total = total * shrink + tl.sum(p, 1)
        acc = tl.dot(p.to(v.dtype.element_ty), of_v.load([rows + begin, 0]), acc * shrink[:, None])
        largest = now
    result = (acc / total[:, None]).to(o.dtype.element_ty)
    if STORE_BY_TMA:
        of_o = tl.make_tensor_descriptor(o, [tl.num_programs(1) * length, HEAD], [HEAD, 1], [TILE_M, HEAD])
        of_o.store([rows + first, 0], result)
    else:
        tl.store(o + (rows + first + tl.arange(0, TILE_M))[:, None] * HEAD + tl.arange(0, HEAD)[None, :], result)
