#!/usr/bin/env python3
"""Measures groups of experts on a GPU: this library beside torch in bf16, a Triton kernel and a plain read of the weights.

d = silu(alpha_gate a gate^T) * (alpha_up a up^T) for the rows of every expert, each with its own weights and alphas. In the same
process and the same interleaved rounds: `fused` on contiguous groups, A NVFP4 or bf16, weights unpacked or prepared; torch's
grouped_mm, and a loop of cuBLAS, on stacked bf16 weights, then one kernel that activates; a grouped Triton kernel; a plain read
of the touched experts' bytes. --sweep: instead, every kernel and tile of ours that can be asked for.

    moe_bench.py --library libdualgemm.so [--models qwen3_30b_a3b] [--tokens 1,64] [--json experts.json]

Every call of a CUDA graph works on experts that are cold in L2, and 512 MiB are read before each replay. Results are compared
with float64 on a sample, and with torch's in tiles of 16 x 64. Exit codes: 0; 1 a result was wrong or a contestant failed;
2 wrong arguments, or no GPU, torch or library.
"""
import argparse
import datetime
import gc
import json
import pathlib
import statistics
import subprocess
import sys
import time

sys.dont_write_bytecode = True  # the tree stays as it is
import moe_routing as routing  # noqa: E402

SPACER_BYTES = 512 << 20
MIN_CALLS = 8
MOST_DECODE_TOKENS = 64
SWEEP_ROUNDS = 11
MOST_ERROR = {"grouped_bf16": 1e-2, "loop_bf16": 1e-2}  # of a sample against float64; products are rounded to bf16 there
MOST_ERROR_ELSE = 4e-3  # d is rounded to bf16: 2^-9
MOST_TILE_DIFFERENCE = 3e-2
REASONS = {0x4: "power cap", 0x8: "hardware slowdown", 0x20: "temperature", 0x40: "hardware temperature", 0x80: "power brake"}


def names_of(known):
    def parse(text):
        names = [name for name in text.split(",") if name]
        for name in names:
            if name not in known:
                raise argparse.ArgumentTypeError(f"{name}; must be of {', '.join(known)}")
        return names
    return parse


def count(text):
    if not text.isdigit() or not 1 <= int(text) <= 65536:
        raise argparse.ArgumentTypeError(f"{text or 'nothing'}; must be 1 to 65536")
    return int(text)


def counts(text):
    return [count(part) for part in text.split(",")]


def skewed_points(text):
    points = []
    for part in filter(None, text.split(",")):
        name, _, tokens = part.partition(":")
        points.append((*names_of(routing.MODELS)(name), count(tokens)))
    return points


def arguments_of(words):
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--library", help="libdualgemm.so, with CUDA")
    parser.add_argument("--models", type=names_of(routing.MODELS), default=list(routing.MODELS), help=",".join(routing.MODELS))
    parser.add_argument("--tokens", type=counts, default=[1, 2, 4, 8, 16, 32, 64, 1024, 4096, 16384])
    parser.add_argument("--skewed", type=skewed_points, default=skewed_points("qwen3_30b_a3b:64,qwen3_30b_a3b:4096"),
                        help="MODEL:TOKENS,... that are measured with unequal experts, too; may be empty")
    parser.add_argument("--no-groups", action="store_true", help="leave the challenge's group problems out")
    parser.add_argument("--rounds", type=count, default=31)
    parser.add_argument("--seed", type=int, default=1, help="of routing and operands")
    parser.add_argument("--sweep", action="store_true", help="every kernel and tile of ours, no peers")
    parser.add_argument("--list", action="store_true", help="print the points and measure nothing; needs no GPU")
    parser.add_argument("--revision", help="of the library, for the JSON; else git is asked")
    parser.add_argument("--json", help="also write all numbers to this file")
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
            print(f"{name} {model.n}x{model.k}, {tokens} tokens{' skewed' if skewed else ''}: {sum(rows)} rows, {busy} of {model.local} "
                  f"experts, at most {max(rows)} rows, {busy * model.expert_bytes() / 1e6:.1f} MB of weights")
    if not arguments.no_groups:
        for n, k, rows in routing.GROUPS:
            print(f"{len(rows)} groups {n}x{k}: {sum(rows)} rows: {', '.join(map(str, rows))}")


