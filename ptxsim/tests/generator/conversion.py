"""cvt and cvt.pack (PTX ISA 9.0, "cvt", "cvt.pack")."""

from fractions import Fraction

import numbers_of_ptx as n
from floating import FORMATS, MODES, ONE, flush, is_tiny
from integer import clamp, is_integer, value_of
from numbers_of_ptx import INF, NAN
from threads import WIDTHS, NotModelled, handles

TO_INTEGER = {'rni': 'rn', 'rzi': 'rz', 'rmi': 'rm', 'rpi': 'rp'}
TYPES = set(FORMATS) | {'tf32'} | {s + str(w) for s in 'su' for w in (8, 16, 32, 64)}
PAIRS = {
    'f16x2': n.F16,
    'bf16x2': n.BF16,
    'e4m3x2': n.E4M3,
    'e5m2x2': n.E5M2,
    'e2m1x2': n.E2M1,
    'e2m3x2': n.E2M3,
    'e3m2x2': n.E3M2,
    'ue8m0x2': None,
}


def to_integral(value, mode):
    """A finite number rounded to an integer, which keeps the sign of a zero."""
    return (value[0], Fraction(n.round_to_integer(value[0], value[1], mode)))


def float_to_integer(value, kind, mode, form):
    """Out of range is clamped; a NaN is 0, or 1 << (width - 1) from f64 and to 64 bits."""
    if value == NAN:
        return 1 << (WIDTHS[kind] - 1) if form is n.F64 or WIDTHS[kind] == 64 else 0
    if value[1] == INF:
        return clamp(-(1 << 70) if value[0] else 1 << 70, kind)
    return clamp(int(n.real(to_integral(value, mode))), kind)


def float_to_float(value, form, modifiers):
    mode = next((m for m in modifiers if m in MODES + ('rna',)), 'rn')
    integral = next((TO_INTEGER[m] for m in modifiers if m in TO_INTEGER), None)
    value_in = value
    if integral and value != NAN and value[1] != INF:
        value_in = to_integral(value, integral)
    satfinite = 'satfinite' in modifiers
    rounded = form.decode(form.encode(value_in, mode, satfinite))
    if form is n.F32 and 'ftz' in modifiers and is_tiny(value_in, form, mode):
        rounded = (value_in[0], Fraction(0))
    if 'sat' in modifiers:
        if rounded == NAN or rounded[0] or rounded[1] == 0:
            return 0
        return form.encode(ONE if rounded[1] == INF or rounded[1] > 1 else rounded)
    if 'relu' in modifiers and rounded != NAN and rounded[0]:
        return 0
    return form.encode(rounded, satfinite=satfinite)


def scalar(x, modifiers, operands, to, source):
    for t in x.active:
        if is_integer(source):
            value = value_of(x.read(operands[1], t, WIDTHS[source]), source)
            if is_integer(to):
                result = clamp(value, to) if 'sat' in modifiers else value
            else:
                result = float_to_float(n.of_number(value), FORMATS[to], modifiers)
        else:
            form = FORMATS[source]
            bits = x.read(operands[1], t, form.bits)
            value = form.decode(bits)
            if form is n.F32 and to != 'f16':  # to f16 an H100 flushes nothing
                value = flush(value, form, modifiers)
            if is_integer(to):
                mode = next(TO_INTEGER[m] for m in modifiers if m in TO_INTEGER)
                result = float_to_integer(value, to, mode, form)
            elif to == 'tf32':
                result = float_to_float(value, n.TF32, modifiers) << 13
                if value == NAN:
                    result = 0x7FFFFFFF
                    if 'rna' in modifiers:  # the low bits cleared, and with .satfinite the number before (an H100)
                        result = (bits & ~0x1FFF) - (0x2000 if 'satfinite' in modifiers else 0)
            elif value == NAN and form is n.F64 and to == 'f64' and 'sat' not in modifiers:
                result = bits | 1 << 51
            else:
                result = float_to_float(value, FORMATS[to], modifiers)
        if is_integer(to):  # extended into a wider register
            result &= (1 << WIDTHS[to]) - 1
            result = value_of(result, to)
        x.write(operands[0], t, result)


def scale_code(value, mode, satfinite):
    """ue8m0: 2^(code - 127), rounded towards zero or up; NaN 0xff. The sign does not count."""
    if value == NAN:
        return 0xFF
    if value[1] == INF:
        return 0xFE if satfinite else 0xFF
    if value[1] == 0:
        return 0
    e = n.floor_log2(value[1])
    if mode == 'rp' and Fraction(2) ** e != value[1]:
        e += 1
    if e > 127:
        return 0xFE if satfinite else 0xFF
    return max(e + 127, 0)


