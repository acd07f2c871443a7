"""Threads of one CTA in lockstep: registers, memory, branches. The threads with the lowest program counter go first, so
that they meet where paths join; a barrier of the CTA is then nothing but a statement. What an instruction computes is in
the family modules, written from the text of the PTX ISA."""

import re
import struct

HANDLERS = {}  # root -> function(context, modifiers, operands)


class NotModelled(Exception):
    pass


def handles(*roots):
    def register(function):
        for root in roots:
            HANDLERS[root] = function
        return function

    return register


WIDTHS = {
    'pred': 1,
    'b8': 8,
    's8': 8,
    'u8': 8,
    'b16': 16,
    's16': 16,
    'u16': 16,
    'f16': 16,
    'bf16': 16,
    'b32': 32,
    's32': 32,
    'u32': 32,
    'f32': 32,
    'f16x2': 32,
    'bf16x2': 32,
    's16x2': 32,
    'u16x2': 32,
    'b64': 64,
    's64': 64,
    'u64': 64,
    'f64': 64,
    'f32x2': 64,
    'b128': 128,
}
SHARED_BASE = 0  # the first KiB belongs to the system
BUFFER_BASE = 1 << 20


class Statement:
    def __init__(self, guard, negated, root, modifiers, operands, text):
        self.guard, self.negated, self.root, self.modifiers = guard, negated, root, modifiers
        self.operands, self.text = operands, text


def split_operands(text):
    parts, depth, start = [], 0, 0
    for i, c in enumerate(text):
        depth += c in '{[('
        depth -= c in '}])'
        if c == ',' and depth == 0:
            parts.append(text[start:i].strip())
            start = i + 1
    last = text[start:].strip()
    return parts + [last] if last else parts