def revision():
    try:
        done = subprocess.run(["git", "rev-parse", "--short=12", "HEAD"], cwd=pathlib.Path(__file__).parent, text=True, capture_output=True,
                              check=True)
        return done.stdout.strip()
    except (OSError, subprocess.CalledProcessError):
        return "unknown"


class Gpu:
    """What the driver says of the device; nothing where it cannot be asked."""

    def __init__(self, torch):
        properties = torch.cuda.get_device_properties(0)
        self.facts = {"name": properties.name, "compute_capability": 10 * properties.major + properties.minor,
                      "num_sms": properties.multi_processor_count, "l2_bytes": properties.L2_cache_size,
                      "cuda_runtime": torch.version.cuda, "driver": "", "max_sm_clock_mhz": 0, "power_limit_watts": 0.0}
        try:
            import pynvml
            pynvml.nvmlInit()
            self.nvml, self.handle = pynvml, pynvml.nvmlDeviceGetHandleByIndex(0)
            driver = pynvml.nvmlSystemGetDriverVersion()
            self.facts["driver"] = driver.decode() if isinstance(driver, bytes) else driver
            self.facts["max_sm_clock_mhz"] = pynvml.nvmlDeviceGetMaxClockInfo(self.handle, pynvml.NVML_CLOCK_SM)
            self.facts["power_limit_watts"] = pynvml.nvmlDeviceGetPowerManagementLimit(self.handle) / 1000
        except Exception as error:  # no such package, or a driver that does not answer
            print(f"moe_bench: no clocks: {error}", file=sys.stderr)
            self.nvml = None

    def state(self):
        if self.nvml is None:
            return None
        try:
            reasons = self.nvml.nvmlDeviceGetCurrentClocksThrottleReasons(self.handle)
            return {"sm_clock_mhz": self.nvml.nvmlDeviceGetClockInfo(self.handle, self.nvml.NVML_CLOCK_SM),
                    "power_watts": self.nvml.nvmlDeviceGetPowerUsage(self.handle) / 1000,
                    "clock_reasons": [name for bit, name in REASONS.items() if reasons & bit]}
        except self.nvml.NVMLError:
            return None


class Recorded:
    """The calls of one graph. It keeps the contestant, whose memory a replay uses."""

    def __init__(self, torch, contestant, calls):
        self.torch, self.contestant, self.calls, self.d = torch, contestant, calls, None
        contestant.run(0)  # compiled and loaded before the capture, which forbids that
        torch.cuda.synchronize()
        self.graph = torch.cuda.CUDAGraph()
        self.graph.capture_begin()
        try:
            for call in range(calls):
                contestant.run(call)
        finally:
            self.graph.capture_end()
        self.begin, self.end = (torch.cuda.Event(enable_timing=True) for _ in range(2))

    def poison(self):
        if self.contestant.d is not None:
            self.contestant.d.fill_(float("nan"))

    def replay(self, spacer):
        """Microseconds of a call; the read before it gives the host time to enqueue."""
        spacer.sum()
        self.begin.record()
        self.graph.replay()
        self.end.record()
        self.end.synchronize()
        return self.begin.elapsed_time(self.end) * 1e3 / self.calls

    def quick(self, spacer):
        return statistics.median([self.replay(spacer) for _ in range(4)][1:])


