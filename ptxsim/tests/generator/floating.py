"""Floating-point arithmetic, comparisons and selections (PTX ISA 9.0, "Floating-Point Instructions", "Half Precision
Floating-Point Instructions", "Mixed Precision Floating-Point Instructions", "Comparison and Selection Instructions").
Exact fractions, rounded once. f32 and narrower NaNs are the canonical ones; f64 hands on a quieted operand."""

from fractions import Fraction

import numbers_of_ptx as n
from integer import BOOLEAN, COMPARISONS, abs_neg, add_sub, compare_integers, div, mad, min_max, mul
from numbers_of_ptx import INF, NAN
from threads import WIDTHS, NotModelled, handles

FORMATS = {'f16': n.F16, 'bf16': n.BF16, 'f32': n.F32, 'f64': n.F64}
MODES = ('rn', 'rz', 'rm', 'rp')
ONE = (0, Fraction(1))
ZERO = (0, Fraction(0))


def flush(value, form, modifiers):
    if 'ftz' in modifiers and form.is_subnormal(value):
        return (value[0], Fraction(0))
    return value


def mode_of(modifiers):
    return next((m for m in modifiers if m in MODES), 'rn')


def finish(value, form, modifiers, mode):
    """Rounds, and applies .ftz, .sat and .relu."""
    rounded = form.decode(form.encode(value, mode))
    if 'ftz' in modifiers and is_tiny(value, form, mode):
        rounded = (value[0], Fraction(0))
    if 'sat' in modifiers:
        if rounded == NAN or (rounded[0] and rounded != NAN) or rounded[1] == 0:
            return 0
        return form.encode(ONE if rounded[1] == INF or rounded[1] > 1 else rounded)
    if 'relu' in modifiers and rounded != NAN and rounded[0]:
        return 0
    return form.encode(rounded)


def is_tiny(value, form, mode):
    """IEEE 754's tininess after rounding: below the normal range with as many digits as a normal number has."""
    if value == NAN or value[1] in (0, INF) or value[1] >= form.smallest_normal:
        return False
    unit = Fraction(2) ** (n.floor_log2(value[1]) - form.mantissa)
    return n.round_to_integer(value[0], value[1] / unit, mode) * unit < form.smallest_normal


def packed(kind):
    """(element type, how many in a register)"""
    return (kind[:-2], 2) if kind.endswith('x2') else (kind, 1)


def each(x, kind, operands, function):
    """d = function(bits of the sources), for each packed element."""
    element, count = packed(kind)
    width = WIDTHS[element]
    for t in x.active:
        sources = [x.read(o, t, width * count) for o in operands[1:]]
        result = 0
        for i in range(count):
            parts = [s >> width * i & ((1 << width) - 1) for s in sources]
            bits = function(*parts)
            if bits is None:
                result = None
                break
            result |= bits << width * i
        x.write(operands[0], t, result)


def f64_nan(form, *bits):
    """f64: the first NaN operand, quiet; None when there is none."""
    if form is not n.F64:
        return None
    for b in bits:
        if n.F64.decode(b) == NAN:
            return b | 1 << 51
    return None


def arithmetic(x, modifiers, operands):
    kinds = [m for m in modifiers if packed(m)[0] in FORMATS]
    mixed = len(kinds) == 2  # add.f32.bf16: d and c are f32, a (and b of fma) narrower
    kind = kinds[0]
    form = FORMATS[packed(kind)[0]]
    mode, root = mode_of(modifiers), x.statement.root
    if mixed:
        narrow = FORMATS[kinds[1]]
        for t in x.active:
            bits = [x.read(o, t) for o in operands[1:]]
            values = [narrow.decode(b & 0xFFFF) for b in bits[:-1]] + [form.decode(bits[-1] & 0xFFFFFFFF)]
            if root == 'fma':
                total = n.add(n.multiply(values[0], values[1]), values[2], mode)
            else:
                total = n.add(values[0], n.negate(values[1]) if root == 'sub' else values[1], mode)
            x.write(operands[0], t, finish(total, form, modifiers, mode))
        return

    def compute(*bits):
        if 'oob' in modifiers and 0x7FF7 in bits[:2]:  # the NaN that tensor copies fill with
            return 0
        values = [flush(form.decode(b), form, modifiers) for b in bits]
        nan = f64_nan(form, *bits)
        if nan is not None:
            return nan
        if root == 'add':
            result = n.add(values[0], values[1], mode)
        elif root == 'sub':
            result = n.add(values[0], n.negate(values[1]), mode)
        elif root == 'mul':
            result = n.multiply(values[0], values[1])
        elif root in ('fma', 'mad'):
            result = n.add(n.multiply(values[0], values[1]), values[2], mode)
        else:
            result = n.divide(values[0], values[1])
        return finish(result, form, modifiers, mode)

    each(x, kind, operands, compute)


