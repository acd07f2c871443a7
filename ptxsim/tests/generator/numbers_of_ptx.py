"""Floating-point formats as exact fractions (IEEE 754; OCP FP8 and MX; PTX ISA 9.0, "Fundamental Types", "Alternate
Floating-Point Data Formats"). A value is NAN, or (sign, magnitude) with a Fraction or INF as the magnitude, so that
zeros keep their sign."""

from fractions import Fraction

NAN = 'nan'
INF = 'inf'


class Format:
    def __init__(self, name, exponent, mantissa, bias=None, has_inf=True, has_nan=True, nan=None):
        self.name, self.exponent, self.mantissa = name, exponent, mantissa
        self.bias = (1 << (exponent - 1)) - 1 if bias is None else bias
        self.has_inf, self.has_nan = has_inf, has_nan
        self.bits = 1 + exponent + mantissa
        self.least = Fraction(1, 1 << (self.bias - 1 + mantissa))  # the smallest subnormal
        self.smallest_normal = self.least * (1 << mantissa)
        top = (1 << exponent) - 1
        if has_inf:
            self.largest_code = (top << mantissa) - 1
        elif has_nan:
            self.largest_code = (top << mantissa) | ((1 << mantissa) - 2)
        else:
            self.largest_code = (top << mantissa) | ((1 << mantissa) - 1)
        self.inf_code = top << mantissa
        self.nan_code = nan
        self.largest = self.magnitude(self.largest_code)

    def magnitude(self, code):
        exponent, fraction = code >> self.mantissa, code & ((1 << self.mantissa) - 1)
        if exponent == 0:
            return fraction * self.least
        return ((1 << self.mantissa) + fraction) * self.least * (1 << (exponent - 1))

    def decode(self, bits):
        sign, code = bits >> (self.bits - 1) & 1, bits & ((1 << (self.bits - 1)) - 1)
        if self.has_nan and code > (self.inf_code if self.has_inf else self.largest_code):
            return NAN
        if self.has_inf and code == self.inf_code:
            return (sign, INF)
        return (sign, self.magnitude(code))

    def encode(self, value, mode='rn', satfinite=False):
        """Rounds. Beyond the range: infinity or the largest number, as IEEE 754 says for the mode; with `satfinite`,
        or where there is no infinity, the largest number."""
        if value == NAN:
            return self.nan_code
        sign, magnitude = value
        top = sign << (self.bits - 1)
        if magnitude == INF:
            return top | (self.inf_code if self.has_inf and not satfinite else self.largest_code)
        if magnitude == 0:
            return top
        unit = self.least
        exponent = floor_log2(magnitude / self.smallest_normal)
        if exponent > 0:
            unit *= Fraction(2) ** exponent
        units = round_to_integer(sign, magnitude / unit, mode)
        rounded = units * unit
        if rounded > self.largest:
            away = mode in ('rn', 'rna') or (mode == 'rp' and not sign) or (mode == 'rm' and sign)
            return top | (self.inf_code if self.has_inf and away and not satfinite else self.largest_code)
        return top | self.code_of(rounded)

    def code_of(self, magnitude):
        """The code of a magnitude that the format holds."""
        if magnitude < self.smallest_normal:
            return int(magnitude / self.least)
        exponent = floor_log2(magnitude / self.smallest_normal)
        units = magnitude / self.least / (1 << exponent)
        assert units.denominator == 1
        return ((exponent + 1) << self.mantissa) | (int(units) & ((1 << self.mantissa) - 1))

    def is_subnormal(self, value):
        return value != NAN and value[1] != INF and 0 < value[1] < self.smallest_normal


def floor_log2(x):
    n, d = x.numerator, x.denominator
    e = n.bit_length() - d.bit_length()
    return e if x >= Fraction(2) ** e else e - 1


