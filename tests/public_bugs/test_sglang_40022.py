"""sglang#40022: compressed-tensors NVFP4 is refused below compute capability 10, though its weights alone are in four bits."""

import pathlib

import torch
from situations import DEVICE, ROW
from test_checkpoints import close, compressed, write_llama


def test_it_runs_here(tmp_path: pathlib.Path) -> None:
    from dualgemm.integrations.transformers import load

    exact = write_llama(tmp_path / "m", compressed)
    model = load(tmp_path / "m", device=DEVICE, dtype=ROW)
    ids = torch.randint(0, 96, (2, 7))
    with torch.no_grad():
        assert close(model(ids).logits, exact(ids).logits)
