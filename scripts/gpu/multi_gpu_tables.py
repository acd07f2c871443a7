"""The tables of run_multi_gpu_bench, and what they say on paper of more GPUs."""

MLP_WAYS = ["ours", "bf16", "one", "sequence"]
# Microseconds of a collective that moves nothing: a one-shot sum, and a gather with a reduce-scatter, of one row on two H200.
SUM_LATENCY, EXCHANGE_LATENCY = 6.5, 18.0
# Microseconds of an MLP's two launches with nothing to read.
LAUNCHES = 8.0
# Experts in all, experts a token, hidden size, intermediate size.
MODELS = {"qwen3_30b_a3b": (128, 8, 2048, 768), "gpt_oss_120b": (128, 4, 2880, 2880), "deepseek_v3": (256, 8, 7168, 2048)}
READ_BOUND_TOKENS = 128  # up to here a process's share is the bytes of the experts that its tokens touch


def cell(times):
    graph = "" if times["graph"] is None else f"{times['graph']:.{1 if times['graph'] < 100 else 0}f} "
    return f"{graph}({times['eager']:.0f})"


def print_table(title, columns, rows):
    print(f"\n{title}\n\n| {' | '.join(columns)} |\n|{'---|' * len(columns)}")
    print(*(f"| {' | '.join(row)} |" for row in rows), sep="\n", flush=True)


def report(results):
    print(f"{results['processes']} x {results['device']}, {results['date']}: microseconds in a CUDA graph (eager)")
    rows = []
    for one in results["mlp"]:
        sums = [cell(one["all_reduce"][way]) for way in ("nccl", "taken")]
        shown = [cell(one[way]) if way in one else "" for way in MLP_WAYS]
        rows.append([f"({one['n']}, {one['hidden']})", str(one["m"]), *shown, f"{one['ours']['alone']:.0f}", *sums])
    columns = ["(N, K)", "M", *MLP_WAYS, "ours, alone", "all-reduce: NCCL", "taken"]
    if rows:
        print_table("MLPs, tensor parallel", columns, rows)
    rows = []
    for one in results["experts"]:
        ratio = ""
        if one["gather"]["graph"] is not None:
            ratio = f"{one['gather']['graph'] / (one['share']['graph'] + one['collectives']['graph']):.2f}"
        shown = [cell(one[way]) for way in ("gather", "exchange", "share", "collectives")]
        rows.append([one["model"], str(one["tokens"]), *shown, ratio])
    columns = ["experts", "tokens a process", "gather", "exchange", "share", "collectives", "gather / (share + collectives)"]
    if rows:
        print_table("Mixtures of experts", columns, rows)
    if "peak_gib" in results:
        print(f"\nmost memory of a process: {results['peak_gib']:.1f} GiB")


def touched(name, world, tokens):
    """Experts of one process that some of all tokens choose."""
    total, top_k, *_ = MODELS[name]
    return total / world * (1 - (1 - top_k / total) ** (world * tokens))


def predict(results, worlds):
    """A model, not a measurement: products divide by the GPUs down to their launches, a sum's bytes by a ring, rows that are
    gathered grow with the other GPUs; what a process's experts read is what the tokens of all touch, and from READ_BOUND_TOKENS
    on a process multiplies as many rows as before."""
    base = results["processes"]
    rows = []
    for one in results["mlp"]:
        total, sums = one["ours"]["graph"], one["all_reduce"]["taken"]["graph"]
        cells = []
        for world in worlds:
            ring = (1 - 1 / world) / (1 - 1 / base)
            sum_ = SUM_LATENCY + max(0.0, sums - SUM_LATENCY) * ring
            cells.append(f"{max(LAUNCHES, (total - sums) * base / world) + sum_:.0f}")
        rows.append([f"({one['n']}, {one['hidden']})", str(one["m"]), f"{total:.0f}", *cells])
    columns = [f"{base} GPUs, measured", *(f"{world}, on paper" for world in worlds)]
    print_table("MLPs, tensor parallel, on paper", ["(N, K)", "M", *columns], rows)
    rows = []
    for one in results["experts"]:
        name, tokens = one["model"], one["tokens"]
        cells = []
        for world in worlds:
            reads = touched(name, world, tokens) / touched(name, base, tokens) if tokens <= READ_BOUND_TOKENS else 1.0
            wire = EXCHANGE_LATENCY + max(0.0, one["collectives"]["graph"] - EXCHANGE_LATENCY) * (world - 1) / (base - 1)
            cells.append(f"{one['share']['graph'] * reads + wire:.0f}")
        rows.append([name, str(tokens), f"{one['gather']['graph']:.0f}", *cells])
    print_table("Mixtures of experts, gathered, on paper", ["experts", "tokens a process", *columns], rows)
