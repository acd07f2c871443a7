"""Has a transformers model that holds modules of this package say so where it is saved."""

from __future__ import annotations

import sys

from torch import nn


def mark_for_saving(model: nn.Module) -> None:
    """A transformers model's save_pretrained() is to write what it takes to read it back."""
    if "transformers" not in sys.modules:
        return
    try:
        from .integrations import _saved
    except ImportError:  # of another version: it saves the tensors, as any module's
        return
    _saved.mark(model)