def narrow(value, form, modifiers):
    """One element of a packed result."""
    mode = next((m for m in modifiers if m in MODES), 'rn')
    satfinite = 'satfinite' in modifiers
    if form is None:
        return scale_code(value, mode, satfinite)
    if value == NAN:
        return form.nan_code if form.has_nan else form.largest_code
    if 'relu' in modifiers and value[0]:
        return 0
    return form.encode(value, mode, satfinite)


def element_bits(form):
    """The bits of an element in its container: 4 bits for e2m1, else bytes or halves."""
    if form is None or 5 <= form.bits <= 8:
        return 8
    return form.bits


def pair(x, modifiers, operands, to, source):
    form = PAIRS[to]
    bits = element_bits(form)
    for t in x.active:
        if source == 'f32':  # a goes up, b down
            high, low = (n.F32.decode(x.read(o, t, 32)) for o in operands[1:3])
        else:
            from_form = PAIRS[source]
            width = element_bits(from_form)
            code = x.read(operands[1], t, 2 * width)
            parts = [code & ((1 << width) - 1), code >> width]
            if from_form is None:
                low, high = (NAN if c == 0xFF else (0, Fraction(2) ** (c - 127)) for c in parts)
            else:
                low, high = (from_form.decode(c & ((1 << from_form.bits) - 1)) for c in parts)
        x.write(operands[0], t, narrow(high, form, modifiers) << bits | narrow(low, form, modifiers))


def stochastic(value, form, random, modifiers):
    """The bits that are lost and as many random ones are added as integers; a carry goes away from zero."""
    lost = 16 if form is n.BF16 else 13
    random &= (1 << lost) - 1
    if value == NAN:
        return form.nan_code
    sign, magnitude = value
    if 'relu' in modifiers and sign:
        return 0
    if magnitude != INF and magnitude != 0:
        exponent = max(n.floor_log2(magnitude), -126 if form is n.BF16 else -14)
        unit = Fraction(2) ** (exponent - form.mantissa)
        whole = magnitude // unit
        rest = (magnitude / unit - whole) * (1 << lost)
        if rest != 0 and (rest.denominator != 1 or magnitude < form.smallest_normal and form is n.F16):
            raise NotModelled('stochastic rounding of what loses more bits')
        magnitude = (whole + (1 if rest + random >= 1 << lost else 0)) * unit
        if exponent > 15 and form is n.F16 and 'satfinite' not in modifiers:
            raise NotModelled('stochastic rounding beyond the range')
    return form.encode((sign, magnitude), 'rn', 'satfinite' in modifiers)


@handles('cvt')
def cvt(x, modifiers, operands):
    if modifiers[0] == 'pack':
        return pack(x, modifiers, operands)
    if 'rs' in modifiers:
        form = {'bf16x2': n.BF16, 'f16x2': n.F16}.get(next((m for m in modifiers if m in PAIRS), None))
        if form is None:
            raise NotModelled(x.statement.text)
        for t in x.active:
            random = x.read(operands[3], t, 32)
            a, b = (n.F32.decode(x.read(o, t, 32)) for o in operands[1:3])
            x.write(
                operands[0],
                t,
                stochastic(a, form, random >> 16, modifiers) << 16 | stochastic(b, form, random & 0xFFFF, modifiers),
            )
        return
    kinds = [m for m in modifiers if m in TYPES or m in PAIRS]
    if len(kinds) != 2:
        raise NotModelled(x.statement.text)
    to, source = kinds
    if to in PAIRS:
        return pair(x, modifiers, operands, to, source)
    scalar(x, modifiers, operands, to, source)


def pack(x, modifiers, operands):
    """cvt.pack.sat: a and b saturated to the small type, b lowest; c shifted up makes the rest."""
    kind = modifiers[2]
    bits = int(kind[1:])
    low, high = (-(1 << (bits - 1)), (1 << (bits - 1)) - 1) if kind[0] == 's' else (0, (1 << bits) - 1)
    for t in x.active:
        a, b = (max(low, min(high, n.signed(x.read(o, t, 32), 32))) & ((1 << bits) - 1) for o in operands[1:3])
        c = x.read(operands[3], t, 32) if len(operands) > 3 else 0
        x.write(operands[0], t, c << 2 * bits | a << bits | b)
