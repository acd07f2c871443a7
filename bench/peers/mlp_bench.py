#!/usr/bin/env python3
"""Measures a whole gated MLP on a GPU: this library beside torch in bf16 and a plain read of the weights.

y = (silu(x gate^T) * (x up^T)) down^T, from bf16 to bf16, weights NVFP4. In the same process and the same interleaved rounds: our
GatedMlp with x and h in bf16 (W4A16), weights unpacked or prepared, and with x and h quantised to NVFP4 (W4A4), weights prepared;
torch's products on bf16 weights, gate and up stacked or not, and one kernel between that activates; a plain read of the bytes
of all three packed matrices; and the two products of our W4A16, each by itself.

    mlp_bench.py --library libdualgemm.so [--shapes 14336x4096] [--m 1,64] [--json mlp.json]

Every call of a CUDA graph works on weights that are cold in L2, and 512 MiB are read before each replay. Results are compared
with float64 on a sample, and with torch's in tiles of 16 x 64. Exit codes: 0; 1 a result was wrong or a contestant failed;
2 wrong arguments, or no GPU, torch or library.
"""

import argparse
import sys

sys.dont_write_bytecode = True  # the tree stays as it is
import rounds

FEW_ROWS = 64
# The largest error of a sample against float64. bf16: products and h are rounded to bf16; W4A4: a value next to a
# boundary may be quantised to the other side of it; W4A16: h and y are rounded to bf16.
MOST_ERROR = {"stacked_bf16": 1e-2, "separate_bf16": 1e-2, "w4a4_prepared": 1e-2}
MOST_ERROR_ELSE = 4e-3
TRUSTED = ("stacked_bf16", "separate_bf16")
MOST_TILE_W4A4 = 0.3  # h as NVFP4 is 0.1 away from h; a lost tile 1


def shapes(text):
    found = []
    for part in text.split(","):
        sides = part.split("x")
        if len(sides) != 2 or not all(side.isdigit() and 64 <= int(side) <= 65536 and int(side) % 64 == 0 for side in sides):
            raise argparse.ArgumentTypeError(f"{part or 'nothing'}; must be INTERMEDIATExHIDDEN, multiples of 64 up to 65536")
        found.append(tuple(map(int, sides)))
    return found


def arguments_of(words):
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    rounds.add_arguments(parser)
    parser.add_argument("--shapes", type=shapes, default=shapes("14336x4096,28672x8192"), help="INTERMEDIATExHIDDEN,...")
    parser.add_argument("--m", type=rounds.counts, default=[1, 4, 16, 64, 256, 1024, 4096], help="rows of x")
    return parser.parse_args(words)


def packed_bytes(intermediate, hidden):
    """The bytes of Gate, Up and Down as NVFP4: 4.5 bits a value."""
    return 3 * intermediate * hidden * 9 // 16


def sets_of(intermediate, hidden):
    return rounds.calls_of(2, packed_bytes(intermediate, hidden), 1)


def calls_of(intermediate, hidden, m):
    return rounds.calls_of(8 if m <= FEW_ROWS else 2, packed_bytes(intermediate, hidden), sets_of(intermediate, hidden))


def judge_of(torch, of, point, seed):
    columns, rows = rounds.sampled_columns(torch, point.weights.hidden, seed), rounds.sampled_rows(point.m)
    exact, quantized = of.expected(point, rows, columns)
    return rounds.Judge(
        torch,
        rows,
        columns,
        lambda name: quantized if name.startswith("w4a4") else exact,
        lambda name: MOST_ERROR.get(name, MOST_ERROR_ELSE),
        TRUSTED,
        lambda name: MOST_TILE_W4A4 if name.startswith("w4a4") else rounds.MOST_TILE_DIFFERENCE,
    )


def add_contestants(measurement, of, point):
    for name in TRUSTED:
        measurement.add(
            name, [lambda blas=blas: of.Bf16(point, name == "stacked_bf16", blas) for blas in ("cublas", "cublaslt")]
        )
    measurement.add("w4a16", [lambda: of.Ours(point, False, False)])
    measurement.add("w4a16_prepared", [lambda: of.Ours(point, False, True)])
    measurement.add("w4a4_prepared", [lambda: of.Ours(point, True, True)])
    measurement.add("read", [lambda config=config: of.plain_read(point, config) for config in of.kernels.READ_CONFIGS])
    for product in ("gate_up", "down"):
        measurement.add(product, [lambda product=product: of.Product(point, product)])


def main(words):
    arguments = arguments_of(words)
    if arguments.list:
        for intermediate, hidden in arguments.shapes:
            for m in arguments.m:
                print(
                    f"{intermediate}x{hidden}, m {m}: {packed_bytes(intermediate, hidden) / 1e6:.1f} MB of packed weights, "
                    f"{sets_of(intermediate, hidden)} sets, {calls_of(intermediate, hidden, m)} calls"
                )
        return 0
    begun = rounds.beginning_of("mlp_bench", "mlp_contestants", arguments.library)
    if begun is None:
        return 2
    torch, of = begun
    bench = rounds.Bench(torch, "mlp_bench", arguments, arguments.rounds, act="silu", x="bf16", y="bf16")
    library = of.c.Library(arguments.library)
    bench.report["shapes"] = []
    for intermediate, hidden in arguments.shapes:
        size = packed_bytes(intermediate, hidden)
        weights = of.Weights(library, intermediate, hidden, sets_of(intermediate, hidden), max(arguments.m), arguments.seed)
        entry = {"intermediate": intermediate, "hidden": hidden, "packed_bytes": size, "points": []}
        bench.report["shapes"].append(entry)
        for m in arguments.m:
            point = of.Point(weights, m, calls_of(intermediate, hidden, m))
            judge = judge_of(torch, of, point, arguments.seed)
            result = bench.measure(point.calls, judge, lambda measurement, point=point: add_contestants(measurement, of, point))
            entry["points"].append({"m": m, **result})
            bench.save(f"{intermediate}x{hidden}, m {m}", result)
        del weights, point, judge
    return bench.end()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
