"""Exchange within a warp, and atomics, whose lanes are performed in order (PTX ISA 9.0, "shfl.sync", "vote.sync",
"match.sync", "redux.sync", "elect.sync", "activemask", "atom", "red")."""

import numbers_of_ptx as n
from integer import value_of
from numbers_of_ptx import NAN
from threads import WIDTHS, NotModelled, handles


def members(x, operand, warp):
    """The active threads that the member mask names: all must be here."""
    mask = x.read(operand, warp[0], 32)
    here = [t for t in warp if mask >> t % 32 & 1]
    if len(here) != bin(mask).count('1'):
        raise NotModelled('member mask %x' % mask)
    return here


@handles('shfl')
def shfl(x, modifiers, operands):
    mode = modifiers[1]
    to, _, predicate = operands[0].partition('|')
    for warp in x.warps():
        here = members(x, operands[-1], warp)
        values = {t % 32: x.read(operands[1], t, 32) for t in here}
        results = []
        for t in here:
            lane, b, c = t % 32, x.read(operands[2], t, 32) & 31, x.read(operands[3], t, 32)
            segment, clamp = c >> 8 & 31, c & 31
            lowest = lane & segment
            highest = lowest | clamp & ~segment & 31
            j = {'up': lane - b, 'down': lane + b, 'bfly': lane ^ b, 'idx': lowest | b & ~segment & 31}[mode]
            inside = j >= highest if mode == 'up' else j <= highest
            results.append((t, values.get(j if inside else lane), inside))
        for t, value, inside in results:
            x.write(to, t, value)
            if predicate:
                x.write(predicate, t, int(inside))


@handles('vote')
def vote(x, modifiers, operands):
    for warp in x.warps():
        here = members(x, operands[-1], warp)
        votes = {t % 32: x.read(operands[1], t) for t in here}
        result = {
            'all': all(votes.values()),
            'any': any(votes.values()),
            'uni': len(set(votes.values())) == 1,
            'ballot': sum(v << lane for lane, v in votes.items()),
        }[modifiers[1]]
        for t in here:
            x.write(operands[0], t, int(result))


@handles('match')
def match(x, modifiers, operands):
    to, _, predicate = operands[0].partition('|')
    for warp in x.warps():
        here = members(x, operands[-1], warp)
        values = {t: x.read(operands[1], t, WIDTHS[modifiers[-1]]) for t in here}
        everybody = sum(1 << t % 32 for t in here)
        same = len(set(values.values())) == 1
        for t in here:
            if modifiers[0] == 'all':
                x.write(to, t, everybody if same else 0)
                if predicate:
                    x.write(predicate, t, int(same))
            else:
                x.write(to, t, sum(1 << o % 32 for o in here if values[o] == values[t]))


@handles('elect')
def elect(x, modifiers, operands):
    """The lowest lane, as it happens; PTX promises the same one for the same mask."""
    to, _, predicate = operands[0].partition('|')
    for warp in x.warps():
        here = members(x, operands[-1], warp)
        for t in here:
            x.write(to, t, here[0] % 32)
            x.write(predicate, t, int(t == here[0]))


@handles('activemask')
def activemask(x, modifiers, operands):
    for warp in x.warps():
        for t in warp:
            x.write(operands[0], t, sum(1 << o % 32 for o in warp))


def reduce_floats(bits, modifiers):
    """The least or largest number; +0 is above -0."""
    values = [n.F32.decode(b) for b in bits]
    if 'abs' in modifiers:
        values = [n.absolute(v) for v in values]
    numbers = [v for v in values if v != NAN]
    if not numbers or ('NaN' in modifiers and len(numbers) < len(values)):
        return n.F32.nan_code
    best = numbers[0]
    for v in numbers[1:]:
        o = n.order(v, best) or (best[0] > v[0]) - (best[0] < v[0])
        if (o < 0) == ('min' in modifiers) and o != 0:
            best = v
    return n.F32.encode(best)


@handles('redux')
def redux(x, modifiers, operands):
    kind, operation = modifiers[-1], modifiers[1]
    for warp in x.warps():
        # A guard and a mask may leave some lanes for another instance of the statement.
        here = members(x, operands[-1], warp)
        bits = [x.read(operands[1], t, 32) for t in here]
        if kind == 'f32':
            result = reduce_floats(bits, modifiers)
        else:
            values = [value_of(b, kind) for b in bits]
            result = values[0]
            for v in values[1:]:
                result = {
                    'add': lambda a, b: a + b,
                    'min': min,
                    'max': max,
                    'and': lambda a, b: a & b,
                    'or': lambda a, b: a | b,
                    'xor': lambda a, b: a ^ b,
                }[operation](result, v)
        for t in here:
            x.write(operands[0], t, result)


OPERATIONS = ('add', 'min', 'max', 'inc', 'dec', 'cas', 'exch', 'and', 'or', 'xor')


def updated(operation, kind, old, b, c):
    """PTX ISA, "atom": inc: old >= b ? 0 : old + 1; dec: old == 0 or old > b ? b : old - 1; cas: old == b ? c : old."""
    width = WIDTHS[kind]
    if operation in ('min', 'max'):
        choose = min if operation == 'min' else max
        return choose(value_of(old, kind), value_of(b, kind)) & ((1 << width) - 1)
    return {
        'add': lambda: old + b,
        'inc': lambda: 0 if old >= b else old + 1,
        'dec': lambda: b if old == 0 or old > b else old - 1,
        'cas': lambda: c if old == b else old,
        'exch': lambda: b,
        'and': lambda: old & b,
        'or': lambda: old | b,
        'xor': lambda: old ^ b,
    }[operation]()


@handles('atom', 'red')
def atom(x, modifiers, operands):
    kind = modifiers[-1]
    operation = next((m for m in modifiers if m in OPERATIONS), None)
    if (
        operation is None
        or kind not in WIDTHS
        or kind[0] == 'f'
        or kind.startswith('bf')
        or 'async' in modifiers
        or 'noftz' in modifiers
    ):
        raise NotModelled(x.statement.text)
    width = WIDTHS[kind]
    sources = operands if x.statement.root == 'red' else operands[1:]
    for t in x.active:
        at = x.address(sources[0], t)
        b = x.read(sources[1], t, width)
        c = x.read(sources[2], t, width) if len(sources) > 2 else None
        old = x.load(at, width // 8)
        x.store(at, width // 8, updated(operation, kind, old, b, c))
        if x.statement.root == 'atom':
            x.write(operands[0], t, old)
