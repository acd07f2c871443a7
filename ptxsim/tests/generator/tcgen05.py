"""Matrix products of tensor memory (PTX ISA 9.0, "TensorCore 5th Generation Family Instructions"; where its figures are
meant, CuTe's mma_traits_sm100_frag.hpp). One CTA, operands without a swizzle, everything at once and in order. What a
part of D's lanes multiplies, A or metadata in tensor memory, is what lies in the same lanes."""

import numbers_of_ptx as n
import sparse
from matrix import BITS, codes_of, product_matrix, scale, scaled_product
from threads import NotModelled, handles
from warp import reduce_floats
from warpgroup import k_major

KINDS = {
    'f16': ['f16', 'bf16'],
    'tf32': [None, None, 'tf32'],
    'f8f6f4': ['e4m3', 'e5m2'],
    'i8': ['u8', 's8'],
    'mxf8f6f4': ['e4m3', 'e5m2'],
    'mxf4': [None, 'e2m1'],
    'mxf4nvf4': [None, 'e2m1'],
}


class TensorMemory:
    def __init__(self):
        self.cells, self.is_allocated = {}, False

    def get(self, lane, column):
        if (lane, column) not in self.cells:
            raise NotModelled('unwritten tensor memory')
        return self.cells[lane, column]


def memory_of(x):
    if not hasattr(x, 'tensor_memory'):
        x.tensor_memory = TensorMemory()
    return x.tensor_memory


@handles('tcgen05')
def tcgen05(x, modifiers, operands):
    if modifiers[0] == 'alloc':
        memory = memory_of(x)
        if memory.is_allocated:
            raise NotModelled('several allocations')
        memory.is_allocated = True
        x.store(x.address(operands[0], x.active[0]), 4, 0)
    elif modifiers[0] in ('ld', 'st'):
        move(x, modifiers, operands)
    elif modifiers[0] == 'mma':
        for t in x.active:
            multiply(x, modifiers, operands, t)
    elif modifiers[0] in ('cp', 'shift'):
        raise NotModelled(x.statement.text)


def move(x, modifiers, operands):
    """One lane a thread, registers side by side."""
    if '32x32b' not in modifiers or 'pack::16b' in modifiers or 'unpack::16b' in modifiers:
        raise NotModelled(x.statement.text)
    memory, loads = memory_of(x), modifiers[0] == 'ld'
    address, names = (operands[-1], operands[0]) if loads else (operands[0], operands[1])
    for warp in x.warps():
        for t in warp:
            at = x.address(address, t)
            lane, column = (at >> 16) // 32 * 32 + t % 32, at & 0xFFFF
            for i, name in enumerate(x.elements(names)):
                if loads:
                    x.write(name, t, memory.get(lane, column + i))
                else:
                    memory.cells[lane, column + i] = x.read(name, t, 32)
            if 'red' in modifiers:
                words = [memory.get(lane, column + i) for i in range(len(x.elements(names)))]
                x.write(operands[1], t, reduce_words(words, modifiers))


def reduce_words(words, modifiers):
    """NaNs and zeros as redux.sync has them."""
    if 'f32' in modifiers:
        return reduce_floats(words, modifiers)
    values = [n.signed(word, 32) if 's32' in modifiers else word for word in words]
    return (min if 'min' in modifiers else max)(values) & 0xFFFFFFFF


