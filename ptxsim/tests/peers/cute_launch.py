"""What a launcher of CuTe DSL launches its kernel with, without a GPU: its host code runs as it is."""

from __future__ import annotations

import ctypes
import pathlib
import re
import struct
import subprocess
import tempfile
from typing import Any, NamedTuple
from collections.abc import Sequence

LAUNCHER = pathlib.Path(__file__).parent / "cute_launcher.c"


class Launch(NamedTuple):
    grid: tuple[int, ...]
    block: tuple[int, ...]
    shared_bytes: int
    parameters: list[bytes]


def launched(compiled: Any, addresses: Sequence[int], sizes: Sequence[int]) -> Launch:
    """``compiled``: by cute.compile, of a function that takes pointers only; ``sizes``: bytes of the kernel's first parameters."""
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder)
        object_file = compiled.dump_to_object("peer")
        (path / "host.o").write_bytes(object_file)
        run = re.findall(rb"\x00(_mlir_peer__mlir_ciface_\w+)\x00", object_file)[0].decode()
        # -Bsymbolic: the DSL's own library is in this process, and has the same names.
        subprocess.run(
            ["cc", "-shared", "-fPIC", "-Wl,-Bsymbolic", "-o", path / "host.so", path / "host.o", LAUNCHER], check=True
        )
        library = ctypes.CDLL(str(path / "host.so"))
    kept = (ctypes.c_ubyte * 128 * 64).in_dll(library, "kept")
    (ctypes.c_int * 64).in_dll(library, "keep_bytes")[: len(sizes)] = sizes
    status, device, module = ctypes.c_int32(), ctypes.c_int32(), ctypes.c_void_p()
    to_module = ctypes.pointer(module)

    def call(name: str, *values: Any) -> None:
        getattr(library, name)(
            (ctypes.c_void_p * (len(values) + 1))(*map(ctypes.addressof, values), ctypes.addressof(status)), len(values) + 1
        )
        if status.value:
            raise RuntimeError(f"{name}: status {status.value}; must be 0")

    call("_mlir_peer_cuda_init", to_module)
    call("_mlir_peer_cuda_load_to_device", to_module, device)
    call(run, *map(ctypes.c_void_p, addresses))
    shape = struct.unpack("<6IQ", (ctypes.c_ubyte * 32).in_dll(library, "kept_shape"))
    return Launch(shape[:3], shape[3:6], shape[6], [bytes(kept[index][:size]) for index, size in enumerate(sizes)])
