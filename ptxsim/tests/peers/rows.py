"""Triton kernels that go along rows: sums, norms, scans, sorts, histograms."""

import triton
import triton.language as tl


@triton.jit
def add(x, y, z, n, TILE: tl.constexpr):
    at = tl.program_id(0) * TILE + tl.arange(0, TILE)
    tl.store(z + at, tl.load(x + at, mask=at < n) + tl.load(y + at, mask=at < n), mask=at < n)


@triton.jit
def softmax(x, y, n, TILE: tl.constexpr):
    row, at = tl.program_id(0), tl.arange(0, TILE)
    values = tl.load(x + row * n + at, mask=at < n, other=float("-inf"))
    powers = tl.exp(values - tl.max(values, 0))
    tl.store(y + row * n + at, powers / tl.sum(powers, 0), mask=at < n)


@triton.jit
def layer_norm(x, weight, bias, y, mean, deviation, n, epsilon, TILE: tl.constexpr):
    row, at = tl.program_id(0), tl.arange(0, TILE)
    values = tl.load(x + row * n + at, mask=at < n, other=0.0)
    middle = tl.sum(values, 0) / n
    away = tl.where(at < n, values - middle, 0.0)
    inverse = 1 / tl.sqrt(tl.sum(away * away, 0) / n + epsilon)
    tl.store(mean + row, middle)
    tl.store(deviation + row, inverse)
    tl.store(
        y + row * n + at, away * inverse * tl.load(weight + at, mask=at < n) + tl.load(bias + at, mask=at < n), mask=at < n
    )


@triton.jit
def weight_gradient(dy, x, mean, deviation, partial, locks, n, GROUPS: tl.constexpr, TILE: tl.constexpr):
    """Part of layer_norm's backward: rows add to one of GROUPS sums, each under a lock."""
    row, at = tl.program_id(0), tl.arange(0, TILE)
    group = row % GROUPS
    gradient = tl.load(dy + row * n + at, mask=at < n, other=0.0)
    gradient *= (tl.load(x + row * n + at, mask=at < n, other=0.0) - tl.load(mean + row)) * tl.load(deviation + row)
    lock, count, to = locks + group, locks + GROUPS + group, partial + group * n + at
    while tl.atomic_cas(lock, 0, 1) == 1:
        pass
    filled = tl.load(count)
    tl.debug_barrier()  # or a warp stores the count before another one has read it
    if filled == 0:
        tl.atomic_xchg(count, 1)
    else:
        gradient += tl.load(to, mask=at < n)
    tl.store(to, gradient, mask=at < n)
    tl.debug_barrier()
    tl.atomic_xchg(lock, 0)


@triton.jit
def cumulative(x, y, n, TILE: tl.constexpr):
    row, at = tl.program_id(0), tl.arange(0, TILE)
    tl.store(y + row * n + at, tl.cumsum(tl.load(x + row * n + at), 0))


@triton.jit
def sort(x, y, n, TILE: tl.constexpr):
    row, at = tl.program_id(0), tl.arange(0, TILE)
    tl.store(y + row * n + at, tl.sort(tl.load(x + row * n + at)))


@triton.jit
def largest(x, y, n, TILE: tl.constexpr):
    row, at = tl.program_id(0), tl.arange(0, TILE)
    tl.store(y + row, tl.argmax(tl.load(x + row * n + at, mask=at < n, other=float("-inf")), 0))


@triton.jit
def histogram(x, y, n, BINS: tl.constexpr, TILE: tl.constexpr):
    at = tl.program_id(0) * TILE + tl.arange(0, TILE)
    tl.atomic_add(y + tl.arange(0, BINS), tl.histogram(tl.load(x + at, mask=at < n), BINS, mask=at < n))


@triton.jit
def transpose(x, y, m, n, TILE: tl.constexpr):
    rows, cols = tl.program_id(0) * TILE + tl.arange(0, TILE), tl.program_id(1) * TILE + tl.arange(0, TILE)
    tl.store(y + cols[:, None] * m + rows[None, :], tl.trans(tl.load(x + rows[:, None] * n + cols[None, :])))


@triton.jit
def gelu_in_a_loop(x, y, n, TILE: tl.constexpr):
    """Persistent, loads copied ahead."""
    for tile in tl.range(tl.program_id(0), tl.cdiv(n, TILE), tl.num_programs(0), num_stages=3):
        at = tile * TILE + tl.arange(0, TILE)
        values = tl.load(x + at, mask=at < n)
        tl.store(y + at, 0.5 * values * (1 + tl.erf(values * 0.7071067811865476)), mask=at < n)
