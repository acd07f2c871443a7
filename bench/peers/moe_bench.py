#!/usr/bin/env python3
"""Measures groups of experts on a GPU: this library beside torch in bf16, a Triton kernel and a plain read of the weights.

d = silu(alpha_gate a gate^T) * (alpha_up a up^T) for the rows of every expert, each with its own weights and alphas. In the same
process and the same interleaved rounds: `fused` on contiguous groups, A NVFP4 or bf16, weights unpacked or prepared; torch's
grouped_mm, and a loop of cuBLAS, on stacked bf16 weights, then one kernel that activates; a grouped Triton kernel; a plain read
of the touched experts' bytes. A model's tokens are A, and ours finds an expert's by an index of rows; the others get them copied
beforehand, which costs them nothing. --sweep: instead, every kernel and tile of ours that can be asked for.

    moe_bench.py --library libdualgemm.so [--models qwen3_30b_a3b] [--tokens 1,64] [--json experts.json]

Every call of a CUDA graph works on experts that are cold in L2, and 512 MiB are read before each replay. Results are compared
with float64 on a sample, and with torch's in tiles of 16 x 64. Exit codes: 0; 1 a result was wrong or a contestant failed;
2 wrong arguments, or no GPU, torch or library.
"""

import argparse
import sys

sys.dont_write_bytecode = True  # the tree stays as it is
import moe_routing as routing
import rounds

MIN_CALLS = 8
MOST_DECODE_TOKENS = 64
SWEEP_ROUNDS = 11
MOST_ERROR = {"grouped_bf16": 1e-2, "loop_bf16": 1e-2}  # of a sample against float64; products are rounded to bf16 there
MOST_ERROR_ELSE = 4e-3  # d is rounded to bf16: 2^-9


def skewed_points(text):
    points = []
    for part in filter(None, text.split(",")):
        name, _, tokens = part.partition(":")
        points.append((*rounds.names_of(routing.MODELS)(name), rounds.count(tokens)))
    return points


def arguments_of(words):
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    rounds.add_arguments(parser)
    parser.add_argument(
        "--models", type=rounds.names_of(routing.MODELS), default=list(routing.MODELS), help=",".join(routing.MODELS)
    )
    parser.add_argument("--tokens", type=rounds.counts, default=[1, 2, 4, 8, 16, 32, 64, 1024, 4096, 16384])
    parser.add_argument(
        "--skewed",
        type=skewed_points,
        default=skewed_points("qwen3_30b_a3b:64,qwen3_30b_a3b:4096"),
        help="MODEL:TOKENS,... that are measured with unequal experts, too; may be empty",
    )
    parser.add_argument("--no-groups", action="store_true", help="leave the challenge's group problems out")
    parser.add_argument("--sweep", action="store_true", help="every kernel and tile of ours, no peers")
    return parser.parse_args(words)


def points_of(arguments, name):
    """(tokens, skewed, rows of each expert)."""
    wanted = [(tokens, False) for tokens in arguments.tokens]
    wanted += [(tokens, True) for model, tokens in arguments.skewed if model == name]
    return [(tokens, skewed, routing.route(routing.MODELS[name], tokens, arguments.seed, skewed)) for tokens, skewed in wanted]


def list_points(arguments):
    for name in arguments.models:
        model = routing.MODELS[name]
        for tokens, skewed, rows in points_of(arguments, name):
            busy = sum(1 for r in rows if r)
            print(
                f"{name} {model.n}x{model.k}, {tokens} tokens{' skewed' if skewed else ''}: {sum(rows)} rows, {busy} of {model.local} "
                f"experts, at most {max(rows)} rows, {busy * model.expert_bytes() / 1e6:.1f} MB of weights"
            )
    if not arguments.no_groups:
        for n, k, rows in routing.GROUPS:
            print(f"{len(rows)} groups {n}x{k}: {sum(rows)} rows: {', '.join(map(str, rows))}")


def judge_of(torch, decode, point, seed):
    """A judge of the last call's results: a sample of its outputs, computed in float64."""
    weights, call = point.weights, point.calls[-1]
    columns = rounds.sampled_columns(torch, weights.n, seed)
    wanted, expected = rounds.sampled_rows(point.m), []
    for e, begin, end in call.busy:
        rows = [point.rows_of_a[row] for row in wanted if begin <= row < end]
        if not rows:
            continue
        a = decode(weights.a_codes[rows], weights.a_scales[rows], torch.float64)
        of = call.weights
        g = weights.alphas_gate[e].double() * (a @ decode(of.gate[e][columns], of.gate_scales[e][columns], torch.float64).T)
        u = weights.alphas_up[e].double() * (a @ decode(of.up[e][columns], of.up_scales[e][columns], torch.float64).T)
        expected.append(g * torch.sigmoid(g) * u)
    sample = torch.cat(expected)
    return rounds.Judge(
        torch, wanted, columns, lambda name: sample, lambda name: MOST_ERROR.get(name, MOST_ERROR_ELSE), MOST_ERROR
    )


def add_contestants(measurement, of, point):
    kernels, parts = of.kernels, of.read_parts(point)
    measurement.add("grouped_bf16", [lambda: of.GroupedBf16(point)])
    measurement.add("loop_bf16", [lambda: of.LoopBf16(point)])
    measurement.add("nvfp4", [lambda: of.Ours(point, of.c.E2M1, False)])
    measurement.add("nvfp4_prepared", [lambda: of.Ours(point, of.c.E2M1, True)])
    measurement.add("read", [lambda config=config: of.PlainRead(parts, config) for config in kernels.READ_CONFIGS])


