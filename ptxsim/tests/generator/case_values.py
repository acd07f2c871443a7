"""Values of a case's buffers, as ptxsim reads them (docs/ptxsim.md, "Values"): JSON lists, packed texts and files of
named arrays. A value is its pattern, an int; None stands for any value."""

import os
import re
import struct

WIDTHS = {
    'u8': 1,
    's8': 1,
    'b8': 1,
    'u16': 2,
    's16': 2,
    'b16': 2,
    'f16': 2,
    'bf16': 2,
    'u32': 4,
    's32': 4,
    'b32': 4,
    'f32': 4,
    'u64': 8,
    's64': 8,
    'b64': 8,
    'f64': 8,
}
FLOATS = {'f32': ('<f', '<I'), 'f64': ('<d', '<Q')}
COLUMNS = 120
LEAST_RUN = 3  # values that become one word


def pattern(value, kind):
    """What a number or a text such as "0x1f" stands for."""
    if isinstance(value, str):
        return int(value, 0)
    if kind in FLOATS:
        number, bits = FLOATS[kind]
        return struct.unpack(bits, struct.pack(number, value))[0]
    return value & ((1 << 8 * WIDTHS[kind]) - 1)


def number(bits, kind):
    """The number that a pattern stands for: signed where the type is, an int where it is whole; None: no number."""
    width = 8 * WIDTHS[kind]
    if kind not in FLOATS:
        return bits - (1 << width) if kind[0] == 's' and bits >> (width - 1) else bits
    value = struct.unpack(FLOATS[kind][0], bits.to_bytes(WIDTHS[kind], 'little'))[0]
    if not abs(value) < float('inf'):
        return None
    whole = int(value)
    return whole if abs(value) < 1 << 53 and pattern(whole, kind) == bits else value


def number_text(bits, kind):
    """The shortest text that stands for the pattern."""
    value = number(bits, kind)
    if value is None:
        return '0x%x' % bits
    if isinstance(value, int):
        return str(value)
    texts = ('%.*g' % (digits, value) for digits in range(1, 18))
    return next(text for text in texts if pattern(float(text), kind) == bits)


def unpack(text, kind, is_hex):
    """The patterns of a packed text."""

    def value(word):
        if word == '-':
            return None
        if is_hex:
            return int(word, 16)
        return pattern(word if word.startswith('0x') else float(word) if kind in FLOATS else int(word), kind)

    patterns = []
    for word in text.split():
        if '*' in word:
            one, count = word.split('*')
            patterns += [value(one)] * int(count)
        elif '..' in word:
            first, last, step = re.fullmatch(r'(\S+)\.\.([^/]+)(?:/(\S+))?', word).groups()
            base = 16 if is_hex else 10
            first, last, step = int(first, base), int(last, base), int(step or '1', base)
            numbers = range(first, last + 1, step) if first <= last else range(first, last - 1, -step)
            patterns += list(numbers) if is_hex else [pattern(x, kind) for x in numbers]
        else:
            patterns.append(value(word))
    return patterns


def pack(patterns, kind, is_hex):
    """The words of a packed text."""

    def word(x):
        if x is None:
            return '-'
        return '%x' % x if is_hex else number_text(x, kind)

    def integer(x):
        """What a range may count; None: nothing that it may."""
        value = x if x is None or is_hex else number(x, kind)
        return value if isinstance(value, int) and -(1 << 63) <= value < 1 << (64 if is_hex else 63) else None

    words, i, ended = [], 0, patterns + [None]
    while i < len(patterns):
        end = i + 1
        while end < len(patterns) and patterns[end] == patterns[i]:
            end += 1
        if end - i >= LEAST_RUN:
            words.append('%s*%d' % (word(patterns[i]), end - i))
            i = end
            continue
        first, second = (integer(x) for x in ended[i : i + 2])
        step = 0 if first is None or second is None else second - first
        end = i + 1
        while step and end < len(patterns) and integer(patterns[end]) == first + step * (end - i):
            end += 1
        if end - i >= LEAST_RUN + (abs(step) > 1):
            by = '' if abs(step) == 1 else ('/%x' if is_hex else '/%d') % abs(step)
            words.append('%s..%s%s' % (word(patterns[i]), word(patterns[end - 1]), by))
        else:
            end = i + 1
            words.append(word(patterns[i]))
        i = end
    return words


class Array:
    def __init__(self, kind, is_hex, patterns):
        self.kind, self.is_hex, self.patterns = kind, is_hex, patterns


def lines_of(name, array):
    lines = ['%s: %s %d%s' % (name, array.kind, len(array.patterns), ' hex' if array.is_hex else '')]
    line = ''
    for word in pack(array.patterns, array.kind, array.is_hex):
        if line and len(line) + 1 + len(word) > COLUMNS:
            lines.append(line)
            line = ''
        line += (' ' if line else '') + word
    return lines + [line] if line else lines


class ValueFile:
    """Comments above the first array are kept."""

    def __init__(self, comments=()):
        self.comments, self.arrays = list(comments), {}

    @staticmethod
    def read(path):
        found, text, name = ValueFile(), {}, None
        with open(path) as file:
            for line in file.read().split('\n'):
                if line.startswith('#'):
                    found.comments.append(line)
                elif ':' in line:
                    name, heading = line.split(':')
                    kind, _, *is_hex = heading.split()
                    found.arrays[name] = Array(kind, bool(is_hex), [])
                    text[name] = ''
                elif line:
                    text[name] += line + ' '
        for name, array in found.arrays.items():
            array.patterns = unpack(text[name], array.kind, array.is_hex)
        return found

    def text(self):
        lines = list(self.comments)
        for name, array in self.arrays.items():
            lines += lines_of(name, array)
        return '\n'.join(lines) + '\n'


class Reader:
    """What a case in this folder says of values; each file is read once."""

    def __init__(self, folder):
        self.folder, self.files = folder, {}

    def file(self, name):
        if name not in self.files:
            path = os.path.join(self.folder, name)
            self.files[name] = ValueFile.read(path) if os.path.exists(path) else ValueFile()
        return self.files[name]

    def patterns(self, said, kind, count=None):
        """What a key `values` or `expect` says. With a count: an array that its file lacks is added, that long."""
        if not isinstance(said, str):
            return [None if value is None else pattern(value, kind) for value in said]
        if '#' not in said:
            return unpack(said, kind, False)
        file, name = said.rsplit('#', 1)
        arrays = self.file(file).arrays
        if name not in arrays and count is not None:
            arrays[name] = Array(kind, True, [0] * count)
        return arrays[name].patterns
