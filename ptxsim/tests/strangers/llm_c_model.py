"""Writes what llm.c's test of the whole model reads: a small random GPT-2, and what PyTorch makes of it in float64.

    python llm_c_model.py FOLDER

`gpt2_124M.bin`: header and parameters (train_gpt2_fp32.cu, gpt2_build_from_checkpoint). `gpt2_124M_debug_state.bin`: tokens,
logits, loss and gradients (test_gpt2_fp32.cu). `expected_losses.h`: the losses of ten steps of AdamW, which the test has in its
text for the model of 124M.
"""

from __future__ import annotations

import pathlib
import sys

import numpy as np
import torch
from torch.nn import functional

LENGTH, VOCABULARY, PADDED, LAYERS, HEADS, CHANNELS = 64, 200, 256, 2, 4, 128  # tiles of matmul_forward_kernel4: 128
BATCH, STEPS = 2, 10
LEARNING_RATE, WEIGHT_DECAY = 1e-4, 0.01  # what the test calls gpt2_update with

SHAPES = {  # in the order of llm.c's ParameterTensors
    "wte": (PADDED, CHANNELS),
    "wpe": (LENGTH, CHANNELS),
    "ln1w": (LAYERS, CHANNELS),
    "ln1b": (LAYERS, CHANNELS),
    "qkvw": (LAYERS, 3 * CHANNELS, CHANNELS),
    "qkvb": (LAYERS, 3 * CHANNELS),
    "attprojw": (LAYERS, CHANNELS, CHANNELS),
    "attprojb": (LAYERS, CHANNELS),
    "ln2w": (LAYERS, CHANNELS),
    "ln2b": (LAYERS, CHANNELS),
    "fcw": (LAYERS, 4 * CHANNELS, CHANNELS),
    "fcb": (LAYERS, 4 * CHANNELS),
    "fcprojw": (LAYERS, CHANNELS, 4 * CHANNELS),
    "fcprojb": (LAYERS, CHANNELS),
    "lnfw": (CHANNELS,),
    "lnfb": (CHANNELS,),
}


def random_parameters(generator: torch.Generator) -> dict[str, torch.Tensor]:
    made = {}
    for name, shape in SHAPES.items():
        values = torch.randn(shape, generator=generator) * 0.1
        if name.startswith("ln") and name.endswith("w"):
            values += 1
        if name == "wte":
            values[VOCABULARY:] = 0
        made[name] = values.double().requires_grad_()
    return made


def logits_of(p: dict[str, torch.Tensor], tokens: torch.Tensor) -> torch.Tensor:
    def norm(x: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor) -> torch.Tensor:
        return functional.layer_norm(x, (CHANNELS,), weight, bias, 1e-5)

    x = p["wte"][tokens] + p["wpe"][: tokens.shape[1]]
    for i in range(LAYERS):
        qkv = functional.linear(norm(x, p["ln1w"][i], p["ln1b"][i]), p["qkvw"][i], p["qkvb"][i])
        heads = (part.unflatten(-1, (HEADS, -1)).transpose(1, 2) for part in qkv.split(CHANNELS, dim=-1))
        attended = functional.scaled_dot_product_attention(*heads, is_causal=True).transpose(1, 2).flatten(2)
        x = x + functional.linear(attended, p["attprojw"][i], p["attprojb"][i])
        hidden = functional.linear(norm(x, p["ln2w"][i], p["ln2b"][i]), p["fcw"][i], p["fcb"][i])
        x = x + functional.linear(functional.gelu(hidden, approximate="tanh"), p["fcprojw"][i], p["fcprojb"][i])
    return functional.linear(norm(x, p["lnfw"], p["lnfb"]), p["wte"][:VOCABULARY])


def header(*numbers: int) -> bytes:
    return np.array(numbers + (0,) * (256 - len(numbers)), np.int32).tobytes()


def floats(tensors: list[torch.Tensor]) -> bytes:
    return b"".join(one.detach().float().numpy().tobytes() for one in tensors)


def main() -> None:
    folder = pathlib.Path(sys.argv[1])
    generator = torch.Generator().manual_seed(20240326)
    p = random_parameters(generator)
    tokens, targets = (torch.randint(VOCABULARY, (BATCH, LENGTH), generator=generator) for _ in range(2))
    sizes = (LENGTH, VOCABULARY, LAYERS, HEADS, CHANNELS, PADDED)
    (folder / "gpt2_124M.bin").write_bytes(header(20240326, 3, *sizes) + floats(list(p.values())))
    optimizer = torch.optim.AdamW(p.values(), lr=LEARNING_RATE, weight_decay=WEIGHT_DECAY)
    losses = []
    for step in range(STEPS):
        optimizer.zero_grad()
        logits = logits_of(p, tokens)
        loss = functional.cross_entropy(logits.flatten(0, 1), targets.flatten())
        loss.backward()
        losses.append(loss.item())
        if step == 0:
            gradients = [one.grad for one in p.values() if one.grad is not None]
            integers = b"".join(one.numpy().astype(np.int32).tobytes() for one in (tokens, targets))
            state = header(20240327, 2, BATCH, LENGTH) + integers + floats([logits, loss, *gradients])
            (folder / "gpt2_124M_debug_state.bin").write_bytes(state)
            print(f"largest gradient {max(one.abs().max().item() for one in gradients):.2g}")
        optimizer.step()
    print(f"losses {losses}")
    numbers = ", ".join(f"{loss:.9g}f" for loss in losses)
    (folder / "expected_losses.h").write_text(f"float expected_losses[{STEPS}] = {{{numbers}}};\n", encoding="utf-8")


if __name__ == "__main__":
    main()
