"""The kernels that scripts/test_ptxsim_peers compiles and runs, and what each must compute."""

from __future__ import annotations

import math

import cute_peers
import formats
import numpy as np
import products
import rows
from peer import Array, Peer, given, wanted

ALL = (80, 90, 100, 120)
TMA = (90, 100, 120)
TILES = {"TILE_M": 128, "TILE_N": 64, "TILE_K": 64}


def _operands(kind: type, m: int, n: int, k: int, seed: int = 1) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """A, B, and their exact product as float64, below 2048 in size."""
    random = np.random.default_rng(seed)
    a, b = formats.integers(random, m, k), formats.integers(random, n, k)
    return a.astype(kind), b.astype(kind), (a @ b.T).astype(np.float64)


def _products() -> list[Peer]:
    m, n, k = 200, 100, 224  # no multiples of a tile
    a, b, exact = _operands(np.float16, m, n, k)
    sizes = {"m": m, "n": n, "k": k}
    made = [
        Peer(
            "product of f16, three stages",
            products.product,
            {"a": given(a), "b": given(b), "c": wanted(exact.astype(np.float16)), **sizes},
            TILES,
            (2, 2),
            ALL,
            {"num_stages": 3},
        ),
        Peer(
            "product of f32 as tf32",
            products.product,
            {
                "a": given(a.astype(np.float32)),
                "b": given(b.astype(np.float32)),
                "c": wanted(exact.astype(np.float32)),
                **sizes,
            },
            {**TILES, "TILE_K": 32},
            (2, 2),
            ALL,
            {"num_stages": 3},
        ),
        Peer(
            "product of s8",
            products.product,
            {"a": given(a.astype(np.int8)), "b": given(b.astype(np.int8)), "c": wanted(exact.astype(np.int32)), **sizes},
            TILES,
            (2, 2),
            (80, 90, 120),
            {"num_stages": 3},
        ),
    ]
    e4m3_a, e4m3_b = (given(formats.e4m3_integers(x.astype(int)), "fp8e4nv") for x in (a, b))
    made.append(
        Peer(
            "product of e4m3",
            products.product,
            {"a": e4m3_a, "b": e4m3_b, "c": wanted(exact.astype(np.float16)), **sizes},
            TILES,
            (2, 2),
            TMA,
            {"num_stages": 3},
        )
    )
    m, n, k = 256, 192, 256
    a, b, exact = _operands(np.float16, m, n, k, 2)
    sizes = {"m": m, "n": n, "k": k}
    for specialize, words in ((False, ""), (True, ", warps with roles")):
        made.append(
            Peer(
                f"persistent product by TMA{words}",
                products.product_described,
                {"a": given(a), "b": given(b), "c": wanted(exact.astype(np.float16)), **sizes},
                {**TILES, "SPECIALIZE": specialize},
                (2,),
                TMA,
                {"num_stages": 3},
            )
        )
    made.append(
        Peer(
            "product of 8 warps, four stages",
            products.product,
            {"a": given(a), "b": given(b), "c": wanted(exact.astype(np.float16)), **sizes},
            {"TILE_M": 128, "TILE_N": 128, "TILE_K": 32},
            (2, 2),
            ALL,
            {"num_stages": 4, "num_warps": 8},
        )
    )
    zeros = np.zeros((m, n), np.float32)
    made.append(
        Peer(
            "product split along k, atomics",
            products.product_split,
            {"a": given(a), "b": given(b), "c": wanted(exact.astype(np.float32), before=zeros), **sizes},
            {**TILES, "SPLIT": 2},
            (2, 3, 2),
            ALL,
        )
    )
    made.append(
        Peer(
            "product split along k, locks",
            products.product_in_order,
            {
                "a": given(a),
                "b": given(b),
                "c": wanted(exact.astype(np.float32)),
                "locks": wanted(np.full(6, 2, np.int32), before=np.zeros(6, np.int32)),
                **sizes,
            },
            {**TILES, "SPLIT": 2},
            (2, 3, 2),
            ALL,
        )
    )
    counts = np.array([37, 0, 128, 91], np.int32)
    random = np.random.default_rng(3)
    grouped_b = formats.integers(random, 4, n, k)
    ends = np.cumsum(counts)
    grouped = np.concatenate(
        [a[end - count : end].astype(int) @ grouped_b[i].T for i, (end, count) in enumerate(zip(ends, counts))]
    )
    made.append(
        Peer(
            "grouped products",
            products.grouped_products,
            {
                "a": given(a),
                "b": given(grouped_b.astype(np.float16)),
                "c": wanted(grouped.astype(np.float16)),
                "group_rows": given(counts),
                "n": n,
                "k": k,
            },
            {**TILES, "GROUPS": 4},
            (3,),
            ALL,
            {"num_stages": 2},
        )
    )
    return made


