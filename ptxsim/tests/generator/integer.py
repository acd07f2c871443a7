"""Integer, logic, shift and selection instructions (PTX ISA 9.0, "Integer Arithmetic Instructions",
"Extended-Precision Integer Arithmetic Instructions", "Logic and Shift Instructions", "Comparison and Selection
Instructions", "prmt")."""

from numbers_of_ptx import signed
from threads import WIDTHS, handles


def is_integer(kind):
    return kind[0] in 'sub' and kind[1:].isdigit()


def value_of(bits, kind):
    return signed(bits, WIDTHS[kind]) if kind[0] == 's' else bits


def clamp(value, kind):
    width = WIDTHS[kind]
    low, high = (-(1 << (width - 1)), (1 << (width - 1)) - 1) if kind[0] == 's' else (0, (1 << width) - 1)
    return max(low, min(high, value))


def by_lane(x, kind, operands, function, result_bits=None):
    """d = function(values of the sources)."""
    for t in x.active:
        sources = [value_of(x.read(o, t, WIDTHS[kind]), kind) for o in operands[1:]]
        value = function(*sources)
        if value is not None:
            value &= (1 << (result_bits or WIDTHS[kind])) - 1
        x.write(operands[0], t, value)


def truncated_divide(a, b):
    quotient = abs(a) // abs(b)
    return -quotient if (a < 0) != (b < 0) else quotient


def halves(function, kind):
    """The function on both 16-bit halves."""

    def on_both(*sources):
        result = 0
        for shift in (0, 16):
            parts = [value_of(s >> shift & 0xFFFF, kind) for s in sources]
            result |= (function(*parts) & 0xFFFF) << shift
        return result

    return on_both


def add_sub(x, modifiers, operands):
    kind = modifiers[-1]
    negative = x.statement.root.startswith('sub')
    function = (lambda a, b: a - b) if negative else (lambda a, b: a + b)
    if kind.endswith('x2'):
        return by_lane(x, 'b32', operands, halves(function, kind[:-2]))
    if 'cc' in modifiers or x.statement.root.endswith('c'):
        return with_carry(x, modifiers, operands, negative)
    if 'sat' in modifiers:
        return by_lane(x, kind, operands, lambda a, b: clamp(function(a, b), kind))
    by_lane(x, kind, operands, function)


def with_carry(x, modifiers, operands, negative):
    """CC.CF: the carry out of an addition, and of a + ~b + 1 for a subtraction: 1 where nothing was borrowed."""
    width = WIDTHS[modifiers[-1]]
    takes = x.statement.root.endswith('c')
    for t in x.active:
        a, b = (x.read(o, t, width) for o in operands[1:])
        carry = x.carry[t] if takes else int(negative)
        total = a - b - (1 - carry) if negative else a + b + carry
        if 'cc' in modifiers:
            x.carry[t] = int(total >= 0 if negative else total >> width != 0)
        x.write(operands[0], t, total)


def product_part(modifiers, kind):
    width = WIDTHS[kind]
    if 'hi' in modifiers:
        return (lambda p: p >> width), width
    if 'wide' in modifiers:
        return (lambda p: p), 2 * width
    return (lambda p: p), width


def mul(x, modifiers, operands):
    kind = modifiers[-1]
    part, bits = product_part(modifiers, kind)
    by_lane(x, kind, operands, lambda a, b: part(a * b), bits)


def mad(x, modifiers, operands):
    kind = modifiers[-1]
    width = WIDTHS[kind]
    part, bits = product_part(modifiers, kind)
    takes, gives = x.statement.root == 'madc', 'cc' in modifiers
    for t in x.active:
        a, b = (value_of(x.read(o, t, width), kind) for o in operands[1:3])
        c = x.read(operands[3], t, bits)
        product = part(a * b)
        if 'sat' in modifiers:
            x.write(operands[0], t, clamp(product + signed(c, bits), kind))
            continue
        total = (product & ((1 << bits) - 1)) + c + (x.carry[t] if takes else 0)
        if gives:
            x.carry[t] = total >> bits
        x.write(operands[0], t, total & ((1 << bits) - 1))


@handles('mul24', 'mad24')
def mul24(x, modifiers, operands):
    """The low 24 bits of a and b as numbers of that width; .lo: bits 31..0 of the product, .hi: bits 47..16."""
    kind = modifiers[-1]

    def product(a, b):
        a, b = a & 0xFFFFFF, b & 0xFFFFFF
        if kind[0] == 's':
            a, b = signed(a, 24), signed(b, 24)
        return a * b >> 16 if 'hi' in modifiers else a * b

    if x.statement.root == 'mul24':
        return by_lane(x, kind, operands, product)

    def fused(a, b, c):
        if 'sat' in modifiers:
            return clamp(signed(product(a, b), 32) + c, kind)
        return product(a, b) + c

    by_lane(x, kind, operands, fused)


def div(x, modifiers, operands):
    kind = modifiers[-1]
    by_lane(x, kind, operands, lambda a, b: None if b == 0 else truncated_divide(a, b))


