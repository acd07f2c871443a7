"""Text of others in errors: escaped, bounded, and the same by whichever way it comes."""

from __future__ import annotations

import pickle

import pytest

import dualgemm as dg
from dualgemm._errors import printable

HOSTILE = ["\x1b[31mred\x1b[0m", "a\nb\r\tc", "\u202egnp.exe", "\x9b2J", "\ud800", "\x00", "x" * 1_000_000, "\x1b" * 5000]


@pytest.mark.parametrize("text", HOSTILE, ids=range(len(HOSTILE)))
def test_is_printable_bounded_and_done_once(text: str) -> None:
    shown = printable(text)
    assert shown.isprintable() and len(shown) <= 1000 and printable(shown) == shown
    error = dg.FileError(text, text, text)
    assert str(error).isprintable() and len(str(error)) < 3100
    assert str(pickle.loads(pickle.dumps(error))) == str(error) and error.argument == shown


def test_what_is_printable_stays() -> None:
    assert printable("model.layers.0.mlp: größer, 大") == "model.layers.0.mlp: größer, 大"


def test_paths(tmp_path: object) -> None:
    with pytest.raises(dg.FileError) as caught:
        dg.open_checkpoint(f"{tmp_path}/\x1b[2Jmodel.safetensors")
    assert str(caught.value).isprintable()
    with pytest.raises(dg.InvalidArgument) as caught:
        dg.plan(1, 1, 16, activation="\x1b[2J" + "x" * 100_000)
    assert str(caught.value).isprintable() and len(str(caught.value)) < 3100
