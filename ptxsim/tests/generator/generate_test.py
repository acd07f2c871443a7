#!/usr/bin/env python3
"""generate.py itself: current cases pass, a wrong expected value is found and mended, and the fractions behind the
models round as IEEE 754 says."""

import glob
import os
import random
import shutil
import subprocess
import sys
import tempfile

import case_values
import generate
import numbers_of_ptx as n
from case_values import ValueFile
from generate import read


def write(path, text):
    with open(path, 'w') as file:
        file.write(text)


def run(*arguments):
    return subprocess.run(
        [sys.executable, os.path.join(generate.HERE, 'generate.py'), *arguments], capture_output=True, text=True
    )


def copied(folder, name):
    for extension in ('.ptx', '.values'):
        shutil.copy(os.path.join(generate.CASES, name + extension), folder)
    return os.path.join(folder, name + '.ptx'), os.path.join(folder, name + '.values')


def test_wrong_value(folder):
    path, values = copied(folder, 'int_add_sub')
    assert run('--check', path).returncode == 0
    right = read(values)
    file = ValueFile.read(values)
    name = next(name for name in file.arrays if '#%s"' % name in read(path).split('"expect"', 1)[1])
    file.arrays[name].patterns[0] ^= 1
    write(values, file.text())
    assert read(values) != right
    checked = run('--check', path)
    assert checked.returncode == 1 and 'not current' in checked.stdout, checked.stdout
    assert run(path).returncode == 0
    assert read(values) == right


def test_wrong_value_in_the_case(folder):
    path = os.path.join(folder, 'inline.ptx')
    case = """//! {"block": [2], "buffers": [{"name": "o", "type": "u32", "count": 2, "expect": "0..1"}],
//!  "params": [{"buffer": "o"}]}
.version 8.0
.target sm_80
.address_size 64
.visible .entry k(.param .u64 o)
{
  .reg .b32 %t;
  .reg .b64 %at, %scale;
  mov.u32 %t, %tid.x;
  ld.param.u64 %at, [o];
  mul.wide.u32 %scale, %t, 4;
  add.s64 %at, %at, %scale;
  st.global.b32 [%at+0], %t;
  ret;
}
"""
    write(path, case)
    assert run(path).returncode == 0
    assert read(path) == generate.MARK + '\n' + case
    write(path, read(path).replace('"0..1"', '[0, 2]'))
    for arguments in ([path], ['--check', path]):
        checked = run(*arguments)
        assert checked.returncode == 1 and 'buffer o' in checked.stdout, checked.stdout
    # An array that its file does not have yet is written.
    write(path, case.replace('"0..1"', '"inline.values#o"'))
    assert run(path).returncode == 0
    assert read(os.path.join(folder, 'inline.values')) == 'o: u32 2 hex\n0 1\n'
    assert run('--check', path).returncode == 0


def test_packed_values():
    assert case_values.pack([7, 7, 7, None, 1, 2, 3, 2, 2], 'u8', False) == ['7*3', '-', '1..3', '2', '2']
    assert case_values.pack([0, 3, 6, 9, 1, 3, 5], 's8', False) == ['0..9/3', '1', '3', '5']
    assert case_values.pack([2, 1, 0, 0xFF, 0xFE], 's8', False) == ['2..-2']
    assert case_values.pack([0x80000000, 0x3F800000, 0x7FC00000], 'f32', False) == ['-0', '1', '0x7fc00000']
    assert case_values.pack([10, 11, 12, 0xFF], 'u8', True) == ['a..c', 'ff']
    for name in sorted(glob.glob(os.path.join(generate.CASES, '*.values'))):
        assert ValueFile.read(name).text() == read(name), name
    for kind, width in case_values.WIDTHS.items():
        edges = [0, 1, 2, 3, (1 << 8 * width) - 1, 1 << (8 * width - 1), (1 << (8 * width - 1)) - 1, None]
        patterns = [random.choice(edges) for _ in range(500)] + [random.getrandbits(8 * width) for _ in range(500)]
        for is_hex in (False, True):
            text = ' '.join(case_values.pack(patterns, kind, is_hex))
            assert case_values.unpack(text, kind, is_hex) == patterns, (kind, is_hex)


def test_rounding():
    import struct

    for bits in (0, 1, 0x007FFFFF, 0x00800000, 0x3F800000, 0x7F7FFFFF, 0x7F800000, 0x80000000, 0xFF800000):
        assert n.F32.encode(n.F32.decode(bits)) == bits
    for code in range(1 << 16):  # the nearest f16 of an f64 half way between two, by Python's own conversion
        value = n.F16.decode(code)
        if value == n.NAN or value[1] == n.INF or code & 0x7FFF == 0x7BFF:
            continue
        between = float(value[1] + n.F16.decode((code & 0x7FFF) + 1)[1]) / 2
        expected = struct.unpack('<H', struct.pack('<e', -between if value[0] else between))[0]
        assert n.F16.encode((value[0], n.Fraction(between))) == expected, hex(code)


if __name__ == '__main__':
    with tempfile.TemporaryDirectory() as folder:
        test_wrong_value(folder)
        test_wrong_value_in_the_case(folder)
    test_packed_values()
    test_rounding()
    print('generate.py: 4 passed, 0 failed')
