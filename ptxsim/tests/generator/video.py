"""Video instructions (PTX ISA 9.0, "Scalar Video Instructions", "SIMD Video Instructions"), in whole numbers of any size: what
does not fit is cut off where the result is written. Scalar ones are those that ptxas writes out for Hopper, as an H100
gave them: not in everything what the manual says."""

from numbers_of_ptx import signed
from threads import HANDLERS

COMPARISONS = {
    'eq': lambda a, b: a == b,
    'ne': lambda a, b: a != b,
    'lt': lambda a, b: a < b,
    'le': lambda a, b: a <= b,
    'gt': lambda a, b: a > b,
    'ge': lambda a, b: a >= b,
}
OPERATIONS = {
    'vadd': lambda a, b: a + b,
    'vsub': lambda a, b: a - b,
    'vabsdiff': lambda a, b: abs(a - b),
    'vmin': min,
    'vmax': max,
    'vavrg': lambda a, b: (a + b + (1 if a + b >= 0 else 0)) >> 1,
}
SECOND = {'add': lambda a, c: a + c, 'min': min, 'max': max}


def number(bits, width, kind):
    return signed(bits, width) if kind[0] == 's' else bits


def limits(width, kind):
    return (-(1 << (width - 1)), (1 << (width - 1)) - 1) if kind[0] == 's' else (0, (1 << width) - 1)


def split(operand):
    """%r1.h10 -> (%r1, h10)"""
    name, _, selector = operand.partition('.')
    return name, selector


def place(selector):
    """Lowest bit and width of .b2, .h1 or a whole register."""
    if not selector:
        return 0, 32
    width = {'b': 8, 'h': 16}[selector[0]]
    return width * int(selector[1:]), width


class Instruction:
    def __init__(self, root, modifiers):
        self.lanes = {'2': 2, '4': 4}.get(root[-1], 1)
        self.root = root.rstrip('24')
        self.compare = next((m for m in modifiers if m in COMPARISONS), None)
        self.mode = next((m for m in modifiers if m in ('clamp', 'wrap')), None)
        self.second = next((m for m in modifiers if m in SECOND), None)
        self.saturates = 'sat' in modifiers
        self.modifiers = modifiers
        types = [m for m in modifiers if m in ('u32', 's32')]
        self.a, self.b = types[-2:]
        self.result = 'u32' if self.root == 'vset' else types[0]

    def operate(self, a, b):
        if self.root == 'vset':
            return int(COMPARISONS[self.compare](a, b))
        if self.root in ('vshl', 'vshr'):
            by = b % 32 if self.mode == 'wrap' else min(b, 32)
            return a << by if self.root == 'vshl' else a >> by
        return OPERATIONS[self.root](a, b)

    def saturated(self, value, width):
        low, high = limits(width, self.result)
        return max(low, min(high, value)) if self.saturates else value

    def saturated_scalar(self, value, width, is_part):
        """A part's value counts as unsigned, of 64 bits; a shift's is limited to the register; of unsigned registers only
        vshl has an upper limit."""
        if is_part and self.mode is None:
            return max(limits(width, self.result)[0], min(limits(width, self.result)[1], value % (1 << 64)))
        if self.result[0] == 's' or self.root == 'vshl':
            return self.saturated(value, 32)
        return max(value, 0)

    def is_less(self, value, c):
        """Whether `value` is less than c. The top bit of an unsigned value that can be negative makes it the larger one."""
        if (self.a if self.root == 'vset' else self.result) == 's32':
            return (signed(value % (1 << 32), 32) if self.root in ('vadd', 'vsub') else value) < signed(c, 32)
        kinds = (self.a, self.b)
        negative = {
            'vadd': True,
            'vsub': True,
            'vmin': 's32' in kinds,
            'vmax': kinds == ('s32', 's32'),
            'vshl': self.saturates,
            'vshr': self.saturates or self.a == 's32',
        }.get(self.root, False)
        word = value % (1 << 32)
        return word < 1 << 31 and word <= c if negative else value % (1 << 64) < c

    def scalar(self, words, selectors):
        parts = [
            number(words[i] >> at & ((1 << width) - 1), width, kind)
            for i, kind, (at, width) in ((1, self.a, place(selectors[1])), (2, self.b, place(selectors[2])))
        ]
        at, width = place(selectors[0])
        value = self.operate(*parts)
        if self.root == 'vshl':
            bits = 34 if self.saturates else 64
            value = signed(value % (1 << bits), bits)
        if self.saturates:
            value = self.saturated_scalar(value, width, bool(selectors[0]))
        if selectors[0]:
            mask = ((1 << width) - 1) << at
            return words[3] & ~mask | (value if selectors[0] == 'h1' else value << at) & mask
        if self.second in ('min', 'max'):
            return value if self.is_less(value, words[3]) == (self.second == 'min') else words[3]
        return value + words[3] if self.second else value

    def simd(self, words, selectors):
        width = 32 // self.lanes
        whole = words[1] | words[2] << 32  # elements are numbered through both registers
        chosen = []
        for selector, first in ((selectors[1], 0), (selectors[2], self.lanes)):
            digits = [int(d) for d in reversed(selector[1:])] or list(range(first, first + self.lanes))
            chosen.append([whole >> width * d & ((1 << width) - 1) for d in digits])
        mask = [int(d) for d in selectors[0][1:]] or list(range(self.lanes))
        result = words[3]
        for lane in sorted(mask):
            value = self.operate(number(chosen[0][lane], width, self.a), number(chosen[1][lane], width, self.b))
            value = self.saturated(value, width)
            if self.second:
                result += value
            else:
                ones = ((1 << width) - 1) << width * lane
                result = result & ~ones | value << width * lane & ones
        return result

    def multiply(self, words, selectors, minus):
        a, b = (
            signed(number(words[i] >> at & ((1 << width) - 1), width, kind) % (1 << 32), 32)
            for i, kind, (at, width) in ((1, self.a, place(selectors[1])), (2, self.b, place(selectors[2])))
        )
        c = signed(words[3], 32)
        negative = minus[1] != minus[2]
        total = (-a * b if negative else a * b) + (-c if minus[3] else c) + ('po' in self.modifiers)
        scale = 7 if 'shr7' in self.modifiers else 15 if 'shr15' in self.modifiers else 0
        total >>= scale
        if not self.saturates:
            return total
        kind = 's32' if 's32' in (self.a, self.b) or negative or minus[3] else 'u32'
        low, high = limits(32, kind)
        if kind == 'u32' and total < 0 and scale:  # compared as an unsigned number
            return high
        return max(low, min(high, total))


def video(x, modifiers, operands):
    instruction = Instruction(x.statement.root, modifiers)
    minus = [o.startswith('-') for o in operands]
    names, selectors = zip(*(split(o.lstrip('-')) for o in operands))
    for t in x.active:
        words = [0] + [x.read(name, t, 32) for name in names[1:]]
        if instruction.root == 'vmad':
            value = instruction.multiply(words, selectors, minus)
        elif instruction.lanes == 1:
            value = instruction.scalar(words, selectors)
        else:
            value = instruction.simd(words, selectors)
        x.write(names[0], t, value & 0xFFFFFFFF)


for root in ('vadd', 'vsub', 'vabsdiff', 'vmin', 'vmax', 'vset'):
    HANDLERS.update({root + size: video for size in ('', '2', '4')})
HANDLERS.update({root: video for root in ('vavrg2', 'vavrg4', 'vshl', 'vshr', 'vmad')})
