#!/usr/bin/env python3
"""Writes the expected values of PTX cases (ptxsim/tests/insn/*.ptx) from models of the instructions that share nothing
with ptxsim: written from the text of the PTX ISA, in integers and fractions, one module for each family. Written are
the arrays of the files of values beside the cases (*.values); inputs, the kernel's text and expected values that stand
in the case itself are compared and stay. An open value (`-`, `null`) means that PTX leaves it open.

Usage: generate.py [--check | --list] [files...]    --check: writes nothing, exits 1 where a file is not current
"""

import argparse
import glob
import json
import os
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, HERE)
import conversion  # noqa: E402,F401  (modules register their instructions)
import floating  # noqa: E402,F401
import integer  # noqa: E402,F401
import matrix  # noqa: E402,F401
import tcgen05  # noqa: E402,F401
import tma  # noqa: E402
import video  # noqa: E402,F401
import warp  # noqa: E402,F401
import warpgroup  # noqa: E402,F401
from case_values import Reader, WIDTHS  # noqa: E402
from threads import BUFFER_BASE, Kernel, NotModelled, Threads  # noqa: E402

CASES = os.path.join(os.path.dirname(HERE), 'insn')
MARK = '// Expected values: written by ptxsim/tests/generator/generate.py; do not edit.'
MODELLED = ('u8', 's8', 'u16', 's16', 'u32', 's32', 'u64', 's64')


def bits(value, width):
    return (int(value, 0) if isinstance(value, str) else value) & ((1 << 8 * width) - 1)


def run_model(case, text, reader):
    """The bytes of every buffer after the kernel, by name."""
    if case.get('grid', [1, 1, 1]) != [1, 1, 1] or 'cluster' in case:
        raise NotModelled('more than one CTA')
    kernel = Kernel(text)
    block = case.get('block', [1, 1, 1])
    if block[1:] not in ([], [1, 1]):
        raise NotModelled('block')
    buffers, address = {}, BUFFER_BASE
    for b in case.get('buffers', []):
        if b.get('type') not in MODELLED:
            raise NotModelled('type %s' % b.get('type'))
        width = WIDTHS[b['type']]
        values = reader.patterns(b.get('values', []), b['type'])
        count = b.get('count', len(values))
        data = bytearray(width * count)
        if 'iota' in b:
            values = list(range(count))
        if 'fill' in b:
            values = [b['fill']] * count
        for i, v in enumerate(values):
            data[i * width : (i + 1) * width] = bits(v, width).to_bytes(width, 'little')
        buffers[b['name']] = (address, data)
        address += -(-len(data) // 4096) * 4096 + 4096
    parameters, tensor_maps = {}, {}
    for (_, name), p in zip(kernel.parameters, case.get('params', [])):
        if 'tensor_map' in p:
            parameters[name] = address
            tensor_maps[address] = tma.TensorMap(p['tensor_map'], buffers[p['tensor_map']['buffer']][0])
            address += 128
        elif 'buffer' in p:
            parameters[name] = buffers[p['buffer']][0] + p.get('offset', 0)
        else:
            parameters[name] = bits(p['value'], WIDTHS[p['type']])
    threads = Threads(kernel, block[0], buffers.values(), parameters, tensor_maps)
    threads.run()
    return {name: data for name, (_, data) in buffers.items()}


def read(path):
    with open(path) as file:
        return file.read()


def current(path):
    """What the models say of a case: its files of values with their text, and the buffers whose expected values stand
    in the case itself and are wrong."""
    lines = read(path).split('\n')
    case = json.loads('\n'.join(line[3:] for line in lines if line.startswith('//!')) or '{}')
    if not case.get('buffers') or 'expect_error' in case or 'expect_reports' in case:
        raise NotModelled('a case of errors')
    if not any(b.get('expect') for b in case['buffers']):
        raise NotModelled('no expected values')
    reader = Reader(os.path.dirname(path))
    memory = run_model(case, '\n'.join(line for line in lines if not line.startswith('//!')), reader)
    wrong = []
    for b in case['buffers']:
        said = b.get('expect', [])
        width = WIDTHS[b['type']]
        expected = reader.patterns(said, b['type'], b.get('count'))
        data = memory[b['name']]
        values = [
            None if e is None else int.from_bytes(data[i * width : (i + 1) * width], 'little') for i, e in enumerate(expected)
        ]
        if isinstance(said, str) and '#' in said:
            expected[:] = values  # what the file's text() has
        elif values != expected:
            wrong.append(b['name'])
    return {os.path.join(reader.folder, name): file.text() for name, file in reader.files.items()}, wrong


def main():
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument('--check', action='store_true')
    arguments.add_argument('--list', action='store_true', help='which cases the models cover, and why not the others')
    arguments.add_argument('files', nargs='*')
    args = arguments.parse_args()
    stale = covered = by_hand = 0
    for path in args.files or sorted(glob.glob(os.path.join(CASES, '*.ptx'))):
        text = read(path)
        marked = MARK in text
        if not marked and args.check:
            continue
        try:
            files, wrong = current(path)
        except NotModelled as reason:
            if args.list:
                print('%s: not covered: %s' % (os.path.basename(path), reason))
            if marked:
                print('%s: marked as generated, but the models do not cover it: %s' % (path, reason))
                stale += 1
            continue
        covered += 1
        differing = {name: new for name, new in files.items() if not os.path.exists(name) or new != read(name)}
        if args.list:
            print('%s: covered%s' % (os.path.basename(path), ', and differs' if differing or wrong else ''))
            continue
        for buffer in wrong:
            print('%s: buffer %s: the expected values in the case are wrong; mend them' % (path, buffer))
        by_hand += bool(wrong)
        stale += bool(differing or wrong)
        if args.check and differing:
            print('%s: not current; run ptxsim/tests/generator/generate.py' % path)
        if args.check:
            continue
        for name, new in differing.items():
            with open(name, 'w') as file:
                file.write(new)
        if not marked:
            with open(path, 'w') as file:
                file.write(text.replace('//!', MARK + '\n//!', 1))
    print(
        'generated PTX cases: %d passed, %d failed'
        % (covered - (stale if args.check else by_hand), stale if args.check else by_hand)
    )
    return 1 if by_hand or (args.check and stale) else 0


if __name__ == '__main__':
    sys.exit(main())
