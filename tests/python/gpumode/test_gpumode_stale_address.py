"""Why the notes' cache of converted scales, keyed by addresses, was wrong: a freed address comes back with other contents."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import torch
from harness import ROOT, Done

from python import task

# As submission.py, but scales that were seen are taken from a dictionary.
BY_ADDRESS = """
from by_device import product, with_converted_scales, write_gated
cache = {}

def kept(scales):
    if scales.data_ptr() not in cache:
        cache[scales.data_ptr()] = scales.clone()
    return cache[scales.data_ptr()]

def custom_kernel(data):
    a, b1, b2, sfa, sfb1, sfb2, _, _, _, c = (x[..., 0] for x in data)
    x = with_converted_scales(a, kept(sfa))
    gate, up = product(x, with_converted_scales(b1, kept(sfb1))), product(x, with_converted_scales(b2, kept(sfb2)))
    write_gated(gate, up, c)
    return data[-1]
"""


def test_addresses_return_with_other_contents() -> None:
    seen: dict[int, torch.Tensor] = {}
    returned = 0
    for seed in range(50):
        scales = task.generate_input(128, 128, 256, 1, seed, "cpu")[4].clone()
        before = seen.get(scales.data_ptr())
        returned += before is not None and not torch.equal(before.view(torch.uint8), scales.view(torch.uint8))
        seen[scales.data_ptr()] = torch.empty_like(scales).copy_(scales)
        del scales
    assert returned > 0


def test_the_harness_catches_a_cache_by_address(command: Callable[..., Done], tmp_path: Path, cases: Path) -> None:
    shutil.copy(ROOT / "python" / "by_device.py", tmp_path)
    cases.write_text("m: 128; n: 128; k: 256; l: 1; seed: 1\n")
    done = command(BY_ADDRESS, "benchmark", "--inputs", "50")
    assert done.status == 112 and "elements differ" in done.out


def test_the_owned_weights_pass_where_the_cache_does_not(command: Callable[..., Done], tmp_path: Path, cases: Path) -> None:
    for name in ("by_device.py", "submission_v2.py", "submission_best.py"):
        shutil.copy(ROOT / "python" / name, tmp_path)
    cases.write_text("m: 128; n: 128; k: 256; l: 1; seed: 1\n")
    for name in ("submission_v2", "submission_best"):
        done = command(f"from {name} import custom_kernel\n", "benchmark", "--inputs", "50")
        assert done.status == 0, done.out