class Judge:
    """Compares d of a point's last call with float64 on a sample of rows and columns, and with torch's in tiles."""

    SAMPLED_ROWS, SAMPLED_COLUMNS = 48, 64

    def __init__(self, torch, decode, point, seed):
        self.torch, self.trusted = torch, None
        weights, call = point.weights, point.calls[-1]
        generator = torch.Generator("cuda").manual_seed(seed)
        n = weights.n
        some = torch.randint(0, n, (self.SAMPLED_COLUMNS,), device="cuda", generator=generator)
        ends = torch.arange(self.SAMPLED_COLUMNS, device="cuda")
        self.columns = torch.unique(torch.cat((ends, n - 1 - ends, some)))
        wanted = torch.linspace(0, point.m - 1, min(point.m, self.SAMPLED_ROWS)).round().to(torch.int64).unique().tolist()
        self.rows, expected = [], []
        for e, begin, end in call.busy:
            rows = [row for row in wanted if begin <= row < end]
            if not rows:
                continue
            a = decode(weights.a_codes[rows], weights.a_scales[rows], torch.float64)
            of = call.weights
            g = weights.alphas_gate[e].double() * (a @ decode(of.gate[e][self.columns], of.gate_scales[e][self.columns], torch.float64).T)
            u = weights.alphas_up[e].double() * (a @ decode(of.up[e][self.columns], of.up_scales[e][self.columns], torch.float64).T)
            self.rows += rows
            expected.append(g * torch.sigmoid(g) * u)
        self.expected = torch.cat(expected)

    def tiles(self, d):
        """Sums of squares of tiles of 16 x 64."""
        missing = -d.shape[0] % 16
        padded = self.torch.nn.functional.pad(d, (0, 0, 0, missing))
        return padded.reshape(padded.shape[0] // 16, 16, d.shape[1] // 64, 64).square().sum((1, 3))

    def of(self, name, d):
        sample = d[self.rows][:, self.columns].double()
        error = ((sample - self.expected).norm() / self.expected.norm()).item()
        worst = None
        if self.trusted is None and name in MOST_ERROR:
            self.trusted = d.float()  # judged by the sample alone
        elif self.trusted is not None:
            worst = (self.tiles(d.float() - self.trusted) / self.tiles(self.trusted)).sqrt().max().item()
        finite = bool(self.torch.isfinite(d).all().item())
        right = finite and error <= MOST_ERROR.get(name, MOST_ERROR_ELSE) and (worst is None or worst <= MOST_TILE_DIFFERENCE)
        return {"error": finite_or_none(error), "worst_tile": finite_or_none(worst), "right": right}


def finite_or_none(value):
    return value if value is not None and abs(value) < float("inf") else None


class Measurement:
    """Of one point: its contestants, and what became of them."""

    def __init__(self, torch, gpu, spacer, point, judge, rounds):
        self.torch, self.gpu, self.spacer, self.point, self.judge, self.rounds = torch, gpu, spacer, point, judge, rounds
        self.recorded, self.results, self.states = {}, {}, []

    def add(self, name, makers):
        """The fastest of what the makers make, which is right."""
        best, failure = None, "none suits"
        for make in makers:
            try:
                recorded = Recorded(self.torch, make(), len(self.point.calls))
                recorded.poison()
                microseconds = recorded.quick(self.spacer)
                verdict = self.judge.of(name, recorded.contestant.d) if recorded.contestant.d is not None else {}
            except Exception as error:  # refused, or a compiler's limit: the next one may do
                failure = f"{type(error).__name__}: {str(error)[:300]}"
                print(f"{name}: {failure}", file=sys.stderr)
                self.torch.cuda.synchronize()  # raises after an illegal access: then nothing that follows would mean anything
                continue
            if not verdict.get("right", True):
                failure = f"wrong result: {verdict}, {recorded.contestant.config()}"
                print(f"{name}: {failure}", file=sys.stderr)
                continue
            if best is None or microseconds < best:
                best, self.recorded[name] = microseconds, recorded
                self.results[name] = {"config": recorded.contestant.config(), **verdict}
        if best is None:
            self.results[name] = {"failure": failure}
        elif self.recorded[name].contestant.d is not None:
            self.recorded[name].d = self.recorded[name].contestant.d.clone()

    def run(self):
        times = {name: [] for name in self.recorded}
        for recorded in self.recorded.values():
            recorded.poison()
        for number in range(-2, self.rounds):
            names = list(times) if number % 2 == 0 else list(reversed(times))
            for name in names:
                microseconds = self.recorded[name].replay(self.spacer)
                if number >= 0:
                    times[name].append(microseconds)
            if number in (self.rounds // 3, self.rounds - 1):
                self.states.append(self.gpu.state())
        for name, recorded in self.recorded.items():
            if recorded.d is not None and not self.torch.equal(recorded.d, recorded.contestant.d):
                self.results[name] = {"failure": "the result changed from replay to replay"}
                continue
            of = sorted(times[name])
            self.results[name].update({"median_us": statistics.median(of), "p90_us": of[(9 * (len(of) - 1) + 5) // 10], "min_us": of[0],
                                       "rounds": len(of)})
        return {"rows": self.point.m, "busy": self.point.busy, "most_rows": max(self.point.rows), "touched_bytes": self.point.touched_bytes,
                "calls": len(self.point.calls), "results": self.results, "gpu": [state for state in self.states if state]}


def add_contestants(measurement, of, point):
    kernels = of.kernels
    measurement.add("grouped_bf16", [lambda: of.GroupedBf16(point)])
    measurement.add("loop_bf16", [lambda: of.LoopBf16(point)])
    measurement.add("nvfp4", [lambda: of.Ours(point, of.c.E2M1, False)])
    measurement.add("nvfp4_prepared", [lambda: of.Ours(point, of.c.E2M1, True)])
    measurement.add("read", [lambda config=config: of.PlainRead(point, config) for config in kernels.READ_CONFIGS])


def add_model_contestants(measurement, of, point):
    add_contestants(measurement, of, point)
    measurement.add("bf16", [lambda: of.Ours(point, of.c.BF16, False)])
    measurement.add("bf16_prepared", [lambda: of.Ours(point, of.c.BF16, True)])
    configs = [config for config, lowest, highest in of.kernels.GROUPED_CONFIGS if of.TritonGrouped.suits(point, config, lowest, highest)]
    measurement.add("triton", [lambda config=config: of.TritonGrouped(point, config) for config in configs])


def add_group_contestants(measurement, of, point):
    add_contestants(measurement, of, point)
    measurement.add("dense", [lambda: of.OursDense(point, of.c.E2M1, False)])
    measurement.add("dense_prepared", [lambda: of.OursDense(point, of.c.E2M1, True)])


def configs_to_try(average, packed, prepared):
    """What plans are asked for, but tiles that are much too large or too small for the average rows of a busy expert."""
    wanted = [""]  # the library's own choice
    if average <= 64:
        wanted += [f"kernel=skinny,tile_m={rows},tile_n={columns}" for rows in ((8, 16) if prepared else (8,)) for columns in (16, 32)]
        wanted += [f"isa=sm80,tile_m={rows}" for rows in (8, 64) if packed and not prepared]
    return wanted + [f"kernel=wgmma,tile_m={rows}" for rows in (16, 32, 64, 128, 256) if average / 16 <= rows <= 8 * max(average, 8)]


def add_sweep(measurement, of, point):
    """Under 'A type, prepared or not, what was asked for'."""
    measurement.add("grouped_bf16", [lambda: of.GroupedBf16(point)])  # what tiles are compared with
    for a_type, a_name in ((of.c.E2M1, "nvfp4"), (of.c.BF16, "bf16")):
        for prepared in (False, True):
            for config in configs_to_try(point.m / point.busy, a_type == of.c.E2M1, prepared):
                name = f"{a_name}{'_prepared' if prepared else ''} {config}".strip()
                measurement.add(name, [lambda a=a_type, p=prepared, config=config: of.Ours(point, a, p, config)])


class Bench:
    def __init__(self, torch, of, arguments):
        import triton
        self.torch, self.of, self.arguments, self.start = torch, of, arguments, time.time()
        torch.cuda.set_stream(torch.cuda.Stream())  # one that can be captured
        self.gpu = Gpu(torch)
        self.library = of.c.Library(arguments.library)
        self.spacer = torch.ones(SPACER_BYTES // 4, dtype=torch.float32, device="cuda")
        now = datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")
        self.report = {"program": "moe_bench", "date": now, "revision": arguments.revision or revision(), "sweep": arguments.sweep,
                       "device": self.gpu.facts, "torch": torch.__version__, "triton": triton.__version__,
                       "method": {"rounds": SWEEP_ROUNDS if arguments.sweep else arguments.rounds, "seed": arguments.seed,
                                  "cold_bytes": of.COLD_BYTES, "spacer_bytes": SPACER_BYTES, "act": "silu", "d": "bf16, of groups f16",
                                  "most_decode_tokens": MOST_DECODE_TOKENS},
                       "models": [], "groups": []}
        self.failed = False

    def measure(self, point, add):
        judge = Judge(self.torch, self.of.decode, point, self.arguments.seed)
        measurement = Measurement(self.torch, self.gpu, self.spacer, point, judge, self.report["method"]["rounds"])
        add(measurement, self.of, point)
        result = measurement.run()
        self.failed = self.failed or any("failure" in r for r in result["results"].values()) and not self.arguments.sweep
        return result

    def save(self, title, result):
        times = ", ".join(f"{name} {r['median_us']:.1f}" if "median_us" in r else f"{name} FAILED" for name, r in result["results"].items())
        print(f"[{time.time() - self.start:.0f} s] {title}, {result['rows']} rows, {result['busy']} experts: {times}", flush=True)
        if self.arguments.json:
            with open(self.arguments.json, "w", encoding="utf-8") as file:
                json.dump(self.report, file, indent=1)
                file.write("\n")
        gc.collect()
        self.torch.cuda.empty_cache()

    def models(self):
        for name in self.arguments.models:
            model = routing.MODELS[name]
            points = points_of(self.arguments, name)
            if not points:
                continue
            most = max(sum(rows) for _, _, rows in points)
            weights = self.of.Weights(self.library, model.n, model.k, model.local, most, self.arguments.seed)
            entry = {"name": name, "title": model.title, "n": model.n, "k": model.k, "experts": model.experts, "top_k": model.top_k,
                     "local": model.local, "points": []}
            self.report["models"].append(entry)
            for tokens, skewed, rows in points:
                point = self.of.Point(weights, rows, MIN_CALLS if tokens <= MOST_DECODE_TOKENS else 2, self.arguments.seed)
                result = self.measure(point, add_sweep if self.arguments.sweep else add_model_contestants)
                entry["points"].append({"tokens": tokens, "skewed": skewed, **result})
                self.save(f"{name}, {tokens} tokens{' skewed' if skewed else ''}", result)
            del weights, point

    def groups(self):
        for n, k, rows in routing.GROUPS:
            weights = self.of.Weights(self.library, n, k, len(rows), sum(rows), self.arguments.seed)
            point = self.of.Point(weights, list(rows), MIN_CALLS, self.arguments.seed, d_type=self.of.c.F16)
            result = self.measure(point, add_sweep if self.arguments.sweep else add_group_contestants)
            self.report["groups"].append({"n": n, "k": k, "of_groups": list(rows), **result})
            self.save(f"{len(rows)} groups {n}x{k}", result)


def main(words):
    arguments = arguments_of(words)
    if arguments.list:
        list_points(arguments)
        return 0
    try:
        import torch
        import moe_contestants
    except ImportError as error:
        print(f"moe_bench: {error}; must have torch and Triton", file=sys.stderr)
        return 2
    if not torch.cuda.is_available():
        print("moe_bench: there is no GPU", file=sys.stderr)
        return 2
    if not arguments.library or not pathlib.Path(arguments.library).is_file():
        print(f"moe_bench: --library: {arguments.library}; must be libdualgemm.so", file=sys.stderr)
        return 2
    bench = Bench(torch, moe_contestants, arguments)
    bench.models()
    if not arguments.no_groups:
        bench.groups()
    print(f"{time.time() - bench.start:.0f} s in all, compiling and tuning included", file=sys.stderr)
    return 1 if bench.failed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
