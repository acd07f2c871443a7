"""Records tensor maps with the arguments that they were encoded from: recorded.txt, which ptxsim's tests read.

    python ptxsim/tests/tensor_maps/record.py cute|driver|check [--maps 64]

check: both encoders must write what is in recorded.txt. cute: by the host code of CuTe DSL (nvidia-cutlass-dsl and a C compiler;
no GPU). driver: by cuTensorMapEncodeTiled of NVIDIA's driver, which needs a GPU. What is not there is reported as skipped, by name.
Printed: a line for each map, of the encoder, type, address, extents, strides, box, element strides, interleave, swizzle, L2
promotion, fill (as cuTensorMapEncodeTiled takes them), and the bytes: 64 that CuTe DSL writes, 128 that the driver writes.
"""

from __future__ import annotations

import argparse
import ctypes
import pathlib
import random
import sys
from typing import NamedTuple
from collections.abc import Callable, Iterable

sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / "peers"))

BATCH = 8
BITS = {0: 8, 1: 16, 2: 32, 4: 64, 6: 16, 7: 32, 8: 64, 9: 16, 11: 32, 13: 4}  # of the types that CuTe DSL has
SPANS = {0: 256, 1: 32, 2: 64, 3: 128, 4: 128, 6: 128}  # bytes of a row of the box, by swizzle


class Map(NamedTuple):
    type: int
    address: int
    extents: list[int]
    strides: list[int]
    box: list[int]
    swizzle: int
    element_strides: list[int]
    interleave: int = 0
    promotion: int = 2  # 128 bytes, as CuTe DSL always has it
    fill: int = 0

    def line(self, encoder: str, data: bytes) -> str:
        def listed(values: list[int]) -> str:
            return ",".join(map(str, values)) or "-"

        return (
            f"{encoder} {self.type} {self.address:#x} {listed(self.extents)} {listed(self.strides)} {listed(self.box)} "
            f"{listed(self.element_strides)} {self.interleave} {self.swizzle} {self.promotion} {self.fill} {data.hex()}"
        )


def random_map(number: int) -> Map:
    choose = random.Random(number)
    kind, rank = choose.choice(list(BITS)), choose.randint(1, 5)
    bits = BITS[kind]
    swizzle = choose.choice(list(SPANS)) if bits >= 8 else 0
    box, left = [min(256, choose.choice((1, SPANS[swizzle] // 16)) * 128 // bits)], 4096
    box[0] = min(max(box[0], 256 // bits), SPANS[swizzle] * 8 // bits)
    while len(box) < rank:
        box.append(choose.choice((2, 4, 8)))
    extents = [box[0] * choose.randint(1, 20)] + [choose.randint(side, 3000 if rank < 4 else 150) for side in box[1:]]
    strides, bytes_of_row = [], extents[0] * bits // 8
    for extent in extents[1:]:
        strides.append((bytes_of_row + choose.randint(1, left) * 16) // 16 * 16)
        bytes_of_row = strides[-1] * extent
    if any(stride >= 1 << 40 for stride in strides):
        return random_map(number + 1_000_003)
    return Map(kind, choose.randrange(1 << 40) * 128, extents, strides, box, swizzle, [1] * rank)


def driver() -> Callable[[list[Map]], Iterable[bytes]] | None:
    try:
        library = ctypes.CDLL("libcuda.so.1")
    except OSError:
        return None
    if library.cuInit(0) != 0:
        return None

    def encode(one: Map) -> bytes:
        memory = ctypes.create_string_buffer(128 + 64)
        place = (ctypes.addressof(memory) + 63) // 64 * 64

        def array(kind: type, values: list[int]) -> ctypes.Array:
            return (kind * 5)(*values)

        status = library.cuTensorMapEncodeTiled(
            ctypes.c_void_p(place),
            one.type,
            len(one.extents),
            ctypes.c_void_p(one.address),
            array(ctypes.c_uint64, one.extents),
            array(ctypes.c_uint64, one.strides),
            array(ctypes.c_uint32, one.box),
            array(ctypes.c_uint32, one.element_strides),
            one.interleave,
            one.swizzle,
            one.promotion,
            one.fill,
        )
        if status != 0:
            raise RuntimeError(f"cuTensorMapEncodeTiled: status {status} for {one}")
        return ctypes.string_at(place, 128)

    return lambda maps: map(encode, maps)


def by_cute() -> Callable[[list[Map]], Iterable[bytes]] | None:
    try:
        import cute_maps
    except ImportError:
        return None
    return cute_maps.encode


ENCODERS = {"cute": (by_cute, "nvidia-cutlass-dsl"), "driver": (driver, "libcuda.so.1 whose cuInit succeeds")}


def lines_of(encoder: str, count: int) -> Iterable[str]:
    encode = ENCODERS[encoder][0]()
    if encode is None:
        print(f"SKIPPED: there is no {ENCODERS[encoder][1]}; not recorded: tensor maps of {encoder}")
        return
    maps = [random_map(number) for number in range(count)]
    for begin in range(0, count, BATCH):
        batch = maps[begin : begin + BATCH]
        for one, data in zip(batch, encode(batch)):
            yield one.line(encoder, data)


def alike(line: str) -> str:
    """Less what encoders differ in: their names, a bit that CuTe DSL sets, the bytes that it leaves."""
    _, *arguments, data = line.split()
    words = bytearray.fromhex(data)[:64]
    words[8] &= ~2
    return " ".join([*arguments, words.hex()])


def check(encoder: str, count: int) -> bool:
    recorded = (pathlib.Path(__file__).parent / "recorded.txt").read_text().splitlines()
    right = True
    for line, known in zip(lines_of(encoder, count), recorded):
        if alike(line) != alike(known):
            print(f"FAILED: {encoder} encodes\n  {line}\nrecorded is\n  {known}")
            right = False
    return right


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=(*ENCODERS, "check"))
    parser.add_argument("--maps", type=int, default=64)
    options = parser.parse_args()
    if options.what == "check":
        right = [check(encoder, options.maps) for encoder in ENCODERS]
        print("tensor maps: " + ("as recorded" if all(right) else "not as recorded"))
        return 0 if all(right) else 1
    for line in lines_of(options.what, options.maps):
        print(line, flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
