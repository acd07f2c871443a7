#!/usr/bin/env python3
"""A fused NVFP4 dual GEMM in Triton, as a further peer of the kernels of this library.

d = silu(alpha * a gate^T) * (alpha * a up^T); gate and up in NVFP4 (two codes a byte, low nibble = even k; one E4M3 scale
for 16 neighbours along k, linear), a in fp16, or in NVFP4 and then decoded by a kernel before. Weights are decoded to fp16
in the kernel, exactly but for a power of two; two accumulators, the activation at the end; k is split over CTAs where tiles
are few, and a second kernel then adds the parts in a fixed order. Tile sizes are tuned for each m.

Weights are cold in L2: the calls of a CUDA graph rotate through copies of more than 430 MB. Each result is compared with
float64 on exactly decoded operands before it is timed, and after the timing with the bits it had before.

    triton_dual_gemm.py [--shapes 4096x7168] [--m 1,8,16] [--json triton.json]
"""
import argparse
import datetime
import json
import statistics
import sys
import time

import torch
import triton
import triton.language as tl

COLD_BYTES = 430_000_000
SPACER_BYTES = 512 << 20
ALPHA = 0.02
MIN_CALLS = 12


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
def dual_gemm(a_ptr, gate_ptr, gate_scales_ptr, up_ptr, up_scales_ptr, out_ptr, M, N, K, alpha,
              BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr, SPLIT: tl.constexpr, GROUP: tl.constexpr):
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


# (BM, BN, BK, SPLIT, GROUP, warps, stages) and the m that each is tried for.
CONFIGS = [
    ((16, 32, 256, 1, 8, 4, 4), 1, 32),
    ((16, 64, 128, 4, 8, 4, 4), 1, 32),
    ((16, 64, 128, 2, 8, 4, 5), 1, 16),
    ((32, 64, 128, 4, 8, 4, 4), 17, 64),
    ((64, 64, 128, 2, 8, 4, 3), 33, 128),
    ((64, 128, 64, 2, 8, 8, 4), 33, 256),
    ((128, 64, 64, 1, 8, 4, 4), 65, 4096),
    ((128, 128, 64, 1, 8, 8, 3), 129, 1 << 30),
    ((256, 64, 64, 1, 8, 8, 3), 257, 1 << 30),
]


