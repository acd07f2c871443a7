"""Tensor maps for im2col copies that CuTe DSL's host code encodes: im2col.txt, which ptxsim's tests read.

    python ptxsim/tests/tensor_maps/cute_im2col_maps.py [--maps 16] [--check]

Needs nvidia-cutlass-dsl and a C compiler, no GPU. A line for each map: type, address, extents, strides, corners of the pixel box
(lower, upper), channels, pixels, element strides, swizzle (as cuTensorMapEncodeIm2col takes them), and the 64 bytes. No
postponed annotations here: the DSL evaluates them.
"""

import argparse
import os
import pathlib
import random
import sys
from typing import Any, NamedTuple

os.environ.setdefault("CUTE_DSL_ARCH", "sm_100a")  # it asks the driver otherwise
sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / "peers"))

import cute_launch
import cutlass
import cutlass.cute as cute
from cutlass.cute.nvgpu import cpasync
from cutlass.cute.runtime import make_ptr

TYPES = {0: cutlass.Uint8, 6: cutlass.Float16, 7: cutlass.Float32}  # by the driver's numbers
SPANS = {1: 32, 2: 64, 3: 128}  # bytes of a pixel, by swizzle
BATCH = 4


class Map(NamedTuple):
    type: int
    address: int
    extents: list
    strides: list
    lower: list
    upper: list
    channels: int
    pixels: int
    element_strides: list
    swizzle: int

    def line(self, data: bytes) -> str:
        def listed(values: list) -> str:
            return ",".join(map(str, values))

        return (
            f"{self.type} {self.address:#x} {listed(self.extents)} {listed(self.strides)} {listed(self.lower)} "
            f"{listed(self.upper)} {self.channels} {self.pixels} {listed(self.element_strides)} {self.swizzle} {data.hex()}"
        )


def random_map(number: int) -> Map:
    choose = random.Random(number)
    kind, spatial, swizzle = choose.choice(list(TYPES)), number % 3 + 1, choose.choice(list(SPANS))
    width = TYPES[kind].width // 8
    most = {1: 300, 2: 100, 3: 15}[spatial]  # of a corner
    channels = SPANS[swizzle] // width
    extents = (
        [channels * choose.randint(1, 5)] + [choose.randint(40, 90) + 2 * most for _ in range(spatial)] + [choose.randint(1, 9)]
    )
    strides, size = [], extents[0] * width
    for extent in extents[1:]:
        strides.append(size + choose.randint(0, 4) * 128)
        size = strides[-1] * extent
    corners = [[choose.randint(-most, most) for _ in range(spatial)] for _ in range(2)]
    steps = [1] + [choose.randint(1, 8) for _ in range(spatial)] + [1]
    return Map(
        kind,
        choose.randrange(1 << 36) * 128,
        extents,
        strides,
        *corners,
        channels,
        choose.choice((64, 128, 256)),
        steps,
        swizzle,
    )


def _atom(pointer: Any, one: Any) -> Any:
    width = TYPES[one.type].width // 8
    layout = cute.make_layout((tuple(one.extents[1:]), one.extents[0]), stride=(tuple(s // width for s in one.strides), 1))
    tile = cute.make_composed_layout(
        cute.make_swizzle(one.swizzle, 4, 3), 0, cute.make_layout((one.pixels, one.channels), stride=(one.channels, 1))
    )
    spatial = len(one.lower)
    return cpasync.make_im2col_tma_atom(
        cpasync.CopyBulkTensorIm2ColG2SOp(),
        cute.make_tensor(pointer, layout),
        tile,
        (one.pixels, one.channels),
        lower_corner_whd=tuple(one.lower),
        upper_corner_whd=tuple(one.upper),
        lower_padding_whd=(0,) * spatial,
        upper_padding_whd=tuple(one.upper),
        stride_whd=tuple(one.element_strides[1:-1]),
        lower_srt=(0,) * spatial,
        stride_srt=(1,) * spatial,
    ).atom


@cute.kernel
def _kernel(atoms: tuple):
    for atom in cutlass.range_constexpr(len(atoms)):
        cpasync.prefetch_descriptor(atoms[atom])


@cute.jit
def _host(pointers: tuple, ones: cutlass.Constexpr):
    _kernel(tuple([_atom(pointers[i], ones[i]) for i in range(len(ones))])).launch(grid=[1, 1, 1], block=[32, 1, 1])


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("--maps", type=int, default=16)
    arguments.add_argument("--check", action="store_true", help="compare with the file, write nothing")
    options = arguments.parse_args()
    maps = [random_map(number) for number in range(options.maps)]
    lines = []
    for begin in range(0, len(maps), BATCH):
        ones = maps[begin : begin + BATCH]
        pointers = tuple(make_ptr(TYPES[one.type], one.address, cute.AddressSpace.gmem, assumed_align=128) for one in ones)
        launch = cute_launch.launched(cute.compile(_host, pointers, ones), [one.address for one in ones], [128] * len(ones))
        lines += [one.line(data[:64]) for one, data in zip(ones, launch.parameters)]
    recorded = pathlib.Path(__file__).parent / "im2col.txt"
    if not options.check:
        recorded.write_text("\n".join(lines) + "\n")
    elif lines != recorded.read_text().splitlines()[: len(lines)]:
        sys.exit("CuTe DSL's im2col tensor maps: not those recorded")
    else:
        print(f"CuTe DSL's im2col tensor maps: {len(lines)} as recorded")


if __name__ == "__main__":
    main()
