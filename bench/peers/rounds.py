"""What the benchmarks beside torch share: arguments, the GPU's state, contestants in the same rounds, and the judge.

A contestant has run(call), which enqueues the whole operation on the current stream; d, where the result goes, or None if it
has none; and config(), how it was computed. Everything that it needs is allocated when it is made. Needs no torch to be imported.
"""

import argparse
import datetime
import gc
import importlib
import json
import pathlib
import statistics
import subprocess
import sys
import time

COLD_BYTES = 430_000_000  # of packed weights that are worked on before the first ones come again: seven times the L2 of an H200
SPACER_BYTES = 512 << 20
MOST_TILE_DIFFERENCE = 3e-2
SAMPLED_ROWS, SAMPLED_COLUMNS = 48, 64
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


def add_arguments(parser):
    parser.add_argument("--library", help="libdualgemm.so, with CUDA")
    parser.add_argument("--rounds", type=count, default=31)
    parser.add_argument("--seed", type=int, default=1, help="of everything that is random")
    parser.add_argument("--list", action="store_true", help="print the points and measure nothing; needs no GPU")
    parser.add_argument("--revision", help="of the library, for the JSON; else git is asked")
    parser.add_argument("--json", help="also write all numbers to this file")


def beginning_of(program, contestants, library):
    """(torch, the module of contestants); None, with the reason said, where nothing can be measured."""
    try:
        torch, module = importlib.import_module("torch"), importlib.import_module(contestants)
    except ImportError as error:
        print(f"{program}: {error}; must have torch and Triton", file=sys.stderr)
        return None
    fault = fault_of(torch, library)
    if fault:
        print(f"{program}: {fault}", file=sys.stderr)
        return None
    return torch, module


def fault_of(torch, library):
    """Why nothing can be measured, or None."""
    if not torch.cuda.is_available():
        return "there is no GPU"
    if not library or not pathlib.Path(library).is_file():
        return f"--library: {library}; must be libdualgemm.so"
    return None


def revision():
    try:
        done = subprocess.run(
            ["git", "rev-parse", "--short=12", "HEAD"],
            cwd=pathlib.Path(__file__).parent,
            text=True,
            capture_output=True,
            check=True,
        )
        return done.stdout.strip()
    except (OSError, subprocess.CalledProcessError):
        return "unknown"


