#!/usr/bin/env python3
"""What load() takes of memory: a Llama-like checkpoint in NVFP4 with random values, loaded by a process of its own.

python3 bench/python/load_memory.py [--layers 8] [--hidden 4096] [--intermediate 14336] [--device cpu] [--folder DIR]

Prints the bytes of the files, of the largest layer as the files have it, and of the model once it is loaded; and the largest
amount of memory that was the process's own while it loaded (RssAnon of /proc/self/status, looked at every 5 ms; pages of mapped
files, which the system may drop, are not in it) beyond what it had with torch and transformers imported. The limit: what stays,
and one layer beside it.
"""

from __future__ import annotations

import argparse
import json
import pathlib
import subprocess
import sys
import tempfile
import threading
import time
from typing import Any

import torch


def write(folder: pathlib.Path, layers: int, hidden: int, intermediate: int) -> int:
    """A shard for each layer; the bytes of the largest."""
    from safetensors.torch import save_file

    noise = torch.Generator().manual_seed(1)
    config = dict(
        architectures=["LlamaForCausalLM"],
        model_type="llama",
        hidden_size=hidden,
        intermediate_size=intermediate,
        num_hidden_layers=layers,
        num_attention_heads=hidden // 128,
        num_key_value_heads=max(1, hidden // 512),
        head_dim=128,
        vocab_size=1024,
        tie_word_embeddings=False,
        dtype="bfloat16",
        quantization_config={"quant_method": "modelopt", "quant_algo": "W4A16_NVFP4", "ignore": ["lm_head"]},
    )
    (folder / "config.json").write_text(json.dumps(config))

    def nvfp4(name: str, n: int, k: int) -> dict[str, torch.Tensor]:
        return {
            f"{name}.weight": torch.randint(0, 256, (n, k // 2), dtype=torch.uint8, generator=noise),
            f"{name}.weight_scale": torch.full((n, k // 16), 0.5).to(torch.float8_e4m3fn),
            f"{name}.weight_scale_2": torch.tensor(0.01),
        }

    narrow = config["num_key_value_heads"] * 128  # type: ignore[operator]
    weights: dict[str, str] = {}
    largest = 0
    for layer in range(layers + 1):
        name = f"model.layers.{layer}"
        if layer == layers:
            tensors = {
                end: torch.zeros(1024, hidden, dtype=torch.bfloat16) for end in ("model.embed_tokens.weight", "lm_head.weight")
            }
            tensors["model.norm.weight"] = torch.ones(hidden, dtype=torch.bfloat16)
        else:
            tensors = {
                f"{name}.{end}.weight": torch.ones(hidden, dtype=torch.bfloat16)
                for end in ("input_layernorm", "post_attention_layernorm")
            }
            for end, n, k in (("q", hidden, hidden), ("k", narrow, hidden), ("v", narrow, hidden), ("o", hidden, hidden)):
                tensors |= nvfp4(f"{name}.self_attn.{end}_proj", n, k)
            for end, n, k in (("gate", intermediate, hidden), ("up", intermediate, hidden), ("down", hidden, intermediate)):
                tensors |= nvfp4(f"{name}.mlp.{end}_proj", n, k)
        shard = f"model-{layer + 1:05}-of-{layers + 1:05}.safetensors"
        save_file(tensors, str(folder / shard))
        weights |= dict.fromkeys(tensors, shard)
        largest = max(largest, sum(tensor.nbytes for tensor in tensors.values()))
    (folder / "model.safetensors.index.json").write_text(json.dumps({"metadata": {}, "weight_map": weights}))
    return largest


def own_memory() -> int:
    for line in pathlib.Path("/proc/self/status").read_text().splitlines():
        if line.startswith("RssAnon:"):
            return int(line.split()[1]) * 1024
    raise RuntimeError("/proc/self/status has no RssAnon")


def measure(folder: str, device: str) -> dict[str, Any]:
    from dualgemm.integrations.transformers import load

    before, most, done = own_memory(), 0, threading.Event()

    def watch() -> None:
        nonlocal most
        while not done.wait(0.005):
            most = max(most, own_memory())

    watcher = threading.Thread(target=watch)
    watcher.start()
    start = time.perf_counter()
    model = load(folder, device=device)
    seconds = time.perf_counter() - start
    done.set()
    watcher.join()
    stays = sum(one.nbytes for one in {id(one): one for one in (*model.parameters(), *model.buffers())}.values())
    return {"seconds": seconds, "most": max(most, own_memory()) - before, "stays": stays, "after": own_memory() - before}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--layers", type=int, default=8)
    parser.add_argument("--hidden", type=int, default=4096)
    parser.add_argument("--intermediate", type=int, default=14336)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--folder", type=pathlib.Path)
    parser.add_argument("--inside", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.inside:
        print(json.dumps(measure(arguments.inside, arguments.device)))
        return 0
    with tempfile.TemporaryDirectory() as made:
        folder = arguments.folder or pathlib.Path(made)
        folder.mkdir(parents=True, exist_ok=True)
        largest = write(folder, arguments.layers, arguments.hidden, arguments.intermediate)
        size = sum(path.stat().st_size for path in folder.glob("*.safetensors"))
        command = [sys.executable, "-P", __file__, "--inside", str(folder), "--device", arguments.device]
        found = json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout.splitlines()[-1])
    megabytes = {
        "files": size,
        "the largest layer": largest,
        "stays": found["stays"],
        "most while loading": found["most"],
        "beside what stays": found["most"] - (found["stays"] if arguments.device == "cpu" else 0),
    }
    print("| " + " | ".join(f"{name}, MB" for name in megabytes) + " | s |")
    print("|" + "---|" * (len(megabytes) + 1))
    print("| " + " | ".join(f"{value / 1e6:.0f}" for value in megabytes.values()) + f" | {found['seconds']:.1f} |")
    return 0


if __name__ == "__main__":
    sys.exit(main())
