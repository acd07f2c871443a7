"""A kernel of somebody else's compiler with its launch, its operands and what it must compute."""

from __future__ import annotations

import dataclasses
import json
import pathlib
import re
from typing import Any, Optional

import numpy as np

# Triton's names of an array's elements.
TRITON_TYPES = {"float16": "fp16", "float32": "fp32", "int8": "i8", "int32": "i32", "uint8": "u8"}
# The names in ptxsim's cases.
CASE_TYPES = {"float16": "f16", "float32": "f32", "int8": "s8", "int32": "s32", "uint8": "u8"}


@dataclasses.dataclass
class Array:
    """``values``: what is there before; None: it is unwritten. ``expected``: what must be there afterwards, in every
    bit, or within ``close`` = (absolute, relative)."""

    shape: tuple[int, ...]
    dtype: Any
    values: Optional[np.ndarray] = None
    expected: Optional[np.ndarray] = None
    close: Optional[tuple[float, float]] = None
    triton_type: str = ""

    def type_name(self) -> str:
        return self.triton_type or TRITON_TYPES[np.dtype(self.dtype).name]


def given(values: np.ndarray, triton_type: str = "") -> Array:
    return Array(values.shape, values.dtype, values=values, triton_type=triton_type)


def wanted(expected: np.ndarray, close: Optional[tuple[float, float]] = None, before: Optional[np.ndarray] = None) -> Array:
    return Array(expected.shape, expected.dtype, values=before, expected=expected, close=close)


@dataclasses.dataclass
class Peer:
    name: str
    kernel: Any
    arguments: dict[str, Any]  # by the kernel's parameters: Array, int, float; what is constexpr is in ``constants``
    constants: dict[str, Any]
    grid: tuple[int, ...]
    targets: tuple[int, ...]  # compute capabilities, 90 for 9.0
    options: dict[str, Any] = dataclasses.field(default_factory=dict)  # num_stages, num_warps ...

    def compiled(self, target: int) -> Any:
        """Triton's compiler; needs no GPU."""
        import triton
        from triton.backends.compiler import GPUTarget
        from triton.compiler import ASTSource

        signature, attributes = {}, {}
        for index, name in enumerate(self.kernel.arg_names):
            value = self.arguments.get(name)
            if name in self.constants:
                signature[name] = "constexpr"
            elif isinstance(value, Array):
                signature[name] = f"*{value.type_name()}"
            else:
                signature[name] = "fp32" if isinstance(value, float) else "i32"
            if isinstance(value, Array) or (isinstance(value, int) and value % 16 == 0):
                attributes[(index,)] = [["tt.divisibility", 16]]
        source = ASTSource(fn=self.kernel, signature=signature, constexprs=self.constants, attrs=attributes)
        return triton.compile(source, target=GPUTarget("cuda", target, 32), options=self.options)

    def write(self, target: int, folder: pathlib.Path) -> pathlib.Path:
        """kernel.ptx and case.json in ``folder``, which is made; returns the case."""
        made = self.compiled(target)
        ptx: str = made.asm["ptx"]
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "kernel.ptx").write_text(ptx)
        buffers, parameters = [], []
        for name in self.kernel.arg_names:
            value = self.arguments.get(name)
            if isinstance(value, Array):
                buffers.append(self.buffer(name, value, folder))
                parameters.append({"buffer": name})
            elif name in self.arguments:
                kind = "f32" if isinstance(value, float) else "s32"
                parameters.append({"type": kind, "value": value})
        scratch = made.metadata.global_scratch_size * int(np.prod(self.grid))
        head = ptx[ptx.index(".entry") :]
        missing = len(re.findall(r"\.param", head[: head.index("{")])) - len(parameters)
        for index in range(missing):  # memory that the launcher allocates, for tensor maps and for the profiler
            buffers.append({"name": f"scratch{index}", "bytes": max(scratch, 16) if index == 0 else 16})
            parameters.append({"buffer": f"scratch{index}"})
        threads = int(re.search(r"\.reqntid (\d+)", ptx)[1])  # type: ignore[index]
        case = {
            "grid": list(self.grid),
            "block": [threads],
            "dynamic_shared_bytes": made.metadata.shared,
            "buffers": buffers,
            "params": parameters,
        }
        path = folder / "case.json"
        path.write_text(json.dumps(case, indent=1))
        return path

    @staticmethod
    def buffer(name: str, array: Array, folder: pathlib.Path) -> dict[str, Any]:
        buffer: dict[str, Any] = {
            "name": name,
            "type": CASE_TYPES[np.dtype(array.dtype).name],
            "count": int(np.prod(array.shape)),
        }
        if array.values is not None:
            (folder / f"{name}.bin").write_bytes(np.ascontiguousarray(array.values).tobytes())
            buffer["file"] = f"{name}.bin"
        if array.expected is None:
            buffer["read_only"] = True
        else:
            (folder / f"{name}.expected").write_bytes(np.ascontiguousarray(array.expected).tobytes())
            buffer["expect_file"] = f"{name}.expected"
            if array.close is not None:
                buffer["tolerance"] = {"abs": array.close[0], "rel": array.close[1]}
        return buffer
