"""The tables of run_multi_gpu_bench, and what they say on paper of more GPUs."""

import math

MLP_WAYS = ["ours", "bf16", "sequence"]
# Microseconds of a collective that moves nothing: a one-shot sum, and a gather with a reduce-scatter, of one row on two H200; and
# what a sum takes more on twice as many.
SUM_LATENCY, SUM_LATENCY_A_DOUBLING, EXCHANGE_LATENCY = 7.0, 2.5, 18.0
# Microseconds of an MLP's two launches with nothing to read.
LAUNCHES = 8.0
# Experts in all, experts a token, hidden size, intermediate size.
MODELS = {"qwen3_30b_a3b": (128, 8, 2048, 768), "gpt_oss_120b": (128, 4, 2880, 2880), "deepseek_v3": (256, 8, 7168, 2048)}
READ_BOUND_TOKENS = 128  # up to here a process's share is the bytes of the experts that its tokens touch


def cell(times):
    graph = "" if times["graph"] is None else f"{times['graph']:.{1 if times['graph'] < 100 else 0}f} "
    return f"{graph}({times['eager']:.0f})"


def print_table(title, columns, rows):
    if not rows:
        return
    print(f"\n{title}\n\n| {' | '.join(columns)} |\n|{'---|' * len(columns)}")
    print(*(f"| {' | '.join(row)} |" for row in rows), sep="\n", flush=True)


def run_of(results, processes):
    return next((one for one in results["runs"] if one["processes"] == processes), None)


def report(results):
    runs = results["runs"]
    counts = ", ".join(str(run["processes"]) for run in runs)
    print(f"{counts} x {runs[0]['device'] if runs else ''}, {results['date']}: microseconds in a CUDA graph (eager)")
    spread = [run for run in runs if run["processes"] > 1]
    for run in spread:
        report_mlps(run)
    scales = run_of(results, 1) is not None and spread
    if scales:
        report_mlp_steps(runs)
    for run in spread:
        report_sums(run)
    for run in spread:
        report_experts(run)
    if scales:
        report_experts_steps(runs)


def report_mlps(run):
    rows = []
    for one in run["mlp"]:
        sums = [cell(one["all_reduce"][way]) for way in ("nccl", "taken")]
        shown = [cell(one[way]) if way in one else "" for way in MLP_WAYS]
        memory = [f"{one[way]['mib']:.0f}" for way in ("ours", "bf16")]
        rows.append([f"({one['n']}, {one['hidden']})", str(one["m"]), *shown, f"{one['ours']['alone']:.0f}", *sums, *memory])
    columns = ["(N, K)", "M", *MLP_WAYS, "ours, alone", "all-reduce: NCCL", "taken", "MiB: ours", "bf16"]
    print_table(f"MLPs, tensor parallel, {run['processes']} GPUs", columns, rows)


def report_sums(run):
    ways = ("nccl", "one_shot", "two_shot")
    rows = [[f"{one['bytes'] >> 10}", *(cell(one[way]) if way in one else "" for way in ways)] for one in run["sums"]]
    print_table(f"Sums by size, {run['processes']} GPUs", ["KiB", "NCCL", "one-shot", "two-shot"], rows)


def report_experts(run):
    rows = []
    for one in run["experts"]:
        ratio = ""
        if one["gather"]["graph"] is not None:
            ratio = f"{one['gather']['graph'] / (one['share']['graph'] + one['collectives']['graph']):.2f}"
        shown = [cell(one[way]) for way in ("gather", "exchange", "share", "collectives")]
        memory = [f"{one['mib']:.0f}", f"{one['peak_mib']:.0f}" if "peak_mib" in one else ""]
        rows.append([one["model"], str(one["tokens"]), *shown, ratio, *memory])
    ways = ["gather", "exchange", "share", "collectives", "gather / (share + collectives)"]
    columns = ["experts", "tokens a process", *ways, "MiB: weights", "peak"]
    print_table(f"Mixtures of experts, {run['processes']} GPUs", columns, rows)


def time_of(times):
    return times["eager"] if times["graph"] is None else times["graph"]