def add_model_contestants(measurement, of, point):
    add_contestants(measurement, of, point)
    measurement.add("bf16", [lambda: of.Ours(point, of.c.BF16, False)])
    measurement.add("bf16_prepared", [lambda: of.Ours(point, of.c.BF16, True)])
    configs = [
        config
        for config, lowest, highest in of.kernels.GROUPED_CONFIGS
        if of.TritonGrouped.suits(point, config, lowest, highest)
    ]
    measurement.add("triton", [lambda config=config: of.TritonGrouped(point, config) for config in configs])


def add_group_contestants(measurement, of, point):
    add_contestants(measurement, of, point)
    measurement.add("dense", [lambda: of.OursDense(point, of.c.E2M1, False)])
    measurement.add("dense_prepared", [lambda: of.OursDense(point, of.c.E2M1, True)])


def configs_to_try(average, packed, prepared):
    """What plans are asked for, but tiles that are much too large or too small for the average rows of a busy expert."""
    wanted = [""]  # the library's own choice
    if average <= 64:
        wanted += [f"kernel=skinny,tile_m=8,tile_n={columns}" for columns in (16, 32)]
        wanted += [f"isa=sm80,tile_m={rows}" for rows in (8, 64) if packed and not prepared]
    return wanted + [
        f"kernel=wgmma,tile_m={rows},tile_n={columns}"
        for rows, columns in ((16, 32), (32, 64), (64, 128), (128, 64), (128, 96), (256, 64))
        if average / 16 <= rows <= 8 * max(average, 8)
    ]


def add_sweep(measurement, of, point):
    """Under 'A type, prepared or not, what was asked for'."""
    measurement.add("grouped_bf16", [lambda: of.GroupedBf16(point)])  # what tiles are compared with
    for a_type, a_name in ((of.c.E2M1, "nvfp4"), (of.c.BF16, "bf16")):
        for prepared in (False, True):
            for config in configs_to_try(point.m / point.busy, a_type == of.c.E2M1, prepared):
                name = f"{a_name}{'_prepared' if prepared else ''} {config}".strip()
                measurement.add(name, [lambda a=a_type, p=prepared, config=config: of.Ours(point, a, p, config)])


class Bench(rounds.Bench):
    def __init__(self, torch, of, arguments):
        super().__init__(
            torch,
            "moe_bench",
            arguments,
            SWEEP_ROUNDS if arguments.sweep else arguments.rounds,
            act="silu",
            d="bf16, of groups f16",
            most_decode_tokens=MOST_DECODE_TOKENS,
        )
        self.of = of
        self.library = of.c.Library(arguments.library)
        self.report |= {"sweep": arguments.sweep, "models": [], "groups": []}

    def measure_point(self, point, add):
        judge = judge_of(self.torch, self.of.decode, point, self.arguments.seed)
        result = self.measure(len(point.calls), judge, lambda measurement: add(measurement, self.of, point))
        return {
            "rows": point.m,
            "busy": point.busy,
            "most_rows": max(point.rows),
            "touched_bytes": point.touched_bytes,
            **result,
        }

    def models(self):
        for name in self.arguments.models:
            model = routing.MODELS[name]
            points = points_of(self.arguments, name)
            if not points:
                continue
            most = max(tokens for tokens, _, _ in points)
            weights = self.of.Weights(self.library, model.n, model.k, model.local, most, self.arguments.seed)
            entry = {
                "name": name,
                "title": model.title,
                "n": model.n,
                "k": model.k,
                "experts": model.experts,
                "top_k": model.top_k,
                "local": model.local,
                "points": [],
            }
            self.report["models"].append(entry)
            for tokens, skewed, rows in points:
                point = self.of.Point(
                    weights, rows, MIN_CALLS if tokens <= MOST_DECODE_TOKENS else 2, self.arguments.seed, tokens=tokens
                )
                result = self.measure_point(point, add_sweep if self.arguments.sweep else add_model_contestants)
                entry["points"].append({"tokens": tokens, "skewed": skewed, **result})
                self.save(f"{name}, {tokens} tokens{' skewed' if skewed else ''}, {point.m} rows, {point.busy} experts", result)
            del weights, point

    def groups(self):
        for n, k, rows in routing.GROUPS:
            weights = self.of.Weights(self.library, n, k, len(rows), sum(rows), self.arguments.seed)
            point = self.of.Point(weights, list(rows), MIN_CALLS, self.arguments.seed, d_type=self.of.c.F16)
            result = self.measure_point(point, add_sweep if self.arguments.sweep else add_group_contestants)
            self.report["groups"].append({"n": n, "k": k, "of_groups": list(rows), **result})
            self.save(f"{len(rows)} groups {n}x{k}, {point.m} rows", result)


def main(words):
    arguments = arguments_of(words)
    if arguments.list:
        list_points(arguments)
        return 0
    begun = rounds.beginning_of("moe_bench", "moe_contestants", arguments.library)
    if begun is None:
        return 2
    torch, moe_contestants = begun
    bench = Bench(torch, moe_contestants, arguments)
    bench.models()
    if not arguments.no_groups:
        bench.groups()
    code = bench.end()
    return 0 if arguments.sweep else code  # a sweep asks for what may be refused


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