def _codes(random: np.random.Generator, format_name: str, rows_: int, k: int) -> tuple[Array, np.ndarray]:
    if format_name == "e2m1":
        codes = random.integers(0, 256, (rows_, k // 2), np.uint8)
        return given(codes), formats.e2m1(codes)
    values = formats.integers(random, rows_, k)
    return given(formats.e4m3_integers(values), "fp8e4nv"), values.astype(np.float64)


def _scaled() -> list[Peer]:
    made = []
    m, n, k = 128, 128, 256
    for name, format_a, format_b, block, targets in (
        ("MXFP4", "e2m1", "e2m1", 32, TMA),
        ("NVFP4", "e2m1", "e2m1", 16, (100, 120)),
        ("MXFP8", "e4m3", "e4m3", 32, TMA),
        ("MXFP8 x MXFP4", "e4m3", "e2m1", 32, TMA),
    ):
        random = np.random.default_rng(block)
        a, a_values = _codes(random, format_a, m, k)
        b, b_values = _codes(random, format_b, n, k)
        if block == 32:  # powers of two, 1/2 to 4
            codes = [random.integers(126, 130, (side, k // block), np.uint8) for side in (m, n)]
            scales, values = [given(x) for x in codes], [2.0 ** (x.astype(float) - 127) for x in codes]
        else:  # E4M3, 1/2 to 3
            codes = [random.integers(0x30, 0x45, (side, k // block), np.uint8) & 0xFC for side in (m, n)]
            scales, values = [given(x, "fp8e4nv") for x in codes], [formats.e4m3(x) for x in codes]
        exact = formats.scaled(a_values, values[0]) @ formats.scaled(b_values, values[1]).T
        made.append(
            Peer(
                f"product of {name}",
                products.scaled_product,
                {
                    "a": a,
                    "a_scales": scales[0],
                    "b": b,
                    "b_scales": scales[1],
                    "c": wanted(exact.astype(np.float32)),
                    "m": m,
                    "n": n,
                    "k": k,
                },
                {"FORMAT_A": format_a, "FORMAT_B": format_b, "BLOCK": block, "TILE_M": 128, "TILE_N": 64, "TILE_K": 128},
                (1, 2),
                targets,
                {"num_stages": 2},
            )
        )
    return made


def _attention() -> list[Peer]:
    heads, length, head = 2, 256, 64
    random = np.random.default_rng(5)
    q, k, v = (random.standard_normal((heads, length, head)).astype(np.float16) for _ in range(3))
    made = []
    for causal in (False, True):
        s = q.astype(float) @ k.astype(float).transpose(0, 2, 1) / math.sqrt(head)
        if causal:
            s = np.where(np.tril(np.ones((length, length), bool)), s, -np.inf)
        p = np.exp(s - s.max(-1, keepdims=True))
        exact = (p / p.sum(-1, keepdims=True)) @ v.astype(float)
        arguments = {
            "q": given(q),
            "k": given(k),
            "v": given(v),
            "o": wanted(exact.astype(np.float16), (4e-3, 4e-3)),
            "length": length,
            "factor": float(np.float32(math.log2(math.e) / math.sqrt(head))),
        }
        for specialize in (False,) if causal else (False, True):
            name = f"attention{', causal' if causal else ''}{', warps with roles' if specialize else ''}"
            # With roles, and stores by pointers, Triton 3.6 makes a wrong kernel for sm_90a: ptxsim/docs/evidence.md says which instruction.
            targets = (100, 120) if specialize else TMA
            for by_tma in (False, True) if specialize else (False,):
                made.append(
                    Peer(
                        f"{name}, stores by TMA" if by_tma else name,
                        products.attention,
                        arguments,
                        {
                            "HEAD": head,
                            "TILE_M": 64 if causal else 128,
                            "TILE_N": 64,
                            "CAUSAL": causal,
                            "SPECIALIZE": specialize,
                            "STORE_BY_TMA": by_tma,
                        },
                        (length // (64 if causal else 128), heads),
                        (90,) if by_tma else targets,
                        {"num_stages": 2},
                    )
                )
    return made


def _rows() -> list[Peer]:
    random = np.random.default_rng(7)
    x = random.standard_normal((6, 300)).astype(np.float32)
    y = random.standard_normal((6, 300)).astype(np.float32)
    n, tile = 300, {"TILE": 512}
    powers = np.exp(x.astype(float) - x.max(1, keepdims=True))
    mean, deviation = x.astype(float).mean(1), 1 / np.sqrt(x.astype(float).var(1) + 1e-5)
    normed = (x - mean[:, None]) * deviation[:, None]
    gradient = np.stack([(y[i::2] * normed[i::2]).sum(0) for i in range(2)])
    single = np.float32
    whole = random.integers(-50, 50, (3, 256)).astype(np.int32)
    floats = random.permutation(3 * 256).reshape(3, 256).astype(single)
    bins = random.integers(0, 16, 700).astype(np.int32)
    table = random.integers(0, 100, (64, 96)).astype(single)
    gelu = np.array([0.5 * value * (1 + math.erf(value / math.sqrt(2))) for value in x.ravel().astype(float)])
    return [
        Peer("addition", rows.add, {"x": given(x), "y": given(y), "z": wanted(x + y), "n": x.size}, {"TILE": 256}, (8,), ALL),
        Peer(
            "softmax of rows",
            rows.softmax,
            {"x": given(x), "y": wanted((powers / powers.sum(1, keepdims=True)).astype(single), (1e-7, 1e-5)), "n": n},
            tile,
            (6,),
            ALL,
        ),
        Peer(
            "layer norm",
            rows.layer_norm,
            {
                "x": given(x),
                "weight": given(y[0]),
                "bias": given(y[1]),
                "y": wanted((normed * y[0] + y[1]).astype(single), (1e-5, 1e-5)),
                "mean": wanted(mean.astype(single), (1e-6, 1e-5)),
                "deviation": wanted(deviation.astype(single), (1e-6, 1e-5)),
                "n": n,
                "epsilon": 1e-5,
            },
            tile,
            (6,),
            ALL,
        ),
        Peer(
            "gradient of weights, locks",
            rows.weight_gradient,
            {
                "dy": given(y),
                "x": given(x),
                "mean": given(mean.astype(single)),
                "deviation": given(deviation.astype(single)),
                "partial": wanted(gradient.astype(single), (1e-5, 1e-5)),
                "locks": wanted(np.array([0, 0, 1, 1], np.int32), before=np.zeros(4, np.int32)),
                "n": n,
            },
            {"GROUPS": 2, **tile},
            (6,),
            ALL,
        ),
        Peer(
            "cumulative sums",
            rows.cumulative,
            {"x": given(whole), "y": wanted(np.cumsum(whole, 1).astype(np.int32)), "n": 256},
            {"TILE": 256},
            (3,),
            ALL,
        ),
        Peer("sorting", rows.sort, {"x": given(floats), "y": wanted(np.sort(floats, 1)), "n": 256}, {"TILE": 256}, (3,), ALL),
        Peer(
            "place of the largest",
            rows.largest,
            {"x": given(x), "y": wanted(x.argmax(1).astype(np.int32)), "n": n},
            tile,
            (6,),
            ALL,
        ),
        Peer(
            "histogram",
            rows.histogram,
            {
                "x": given(bins),
                "y": wanted(np.bincount(bins, minlength=16).astype(np.int32), before=np.zeros(16, np.int32)),
                "n": 700,
            },
            {"BINS": 16, "TILE": 256},
            (3,),
            ALL,
        ),
        Peer(
            "transposition",
            rows.transpose,
            {"x": given(table), "y": wanted(table.T.copy()), "m": 64, "n": 96},
            {"TILE": 32},
            (2, 3),
            ALL,
        ),
        Peer(
            "GELU, loads ahead in a loop",
            rows.gelu_in_a_loop,
            {"x": given(x), "y": wanted(gelu.astype(single), (1e-6, 1e-5)), "n": x.size},
            {"TILE": 256},
            (2,),
            ALL,
        ),
    ]


def all_of_them() -> list[Peer | cute_peers.CutePeer]:
    return [*_products(), *_scaled(), *_attention(), *_rows(), *cute_peers.all_of_them()]