def calls_of(least, cold_bytes, sets):
    """Calls of a graph, each on cold_bytes of packed weights: a multiple of the sets of weights, which take turns."""
    return -(-max(least, -(-COLD_BYTES // cold_bytes)) // sets) * sets


class Gpu:
    """What the driver says of the device; nothing where it cannot be asked."""

    def __init__(self, torch):
        properties = torch.cuda.get_device_properties(0)
        self.facts = {
            "name": properties.name,
            "compute_capability": 10 * properties.major + properties.minor,
            "num_sms": properties.multi_processor_count,
            "l2_bytes": properties.L2_cache_size,
            "cuda_runtime": torch.version.cuda,
            "driver": "",
            "max_sm_clock_mhz": 0,
            "power_limit_watts": 0.0,
        }
        try:
            import pynvml

            pynvml.nvmlInit()
            # By its name: CUDA's device 0 need not be the driver's.
            self.nvml, self.handle = pynvml, pynvml.nvmlDeviceGetHandleByUUID(f"GPU-{properties.uuid}")
            driver = pynvml.nvmlSystemGetDriverVersion()
            self.facts["driver"] = driver.decode() if isinstance(driver, bytes) else driver
            self.facts["max_sm_clock_mhz"] = pynvml.nvmlDeviceGetMaxClockInfo(self.handle, pynvml.NVML_CLOCK_SM)
            self.facts["power_limit_watts"] = pynvml.nvmlDeviceGetPowerManagementLimit(self.handle) / 1000
        except Exception as error:  # no such package, or a driver that does not answer
            print(f"no clocks: {error}", file=sys.stderr)
            self.nvml = None

    def state(self):
        if self.nvml is None:
            return None
        try:
            reasons = self.nvml.nvmlDeviceGetCurrentClocksThrottleReasons(self.handle)
            return {
                "sm_clock_mhz": self.nvml.nvmlDeviceGetClockInfo(self.handle, self.nvml.NVML_CLOCK_SM),
                "power_watts": self.nvml.nvmlDeviceGetPowerUsage(self.handle) / 1000,
                "clock_reasons": [name for bit, name in REASONS.items() if reasons & bit],
            }
        except self.nvml.NVMLError:
            return None


def sampled_rows(rows):
    most = min(rows, SAMPLED_ROWS)
    return sorted({round(i * (rows - 1) / max(most - 1, 1)) for i in range(most)})


def sampled_columns(torch, columns, seed):
    """The first ones, the last ones, and some."""
    generator = torch.Generator("cuda").manual_seed(seed)
    some = torch.randint(0, columns, (SAMPLED_COLUMNS,), device="cuda", generator=generator)
    ends = torch.arange(SAMPLED_COLUMNS, device="cuda")
    return torch.unique(torch.cat((ends, columns - 1 - ends, some)))


def finite_or_none(value):
    return value if value is not None and abs(value) < float("inf") else None


class Judge:
    """Compares the d of a point's last call with float64 on a sample, and with the first trusted one in tiles of 16 x 64.

    expected(name): the sample, as that contestant should compute it. most_error(name): of the sample, relative. trusted: names.
    """

    def __init__(self, torch, rows, columns, expected, most_error, trusted, most_tile=lambda name: MOST_TILE_DIFFERENCE):
        self.torch, self.rows, self.columns, self.expected = torch, rows, columns, expected
        self.most_error, self.most_tile, self.trusted_names, self.trusted = most_error, most_tile, trusted, None

    def tiles(self, d):
        """Sums of squares."""
        missing = -d.shape[0] % 16
        padded = self.torch.nn.functional.pad(d, (0, 0, 0, missing))
        return padded.reshape(padded.shape[0] // 16, 16, d.shape[1] // 64, 64).square().sum((1, 3))

    def of(self, name, d):
        expected = self.expected(name)
        error = ((d[self.rows][:, self.columns].double() - expected).norm() / expected.norm()).item()
        worst = None
        if self.trusted is not None:
            worst = (self.tiles(d.float() - self.trusted) / self.tiles(self.trusted)).sqrt().max().item()
        finite = bool(self.torch.isfinite(d).all().item())
        right = finite and error <= self.most_error(name) and (worst is None or worst <= self.most_tile(name))
        if right and self.trusted is None and name in self.trusted_names:
            self.trusted = d.float()
        return {"error": finite_or_none(error), "worst_tile": finite_or_none(worst), "right": right}


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


class Measurement:
    """The measurement of one point: its contestants, and what became of them."""

    def __init__(self, torch, gpu, spacer, calls, judge, rounds):
        self.torch, self.gpu, self.spacer, self.calls, self.judge, self.rounds = torch, gpu, spacer, calls, judge, rounds
        self.recorded, self.results, self.states = {}, {}, []

    def add(self, name, makers):
        """The fastest of what the makers make, which is right."""
        best, failure = None, "none suits"
        for make in makers:
            try:
                recorded = Recorded(self.torch, make(), self.calls)
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
            self.results[name].update(
                {
                    "median_us": statistics.median(of),
                    "p90_us": of[(9 * (len(of) - 1) + 5) // 10],
                    "min_us": of[0],
                    "rounds": len(of),
                }
            )
        return {"calls": self.calls, "results": self.results, "gpu": [state for state in self.states if state]}


class Bench:
    """What a benchmark has found so far."""

    def __init__(self, torch, program, arguments, rounds, **facts):
        import triton

        self.torch, self.arguments, self.rounds, self.start, self.failed = torch, arguments, rounds, time.time(), False
        torch.cuda.set_stream(torch.cuda.Stream())  # one that can be captured
        self.gpu = Gpu(torch)
        self.spacer = torch.ones(SPACER_BYTES // 4, dtype=torch.float32, device="cuda")
        now = datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")
        self.report = {
            "program": program,
            "date": now,
            "revision": arguments.revision or revision(),
            "device": self.gpu.facts,
            "torch": torch.__version__,
            "triton": triton.__version__,
            "method": {
                "rounds": rounds,
                "seed": arguments.seed,
                "cold_bytes": COLD_BYTES,
                "spacer_bytes": SPACER_BYTES,
                **facts,
            },
        }

    def measure(self, calls, judge, add):
        """add(measurement): its contestants."""
        measurement = Measurement(self.torch, self.gpu, self.spacer, calls, judge, self.rounds)
        add(measurement)
        result = measurement.run()
        self.failed = self.failed or any("failure" in r for r in result["results"].values())
        return result

    def save(self, title, result):
        times = ", ".join(
            f"{name} {r['median_us']:.1f}" if "median_us" in r else f"{name} FAILED" for name, r in result["results"].items()
        )
        print(f"[{time.time() - self.start:.0f} s] {title}: {times}", flush=True)
        if self.arguments.json:
            with open(self.arguments.json, "w", encoding="utf-8") as file:
                json.dump(self.report, file, indent=1)
                file.write("\n")
        gc.collect()
        self.torch.cuda.empty_cache()

    def end(self):
        """The exit code."""
        print(f"{time.time() - self.start:.0f} s in all, compiling and tuning included", file=sys.stderr)
        return 1 if self.failed else 0
