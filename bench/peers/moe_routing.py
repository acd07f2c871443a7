"""Whose rows a mixture of experts has: shapes of models, seeded routing, experts that are cold. Needs no torch.

Tokens choose top_k experts without replacement, all experts alike, or (skewed) expert number r of a seeded order with a
weight of 1 / (r + 1). Where a model's experts are shared out, as DeepSeek-V3's here over 8 GPUs, the tokens are those
of all GPUs together, and only rows of the local experts, the first ones, count.
"""

import bisect
import dataclasses
import itertools
import random


@dataclasses.dataclass(frozen=True)
class Model:
    title: str
    n: int
    k: int
    experts: int  # that tokens choose from
    top_k: int
    local: int  # that this GPU has

    def expert_bytes(self):
        """The bytes of an expert's Gate and Up as NVFP4: 4.5 bits a value."""
        return 2 * self.n * self.k * 9 // 16


MODELS = {
    "deepseek_v3": Model("DeepSeek-V3", 2048, 7168, 256, 8, 32),
    "qwen3_30b_a3b": Model("Qwen3-30B-A3B", 768, 2048, 128, 8, 128),
    "gpt_oss_120b": Model("gpt-oss-120b", 2880, 2880, 128, 4, 128),
    "mixtral_8x7b": Model("Mixtral-8x7B", 14336, 4096, 8, 2, 8),
}

# The group GEMM of the challenge, as a dual one: n, k, rows of each group.
GROUPS = [
    (4096, 7168, (80, 176, 128, 72, 64, 248, 96, 160)),
    (7168, 2048, (40, 76, 168, 72, 164, 148, 196, 160)),
    (3072, 4096, (192, 320)),
    (4096, 1536, (128, 384)),
]


def choose(rng, model, cumulative):
    """The experts of one token."""
    if cumulative is None:
        return rng.sample(range(model.experts), model.top_k)
    chosen = set()
    while len(chosen) < model.top_k:
        chosen.add(bisect.bisect(cumulative, rng.random() * cumulative[-1]))
    return sorted(chosen)


def route(model, tokens, seed, skewed=False):
    """Rows of each local expert: of the first of the seed's draws that gives them any."""
    for attempt in itertools.count():
        rng = random.Random(f"{seed} {model.title} {tokens} {'skewed' if skewed else 'uniform'} {attempt}")
        cumulative = None
        if skewed:
            weights = [1 / (rank + 1) for rank in range(model.experts)]
            rng.shuffle(weights)
            cumulative = list(itertools.accumulate(weights))
        rows = [0] * model.experts
        for _ in range(tokens):
            for expert in choose(rng, model, cumulative):
                rows[expert] += 1
        if any(rows[: model.local]):
            return rows[: model.local]


def rotate(rows, sets, calls, seed):
    """(set, rows of each expert) of each call, so that the weights it touches are as cold as they can be.

    The experts with rows are the least recently used ones of the call's set; the numbers of rows stay.
    """
    busy = [count for count in rows if count]
    order = list(range(len(rows)))
    random.Random(f"{seed} order").shuffle(order)
    begin = [0] * sets
    result = []
    for call in range(calls):
        number = call % sets
        labels = sorted(order[(begin[number] + i) % len(rows)] for i in range(len(busy)))
        begin[number] += len(busy)
        of_experts = [0] * len(rows)
        for label, count in zip(labels, busy):
            of_experts[label] = count
        result.append((number, of_experts))
    return result


def tokens_of_rows(rows, tokens, seed):
    """Whose token each row is: those of an expert differ and increase, as a sort by expert leaves them, and all tokens
    have as many rows as another, or one more."""
    order = list(range(tokens))
    random.Random(f"{seed} tokens").shuffle(order)
    places = itertools.cycle(order)
    return [token for count in rows for token in sorted(itertools.islice(places, count))]


def offsets(rows):
    """Where each expert's rows begin, and the end."""
    return [0, *itertools.accumulate(rows)]
