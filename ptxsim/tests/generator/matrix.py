"""Matrices of a warp: ldmatrix, stmatrix, movmatrix, mma (PTX ISA 9.0, "Warp Level Matrix Instructions"). What PTX
leaves open, the sums of tensor cores, are as MMA-Sim describes them (arXiv 2511.10909) and as an H200 was seen to
compute them: the products of a step and the accumulator are cut off below the largest exponent among them, added
exactly, and the sum is cut to the result's format. A sparse A is expanded (sparse.py), and only what it stores is
multiplied."""

from fractions import Fraction

import numbers_of_ptx as n
import sparse
from integer import clamp
from numbers_of_ptx import INF, NAN
from threads import NotModelled, handles


def row_addresses(x, operand, warp, count):
    return [x.address(operand, warp[lane]) for lane in range(count)]


@handles('ldmatrix', 'stmatrix')
def move_matrix(x, modifiers, operands):
    """Rows of 16 bytes, their addresses from the lanes in turn. In an 8x8 matrix of halves thread t holds the elements
    2 * (t % 4) and the next of row t / 4. Matrices of bytes are transposed, in CuTe's layouts (Copy_Traits of
    SM100_U8x8_LDSM_T and SM100_U8x4_STSM_T). A register of 16x8 bytes holds columns t / 4 and t / 4 + 8 of rows 2 * (t % 4) and the next;
    one of 16x16 likewise, a second one those of the rows 8 below, where the addresses name rows 0 1 8 9 2 3 10 11 ..."""
    loads = x.statement.root == 'ldmatrix'
    count = next(int(m[1:]) for m in modifiers if m in ('x1', 'x2', 'x4'))
    transposed, shape, kind = 'trans' in modifiers, modifiers[2], modifiers[-1]
    address, registers = (operands[1], operands[0]) if loads else (operands[0], operands[1])
    names = x.elements(registers)
    for warp in x.warps():
        if len(warp) != 32:
            raise NotModelled('part of a warp')
        if kind == 'b16':
            rows = row_addresses(x, address, warp, 8 * count)
            for i in range(count):
                for t in range(32):
                    value = 0
                    for half in range(2):
                        r, c = (2 * (t % 4) + half, t // 4) if transposed else (t // 4, 2 * (t % 4) + half)
                        at = rows[8 * i + r] + 2 * c
                        if loads:
                            value |= x.load(at, 2) << 16 * half
                        else:
                            x.store(at, 2, x.read(names[i], warp[t], 32) >> 16 * half)
                    if loads:
                        x.write(names[i], warp[t], value)
        elif loads and shape == 'm16n16':
            rows = row_addresses(x, address, warp, 16 * count)
            for i in range(count):
                for t in range(32):
                    for part in range(2):
                        value = 0
                        for b in range(4):
                            row, column = byte_place(t, b)
                            lane = ADDRESSED_ROWS.index(row + 8 * part)
                            value |= x.load(rows[16 * i + lane] + column, 1) << 8 * b
                        x.write(names[2 * i + part], warp[t], value)
        elif shape == 'm16n8':
            rows = row_addresses(x, address, warp, 8 * count)
            for i in range(count):
                for t in range(32):
                    value = x.read(names[i], warp[t], 32)
                    for b in range(4):
                        row, column = byte_place(t, b)
                        x.store(rows[8 * i + row] + column, 1, value >> 8 * b)
        else:
            raise NotModelled(x.statement.text)


ADDRESSED_ROWS = [lane % 2 + 8 * (lane // 2 % 2) + 2 * (lane // 4) for lane in range(16)]


def byte_place(t, b):
    return 2 * (t % 4) + b % 2, t // 4 + 8 * (b // 2)


@handles('movmatrix')
def movmatrix(x, modifiers, operands):
    for warp in x.warps():
        words = [x.read(operands[1], t, 32) for t in warp]
        element = [[words[4 * r + c // 2] >> 16 * (c % 2) & 0xFFFF for c in range(8)] for r in range(8)]
        for i, t in enumerate(warp):
            r, c = i // 4, 2 * (i % 4)
            x.write(operands[0], t, element[c][r] | element[c + 1][r] << 16)


FORMATS = {
    'f16': n.F16,
    'bf16': n.BF16,
    'tf32': n.TF32,
    'e4m3': n.E4M3,
    'e5m2': n.E5M2,
    'e2m1': n.E2M1,
    'e2m3': n.E2M3,
    'e3m2': n.E3M2,
}
BITS = {
    'f16': 16,
    'bf16': 16,
    'tf32': 32,
    'e4m3': 8,
    'e5m2': 8,
    'e2m3': 8,
    'e3m2': 8,
    's8': 8,
    'u8': 8,
    'e2m1': 4,
    's4': 4,
    'u4': 4,
}


def element(code, kind):
    """A number, or a value of a format; None where a sparse row stores nothing."""
    if code is None:
        return None
    if kind in INTEGERS:
        return n.signed(code, BITS[kind]) if kind[0] == 's' else code
    return FORMATS[kind].decode(code >> 13 if kind == 'tf32' else code)


INTEGERS = ('s8', 'u8', 's4', 'u4')


def exponent_of(code_value, form):
    """The exponent of a finite number other than 0; subnormal ones have the smallest normal one's."""
    return n.floor_log2(max(code_value[1], form.smallest_normal))


def step(products, accumulator, fraction_bits):
    """products: pairs of values with their formats. The exact sum of what the cut leaves, as a value."""
    terms = []
    for (a, form_a), (b, form_b) in products:
        product = n.multiply(a, b)
        is_number = product != NAN and product[1] not in (0, INF)
        terms.append((exponent_of(a, form_a) + exponent_of(b, form_b) if is_number else 0, product))
    return sum_of_terms(terms, accumulator, fraction_bits)


def sum_of_terms(exact, accumulator, fraction_bits):
    """exact: pairs of an exponent and a value."""
    terms, special = [], []
    for exponent, value in exact:
        if value == NAN or value[1] == INF:
            special.append(value)
        elif value[1] != 0:
            terms.append((exponent, n.real(value)))
    if accumulator == NAN or accumulator[1] == INF:
        special.append(accumulator)
    elif accumulator[1] != 0:
        terms.append((exponent_of(accumulator, n.F32), n.real(accumulator)))
    if special:
        total = (0, Fraction(0))
        for s in special:
            total = n.add(total, s)
        return total
    if not terms:
        return (0, Fraction(0))
    unit = Fraction(2) ** (max(e for e, _ in terms) - fraction_bits)
    total = 0
    for _, v in terms:
        cut = abs(v) / unit
        total += (cut.numerator // cut.denominator) * (-1 if v < 0 else 1)
    return n.of_number(total * unit)


CUT_13 = n.Format('f32 of 13 fraction bits', 8, 13, nan=0x7FFFF)


def store_sum(total, result, fraction_bits):
    if result == 'f16':
        return n.F16.encode(total, 'rn')
    if fraction_bits == 13:
        return n.F32.nan_code if total == NAN else CUT_13.encode(total, 'rz') << 10
    return n.F32.encode(total, 'rz')


def product_matrix(a, b, c, kind_a, kind_b, result, steps, fraction_bits, saturate, negate=(False, False)):
    """d[row][column] of codes a[row][k], b[column][k], c[row][column]. `steps`: lists of k that are added at once."""
    d = []
    va = [[element(code, kind_a) for code in row] for row in a]
    vb = [[element(code, kind_b) for code in row] for row in b]
    for i, row in enumerate(va):
        line = []
        for j, column in enumerate(vb):
            if result == 's32':
                total = n.signed(c[i][j], 32) + sum(p * q for p, q in zip(row, column) if p is not None)
                line.append((clamp(total, 's32') if saturate else total) & 0xFFFFFFFF)
                continue
            bits = c[i][j]
            for ks in steps:
                accumulator = (n.F16 if result == 'f16' else n.F32).decode(bits)
                pairs = [
                    (
                        (n.negate(row[k]) if negate[0] else row[k], FORMATS[kind_a]),
                        (n.negate(column[k]) if negate[1] else column[k], FORMATS[kind_b]),
                    )
                    for k in ks
                    if row[k] is not None
                ]
                bits = store_sum(step(pairs, accumulator, fraction_bits), result, fraction_bits)
            line.append(bits)
        d.append(line)
    return d


def codes_of(word, bits):
    return [word >> bits * i & ((1 << bits) - 1) for i in range(32 // bits)]


def fragment_a(words, bits):
    """16 x K of the words of 32 lanes: register j, element i: row g + 8 * (j % 2), k = e * t + i + 4 * e * (j / 2)."""
    e, registers = 32 // bits, len(words[0])
    rows = [[0] * (4 * e * max(registers // 2, 1)) for _ in range(16)]
    for lane, registers_of_lane in enumerate(words):
        for j, word in enumerate(registers_of_lane):
            for i, code in enumerate(codes_of(word, bits)):
                rows[lane // 4 + 8 * (j % 2)][e * (lane % 4) + i + 4 * e * (j // 2)] = code
    return rows


def fragment_b(words, bits):
    e = 32 // bits
    columns = [[0] * (4 * e * len(words[0])) for _ in range(8)]
    for lane, registers_of_lane in enumerate(words):
        for j, word in enumerate(registers_of_lane):
            for i, code in enumerate(codes_of(word, bits)):
                columns[lane // 4][e * (lane % 4) + i + 4 * e * j] = code
    return columns


TYPES = set(BITS) | {'f32', 's32', 'f64', 'b1', 'ue8m0', 'ue4m3'}


def in_container(code, kind, container):
    """4 bits in the middle of a byte, 6 in its low ones, where the kind has bytes."""
    return code >> 2 & 15 if container == 8 and kind == 'e2m1' else code & 63 if kind in ('e2m3', 'e3m2') else code


@handles('mma')
def mma(x, modifiers, operands):
    is_sparse = 'sp' in modifiers or 'sp::ordered_metadata' in modifiers
    result, kind_a, kind_b = [m for m in modifiers if m in TYPES][:3]
    if kind_a not in BITS or kind_b not in BITS or any(m.startswith('m8n8') for m in modifiers):
        raise NotModelled('f64, single bits and eight rows')
    if kind_a in ('s4', 'u4') and not is_sparse:
        raise NotModelled('dense products of few bits')
    of_bytes = 'kind::f8f6f4' in modifiers or 'kind::mxf8f6f4' in modifiers
    container = 8 if of_bytes else BITS[kind_a]
    for warp in x.warps():
        words = [[[x.read(r, t, 32) for r in x.elements(o)] for t in warp] for o in operands[1:4]]
        a, b = fragment_a(words[0], container), fragment_b(words[1], container)
        a = [[in_container(code, kind_a, container) for code in row] for row in a]
        b = [[in_container(code, kind_b, container) for code in row] for row in b]
        if is_sparse:
            registers = [x.read(operands[4], t, 32) for t in warp]
            metadata = sparse.of_warp(registers, int(operands[5], 0), len(b[0]), container)
            a = sparse.expand_rows(a, metadata, container)
        c = [[0] * 8 for _ in range(16)]
        for lane, registers in enumerate(words[2]):
            for row, column, code in accumulators(lane, registers, result):
                c[row][column] = code
        ks = [range(len(b[0]))]
        if 'block_scale' in modifiers:
            d = scaled_product(a, b, c, kind_a, kind_b, *scales_of_warp(x, modifiers, operands, warp))
        elif container == 8 and kind_a not in INTEGERS and not of_bytes and not (is_sparse and result == 'f16'):
            d = fp8_of_sm90(a, b, c, kind_a, kind_b, result)
        else:
            d = product_matrix(a, b, c, kind_a, kind_b, result, ks, 25, 'satfinite' in modifiers)
        store_accumulators(x, x.elements(operands[0]), warp, d, result)


def scales_of_warp(x, modifiers, operands, warp):
    """Scales of 16 rows and of 8 columns, and the size of a term (PTX ISA 9.0, "Block Scaling for mma.sync")."""
    per_row = 1 if 'kind::mxf8f6f4' in modifiers else 4 if 'scale_vec::4X' in modifiers else 2
    form = modifiers[-1]

    def scales(first, lane_of, rows):
        word, ids = x.elements(operands[first])[0], x.elements(operands[first + 1])
        result = []
        for row in range(rows):
            byte, thread = x.read(ids[0], warp[0], 16), x.read(ids[1], warp[0], 16)
            bits = x.read(word, warp[lane_of(row, thread)], 32)
            result.append([scale(bits >> 8 * (byte + i) & 0xFF, form) for i in range(per_row)])
        return result

    first = len(operands) - 4
    return (
        scales(first, lambda row, thread: 4 * (row % 8) + 2 * thread + row // 8, 16),
        scales(first + 2, lambda column, thread: 4 * column + thread, 8),
    )


def scale(code, form):
    """An exponent, of the significand, and a value; None for a NaN. The sign of a UE4M3 counts for nothing."""
    if form == 'ue8m0':
        return None if code == 0xFF else (code - 127, Fraction(2) ** (code - 127))
    value = n.E4M3.decode(code & 0x7F)
    return None if value == NAN else (max(code >> 3 & 15, 1) - 7, value[1])


def scaled_product(a, b, c, kind_a, kind_b, scales_a, scales_b):
    """Bytes: every product is a term, its exponent the sum of all four, cut at 25 bits. Packed E2M1: the dot products of
    a quarter of K are exact, a term is one of them times both scales, whose exponents alone count, cut at 35 bits."""
    d, k = [], len(b[0])
    va = [[element(code, kind_a) for code in row] for row in a]
    vb = [[element(code, kind_b) for code in row] for row in b]
    packed = len(scales_a[0]) > 1
    for row, of_a, bits_of_c in zip(va, scales_a, c):
        line = []
        for column, of_b, bits in zip(vb, scales_b, bits_of_c):
            terms = []
            for first in range(0, k, k // 4 if packed else 1):
                ks = [i for i in range(first, first + (k // 4 if packed else 1)) if row[i] is not None]
                p, q = of_a[first * len(of_a) // k], of_b[first * len(of_b) // k]
                products = [n.multiply(row[i], column[i]) for i in ks]
                if p is None or q is None:
                    terms.append((0, NAN))
                elif any(v == NAN or v[1] == INF for v in products):
                    terms += [(0, v) for v in products]
                else:
                    exponent = p[0] + q[0]
                    if not packed:
                        exponent += sum(
                            exponent_of(v, form)
                            for i in ks
                            for v, form in ((row[i], FORMATS[kind_a]), (column[i], FORMATS[kind_b]))
                            if v[1] != 0
                        )
                    terms.append((exponent, n.of_number(sum(n.real(v) for v in products) * p[1] * q[1])))
            total = sum_of_terms(terms, n.F32.decode(bits), 35 if packed else 25)
            line.append(n.F32.encode(total, 'rz'))
        d.append(line)
    return d


def fp8_of_sm90(a, b, c, kind_a, kind_b, result):
    """sm_90 has no such unit: ptxas (CUDA 13.0) takes the first two of the four elements of each of A's registers, then
    the other two, as halves, both into an accumulator of the result's format, and adds C with an addition of it."""

    def halves(row):  # of the elements that are there
        stored = [k for k, code in enumerate(row) if code is not None]
        return [[k for i, k in enumerate(stored) if i % 4 // 2 == half] for half in range(2)]

    form = n.F16 if result == 'f16' else n.F32
    sums = []
    for row, codes in zip(a, c):
        product = product_matrix([row], b, [[0] * 8], kind_a, kind_b, result, halves(row), 25, False)[0]
        sums.append([form.encode(n.add(form.decode(p), form.decode(q))) for p, q in zip(product, codes)])
    return sums


def accumulators(lane, registers, result, first_row=0):
    """(row, column, code) of what a lane's registers hold: element j: row g + 8 * (j / 2 % 2), column 2 * t + j % 2 +
    8 * (j / 4)."""
    codes = registers if result != 'f16' else [code for word in registers for code in codes_of(word, 16)]
    for j, code in enumerate(codes):
        yield first_row + lane // 4 + 8 * (j // 2 % 2), 2 * (lane % 4) + j % 2 + 8 * (j // 4), code


def store_accumulators(x, names, threads, d, result, first_row=0):
    for lane, t in enumerate(threads):
        count = 2 * len(names) if result == 'f16' else len(names)
        codes = [d[row][column] for row, column, _ in accumulators_at(lane, count, first_row)]
        for i, name in enumerate(names):
            x.write(name, t, codes[2 * i] | codes[2 * i + 1] << 16 if result == 'f16' else codes[i])


def accumulators_at(lane, count, first_row):
    return accumulators(lane, [0] * count, 'f32', first_row)
