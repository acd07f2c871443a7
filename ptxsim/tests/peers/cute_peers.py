"""Kernels in CuTe DSL: what each is launched with, and what it must compute."""

from __future__ import annotations

import dataclasses
import importlib.util
import json
import os
import pathlib
import re
import subprocess
import sys

import formats
import numpy as np
from peer import Array, Peer, given, wanted

FIRST_ADDRESS, ADDRESS_STEP = 0x10_0000_0000, 0x1000_0000  # of buffers: tensor maps hold them


@dataclasses.dataclass
class CutePeer:
    name: str
    function: str  # of cute_kernels; takes pointers to ``arrays``, then ``numbers``, which are constants of the kernel
    arrays: dict[str, Array]
    numbers: tuple[int, ...]
    targets: tuple[int, ...]

    def write(self, target: int, folder: pathlib.Path) -> pathlib.Path:
        """kernel.ptx and case.json in ``folder``, which is made; returns the case. The DSL reads its target when a process begins."""
        folder.mkdir(parents=True, exist_ok=True)
        settings = {
            "CUTE_DSL_ARCH": f"sm_{target}{'a' if target >= 90 else ''}",
            "CUTE_DSL_KEEP": "ptx",
            "CUTE_DSL_DUMP_DIR": str(folder),
        }
        done = subprocess.run(
            [sys.executable, __file__, self.name, str(folder)],
            env=os.environ | settings,
            text=True,
            capture_output=True,
            check=False,
        )
        if done.returncode != 0:
            raise RuntimeError((done.stderr.strip() or "no message").splitlines()[-1])
        return folder / "case.json"

    def compile(self, folder: pathlib.Path) -> None:
        """In a process of its own: the DSL's compiler and its launcher."""
        import cute_kernels
        import cute_launch
        import cutlass
        from cutlass import cute
        from cutlass.cute.runtime import make_ptr

        kinds = {"float16": cutlass.Float16, "float32": cutlass.Float32}
        addresses = [FIRST_ADDRESS + index * ADDRESS_STEP for index in range(len(self.arrays))]
        pointers = [
            make_ptr(kinds[np.dtype(array.dtype).name], address, cute.AddressSpace.gmem, assumed_align=256)
            for array, address in zip(self.arrays.values(), addresses)
        ]
        compiled = cute.compile(getattr(cute_kernels, self.function), *pointers, *self.numbers)
        ptx = compiled.artifacts.PTX
        (folder / "kernel.ptx").write_text(ptx)
        declared = [(int(align), int(size)) for align, size in re.findall(r"\.param \.align (\d+) \.b8 \w+\[(\d+)\]", ptx)]
        launch = cute_launch.launched(compiled, addresses, [size for _, size in declared])
        parameters = []
        for index, ((align, _), data) in enumerate(zip(declared, launch.parameters)):
            (folder / f"parameter{index}.bin").write_bytes(data)
            parameters.append({"file": f"parameter{index}.bin", "align": align})
        buffers = [
            Peer.buffer(name, array, folder) | {"address": address}
            for (name, array), address in zip(self.arrays.items(), addresses)
        ]
        (folder / "case.json").write_text(
            json.dumps(
                {
                    "grid": launch.grid,
                    "block": launch.block,
                    "dynamic_shared_bytes": launch.shared_bytes,
                    "buffers": buffers,
                    "params": parameters,
                },
                indent=1,
            )
        )


def all_of_them() -> list[CutePeer]:
    """None where there is no CuTe DSL: scripts/test_ptxsim_peers says so."""
    if importlib.util.find_spec("cutlass") is None:
        return []
    random = np.random.default_rng(4)
    x, y = random.standard_normal(1000).astype(np.float32), random.standard_normal(1000).astype(np.float32)
    table = formats.integers(random, 8, 512).astype(np.float32)
    m, n, k = 256, 128, 320
    a, b = formats.integers(random, m, k).astype(np.float16), formats.integers(random, n, k).astype(np.float16)
    c = a.astype(np.float32) @ b.astype(np.float32).T
    product = {"a": given(a), "b": given(b), "c": wanted(c)}
    return [
        CutePeer(
            "CuTe DSL: sum of two vectors", "add", {"x": given(x), "y": given(y), "z": wanted(x + y)}, (1000,), (80, 100, 120)
        ),
        CutePeer("CuTe DSL: sums of rows", "sum_rows", {"x": given(table), "y": wanted(table.sum(1))}, table.shape, (90,)),
        CutePeer("CuTe DSL: product by TMA and wgmma", "product_wgmma", product, (m, n, k), (90,)),
        CutePeer("CuTe DSL: product by TMA and tcgen05", "product_tcgen05", product, (m, n, k), (100,)),
    ]


if __name__ == "__main__":
    next(peer for peer in all_of_them() if peer.name == sys.argv[1]).compile(pathlib.Path(sys.argv[2]))