def report_mlp_steps(runs):
    """Efficiency of a step from a to b GPUs: a * time on a / (b * time on b)."""
    rows = []
    for lines in zip(*(run["mlp"] for run in runs)):
        times = [time_of(one["ours"]) for one in lines]
        cells = [f"{times[0]:.1f}"]
        for before, run, was, now in zip(runs, runs[1:], times, times[1:]):
            cells += [f"{now:.1f}", f"{before['processes'] * was / (run['processes'] * now):.2f}"]
        rows.append([f"({lines[0]['n']}, {lines[0]['hidden']})", str(lines[0]["m"]), *cells])
    columns = [text for run in runs[1:] for text in (f"{run['processes']} GPUs", "efficiency of the step")]
    print_table("MLPs, tensor parallel: more GPUs", ["(N, K)", "M", "1 GPU", *columns], rows)


def report_experts_steps(runs):
    """One GPU has all experts and takes the rows of all processes, so each step is from one GPU to the number at hand."""
    one_gpu = {(one["model"], one["tokens"]): time_of(one["share"]) for one in runs[0]["experts"]}
    rows = []
    for lines in zip(*(run["experts"] for run in runs[1:])):
        cells = []
        for run, one in zip(runs[1:], lines):
            alone, now = one_gpu[one["model"], run["processes"] * one["tokens"]], time_of(one["gather"])
            cells += [f"{now:.1f}", f"{alone:.1f}", f"{alone / (run['processes'] * now):.2f}"]
        rows.append([lines[0]["model"], str(lines[0]["tokens"]), *cells])
    columns = [text for run in runs[1:] for text in (f"{run['processes']} GPUs", "1 GPU, all rows", "efficiency")]
    print_table("Mixtures of experts: more GPUs", ["experts", "tokens a process", *columns], rows)


def touched(name, world, tokens):
    """Experts of one process that some of all tokens choose."""
    total, top_k, *_ = MODELS[name]
    return total / world * (1 - (1 - top_k / total) ** (world * tokens))


def predict(results, worlds):
    """A model, not a measurement, of each number of GPUs from the largest run with fewer: products divide by the GPUs, their launches
    do not; a sum has a latency that grows with each doubling, its bytes go around a ring; rows that are gathered grow with the other
    GPUs; what a process's experts read is what the tokens of all touch, and from READ_BOUND_TOKENS on a process multiplies as many
    rows as before."""
    pairs = []
    for world in worlds:
        base = max((run for run in results["runs"] if 1 < run["processes"] < world), key=lambda run: run["processes"])
        pairs.append((world, base, run_of(results, world)))
    columns = [text for world, base, real in pairs for text in heads(world, base["processes"], real)]
    rows = []
    for index, one in enumerate(pairs[0][1]["mlp"]):
        cells = []
        for world, base, real in pairs:
            cells.append(f"{mlp_on_paper(base['mlp'][index], base['processes'], world):.0f}")
            cells += [f"{real['mlp'][index]['ours']['graph']:.0f}"] if real else []
        rows.append([f"({one['n']}, {one['hidden']})", str(one["m"]), *cells])
    print_table("MLPs, tensor parallel, on paper", ["(N, K)", "M", *columns], rows)
    rows = []
    for index, one in enumerate(pairs[0][1]["experts"]):
        cells = []
        for world, base, real in pairs:
            cells.append(f"{experts_on_paper(base['experts'][index], base['processes'], world):.0f}")
            cells += [f"{real['experts'][index]['gather']['graph']:.0f}"] if real else []
        rows.append([one["model"], str(one["tokens"]), *cells])
    print_table("Mixtures of experts, gathered, on paper", ["experts", "tokens a process", *columns], rows)


def heads(world, base, real):
    return [f"{world}, on paper from {base}", *([f"{world}, measured"] if real else [])]


def mlp_on_paper(one, base, world):
    sums = one["all_reduce"]["taken"]["graph"]
    products = LAUNCHES + max(0.0, one["ours"]["graph"] - sums - LAUNCHES) * base / world
    ring = (1 - 1 / world) / (1 - 1 / base)
    return products + sum_latency(world) + max(0.0, sums - sum_latency(base)) * ring


def sum_latency(world):
    return SUM_LATENCY + SUM_LATENCY_A_DOUBLING * (math.log2(world) - 1)


def experts_on_paper(one, base, world):
    name, tokens = one["model"], one["tokens"]
    reads = touched(name, world, tokens) / touched(name, base, tokens) if tokens <= READ_BOUND_TOKENS else 1.0
    wire = EXCHANGE_LATENCY + max(0.0, one["collectives"]["graph"] - EXCHANGE_LATENCY) * (world - 1) / (base - 1)
    return one["share"]["graph"] * reads + wire