@handles('rem')
def rem(x, modifiers, operands):
    by_lane(x, modifiers[-1], operands, lambda a, b: None if b == 0 else a - b * truncated_divide(a, b))


def abs_neg(x, modifiers, operands):
    by_lane(x, modifiers[-1], operands, abs if x.statement.root == 'abs' else lambda a: -a)


def min_max(x, modifiers, operands):
    kind = modifiers[-1]
    if kind == 'relu':
        kind = modifiers[-2]
    choose = min if x.statement.root == 'min' else max
    function = (lambda a, b: max(choose(a, b), 0)) if 'relu' in modifiers else choose
    if kind.endswith('x2'):
        return by_lane(x, 'b32', operands, halves(function, kind[:-2]))
    by_lane(x, kind, operands, function)


@handles('sad')
def sad(x, modifiers, operands):
    by_lane(x, modifiers[-1], operands, lambda a, b, c: c + abs(a - b))


@handles('dp4a', 'dp2a')
def dot_product(x, modifiers, operands):
    a_kind, b_kind = modifiers[-2:]
    for t in x.active:
        a, b, c = (x.read(o, t, 32) for o in operands[1:])
        total = c
        if x.statement.root == 'dp4a':
            for i in range(4):
                total += value_of(a >> 8 * i & 0xFF, a_kind[0] + '8') * value_of(b >> 8 * i & 0xFF, b_kind[0] + '8')
        else:
            b >>= 16 if 'hi' in modifiers else 0
            for i in range(2):
                total += value_of(a >> 16 * i & 0xFFFF, a_kind[0] + '16') * value_of(b >> 8 * i & 0xFF, b_kind[0] + '8')
        x.write(operands[0], t, total)


@handles('popc')
def popc(x, modifiers, operands):
    by_lane(x, modifiers[-1], operands, lambda a: bin(a).count('1'), 32)


@handles('clz')
def clz(x, modifiers, operands):
    by_lane(x, modifiers[-1], operands, lambda a: WIDTHS[modifiers[-1]] - a.bit_length(), 32)


@handles('brev')
def brev(x, modifiers, operands):
    width = WIDTHS[modifiers[-1]]
    by_lane(x, modifiers[-1], operands, lambda a: int(format(a, '0%db' % width)[::-1], 2))


@handles('bfind')
def bfind(x, modifiers, operands):
    """The most significant bit that is not a sign bit; 0xffffffff when there is none."""
    kind = modifiers[-1]
    width = WIDTHS[kind]

    def find(a):
        a = ~a if a < 0 else a
        if a == 0:
            return 0xFFFFFFFF
        return width - a.bit_length() if 'shiftamt' in modifiers else a.bit_length() - 1

    by_lane(x, kind, operands, find, 32)


@handles('fns')
def fns(x, modifiers, operands):
    """The position of the n-th set bit from `base` on, upwards for n > 0, downwards for n < 0; 0: base itself."""
    for t in x.active:
        mask, base, n = x.read(operands[1], t, 32), x.read(operands[2], t, 32), signed(x.read(operands[3], t, 32), 32)
        found = 0xFFFFFFFF
        if n == 0:
            if base < 32 and mask >> base & 1:
                found = base
        else:
            at, left, step = base, abs(n), 1 if n > 0 else -1
            while 0 <= at < 32:
                if mask >> at & 1:
                    left -= 1
                    if left == 0:
                        found = at
                        break
                at += step
        x.write(operands[0], t, found)


def field_amount(operand, width):
    """A position or a length: 8 bits of the operand for fields of 32 bits, all of it for those of 64 (an H100's)."""
    return operand & 255 if width == 32 else min(operand, width)


@handles('bfe')
def bfe(x, modifiers, operands):
    kind = modifiers[-1]
    width = WIDTHS[kind]
    for t in x.active:
        a = x.read(operands[1], t, width)
        pos, length = (field_amount(x.read(operands[i], t, 32), width) for i in (2, 3))
        if length == 0:
            x.write(operands[0], t, 0)
            continue
        sign = a >> min(pos + length - 1, width - 1) & 1 if kind[0] == 's' else 0
        bits = [(a >> (pos + i) & 1) if i < length and pos + i < width else sign for i in range(width)]
        x.write(operands[0], t, sum(b << i for i, b in enumerate(bits)))


@handles('bfi')
def bfi(x, modifiers, operands):
    width = WIDTHS[modifiers[-1]]
    for t in x.active:
        a, b = x.read(operands[1], t, width), x.read(operands[2], t, width)
        pos, length = (field_amount(x.read(operands[i], t, 32), width) for i in (3, 4))
        for i in range(length):
            if pos + i < width:
                b = b & ~(1 << (pos + i)) | (a >> i & 1) << (pos + i)
        x.write(operands[0], t, b)


