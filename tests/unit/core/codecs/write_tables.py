#!/usr/bin/env python3
"""Writes codecs.txt: what NVFP4's formats say, code by code, for tests/unit/core/codec_tables_test.cpp. The oracle and
the CPU's kernels share src/core's codecs, so an error there would hide in both; this program shares nothing with them.
It follows the formats' definitions (docs/formats.md; OCP Microscaling Formats 1.0, 5.3.3: E2M1; OCP 8-bit Floating
Point 1.0: E4M3; IEEE 754: FP32) in fractions, searches all codes for the nearest one, and needs the standard library
alone.

Usage: write_tables.py [--check]    --check: writes nothing, exits 1 where codecs.txt is not current

FP32 numbers are the eight hexadecimal digits of their bits. Lines:
  e2m1 CODE VALUE; e4m3 BYTE VALUE          all 16 and all 256
  to_e2m1, to_e4m3 BELOW CODE AT CODE ABOVE CODE
      around each boundary of rounding: the FP32 number below it, it, the one above, each with its code
  edge_e2m1, edge_e4m3 X CODE               infinity, NaN, the smallest and the largest FP32 number
  scales ROWS COLUMNS BYTES                 swizzled_128x4: bytes with padding; ROWS lines of offsets follow
  global AMAX STORED FACTOR                 the stored global scale of a tensor with that amax, and the factor G
  block FACTOR X0 ... X15 SCALE CODES SCALE CODES
      16 inputs to scale and codes, eight bytes in the order of memory; the second pair is of four over six
"""

import os
import sys
from fractions import Fraction

TABLE = os.path.join(os.path.dirname(os.path.abspath(__file__)), 'codecs.txt')
INF, NAN = 'inf', 'nan'


def small_float(bits, exponent_bits, mantissa_bits, bias):
    """The magnitude of a code without its sign: IEEE's reading, with subnormals, without infinities."""
    exponent, mantissa = bits >> mantissa_bits, Fraction(bits % (1 << mantissa_bits), 1 << mantissa_bits)
    assert exponent < 1 << exponent_bits
    return Fraction(2) ** (exponent - bias) * (1 + mantissa) if exponent else Fraction(2) ** (1 - bias) * mantissa


E2M1 = [small_float(code, 2, 1, 1) for code in range(8)]
E4M3 = [small_float(byte, 4, 3, 7) for byte in range(127)]  # 0x7F is NaN


def nearest(value, values):
    """The index of the nearest value, of two as near the even index; beyond the last one the last."""
    return min(range(len(values)), key=lambda i: (abs(values[i] - value), i % 2))


def fp32(value):
    """A fraction >= 0 rounded to FP32, nearest even, as a fraction; INF beyond the largest number."""
    if value == 0:
        return Fraction(0)
    exponent = value.numerator.bit_length() - value.denominator.bit_length()
    if Fraction(2) ** exponent > value:
        exponent -= 1
    unit = Fraction(2) ** (max(exponent, -126) - 23)
    rounded = round(value / unit) * unit  # Python rounds a fraction's half to even
    return INF if rounded >= Fraction(2) ** 128 else rounded


def bits_of(value, negative=False):
    """The bits of an FP32 number that is given as its magnitude."""
    sign = 0x80000000 if negative else 0
    if value == NAN:
        return sign | 0x7FC00000
    if value == INF:
        return sign | 0x7F800000
    if value < Fraction(2) ** -126:
        fraction, exponent = value * Fraction(2) ** 149, 0
    else:
        exponent = 127
        while value >= 2:
            value, exponent = value / 2, exponent + 1
        while value < 1:
            value, exponent = value * 2, exponent - 1
        fraction = (value - 1) * 2**23
    assert fraction.denominator == 1
    return sign | exponent << 23 | int(fraction)


def magnitude_of(bits):
    exponent, fraction = bits >> 23 & 0xFF, bits & 0x7FFFFF
    if exponent == 255:
        return NAN if fraction else INF
    if exponent == 0:
        return Fraction(fraction) * Fraction(2) ** -149
    return Fraction(2) ** (exponent - 127) * (1 + Fraction(fraction, 1 << 23))


def to_e2m1(magnitude):
    return 7 if magnitude in (NAN, INF) else nearest(magnitude, E2M1)