def round_to_integer(sign, magnitude, mode):
    whole = magnitude.numerator // magnitude.denominator
    rest = magnitude - whole
    if rest == 0:
        return whole
    half = Fraction(1, 2)
    if mode == 'rn':
        up = rest > half or (rest == half and whole & 1)
    elif mode == 'rna':
        up = rest >= half
    else:
        up = {'rz': False, 'rm': bool(sign), 'rp': not sign}[mode]
    return whole + 1 if up else whole


F16 = Format('f16', 5, 10, nan=0x7FFF)
BF16 = Format('bf16', 8, 7, nan=0x7FFF)
F32 = Format('f32', 8, 23, nan=0x7FFFFFFF)
TF32 = Format('tf32', 8, 10, nan=0x3FFFF)  # in the upper 19 bits of a register
F64 = Format('f64', 11, 52, nan=0xFFF8000000000000)
E4M3 = Format('e4m3', 4, 3, has_inf=False, nan=0x7F)
E5M2 = Format('e5m2', 5, 2, nan=0x7F)
E2M1 = Format('e2m1', 2, 1, has_inf=False, has_nan=False, bias=1)
E2M3 = Format('e2m3', 2, 3, has_inf=False, has_nan=False, bias=1)
E3M2 = Format('e3m2', 3, 2, has_inf=False, has_nan=False, bias=3)
BY_NAME = {f.name: f for f in (F16, BF16, F32, TF32, F64, E4M3, E5M2, E2M1, E2M3, E3M2)}


def signed(bits, width):
    bits &= (1 << width) - 1
    return bits - (1 << width) if bits >> (width - 1) else bits


def of_number(x):
    """An exact Fraction or int as a value."""
    return (1 if x < 0 else 0, Fraction(abs(x)))


def real(value):
    """A finite value as a Fraction."""
    return -value[1] if value[0] else value[1]


def add(a, b, mode='rn'):
    """The exact sum; the sign of an exact zero is IEEE 754's."""
    if NAN in (a, b):
        return NAN
    if a[1] == INF or b[1] == INF:
        if a[1] == INF and b[1] == INF and a[0] != b[0]:
            return NAN
        return a if a[1] == INF else b
    total = real(a) + real(b)
    if total == 0:
        if a[1] == 0 and b[1] == 0 and a[0] == b[0]:
            return a
        return (1 if mode == 'rm' else 0, Fraction(0))
    return of_number(total)


def multiply(a, b):
    if NAN in (a, b):
        return NAN
    sign = a[0] ^ b[0]
    if a[1] == INF or b[1] == INF:
        return NAN if a[1] == 0 or b[1] == 0 else (sign, INF)
    return (sign, a[1] * b[1])


def divide(a, b):
    if NAN in (a, b):
        return NAN
    sign = a[0] ^ b[0]
    if a[1] == INF:
        return NAN if b[1] == INF else (sign, INF)
    if b[1] == INF:
        return (sign, Fraction(0))
    if b[1] == 0:
        return NAN if a[1] == 0 else (sign, INF)
    return (sign, a[1] / b[1])


def square_root(value, form, mode):
    """The code of the rounded root: from its integer part at a precision far beyond the format's, with a sticky bit."""
    from math import isqrt

    if value == NAN or (value[0] and value[1] != 0):
        return form.encode(NAN)
    if value[1] in (0, INF):
        return form.encode(value)
    shift = 4 * (form.mantissa + form.bias) + 64
    scaled = value[1] * (1 << shift)
    assert scaled.denominator == 1
    root = isqrt(int(scaled))
    exact = root * root == scaled
    return form.encode((0, Fraction(2 * root + (0 if exact else 1), 2 << (shift // 2))), mode)


def negate(value):
    return value if value == NAN else (value[0] ^ 1, value[1])


def absolute(value):
    return value if value == NAN else (0, value[1])


def order(a, b):
    """-1, 0, 1; None for a NaN."""
    if NAN in (a, b):
        return None
    key = [(-1 if v[0] else 1) * (1 << 5000 if v[1] == INF else v[1]) for v in (a, b)]
    return (key[0] > key[1]) - (key[0] < key[1])
