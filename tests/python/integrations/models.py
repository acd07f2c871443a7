"""Small models of transformers' with random weights, saved as floats."""

from __future__ import annotations

from pathlib import Path

import torch


def saved_llama(folder: Path, seed: int, dtype: torch.dtype, **sizes: int) -> Path:
    """Two layers, four heads; weights that keep the size of what goes through them."""
    import transformers

    torch.manual_seed(seed)
    heads = dict(num_hidden_layers=2, num_attention_heads=4, num_key_value_heads=2, tie_word_embeddings=False)
    model = transformers.LlamaForCausalLM(transformers.LlamaConfig(**heads, **sizes))
    with torch.no_grad():
        for parameter in model.parameters():
            if parameter.dim() > 1:
                parameter.normal_(std=1.5 * parameter.shape[-1] ** -0.5)
    model.to(dtype).save_pretrained(folder)
    return folder