@handles('bmsk')
def bmsk(x, modifiers, operands):
    """Bits a to a + b - 1."""
    for t in x.active:
        a, b = x.read(operands[1], t, 32), x.read(operands[2], t, 32)
        if 'wrap' in modifiers:
            a, b = a & 31, b & 31
        mask = sum(1 << i for i in range(32) if a <= i < a + b)
        x.write(operands[0], t, mask)


@handles('szext')
def szext(x, modifiers, operands):
    """The low b bits of a, extended by sign or by zeros; N = 0 gives 0."""
    kind = modifiers[-1]
    for t in x.active:
        a, n = x.read(operands[1], t, 32), x.read(operands[2], t, 32)
        n = n & 31 if 'wrap' in modifiers else min(n, 32)
        value = a & ((1 << n) - 1)
        if n and kind[0] == 's':
            value = signed(value, n)
        x.write(operands[0], t, value)


@handles('and', 'or', 'xor')
def logic(x, modifiers, operands):
    function = {'and': lambda a, b: a & b, 'or': lambda a, b: a | b, 'xor': lambda a, b: a ^ b}[x.statement.root]
    for t in x.active:
        width = WIDTHS[modifiers[-1]]
        x.write(operands[0], t, function(*(x.read(o, t, width) for o in operands[1:])))


@handles('not')
def bit_not(x, modifiers, operands):
    by_lane(x, modifiers[-1], operands, lambda a: ~a)


@handles('cnot')
def cnot(x, modifiers, operands):
    by_lane(x, modifiers[-1], operands, lambda a: int(a == 0))


@handles('lop3')
def lop3(x, modifiers, operands):
    """The bit of immLut that a, b, c select; .and, .or: p = (d != 0) BoolOp q as well."""
    for t in x.active:
        a, b, c, table = (x.read(o, t, 32) for o in operands[1:5])
        d = sum((table >> ((a >> i & 1) * 4 + (b >> i & 1) * 2 + (c >> i & 1)) & 1) << i for i in range(32))
        to, _, predicate = operands[0].partition('|')
        x.write(to, t, d)
        if predicate:
            q = x.read(operands[5], t)
            x.write(predicate, t, (int(d != 0) & q) if 'and' in modifiers else (int(d != 0) | q))


@handles('shl', 'shr')
def shift(x, modifiers, operands):
    kind = modifiers[-1]
    width = WIDTHS[kind]
    for t in x.active:
        a, n = value_of(x.read(operands[1], t, width), kind), min(x.read(operands[2], t, 32), width)
        x.write(operands[0], t, a << n if x.statement.root == 'shl' else a >> n)


@handles('shf')
def funnel_shift(x, modifiers, operands):
    for t in x.active:
        a, b, c = (x.read(o, t, 32) for o in operands[1:])
        n = min(c, 32) if 'clamp' in modifiers else c & 31
        both = b << 32 | a
        x.write(operands[0], t, both >> (32 - n) if 'l' in modifiers else both >> n)


@handles('prmt')
def prmt(x, modifiers, operands):
    mode = modifiers[-1]
    for t in x.active:
        a, b, c = (x.read(o, t, 32) for o in operands[1:])
        source = [(b << 32 | a) >> 8 * i & 0xFF for i in range(8)]
        s = c & 3
        if mode == 'b32':
            result = []
            for i in range(4):
                select = c >> 4 * i & 15
                byte = source[select & 7]
                result.append((0xFF if byte & 0x80 else 0) if select & 8 else byte)
        else:
            picks = {
                'f4e': [s, s + 1, s + 2, s + 3],
                'b4e': [s, (s - 1) % 8, (s - 2) % 8, (s - 3) % 8],
                'rc8': [s] * 4,
                'ecl': [max(i, s) for i in range(4)],
                'ecr': [min(i, s) for i in range(4)],
                'rc16': [2 * (s & 1), 2 * (s & 1) + 1] * 2,
            }[mode]
            result = [source[i] for i in picks]
        x.write(operands[0], t, sum(byte << 8 * i for i, byte in enumerate(result)))


@handles('selp')
def selp(x, modifiers, operands):
    width = WIDTHS[modifiers[-1]]
    for t in x.active:
        x.write(operands[0], t, x.read(operands[1] if x.read(operands[3], t) else operands[2], t, width))


COMPARISONS = {
    'eq': lambda o: o == 0,
    'ne': lambda o: o != 0,
    'lt': lambda o: o < 0,
    'le': lambda o: o <= 0,
    'gt': lambda o: o > 0,
    'ge': lambda o: o >= 0,
    'lo': lambda o: o < 0,
    'ls': lambda o: o <= 0,
    'hi': lambda o: o > 0,
    'hs': lambda o: o >= 0,
}
BOOLEAN = {'and': lambda a, b: a & b, 'or': lambda a, b: a | b, 'xor': lambda a, b: a ^ b}


def compare_integers(x, comparison, kind, operands, t):
    a, b = (value_of(x.read(o, t, WIDTHS[kind]), kind) for o in operands)
    return int(COMPARISONS[comparison]((a > b) - (a < b)))
