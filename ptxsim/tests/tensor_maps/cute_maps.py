"""Tensor maps that CuTe DSL's host code encodes. No postponed annotations here: the DSL evaluates them."""

import os
from typing import Any
from collections.abc import Iterable

os.environ.setdefault("CUTE_DSL_ARCH", "sm_100a")  # it asks the driver otherwise

import cute_launch
import cutlass
import cutlass.cute as cute
from cutlass.cute.nvgpu import cpasync
from cutlass.cute.runtime import make_ptr

# By the driver's numbers.
TYPES = {
    0: cutlass.Uint8,
    1: cutlass.Uint16,
    2: cutlass.Uint32,
    4: cutlass.Uint64,
    6: cutlass.Float16,
    7: cutlass.Float32,
    8: cutlass.Float64,
    9: cutlass.BFloat16,
    11: cutlass.Float32,
    13: cutlass.Float4E2M1FN,
}
SWIZZLES = {0: (0, 4, 3), 1: (1, 4, 3), 2: (2, 4, 3), 3: (3, 4, 3), 4: (2, 5, 2), 6: (1, 6, 1)}
TF32 = 11


def _atom(pointer: Any, one: Any) -> Any:
    steps = [1]
    for side in one.box[:-1]:
        steps.append(steps[-1] * side)
    tile = cute.make_composed_layout(
        cute.make_swizzle(*SWIZZLES[one.swizzle]), 0, cute.make_layout(tuple(one.box), stride=tuple(steps))
    )
    elements = (1, *(stride * 8 // TYPES[one.type].width for stride in one.strides))
    tensor = cute.make_tensor(pointer, cute.make_layout(tuple(one.extents), stride=elements))
    return cpasync.make_tiled_tma_atom(
        cpasync.CopyBulkTensorTileG2SOp(),
        tensor,
        tile,
        tuple(one.box),
        internal_type=cutlass.TFloat32 if one.type == TF32 else None,
    )[0]


@cute.kernel
def _kernel(atoms: tuple):
    for atom in cutlass.range_constexpr(len(atoms)):
        cpasync.prefetch_descriptor(atoms[atom])


@cute.jit
def _host(pointers: tuple, ones: cutlass.Constexpr):
    _kernel(tuple([_atom(pointers[i], ones[i]) for i in range(len(ones))])).launch(grid=[1, 1, 1], block=[32, 1, 1])


def encode(maps: list[Any]) -> Iterable[bytes]:
    """The 64 bytes of each that it writes."""
    pointers = tuple(make_ptr(TYPES[one.type], one.address, cute.AddressSpace.gmem, assumed_align=128) for one in maps)
    compiled = cute.compile(_host, pointers, maps)
    launch = cute_launch.launched(compiled, [one.address for one in maps], [128] * len(maps))
    return (data[:64] for data in launch.parameters)
