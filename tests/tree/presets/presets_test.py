#!/usr/bin/env python3
"""The presets for one architecture build the tests of all its kernels: what ctest finds unbuilt has no label, and the
presets choose by labels, so that a kernel left out would not be missed. Usage: presets_test.py <root>"""

import json
import pathlib
import sys


def main():
    root = pathlib.Path(sys.argv[1])
    presets = json.loads((root / "CMakePresets.json").read_text())
    failures = []
    for name, begin in (("hopper", "sm90a"), ("blackwell", "sm100a")):
        built = next(preset["targets"] for preset in presets["buildPresets"] if preset["name"] == name)
        label = next(p["filter"]["include"]["label"] for p in presets["testPresets"] if p["name"] == name)
        wanted = sorted(f"test_{folder.name}" for folder in (root / "tests/kernels").iterdir() if folder.name.startswith(begin))
        if sorted(built) != wanted:
            failures.append(f"{name} builds {sorted(built)}; tests/kernels has {wanted}")
        if label != f"^{begin}":
            failures.append(f"{name} runs the tests with label {label}; want ^{begin}")
    for failure in failures:
        print(failure)
    print(f"presets: 2 architectures, {len(failures)} failed")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
