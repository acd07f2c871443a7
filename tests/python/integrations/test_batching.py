"""transformers' continuous batching of models on this library: every answer is the one that its prompt gets alone. On a GPU where
there is one, in CUDA graphs as transformers decides."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import torch

from dualgemm.integrations import transformers as integration
from models import saved_llama

transformers = pytest.importorskip("transformers")
DEVICES = ["cpu", *(["cuda"] if torch.cuda.is_available() else [])]
PROMPTS = [[1, 2, 3], [4, 5, 6, 7, 8, 9, 10], [11], list(range(12, 60)), [61, 62], [63] * 9]
NEW = 6
SIZES = dict(hidden_size=256, intermediate_size=512, vocab_size=128, max_position_embeddings=512)


def tied(model: Any, prompt: list[int], answer: list[int]) -> bool:
    """Whether each token is the most likely one behind those before it, or as good as it in bf16."""
    with torch.no_grad():
        whole = torch.tensor([prompt + answer], device=model.device)
        logits = model(whole).logits[0, len(prompt) - 1 : -1].float()
    best = logits.max(-1).values
    chosen = logits.gather(1, torch.tensor(answer, device=model.device)[:, None])[:, 0]
    return bool((best - chosen <= 2.0**-6 * logits.abs().amax(-1)).all())


@pytest.mark.parametrize("device", DEVICES)
def test_continuous_batching(tmp_path: Path, device: str) -> None:
    if not hasattr(transformers.LlamaForCausalLM, "generate_batch"):
        pytest.skip("a transformers without continuous batching")
    from transformers.generation.configuration_utils import ContinuousBatchingConfig

    source, target = saved_llama(tmp_path / "float", 3, torch.bfloat16, **SIZES), tmp_path / "nvfp4"
    command = [sys.executable, "-P", "-m", "dualgemm", "quantize", str(source), "--out", str(target)]
    subprocess.run([*command, "--convention", "compressed_tensors"], check=True, capture_output=True)
    model = integration.load(target, dtype=torch.bfloat16, device=device)
    options = transformers.GenerationConfig(max_new_tokens=NEW, min_new_tokens=NEW, do_sample=False, pad_token_id=0)
    found = model.generate_batch(
        inputs=PROMPTS,
        generation_config=options,
        continuous_batching_config=ContinuousBatchingConfig(num_blocks=16, max_batch_tokens=64),
    )
    answers = {tuple(one.prompt_ids): one.generated_tokens for one in found.values()}
    assert len(answers) == len(PROMPTS)
    for prompt in PROMPTS:
        answer = answers[tuple(prompt)]
        assert len(answer) == NEW and tied(model, prompt, answer)
        other = [(token + 1) % 128 for token in answer]
        assert not tied(model, prompt, other)
