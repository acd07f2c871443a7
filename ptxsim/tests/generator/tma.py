"""Tensor copies, and the mbarriers they complete on (PTX ISA 9.0, "Tensors", "cp.async.bulk.tensor",
"cp.reduce.async.bulk.tensor"; CUDA driver API, "Tensor Map Object Management"). Everything completes at once here, so
that a wait never waits. Pixels of im2col modes: all places of a box are listed, image after image, and as many are taken
from the list as the column has. What the text leaves open is as an H200 was seen to do it: the NaN that fills elements out of
bounds is 0x7ff7 in each half, and rows of a store are clipped in steps of 16 bytes."""

import itertools

import numbers_of_ptx as n
from threads import NotModelled, handles

BYTES = {
    'u8': 1,
    'u16': 2,
    'u32': 4,
    's32': 4,
    'u64': 8,
    's64': 8,
    'f16': 2,
    'bf16': 2,
    'f32': 4,
    'f64': 8,
    'f32_ftz': 4,
    'tf32': 4,
    'tf32_ftz': 4,
}
FLOATS = ('f16', 'bf16', 'f32', 'f64')
# Which address bits are changed by which: (mask of the row bits at bit 7, where they go).
SWIZZLES = {'none': (0, 0), '32': (1, 4), '64': (3, 4), '128': (7, 4), '128_atom32': (3, 5), '128_atom64': (1, 6)}

SPANS = {'none': 0, '32': 32, '64': 64, '128': 128}


