"""llama.cpp#26318: general.alignment of another type than uint32 is passed over, and tensors are read from the wrong place."""

import pathlib
import struct

import pytest
from situations import dg, validate

KINDS = {"uint8": (0, "<B"), "int32": (5, "<i"), "uint64": (10, "<Q"), "float32": (6, "<f")}


@pytest.mark.parametrize("kind", KINDS)
def test_it_is_refused_by_name(kind: str, tmp_path: pathlib.Path) -> None:
    number, form = KINDS[kind]
    key, name = b"general.alignment", b"blk.0.ffn_gate.weight"
    head = b"GGUF" + struct.pack("<IQQ", 3, 1, 1)
    head += struct.pack("<Q", len(key)) + key + struct.pack("<I", number) + struct.pack(form, 64)
    head += struct.pack("<Q", len(name)) + name + struct.pack("<IQIQ", 1, 32, 0, 0)  # one dimension of 32, F32, offset 0
    path = tmp_path / "a.gguf"
    path.write_bytes(head + bytes(-len(head) % 64) + bytes(128))
    with pytest.raises(dg.FileError, match="general.alignment.*must be uint32"):
        dg.open_checkpoint(path)
    assert validate(path).returncode == 1
