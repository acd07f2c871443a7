"""wgmma.mma_async (PTX ISA 9.0, "Asynchronous Warpgroup Level Matrix Instructions"), and matrices in shared memory.
Sums are those of matrix.py."""

import sparse
from matrix import BITS, accumulators, codes_of, fragment_a, product_matrix, store_accumulators
from threads import NotModelled, handles


def descriptor_fields(descriptor):
    """Start, leading and stride dimension in bytes (PTX ISA, "Matrix Descriptor Format")."""
    if descriptor >> 49 & 7:
        raise NotModelled('base offset')
    return [(descriptor >> at & 0x3FFF) << 4 for at in (0, 16, 32)]


def k_major(x, descriptor, rows, kind, chunks=2):
    """chunks of 16 bytes a row (PTX ISA, "Shared Memory Matrix Layout"). Without a swizzle: core matrices of 8 rows x
    16 bytes; leading dimension: from one to the next along K, stride: from 8 rows to the next. With the 128-byte one:
    rows of 128 bytes, whose chunks are exchanged by the number of the row, as its address has it."""
    start, leading, stride = descriptor_fields(descriptor)
    if descriptor >> 62 > 1:
        raise NotModelled('swizzle')
    result = []
    for r in range(rows):
        codes = []
        for chunk in range(chunks):
            if descriptor >> 62:
                at = start + r // 8 * stride + chunk * 16 + r % 8 * 128
                at ^= at >> 3 & 0x70
            else:
                at = start + r // 8 * stride + chunk * leading + r % 8 * 16
            for word in range(4):
                codes += codes_of(x.load(at + 4 * word, 4), BITS[kind])
        result.append(codes)
    return result


def mn_major(x, descriptor, rows, kind, k):
    """k elements a row. Without a swizzle: core matrices of 8 along K, each 16 bytes along M or N; stride: from one to
    the next along M or N, leading dimension: along K."""
    start, leading, stride = descriptor_fields(descriptor)
    if descriptor >> 62:
        raise NotModelled('swizzle')
    width = BITS[kind] // 8
    together = 16 // width
    return [
        [x.load(start + r // together * stride + i // 8 * leading + i % 8 * 16 + r % together * width, width) for i in range(k)]
        for r in range(rows)
    ]


@handles('wgmma')
def wgmma(x, modifiers, operands):
    if modifiers[0] != 'mma_async':
        return
    is_sparse, saturate = 'sp' in modifiers, modifiers[-1] == 'satfinite'
    result, kind_a, kind_b = modifiers[-4:-1] if saturate else modifiers[-3:]
    shape = next(m for m in modifiers if m.startswith('m64n'))
    columns = int(shape[4:].split('k')[0])
    names = x.elements(operands[0])
    metadata, rest = (operands[3:5], operands[5:]) if is_sparse else (None, operands[3:])
    negate = tuple(int(o) < 0 for o in rest[1:3]) if len(rest) > 1 else (False, False)
    transposed = [o == '1' for o in rest[3:]]  # of A, unless it is in registers, and B
    if len(x.active) % 128 != 0:
        raise NotModelled('part of a warpgroup')
    for first in range(0, len(x.active), 128):
        group = x.active[first : first + 128]
        descriptor = x.read(operands[2], group[0], 64)
        if transposed and transposed[-1]:
            b = mn_major(x, descriptor, columns, kind_b, 32 if is_sparse else 16)
        else:
            b = k_major(x, descriptor, columns, kind_b, 4 if is_sparse else 2)
        a = stored_a_of_wgmma(x, operands[1], group, kind_a, transposed[:-1] == [True])
        if is_sparse:
            a = [
                row
                for w in range(4)
                for row in sparse.expand_rows(
                    a[16 * w : 16 * w + 16],
                    sparse.of_warp(
                        [x.read(metadata[0], t, 32) for t in group[32 * w : 32 * w + 32]],
                        int(metadata[1], 0),
                        len(b[0]),
                        BITS[kind_a],
                    ),
                    BITS[kind_a],
                )
            ]
        c = [[0] * columns for _ in range(64)]
        if x.read(rest[0], group[0]):
            for i, t in enumerate(group):
                registers = [x.read(r, t, 32) for r in names]
                for row, column, code in accumulators(i % 32, registers, result, 16 * (i // 32)):
                    c[row][column] = code
        fp8 = kind_a in ('e4m3', 'e5m2')
        d = product_matrix(a, b, c, kind_a, kind_b, result, [range(len(a[0]))], 13 if fp8 else 25, saturate, negate)
        for w in range(4):
            store_accumulators(x, names, group[32 * w : 32 * w + 32], d, result, 16 * w)


def stored_a_of_wgmma(x, operand, group, kind, is_transposed):
    if not operand.startswith('{'):
        descriptor = x.read(operand, group[0], 64)
        return mn_major(x, descriptor, 64, kind, 16) if is_transposed else k_major(x, descriptor, 64, kind)
    a = []
    for w in range(4):
        warp = group[32 * w : 32 * w + 32]
        a += fragment_a([[x.read(r, t, 32) for r in x.elements(operand)] for t in warp], BITS[kind])
    return a
