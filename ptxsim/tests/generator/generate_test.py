#!/usr/bin/env python3
"""generate.py itself: current cases pass, a wrong expected value is found and mended, and the fractions behind the
models round as IEEE 754 says."""
import os
import re
import shutil
import subprocess
import sys
import tempfile

import generate
import numbers_of_ptx as n


def run(*arguments):
    return subprocess.run([sys.executable, os.path.join(generate.HERE, 'generate.py'), *arguments],
                          capture_output=True, text=True)


def test_wrong_value(folder):
    source = os.path.join(generate.CASES, 'int_add_sub.ptx')
    path = os.path.join(folder, 'int_add_sub.ptx')
    shutil.copy(source, path)
    assert run('--check', path).returncode == 0
    text = open(path).read()
    at = text.index('"expect"')
    wrong = text[:at] + re.sub(r'"0x(.)', lambda m: '"0x' + ('1' if m.group(1) != '1' else '2'), text[at:], count=1)
    assert wrong != text
    open(path, 'w').write(wrong)
    checked = run('--check', path)
    assert checked.returncode == 1 and 'not current' in checked.stdout, checked.stdout
    assert run(path).returncode == 0
    assert open(path).read() == text


def test_rounding():
    import struct
    for bits in (0, 1, 0x007fffff, 0x00800000, 0x3f800000, 0x7f7fffff, 0x7f800000, 0x80000000, 0xff800000):
        assert n.F32.encode(n.F32.decode(bits)) == bits
    for code in range(1 << 16):  # the nearest f16 of an f64 half way between two, by Python's own conversion
        value = n.F16.decode(code)
        if value == n.NAN or value[1] == n.INF or code & 0x7fff == 0x7bff:
            continue
        between = float(value[1] + n.F16.decode((code & 0x7fff) + 1)[1]) / 2
        expected = struct.unpack('<H', struct.pack('<e', -between if value[0] else between))[0]
        assert n.F16.encode((value[0], n.Fraction(between))) == expected, hex(code)


if __name__ == '__main__':
    with tempfile.TemporaryDirectory() as folder:
        test_wrong_value(folder)
    test_rounding()
    print('generate.py: 2 passed, 0 failed')