def multiply(x, modifiers, operands, t):
    kind = next(m[6:] for m in modifiers if m.startswith('kind::'))
    is_sparse, is_ws = 'sp' in modifiers, 'ws' in modifiers
    operands = list(operands)
    d, a_operand, b_operand = operands[0], operands[1], operands[2]
    metadata = x.address(operands.pop(3), t) if is_sparse else None
    idesc = x.read(operands[3], t, 32)
    is_scaled = 'block_scale' in modifiers
    m, n = (idesc >> 27 & 3) * 128 if is_scaled else (idesc >> 24 & 31) * 16, (idesc >> 17 & 63) * 8
    kind_a, kind_b = KINDS[kind][idesc >> 7 & 7], KINDS[kind][idesc >> 10 & 7]
    bits = BITS[kind_a]
    stored = 256 // bits
    k = 2 * stored if is_sparse else stored
    if idesc >> 13 & 15 or 'cta_group::1' not in modifiers or len(operands) > (7 if is_scaled else 5):
        raise NotModelled(x.statement.text)
    parts = {32: 4, 64: 2}.get(m, 1) if is_ws else 1
    if m == 64 and not is_ws:
        raise NotModelled('64 rows')
    b = k_major(x, x.read(b_operand, t, 64), n, kind_b, k * bits // 128)
    memory, at = memory_of(x), x.address(d, t)
    accumulates = x.read(operands[-1], t, 1)
    result = 's32' if kind == 'i8' else 'f16' if not is_scaled and idesc >> 4 & 3 == 0 else 'f32'
    width = n // parts
    for part in range(parts):
        lane = 128 // parts * part
        if a_operand.startswith('['):
            rows = tensor_rows(memory, lane, x.address(a_operand, t) & 0xFFFF, m, bits)
        else:
            rows = k_major(x, x.read(a_operand, t, 64), m, kind_a)
        if is_sparse:
            fours = metadata_rows(memory, lane, metadata & 0xFFFF, m, k, bits, idesc & 3)
            rows = sparse.expand_rows(rows, fours, bits)
        c = [[memory.get(lane + row, at + column) if accumulates else 0 for column in range(width)] for row in range(m)]
        columns = b[part * width : (part + 1) * width]
        if is_scaled:
            scales = [
                tensor_scales(x, memory, operands[i], t, count, modifiers, idesc, i == 4) for i, count in ((4, m), (5, n))
            ]
            sums = scaled_product(rows, columns, c, kind_a, kind_b, *scales)
        else:
            sums = product_matrix(rows, columns, c, kind_a, kind_b, result, [range(k)], 25, bool(idesc >> 3 & 1))
        for row in range(m):
            for column in range(width):
                memory.cells[lane + row, at + column] = sums[row][column]


def tensor_rows(memory, lane, column, rows, bits):
    return [[code for i in range(8) for code in codes_of(memory.get(lane + row, column + i), bits)] for row in range(rows)]


def metadata_rows(memory, lane, column, rows, k, bits, selector):
    """16 and 32 bits: a column holds a step; of 16 lanes the first eight have the first half of K, in their low halves
    of rows 0 .. 7 and in their high ones of rows 8 .. 15, the other lanes likewise the second half. Fewer bits: a row
    in its lane, two columns a step."""
    chunks = k // sparse.CHUNKS[bits][0]
    result = [[None] * chunks for _ in range(rows)]
    for i in range(rows):
        if bits >= 16:
            word = memory.get(lane + i, column + selector)
            for half in range(2):
                row = i // 16 * 16 + i % 8 + 8 * half
                for n in range(4):
                    result[row][i % 16 // 8 * 4 + n] = word >> 16 * half + 4 * n & 15
        else:
            words = memory.get(lane + i, column) | memory.get(lane + i, column + 1) << 32
            result[i] = [words >> 4 * n & 15 for n in range(chunks)]
    return result


def tensor_scales(x, memory, operand, t, rows, modifiers, idesc, is_a):
    """The scales of row r, which lie in lane r % 32, column r / 32."""
    column = x.address(operand, t) & 0xFFFF
    first = idesc >> 29 & 3 if is_a else idesc >> 4 & 3
    per_row = 1 if 'kind::mxf8f6f4' in modifiers else 4 if 'scale_vec::4X' in modifiers else 2
    form = 'ue8m0' if idesc >> 23 & 1 else 'ue4m3'
    return [
        [scale(memory.get(r % 32, column + r // 32) >> 8 * (first + i) & 0xFF, form) for i in range(per_row)]
        for r in range(rows)
    ]