class Operands:
    """Random operands of one shape, and copies of the packed weights."""

    def __init__(self, n, k, max_m, device, generator):
        def codes(rows):
            return torch.randint(0, 256, (rows, k // 2), dtype=torch.uint8, device=device, generator=generator)

        def scales(rows):  # 1/8 .. 4
            return torch.randint(0x20, 0x49, (rows, k // 16), dtype=torch.uint8, device=device, generator=generator)

        self.n, self.k = n, k
        first = (codes(n), scales(n), codes(n), scales(n))
        count = -(-COLD_BYTES // sum(t.numel() for t in first))
        self.sets = [first] + [tuple(t.clone() for t in first) for _ in range(count - 1)]
        self.a_codes, self.a_scales = codes(max_m), scales(max_m)
        self.a_half = decode_exactly(self.a_codes, self.a_scales).to(torch.float16)


def decode_exactly(codes, scales):
    """By table, in float64: shares nothing with the kernel."""
    magnitudes = [0.0, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 6.0]
    table = torch.tensor(magnitudes + [-x for x in magnitudes], dtype=torch.float64, device=codes.device)
    pairs = torch.stack((codes & 0x0F, codes >> 4), dim=-1).to(torch.int64)
    values = table[pairs.reshape(codes.shape[0], -1)]
    factors = scales.view(torch.float8_e4m3fn).to(torch.float64)
    return values * factors.repeat_interleave(16, dim=1)


class Call:
    """D for the first m rows of A with one configuration; everything that it needs is allocated here."""

    def __init__(self, operands, m, a_type, config):
        self.operands, self.m, self.a_type, self.config = operands, m, a_type, config
        n, k = operands.n, operands.k
        device = operands.a_half.device
        self.d = torch.full((m, n), float("nan"), dtype=torch.float16, device=device)
        self.a = operands.a_half[:m] if a_type == "f16" else torch.empty((m, k), dtype=torch.float16, device=device)
        split = config[3]
        self.parts = torch.empty((split, 2, m, n), dtype=torch.float32, device=device) if split > 1 else None

    def run(self, call):
        o, m = self.operands, self.m
        gate, gate_scales, up, up_scales = o.sets[call % len(o.sets)]
        bm, bn, bk, split, group, warps, stages = self.config
        if self.a_type == "e2m1":
            cols = 1024 if o.k % 1024 == 0 else 64
            decode_rows[(m, o.k // cols)](o.a_codes, o.a_scales, self.a, o.k, COLS=cols, num_warps=4)
        out = self.d if split == 1 else self.parts
        dual_gemm[(triton.cdiv(m, bm) * (o.n // bn), split)](
            self.a, gate, gate_scales, up, up_scales, out, m, o.n, o.k, ALPHA,
            BM=bm, BN=bn, BK=bk, SPLIT=split, GROUP=group, num_warps=warps, num_stages=stages)
        if split > 1:
            chunk = 1024
            add_parts[(triton.cdiv(m * o.n, chunk),)](self.parts, self.d, m * o.n, ALPHA, SPLIT=split, CHUNK=chunk)


def error_of(call):
    """Of a fresh result against float64: relative Frobenius error, worst of tiles of 64 columns, on up to 64 rows.

    Infinite if any element of d, on whatever row, was not written.
    """
    o = call.operands
    call.d.fill_(float("nan"))
    call.run(0)
    if torch.isnan(call.d).any().item():
        return float("inf")
    rows = torch.unique(torch.linspace(0, call.m - 1, min(call.m, 64), device=call.d.device).round().to(torch.int64))
    gate, gate_scales, up, up_scales = o.sets[0]
    a = o.a_half[rows].to(torch.float64)
    g = ALPHA * (a @ decode_exactly(gate, gate_scales).T)
    u = ALPHA * (a @ decode_exactly(up, up_scales).T)
    expected = (g * torch.sigmoid(g) * u).reshape(len(rows), -1, 64)
    difference = call.d[rows].to(torch.float64).reshape(len(rows), -1, 64) - expected
    tiles = difference.square().sum(dim=(0, 2)).sqrt() / expected.square().sum(dim=(0, 2)).sqrt()
    worst = tiles.max().item()
    return worst if worst == worst else float("inf")


class Recorded:
    """The calls of one graph, each on weights that are cold.

    A graph keeps addresses, not tensors: the next torch.cuda.graph() hands all freed memory back to the driver, and a replay
    that still writes there is an illegal access. So this keeps the call, with its weights, d, decoded a and parts.
    """

    def __init__(self, call):
        self.call = call
        sets = len(call.operands.sets)
        self.calls = -(-MIN_CALLS // sets) * sets
        self.graph = torch.cuda.CUDAGraph()
        call.run(0)  # compiled and loaded before the capture, which forbids that
        torch.cuda.synchronize()
        self.d = call.d.clone()
        with torch.cuda.graph(self.graph):
            for i in range(self.calls):
                call.run(i)

    def still_right(self):
        """The graph's last call left the bits that were compared with float64: all sets hold the same weights."""
        return torch.equal(self.call.d, self.d)

    def microseconds(self, spacer, replays):
        """Of each replay, per call; a read before it gives the host time to enqueue."""
        self.call.d.fill_(float("nan"))
        times = []
        for replay in range(-2, replays):
            begin, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
            spacer.sum()
            begin.record()
            self.graph.replay()
            end.record()
            end.synchronize()
            if replay >= 0:
                times.append(begin.elapsed_time(end) * 1e3 / self.calls)
        return times


def tune(operands, m, a_type, spacer):
    """The fastest configuration that runs and is right, with its record and error."""
    best = None
    for config, lowest, highest in CONFIGS:
        if not lowest <= m <= highest or operands.n % config[1] != 0 or operands.k % (config[2] * config[3]) != 0:
            continue
        try:
            call = Call(operands, m, a_type, config)
            error = error_of(call)
            if error > 2e-3:  # d is rounded to fp16: 2^-11
                print(f"m {m}, a {a_type}, {config}: WRONG by {error:.3g}", file=sys.stderr)
                continue
            recorded = Recorded(call)
            median = statistics.median(recorded.microseconds(spacer, 3))
        except Exception as reason:  # a compiler's limit or too much shared memory: the next one may do
            print(f"m {m}, a {a_type}, {config}: {type(reason).__name__}: {str(reason)[:200]}", file=sys.stderr)
            torch.cuda.synchronize()  # raises after an illegal access: then nothing that follows would mean anything
            continue
        if not recorded.still_right():
            print(f"m {m}, a {a_type}, {config}: WRONG when replayed", file=sys.stderr)
            continue
        if best is None or median < best[0]:
            best = (median, config, recorded, error)
    return best


def measure(operands, m, a_type, spacer, replays):
    best = tune(operands, m, a_type, spacer)
    if best is None:
        return {"m": m, "a": a_type, "error": "no configuration ran and was right"}
    _, config, recorded, error = best
    times = sorted(recorded.microseconds(spacer, replays))
    if not recorded.still_right():
        return {"m": m, "a": a_type, "error": "wrong when replayed"}
    names = ("bm", "bn", "bk", "split", "group", "warps", "stages")
    return {"m": m, "a": a_type, "median_us": statistics.median(times), "p90_us": times[(9 * (len(times) - 1) + 5) // 10],
            "min_us": times[0], "rounds": len(times), "worst_tile_error": error, "config": dict(zip(names, config))}


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--shapes", default="4096x7168", help="NxK,...; N a multiple of 128, K of 512")
    parser.add_argument("--m", default="1,8,16,32,64,128,256,512,1024,2048,4096")
    parser.add_argument("--a", default="e2m1,f16", help="types of a")
    parser.add_argument("--replays", type=int, default=15)
    parser.add_argument("--json", help="also write all numbers to this file")
    arguments = parser.parse_args()
    if not torch.cuda.is_available():
        print("triton_dual_gemm: there is no GPU", file=sys.stderr)
        return 2
    rows = [int(x) for x in arguments.m.split(",")]
    device = torch.device("cuda")
    spacer = torch.ones(SPACER_BYTES // 4, dtype=torch.float32, device=device)
    report = {"program": "triton_dual_gemm", "date": datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ"),
              "device": torch.cuda.get_device_name(), "torch": torch.__version__, "triton": triton.__version__, "shapes": []}
    failed = False
    start = time.time()
    for shape in arguments.shapes.split(","):
        n, k = (int(x) for x in shape.split("x"))
        operands = Operands(n, k, max(rows), device, torch.Generator(device).manual_seed(1))
        report["shapes"].append({"n": n, "k": k, "points": []})
        print(f"\n(N, K) = ({n}, {k})\n\n| M | a | us | p90 | min | error | config |\n|---|---|---|---|---|---|---|")
        for m in rows:
            for a_type in arguments.a.split(","):
                point = measure(operands, m, a_type, spacer, arguments.replays)
                report["shapes"][-1]["points"].append(point)
                failed = failed or "error" in point
                if "error" in point:
                    print(f"| {m} | {a_type} | {point['error']} |")
                else:
                    print(f"| {m} | {a_type} | {point['median_us']:.2f} | {point['p90_us']:.2f} | {point['min_us']:.2f} | "
                          f"{point['worst_tile_error']:.1e} | {'_'.join(map(str, point['config'].values()))} |", flush=True)
                if arguments.json:
                    with open(arguments.json, "w", encoding="utf-8") as file:
                        json.dump(report, file, indent=1)
    print(f"{time.time() - start:.0f} s in all, compiling and tuning included", file=sys.stderr)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