def to_e4m3(magnitude):
    return 0x7F if magnitude == NAN else 0x7E if magnitude == INF else nearest(magnitude, E4M3)


def values():
    for code in range(16):
        yield 'e2m1 %x %08x' % (code, bits_of(E2M1[code % 8], code >= 8))
    for byte in range(256):
        yield 'e4m3 %02x %08x' % (byte, bits_of(E4M3[byte % 128] if byte % 128 < 127 else NAN, byte >= 128))


def boundaries(name, known, encode):
    for low, high in zip(known, known[1:]):
        middle = bits_of((low + high) / 2)  # exact: one bit more than the values have
        numbers = ['%08x %02x' % (bits, encode(magnitude_of(bits))) for bits in (middle - 1, middle, middle + 1)]
        yield 'to_%s %s' % (name, ' '.join(numbers))
    last = bits_of(known[-1])
    for bits in (0, 1, 0x007FFFFF, 0x00800000, last, last + 1, 0x7F7FFFFF, 0x7F800000, 0x7F800001, 0x7FC00000):
        yield 'edge_%s %08x %02x' % (name, bits, encode(magnitude_of(bits)))


def swizzled_bytes(rows, columns):
    """(row, column) of each byte in the order of memory, by the picture in docs/formats.md: tiles of 128 x 4, along K
    first; in a tile 32 groups of 16 bytes, each 4 rows that are 32 apart, each 4 columns."""
    for row_of_tile in range(0, rows, 128):
        for column_of_tile in range(0, columns, 4):
            for row in range(32):
                for row_apart in range(0, 128, 32):
                    for column in range(4):
                        yield row_of_tile + row + row_apart, column_of_tile + column


def layouts():
    for rows, columns in ((1, 1), (33, 5), (128, 4), (129, 3), (300, 6)):
        place = {at: offset for offset, at in enumerate(swizzled_bytes(rows, columns))}
        yield 'scales %d %d %d' % (rows, columns, len(place))
        for row in range(rows):
            yield ' '.join(str(place[row, column]) for column in range(columns))


def global_scale(amax):
    """(stored, factor) of a tensor's largest magnitude."""
    if amax == 0:
        return Fraction(1), Fraction(1)
    stored = fp32(amax / 2688)
    if stored < Fraction(2) ** -126:
        return Fraction(2) ** -126, Fraction(2) ** 126
    return stored, fp32(Fraction(2688) / amax)


def amax_of_two_roundings():
    all_bits = (0x3F800000 + 0x10001 * i for i in range(64))
    return [b for b in all_bits if global_scale(magnitude_of(b))[1] != fp32(1 / global_scale(magnitude_of(b))[0])][:8]


def globals_of_tensors():
    smallest = bits_of(fp32(2688 * Fraction(2) ** -126))
    # The last ones: 2688/amax is not 1/(amax/2688), each division rounded to FP32.
    for bits in (
        0,
        1,
        0x00800000,
        smallest - 1,
        smallest,
        smallest + 1,
        0x3F800000,
        0x3F8CCCCD,
        0x40490FDB,
        0x45280000,
        0x45280001,
        0x7F7FFFFF,
        *amax_of_two_roundings(),
    ):
        stored, factor = global_scale(magnitude_of(bits))
        yield 'global %08x %08x %08x' % (bits, bits_of(stored), bits_of(factor))


def times(x, y):
    return x if x in (INF, NAN) else fp32(x * y)


def over(x, y):
    return x if x in (INF, NAN) else fp32(x / y)


def quantized(inputs, factor, target):
    """(scale byte, 16 codes, error) of a block; `error`: the sum of |x*G - code*s| in FP32, None where it is not
    finite."""
    magnitudes = [magnitude_of(x & 0x7FFFFFFF) for x in inputs]
    amax = NAN if NAN in magnitudes else INF if INF in magnitudes else max(magnitudes)
    scale = to_e4m3(over(times(amax, factor), target))  # the nearest byte saturates: min(.., 448)
    if scale in (0, 0x7F):
        codes = [0] * 16
    else:
        codes = [to_e2m1(over(times(m, factor), E4M3[scale])) | x >> 31 << 3 for m, x in zip(magnitudes, inputs)]
    error = Fraction(0)
    for m, code in zip(magnitudes, codes):
        product = times(m, factor)
        if scale == 0x7F or product in (INF, NAN) or error is None:
            error = None
        else:
            error = fp32(error + fp32(abs(product - E2M1[code % 8] * E4M3[scale])))  # the signs are the same
            error = None if error == INF else error
    return scale, codes, error


