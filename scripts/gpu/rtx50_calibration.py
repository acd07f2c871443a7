"""The clock's parameters of an RTX 50 or a DGX Spark, from what was measured on it: those that probes read, and those that
make the clock agree with the kernel's times. scripts/rtx50_day calls it; ptxsim/docs/clock.md has the parameters."""

import copy
import math
import statistics

TENSOR_MACS = 16 * 8 * 64 // 4  # of an mma.sync of 4 bits, in those of 16 bits
SCHEDULERS = 4
# What is longest on a point's critical path, and the parameter that its time goes with: the time is inversely proportional.
FITTED = {"HBM": "hbm_tb_per_s", "mma.sync": "mma_sync_part", "power": "sustained_4bit_tmac_per_s"}
MOST = {"mma_sync_part": 1.0}  # a part; times that ask for more say that another parameter is wrong
LEAST_SHARE = 0.5  # of a point's time, for the point to say anything of the parameter
ROUNDS = 2  # of fitting: the second one for what the first has made of the other shares
PROBED = [
    "sm_clock_ghz", "launch_gap_us", "graph_gap_us", "pdl_gap_us", "load_latency_us", "first_load_extra_us", "hbm_tb_per_s",
    "l2_tb_per_s", "ingest_gb_per_s", "tensor_macs_per_clk", "sustained_4bit_tmac_per_s",
]  # fmt: skip
# Why other parameters stay as they are.
NOT_CALIBRATED = (
    "latencies of instructions, L1, shared memory and barriers, rates of special functions and of issue, starts and tails of "
    "CTAs: no probe reads them; scripts/clock_kernels measures them by kernels made for sm_90a, and scripts/calibrate_clock "
    "fits Hopper's kernel alone"
)


def probed(probes, exit_us):
    """Parameters that bench_probes has read, by name; what was refused, failed or is no positive number is left out."""
    readings = {
        f"{probe}: {what}": reading["value"]
        for probe, all_of_it in probes.items()
        if not {"refused", "failed"} & set(all_of_it)
        for what, reading in all_of_it.items()
    }

    def most(what):
        return max((value for name, value in readings.items() if name.startswith(f"copy_rates: {what}")), default=0)

    def less(name, other):
        return readings[name] - other if name in readings else 0

    period = "launch_period: launch period less the kernel, "
    found = {
        "sm_clock_ghz": readings.get("clocks: SM clock, all SMs multiply", 0),
        "launch_gap_us": less(f"{period}stream", exit_us),
        "graph_gap_us": less(f"{period}graph", exit_us),
        "pdl_gap_us": less(f"{period}stream, overlapping", exit_us),
        "hbm_tb_per_s": most("memory to all SMs") / 1e3,
        "l2_tb_per_s": most("L2 to all SMs") / 1e3,
        "ingest_gb_per_s": most("L2 to one SM"),
        "sustained_4bit_tmac_per_s": readings.get("mma_nvf4: all SMs multiply", 0) / 8,
    }
    clocks = readings.get("mma_nvf4: an MMA, 4 warps a scheduler", 0)
    if clocks > 0:
        found["tensor_macs_per_clk"] = SCHEDULERS * TENSOR_MACS / clocks
    hertz = 1e3 * found["sm_clock_ghz"]
    other = readings.get("first_bytes: next stage, other bytes, map prefetched", 0)
    first = readings.get("first_bytes: first stage, map prefetched", 0)
    if hertz > 0 and first > other > 0:
        found |= {"load_latency_us": other / hertz, "first_load_extra_us": (first - other) / hertz}
    return {name: value for name, value in found.items() if value > 0}


def with_values(known, values, kind, source):
    """The parameters with these values in place of theirs, known to 5 %."""
    changed = copy.deepcopy(known)
    for name, value in values.items():
        changed["parameters"][name] = {
            "value": value,
            "low": 0.95 * value,
            "high": 1.05 * value,
            "kind": kind,
            "source": source,
        }
    if "sustained_4bit_tmac_per_s" in values:  # the power limit has to be its upper end, ptxsim/docs/clock.md
        most = changed["parameters"]["sustained_4bit_tmac_per_s"]["high"]
        changed["parameters"]["power_4bit_tmac_per_s"] |= {"value": most, "low": most, "high": most, "kind": kind}
    return changed


def fitted(points, parameters):
    """{parameter: (value, points)} that make the clock agree, by the median over points whose time the parameter decides.
    points: measured_us, and told, what the clock says by these parameters."""
    values = {}
    for point in points:
        told = point["told"]
        name, inside = FITTED.get(told["longest"]), told["us"] - told["gap"]
        decided = told["share"] * inside
        rest = decided + point["measured_us"] - told["us"]  # what is left for it in the measured time
        if name and told["share"] >= LEAST_SHARE and rest > 0:
            values.setdefault(name, []).append(parameters["parameters"][name]["value"] * decided / rest)
    return {name: (min(statistics.median(some), MOST.get(name, math.inf)), len(some)) for name, some in values.items()}


def probe_parameters(known, gpu_name, date, probes):
    """(parameters, steps): `known` with what the probes have read; each step is a parameter, its values before and after, and
    from what."""
    read = probed(probes, known["parameters"]["exit_us"]["value"])
    parameters = with_values(known, read, "measured", f"bench_probes on {gpu_name}, {date}")
    parameters["gpu"] = gpu_name
    return parameters, [
        {"parameter": name, "before": known["parameters"][name]["value"], "after": value, "from": "bench_probes"}
        for name, value in read.items()
    ]


def fit(parameters, gpu_name, date, points, predict):
    """(parameters, steps) that make the clock agree with the measured points. predict(point, parameters) says what the clock
    does of a point."""
    steps = {}
    for _ in range(ROUNDS):
        told = [{"measured_us": point["as_they_lie"]["us"], "told": predict(point, parameters)} for point in points]
        for name, (value, number) in fitted(told, parameters).items():
            before = steps[name]["before"] if name in steps else parameters["parameters"][name]["value"]
            source = f"{number} time{'s' * (number > 1)} of the kernel"
            steps[name] = {"parameter": name, "before": before, "after": value, "from": source}
            parameters = with_values(parameters, {name: value}, "fitted", f"scripts/rtx50_day on {gpu_name}, {date}: {source}")
    return parameters, list(steps.values())