def three_operands(x, modifiers, operands):
    """min and max of two or three numbers; -0 is less than +0; without .NaN a NaN gives way to a number."""
    kind = next(m for m in modifiers if packed(m)[0] in FORMATS)
    form = FORMATS[packed(kind)[0]]
    smaller = x.statement.root == 'min'

    def choose(a, b):
        if NAN in (a, b):
            return NAN if 'NaN' in modifiers or a == b else (b if a == NAN else a)
        o = n.order(a, b)
        if o == 0:
            return (a if a[0] else b) if smaller else (b if a[0] else a)
        return a if (o < 0) == smaller else b

    def compute(*bits):
        values = [flush(form.decode(b), form, modifiers) for b in bits]
        sign = 0
        if 'xorsign' in modifiers:
            sign = (bits[0] ^ bits[1]) >> (form.bits - 1) & 1
        if 'abs' in modifiers:
            values = [n.absolute(v) for v in values]
        result = values[0]
        for v in values[1:]:
            result = choose(result, v)
        if result == NAN:
            nan = f64_nan(form, *bits)
            return form.nan_code if nan is None else nan
        if 'xorsign' in modifiers:
            result = (sign, result[1])
        if 'relu' in modifiers and result[0]:
            result = ZERO
        return form.encode(result)

    each(x, kind, operands, compute)


def sign_change(x, modifiers, operands):
    """abs and neg: of the sign bit."""
    kind = modifiers[-1]
    element, _ = packed(kind)
    form = FORMATS[element]
    top = 1 << (form.bits - 1)

    def compute(bits):
        value = form.decode(bits)
        if value == NAN and form is n.F32:
            return form.nan_code
        if form.is_subnormal(value) and 'ftz' in modifiers:
            bits &= top
        return bits & ~top if x.statement.root == 'abs' else bits ^ top

    each(x, kind, operands, compute)


@handles('copysign')
def copysign(x, modifiers, operands):
    """The sign of a on the magnitude of b."""
    top = 1 << (WIDTHS[modifiers[-1]] - 1)
    each(x, modifiers[-1], operands, lambda a, b: a & top | b & ~top)


@handles('rcp', 'sqrt')
def rcp_sqrt(x, modifiers, operands):
    if 'approx' in modifiers:
        raise NotModelled('approx')
    form, mode = FORMATS[modifiers[-1]], mode_of(modifiers)

    def compute(bits):
        nan = f64_nan(form, bits)
        if nan is not None:
            return nan
        value = flush(form.decode(bits), form, modifiers)
        if x.statement.root == 'sqrt':
            return finish(form.decode(n.square_root(value, form, mode)), form, modifiers, mode)
        return finish(n.divide(ONE, value), form, modifiers, mode)

    each(x, modifiers[-1], operands, compute)


def is_float(modifiers):
    return any(packed(m)[0] in FORMATS for m in modifiers)


def either(integer, floating):
    def handler(x, modifiers, operands):
        (floating if is_float(modifiers) else integer)(x, modifiers, operands)

    return handler


def divide(x, modifiers, operands):
    if 'approx' in modifiers or 'full' in modifiers:
        raise NotModelled('approx')
    arithmetic(x, modifiers, operands)


