#!/usr/bin/env python3
"""Writes the expected values of PTX cases (ptxsim/tests/insn/*.ptx) from models of the instructions that share nothing
with ptxsim: written from the text of the PTX ISA, in integers and fractions, one module for each family. Inputs and the
kernel's text stay as they are. `null` among the expected values means that PTX leaves the value open.

Usage: generate.py [--check | --list] [files...]    --check: writes nothing, exits 1 where a file is not current
"""
import argparse
import glob
import json
import os
import re
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
from threads import BUFFER_BASE, Kernel, NotModelled, Threads  # noqa: E402

CASES = os.path.join(os.path.dirname(HERE), 'insn')
MARK = '// Expected values: written by ptxsim/tests/generator/generate.py; do not edit.'
WIDTHS = {'u8': 1, 's8': 1, 'u16': 2, 's16': 2, 'u32': 4, 's32': 4, 'u64': 8, 's64': 8}
TOKEN = re.compile(r'"(?:[^"\\]|\\.)*"|[^\s,:{}\[\]"]+|[,:{}\[\]]')


def header_lines(text):
    return [i for i, line in enumerate(text) if line.startswith('//!')]


def bits(value, width):
    return (int(value, 0) if isinstance(value, str) else value) & ((1 << 8 * width) - 1)


def run_model(case, text):
    """The bytes of every buffer after the kernel, by name."""
    if case.get('grid', [1, 1, 1]) != [1, 1, 1] or 'cluster' in case:
        raise NotModelled('more than one CTA')
    kernel = Kernel(text)
    block = case.get('block', [1, 1, 1])
    if block[1:] not in ([], [1, 1]):
        raise NotModelled('block')
    buffers, address = {}, BUFFER_BASE
    for b in case.get('buffers', []):
        width = WIDTHS.get(b.get('type'))
        if width is None:
            raise NotModelled('type %s' % b.get('type'))
        count = b.get('count', len(b.get('values', [])))
        data = bytearray(width * count)
        values = b.get('values', [])
        if 'iota' in b:
            values = list(range(count))
        if 'fill' in b:
            values = [b['fill']] * count
        for i, v in enumerate(values):
            data[i * width:(i + 1) * width] = bits(v, width).to_bytes(width, 'little')
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


def expected_tokens(header):
    """(buffer index, position in the list, start, end) of each expected value in the header's text."""
    found, stack, key, last, buffer = [], [], None, None, -1
    index = 0
    for m in TOKEN.finditer(header):
        token = m.group()
        if token in '[{':
            stack.append((token, key))
            if len(stack) == 3 and stack[1][1] == 'buffers' and token == '{':
                buffer += 1
            index = 0
        elif token in ']}':
            stack.pop()
        elif token == ':':
            key = json.loads(last)
        elif token != ',' and stack and stack[-1] == ('[', 'expect'):
            found.append((buffer, index, m.start(), m.end()))
            index += 1
        last = token
    return found


def current_text(path):
    """The file as the models say it should be."""
    lines = open(path).read().split('\n')
    where = header_lines(lines)
    header = '\n'.join('   ' + lines[i][3:] for i in where)
    case = json.loads(header)
    if not case.get('buffers') or 'expect_error' in case or 'expect_reports' in case:
        raise NotModelled('a case of errors')
    tokens = expected_tokens(header)
    if not tokens:
        raise NotModelled('no expected values')
    body = '\n'.join(line for line in lines if not line.startswith('//!'))
    memory = run_model(case, body)
    pieces, end = [], 0
    for buffer, index, start, stop in tokens:
        description = case['buffers'][buffer]
        width = WIDTHS[description['type']]
        value = int.from_bytes(memory[description['name']][index * width:(index + 1) * width], 'little')
        token = header[start:stop]
        if token == 'null':
            continue
        if token.startswith('"'):
            token = '"0x%0*x"' % (len(token) - 4, value)
        else:
            token = str(value - (1 << 8 * width) if token.startswith('-') and value >> (8 * width - 1) else value)
        pieces += [header[end:start], token]
        end = stop
    header = ''.join(pieces) + header[end:]
    new = ['//!' + line[3:] for line in header.split('\n')]
    lines[where[0]:where[-1] + 1] = new
    if MARK not in lines:
        lines.insert(where[0], MARK)
    return '\n'.join(lines)


def main():
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument('--check', action='store_true')
    arguments.add_argument('--list', action='store_true', help='which cases the models cover, and why not the others')
    arguments.add_argument('files', nargs='*')
    args = arguments.parse_args()
    stale = covered = 0
    for path in args.files or sorted(glob.glob(os.path.join(CASES, '*.ptx'))):
        text = open(path).read()
        marked = MARK in text
        if not marked and args.check:
            continue
        try:
            new = current_text(path)
        except NotModelled as reason:
            if args.list:
                print('%s: not covered: %s' % (os.path.basename(path), reason))
            if marked:
                print('%s: marked as generated, but the models do not cover it: %s' % (path, reason))
                stale += 1
            continue
        covered += 1
        if args.list:
            same = new.replace(MARK + '\n', '') == text.replace(MARK + '\n', '')
            print('%s: covered%s' % (os.path.basename(path), '' if same else ', and differs'))
        elif new != text:
            stale += 1
            if args.check:
                print('%s: not current; run ptxsim/tests/generator/generate.py' % path)
            else:
                open(path, 'w').write(new)
    print('generated PTX cases: %d passed, %d failed' % (covered - stale if args.check else covered,
                                                         stale if args.check else 0))
    return 1 if args.check and stale else 0


if __name__ == '__main__':
    sys.exit(main())