class TensorMap:
    def __init__(self, description, base):
        if description['data_type'] not in BYTES or description.get('interleave', 'none') != 'none':
            raise NotModelled('tensor map of ' + description['data_type'])
        if description.get('swizzle', 'none') not in SWIZZLES:
            raise NotModelled('swizzle ' + description['swizzle'])
        self.kind = description['data_type']
        self.width = BYTES[self.kind]
        self.base = base + description.get('offset', 0)
        self.dims = description['dims']
        self.strides = [self.width] + description.get('strides_bytes', [])
        self.im2col, self.wide = description.get('im2col'), description.get('im2col_wide')
        self.box = [(self.im2col or self.wide)['channels']] if self.im2col or self.wide else description['box']
        self.steps = description.get('element_strides', [1] * len(self.dims))
        self.swizzle = SWIZZLES[description.get('swizzle', 'none')]
        self.fill = 0x7FF77FF77FF77FF7 if description.get('oob_nan') and self.kind in FLOATS else 0
        self.span = SPANS[description.get('swizzle', 'none').split('_')[0]]

    def row_end(self, row_granule):
        return -(-self.dims[0] * self.width // row_granule) * row_granule // self.width

    def columns(self, pixels, channel, row_granule=1):
        """As elements(), of one pixel after the other; a pixel is (W, H, D, N), as many as the tensor has."""
        channels = self.box[0]
        pitch = max(channels * self.width, self.span)
        for number, pixel in enumerate(pixels):
            inside = all(0 <= at < extent for at, extent in zip(pixel, self.dims[1:]))
            base = self.base + sum(at * stride for at, stride in zip(pixel, self.strides[1:]))
            for c in range(channel, channel + channels):
                known = inside and 0 <= c < self.row_end(row_granule)
                yield number * pitch + (c - channel) * self.width, base + c * self.width if known else None

    def pixels(self, start, offsets):
        """.im2col: the box of every image from the first one on, in order; those before the first pixel are left out."""
        ranges, first = [], [start[-1]]
        for i, (extent, step, offset) in enumerate(zip(self.dims[1:-1], self.steps[1:-1], offsets)):
            low, high = self.im2col['lower'][i] + offset, extent - 1 + self.im2col['upper'][i] + offset
            begin = start[1 + i] + offset
            if not low <= begin <= high or (begin - low) % step:
                raise NotModelled('a pixel that is not of the box')
            ranges.insert(0, range(low, high + 1, step))
            first.insert(1, begin)
        images = range(start[-1], start[-1] + self.im2col['pixels'] + 1)
        everything = itertools.product(images, *ranges)
        later = itertools.dropwhile(lambda place: list(place) != first, everything)
        for place in itertools.islice(later, self.im2col['pixels']):
            yield list(place[:0:-1]) + [place[0]]

    def wide_pixels(self, start, halo, offset, always_128):
        """.im2col::w: one row of each image; the first image's may begin before the box."""
        low, high = self.wide['lower'] + offset, self.dims[1] - 1 + self.wide['upper'] + offset
        count = (128 if always_128 else self.wide['pixels']) + halo
        rows = itertools.chain(
            [range(start[1] + offset, high + 1, self.steps[1])], itertools.repeat(range(low, high + 1, self.steps[1]))
        )
        every = ((w, image) for image, row in enumerate(rows, start[-1]) for w in row)
        for w, image in itertools.islice(every, count):
            yield [w] + start[2:-1] + [image]

    def elements(self, start, row_granule=1):
        """(offset in the box as it lies in shared memory, address in global memory or None) of each. Rows narrower
        than the swizzle's span lie that far apart."""
        counts = [-(-b // s) for b, s in zip(self.box, self.steps)]
        total = 1
        for c in counts:
            total *= c
        pitch = max(counts[0] * self.width, self.span)
        row_end = self.row_end(row_granule)
        for i in range(total):
            rest, address, inside = i, self.base, True
            for d, count in enumerate(counts):
                at = start[d] + rest % count * self.steps[d]
                end = row_end if d == 0 else self.dims[d]
                inside = inside and 0 <= at < end
                address += at * self.strides[d]
                rest //= count
            yield i // counts[0] * pitch + i % counts[0] * self.width, address if inside else None

    def shared(self, tile, offset):
        mask, to = self.swizzle
        at = tile + offset
        return at ^ (at >> 7 & mask) << to


def coordinates(x, operand, t):
    """[map, {c0, c1, ...}]"""
    name, rest = operand[1:-1].split(',', 1)
    values = [x.read(e, t, 32) for e in x.elements(rest.strip())]
    return x.tensor_maps[x.read(name.strip(), t)], [v - (1 << 32) if v >> 31 else v for v in values]


def copied(x, modifiers, tensor, start, info, t, row_granule=1):
    """The elements of a copy in any mode; `info`: the operand behind the barrier's."""
    mode = next((m for m in modifiers if m.startswith('im2col')), None)
    needed = 'tiles' if mode is None else 'wide' if mode.startswith('im2col::w') else 'im2col'
    if needed != ('wide' if tensor.wide else 'im2col' if tensor.im2col else 'tiles'):
        raise NotModelled('another kind of tensor map')
    if mode is None:
        return tensor.elements(start, row_granule)
    numbers = [0] * (len(tensor.dims) - 2) if info is None else [x.read(e, t, 16) for e in x.elements(info)]
    if tensor.wide:
        return tensor.columns(tensor.wide_pixels(start, *numbers, mode.endswith('128')), start[0])
    return tensor.columns(tensor.pixels(start, numbers), start[0], row_granule)


@handles('cp')
def cp(x, modifiers, operands):
    if 'commit_group' in modifiers or 'wait_group' in modifiers or 'prefetch' in modifiers:
        return
    if (
        'tensor' not in modifiers
        and modifiers[:2] == ['async', 'bulk']
        and not any(m.startswith(('multicast', 'cp_mask')) for m in modifiers)
    ):
        for t in x.active:  # consecutive bytes
            size = x.read(operands[2], t, 32)
            x.store(x.address(operands[0], t), size, x.load(x.address(operands[1], t), size))
        return
    if 'tensor' not in modifiers or any(m.startswith(('multicast', 'cta_group')) for m in modifiers):
        raise NotModelled(x.statement.text)
    for t in x.active:
        if modifiers[4].startswith('shared') and modifiers[0] == 'async':
            tensor, start = coordinates(x, operands[1], t)
            tile = x.address(operands[0], t)
            info = operands[3] if len(operands) > 3 else None
            for offset, address in copied(x, modifiers, tensor, start, info, t):
                value = tensor.fill if address is None else converted(x.load(address, tensor.width), tensor.kind)
                x.store(tensor.shared(tile, offset), tensor.width, value)
            continue
        tensor, start = coordinates(x, operands[0], t)
        tile = x.address(operands[1], t)
        for offset, address in copied(x, modifiers, tensor, start, None, t, row_granule=16):
            if address is None:
                continue
            value = x.load(tensor.shared(tile, offset), tensor.width)
            if 'reduce' in modifiers:
                if 'add' not in modifiers or tensor.kind[0] != 'u':
                    raise NotModelled(x.statement.text)
                value += x.load(address, tensor.width)
            x.store(address, tensor.width, value)


def converted(bits, kind):
    """Tensors of tf32 are rounded to it on the way in."""
    return n.TF32.encode(n.F32.decode(bits)) << 13 if kind == 'tf32' else bits


@handles('mbarrier')
def mbarrier(x, modifiers, operands):
    if modifiers[0] in ('try_wait', 'test_wait'):
        for t in x.active:
            x.write(operands[0], t, 1)
    elif modifiers[0] == 'arrive' and operands[0] != '_':
        raise NotModelled('states of mbarriers')