for root, integer, floating in (
    ('add', add_sub, arithmetic),
    ('sub', add_sub, arithmetic),
    ('addc', add_sub, None),
    ('subc', add_sub, None),
    ('mul', mul, arithmetic),
    ('mad', mad, arithmetic),
    ('madc', mad, None),
    ('fma', None, arithmetic),
    ('div', div, divide),
    ('min', min_max, three_operands),
    ('max', min_max, three_operands),
    ('abs', abs_neg, sign_change),
    ('neg', abs_neg, sign_change),
):
    handles(root)(either(integer, floating))


UNORDERED = {'equ': 'eq', 'neu': 'ne', 'ltu': 'lt', 'leu': 'le', 'gtu': 'gt', 'geu': 'ge'}


def compare_floats(form, comparison, modifiers, a, b):
    a, b = (flush(form.decode(v), form, modifiers) for v in (a, b))
    o = n.order(a, b)
    if comparison == 'num':
        return int(o is not None)
    if comparison == 'nan':
        return int(o is None)
    if comparison in UNORDERED:
        return int(o is None or COMPARISONS[UNORDERED[comparison]](o))
    return int(o is not None and COMPARISONS[comparison](o))


def compared(x, modifiers, kind, sources, t):
    """The results of the comparison: one, or one for each half."""
    comparison = modifiers[0]
    element, count = packed(kind)
    if element not in FORMATS:
        return [compare_integers(x, comparison, kind, sources, t)]
    width = WIDTHS[element]
    a, b = (x.read(o, t, width * count) for o in sources)
    mask = (1 << width) - 1
    return [
        compare_floats(FORMATS[element], comparison, modifiers, a >> width * i & mask, b >> width * i & mask)
        for i in range(count)
    ]


def combined(x, modifiers, results, operands, t):
    boolean = next((m for m in modifiers if m in BOOLEAN), None)
    if boolean is None:
        return results
    c = x.read(operands[-1], t)
    return [BOOLEAN[boolean](r, c) for r in results]


@handles('setp')
def setp(x, modifiers, operands):
    """p = (a CmpOp b) BoolOp c, q = !(a CmpOp b) BoolOp c; of packed halves p and q are the results of each."""
    targets = operands[0].split('|')
    for t in x.active:
        results = compared(x, modifiers, modifiers[-1], operands[1:3], t)
        if len(results) == 1:
            results.append(1 - results[0])
        results = combined(x, modifiers, results, operands, t)
        for target, result in zip(targets, results):
            x.write(target, t, result)


@handles('set')
def set_to(x, modifiers, operands):
    """All ones or 1.0 for true."""
    to, kind = modifiers[-2:]
    element, count = packed(to)
    for t in x.active:
        results = combined(x, modifiers, compared(x, modifiers, kind, operands[1:3], t), operands, t)
        if count == 1 and len(results) == 2:  # .u32 of two halves: 0xffff each
            x.write(operands[0], t, results[0] * 0xFFFF | results[1] * 0xFFFF0000)
            continue
        true = FORMATS[element].encode(ONE) if element in FORMATS else (1 << WIDTHS[to]) - 1
        x.write(operands[0], t, sum((true if r else 0) << WIDTHS[element] * i for i, r in enumerate(results)))


@handles('slct')
def slct(x, modifiers, operands):
    """a where c >= 0, else b; a NaN is not; with .ftz and without, -0 is."""
    to, kind = modifiers[-2:]
    for t in x.active:
        c = x.read(operands[3], t, 32)
        if kind == 'f32':
            value = flush(n.F32.decode(c), n.F32, modifiers)
            first = value != NAN and n.order(value, ZERO) >= 0
        else:
            first = n.signed(c, 32) >= 0
        x.write(operands[0], t, x.read(operands[1 if first else 2], t, WIDTHS[to]))


@handles('testp')
def testp(x, modifiers, operands):
    form = FORMATS[modifiers[-1]]
    for t in x.active:
        value = form.decode(x.read(operands[1], t, form.bits))
        finite = value != NAN and value[1] != INF
        x.write(
            operands[0],
            t,
            int(
                {
                    'finite': finite,
                    'infinite': value != NAN and value[1] == INF,
                    'number': value != NAN,
                    'notanumber': value == NAN,
                    'normal': finite and not form.is_subnormal(value),  # zeros are normal
                    'subnormal': finite and form.is_subnormal(value),
                }[modifiers[0]]
            ),
        )