def packed(codes):
    return ''.join('%02x' % (low | high << 4) for low, high in zip(codes[::2], codes[1::2]))


def block(inputs, factor):
    six, four = (quantized(inputs, magnitude_of(factor), target) for target in (6, 4))
    best = four if None not in (four[2], six[2]) and four[2] < six[2] else six
    return 'block %08x %s %02x %s %02x %s' % (
        factor,
        ' '.join('%08x' % x for x in inputs),
        six[0],
        packed(six[1]),
        best[0],
        packed(best[1]),
    )


def blocks():
    state = 1

    def random(bits):  # a linear congruential generator of 64 bits, its upper bits
        nonlocal state
        state = (state * 6364136223846793005 + 1442695040888963407) % 2**64
        return state >> (64 - bits)

    one, minus = 0x3F800000, 0x80000000
    yield block([0] * 16, one)
    yield block([minus] * 16, one)
    yield block([1, minus | 1] * 8, one)  # the smallest FP32 number: scale 0
    yield block([0x7F7FFFFF, 0xFF7FFFFF] * 8, one)  # saturates at 448 * 6
    yield block([0x7F7FFFFF, one] * 8, 0x7F000000)  # x * G is beyond FP32
    yield block([0x7F800000, 0xFF800000, 0, minus] * 4, one)  # infinities
    yield block([0x3F000000] * 7 + [0x7FC00000] + [0x3F000000] * 8, one)  # a NaN
    # Magnitudes at the boundaries of E2M1, with scale 1 of the 6 beside them, and next to them.
    middles = [bits_of((low + high) / 2) for low, high in zip(E2M1, E2M1[1:])]
    for near in (-1, 0, 1):
        yield block([0x40C00000, 0xC0C00000] + [m + near for m in middles] + [minus | m + near for m in middles], one)
    # Largest magnitudes at the boundaries of a scale's rounding, subnormal scales and the last one among them.
    for byte in (0, 1, 2, 6, 7, 8, 15, 16, 0x37, 0x38, 0x77, 0x7C, 0x7D):
        for near in (-1, 0, 1):
            largest = bits_of(fp32((E4M3[byte] + E4M3[byte + 1]) / 2 * 6)) + near
            yield block([largest] + [largest - (random(4) << 19) | random(1) << 31 for _ in range(15)], one)
    # Any numbers of some octaves, for factors of many bits.
    for _ in range(64):
        exponent, spread, factor = 90 + random(6), 1 + random(3), 112 + random(5) << 23 | random(23)
        yield block([random(1) << 31 | exponent + random(3) % spread << 23 | random(23) for _ in range(16)], factor)
    # Half as fine: many ties, in codes and between the two candidates of four over six.
    for _ in range(32):
        yield block([random(1) << 31 | bits_of(Fraction(random(5), 4)) for _ in range(16)], one + (random(2) << 22))


def table():
    yield '# Written by tests/unit/core/codecs/write_tables.py, which says what the lines mean; do not edit.'
    yield from values()
    yield from boundaries('e2m1', E2M1, to_e2m1)
    yield from boundaries('e4m3', E4M3, to_e4m3)
    yield from layouts()
    yield from globals_of_tensors()
    yield from blocks()


def main():
    if sys.argv[1:] not in ([], ['--check']):
        sys.exit(__doc__)
    text = '\n'.join(table()) + '\n'
    if not sys.argv[1:]:
        with open(TABLE, 'w', encoding='ascii') as file:
            file.write(text)
        return 0
    with open(TABLE, encoding='ascii') as file:
        current = file.read() == text
    print(
        'tables of the codecs: %d passed, %d failed%s'
        % (current, not current, '' if current else '; run tests/unit/core/codecs/write_tables.py')
    )
    return 0 if current else 1


if __name__ == '__main__':
    sys.exit(main())