class Kernel:
    """The one entry of a PTX file: statements, labels, declared widths, shared variables, parameters."""

    def __init__(self, text):
        text = re.sub(r'//[^\n]*', '', text)
        head, body = text[text.index('.entry') :].split('{', 1)
        self.parameters = re.findall(r'\.param\s+(?:\.align\s+\d+\s+)?\.(\w+)\s+(\w+)', head)
        self.statements, self.labels, self.widths, self.shared = [], {}, {}, {}
        body = body.rsplit('}', 1)[0]
        offset = 1024
        for piece in body.replace('\n', ' ').split(';'):
            piece = piece.strip()
            label = re.match(r'([A-Za-z_$]\w*)\s*:\s*', piece)
            while label and not piece.startswith('::'):
                self.labels[label.group(1)] = len(self.statements)
                piece = piece[label.end() :]
                label = re.match(r'([A-Za-z_$]\w*)\s*:\s*', piece)
            if not piece:
                continue
            if piece.startswith('.reg'):
                _, kind, names = piece.split(None, 2)
                for name in names.split(','):
                    many = re.match(r'(%?\w+)<(\d+)>', name.strip())
                    each = [many.group(1) + str(i) for i in range(int(many.group(2)))] if many else [name.strip()]
                    for one in each:
                        self.widths[one] = WIDTHS[kind[1:]]
                continue
            if piece.startswith('.shared'):
                m = re.match(r'\.shared\s+(?:\.align\s+(\d+)\s+)?\.(\w+)\s+(\w+)(?:\[(\d+)\])?$', piece)
                if not m:
                    raise NotModelled(piece)
                align = int(m.group(1) or WIDTHS[m.group(2)] // 8)
                offset = -(-offset // align) * align
                self.shared[m.group(3)] = SHARED_BASE + offset
                offset += WIDTHS[m.group(2)] // 8 * int(m.group(4) or 1)
                continue
            if piece.startswith('.'):
                raise NotModelled(piece)
            m = re.match(r'(?:@(!?)(%?\w+)\s+)?([a-z]\w*)((?:\.[\w:]+)*)\s*(.*)$', piece)
            if not m:
                raise NotModelled(piece)
            modifiers = re.findall(r'\.((?:\w|::)+)', m.group(4))
            self.statements.append(
                Statement(m.group(2), m.group(1) == '!', m.group(3), modifiers, split_operands(m.group(5)), piece)
            )
        self.shared_bytes = offset


class Threads:
    def __init__(self, kernel, count, buffers, parameters, tensor_maps):
        self.kernel, self.count = kernel, count
        self.registers = {name: [None] * count for name in kernel.widths}
        self.segments = [(base, data) for base, data in buffers]
        self.segments.append((SHARED_BASE, bytearray(kernel.shared_bytes)))
        self.parameters = parameters
        self.tensor_maps = tensor_maps  # by address; as parameters they stand for their address
        self.pc = [0] * count
        self.live = set(range(count))
        self.carry = [0] * count  # CC.CF

    def run(self):
        kernel = self.kernel
        for _ in range(1000000):
            if not self.live:
                return
            now = min(self.pc[t] for t in self.live)
            if now >= len(kernel.statements):
                raise NotModelled('no ret')
            here = sorted(t for t in self.live if self.pc[t] == now)
            statement = kernel.statements[now]
            active = here
            if statement.guard:
                values = self.registers[statement.guard]
                active = [t for t in here if bool(values[t]) != statement.negated]
            for t in here:
                self.pc[t] = now + 1
            if active:
                self.execute(statement, active)
        raise NotModelled('no end')

    def execute(self, statement, active):
        handler = HANDLERS.get(statement.root)
        if handler is None:
            raise NotModelled(statement.root)
        self.active, self.statement = active, statement
        handler(self, list(statement.modifiers), statement.operands)

    # Operands.
    def width_of(self, operand):
        return self.kernel.widths.get(operand)

    def read(self, operand, t, width=None):
        """The bits of a register or literal; a narrower `width` takes the low ones."""
        mask = (1 << width) - 1 if width else -1
        if operand.startswith('!'):
            return 1 - self.read(operand[1:], t)
        if operand in self.registers:
            value = self.registers[operand][t]
            if value is None:
                raise NotModelled('undefined ' + operand)
            return value & mask
        special = self.special(operand, t)
        if special is not None:
            return special
        if operand in self.kernel.shared:
            return self.kernel.shared[operand] & mask if width == 64 else self.kernel.shared[operand]
        if self.parameters.get(operand) in self.tensor_maps:
            return self.parameters[operand]
        if re.match(r'0[fF][0-9a-fA-F]{8}$', operand):
            bits = int(operand[2:], 16)
            if width == 64:
                return struct.unpack('<Q', struct.pack('<d', struct.unpack('<f', struct.pack('<I', bits))[0]))[0]
            return bits
        if re.match(r'0[dD][0-9a-fA-F]{16}$', operand):
            bits = int(operand[2:], 16)
            if width == 32:
                return struct.unpack('<I', struct.pack('<f', struct.unpack('<d', struct.pack('<Q', bits))[0]))[0]
            return bits
        if re.match(r'-?\d+\.\d*$', operand):
            return (
                struct.unpack('<I', struct.pack('<f', float(operand)))[0]
                if width == 32
                else struct.unpack('<Q', struct.pack('<d', float(operand)))[0]
            )
        literal = re.match(r'(-?)(0[xX][0-9a-fA-F]+|0[bB][01]+|\d+)U?$', operand)
        if not literal:
            raise NotModelled(operand)
        value = int(literal.group(2), 0) if not re.match(r'0\d', literal.group(2)) else int(literal.group(2), 8)
        return (-value if literal.group(1) else value) & (mask if width else (1 << 64) - 1)

    def special(self, operand, t):
        lane = t % 32
        return {
            '%tid.x': t,
            '%tid.y': 0,
            '%tid.z': 0,
            '%ntid.x': self.count,
            '%laneid': lane,
            '%warpid': t // 32,
            '%ctaid.x': 0,
            '%lanemask_eq': 1 << lane,
            '%lanemask_lt': (1 << lane) - 1,
            '%lanemask_le': (2 << lane) - 1,
            '%lanemask_gt': 0xFFFFFFFF & ~((2 << lane) - 1),
            '%lanemask_ge': 0xFFFFFFFF & ~((1 << lane) - 1),
        }.get(operand)

    def write(self, operand, t, value):
        if operand == '_':
            return
        width = self.kernel.widths.get(operand)
        if width is None:
            raise NotModelled('destination ' + operand)
        self.registers[operand][t] = None if value is None else value & ((1 << width) - 1)

    @staticmethod
    def elements(operand):
        return [e.strip() for e in operand[1:-1].split(',')] if operand.startswith('{') else [operand]

    # Memory.
    def address(self, operand, t):
        m = re.match(r'\[\s*([%\w]+)\s*(?:\+\s*(-?\w+))?\s*\]$', operand)
        if not m:
            raise NotModelled(operand)
        return self.read(m.group(1), t) + (int(m.group(2), 0) if m.group(2) else 0)

    def bytes_at(self, address, count):
        for base, data in self.segments:
            if base <= address and address + count <= base + len(data):
                return data, address - base
        raise NotModelled('address %x' % address)

    def load(self, address, count):
        data, at = self.bytes_at(address, count)
        return int.from_bytes(data[at : at + count], 'little')

    def store(self, address, count, value):
        data, at = self.bytes_at(address, count)
        data[at : at + count] = (value & ((1 << 8 * count) - 1)).to_bytes(count, 'little')

    def warps(self):
        """The active threads by warp."""
        groups = {}
        for t in self.active:
            groups.setdefault(t // 32, []).append(t)
        return groups.values()


# "Data Movement: ld, st, mov"; control flow; synchronisation of threads that go in lockstep anyway.
SPACES = {
    'global',
    'shared',
    'shared::cta',
    'param',
    'weak',
    'volatile',
    'nc',
    'relaxed',
    'acquire',
    'release',
    'gpu',
    'cta',
    'cluster',
    'sys',
    'ca',
    'cg',
    'cs',
    'lu',
    'cv',
    'wb',
    'wt',
    'mmio',
}


def take_memory_form(modifiers):
    kind = modifiers.pop()
    count = 1
    for m in list(modifiers):
        if m in ('v2', 'v4', 'v8'):
            count = int(m[1:])
            modifiers.remove(m)
    rest = [m for m in modifiers if m not in SPACES and not m.startswith(('L1::', 'L2::'))]
    if rest or kind not in WIDTHS:
        raise NotModelled('.'.join(modifiers + [kind]))
    return kind, count


@handles('ld', 'ldu')
def ld(x, modifiers, operands):
    if modifiers[0] == 'param':
        for t in x.active:
            x.write(operands[0], t, x.parameters[re.match(r'\[(\w+)\]$', operands[1]).group(1)])
        return
    kind, count = take_memory_form(modifiers)
    width = WIDTHS[kind]
    names = x.elements(operands[0])
    for t in x.active:
        at = x.address(operands[1], t)
        for i in range(count):
            value = x.load(at + i * width // 8, width // 8)
            if kind[0] == 's' and value >> (width - 1):
                value -= 1 << width  # sign-extended into a wider register
            x.write(names[i], t, value)


@handles('st')
def st(x, modifiers, operands):
    if modifiers[0] == 'bulk':  # zeroes shared memory
        for t in x.active:
            size = x.read(operands[1], t)
            x.store(x.address(operands[0], t), size, 0)
        return
    kind, count = take_memory_form(modifiers)
    width = WIDTHS[kind]
    names = x.elements(operands[1])
    for t in x.active:
        at = x.address(operands[0], t)
        for i in range(count):
            x.store(at + i * width // 8, width // 8, x.read(names[i], t, width))


@handles('mov')
def mov(x, modifiers, operands):
    width = WIDTHS[modifiers[-1]]
    to, source = x.elements(operands[0]), x.elements(operands[1])
    for t in x.active:
        part = width // len(source)
        value = sum(x.read(s, t, part) << (part * i) for i, s in enumerate(source))
        part = width // len(to)
        for i, name in enumerate(to):
            x.write(name, t, value >> (part * i))


@handles('bra')
def bra(x, modifiers, operands):
    for t in x.active:
        x.pc[t] = x.kernel.labels[operands[0]]


@handles('ret', 'exit')
def ret(x, modifiers, operands):
    x.live -= set(x.active)


@handles('cvta')
def cvta(x, modifiers, operands):
    """Generic addresses are those of the spaces themselves here: they do not overlap."""
    for t in x.active:
        x.write(operands[0], t, x.read(operands[1], t))


@handles('bar', 'barrier', 'fence', 'membar')
def meet(x, modifiers, operands):
    root = x.statement.root
    if root in ('bar', 'barrier') and 'red' in modifiers:
        predicates = [x.read(operands[-1], t) for t in x.active]
        if len(predicates) != x.count:
            raise NotModelled('a barrier of some threads')
        result = {'popc': sum(predicates), 'and': int(all(predicates)), 'or': int(any(predicates))}[
            next(m for m in modifiers if m in ('popc', 'and', 'or'))
        ]
        for t in x.active:
            x.write(operands[0], t, result)
    elif root in ('bar', 'barrier') and 'sync' not in modifiers:
        raise NotModelled(x.statement.text)


@handles('prefetch', 'prefetchu', 'applypriority', 'setmaxnreg', 'griddepcontrol', 'nanosleep')
def no_effect(x, modifiers, operands):
    """On values."""


@handles('createpolicy')
def createpolicy(x, modifiers, operands):
    for t in x.active:
        x.write(operands[0], t, 0)  # opaque: only instructions that ignore it here read it
