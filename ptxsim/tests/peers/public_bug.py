"""linkedin/Liger-Kernel#1435, as Triton 3.6 compiles it for sm_100a: two products of one sum, and the same with two sums.

    python ptxsim/tests/peers/public_bug.py PTXSIM

Under every schedule the first must be reported at the line of its second product and be wrong, and the second be right.
"""

import inspect
import json
import pathlib
import subprocess
import sys
import tempfile

import numpy as np
import triton
import triton.language as tl
from peer import Peer, given, wanted

M, N, K = 128, 64, 256


@triton.jit
def into_one_sum(a1, a2, b1, b2, c, K, M: tl.constexpr, N: tl.constexpr, BLOCK: tl.constexpr):
    m, n = tl.arange(0, M)[:, None], tl.arange(0, N)[None, :]
    total = tl.zeros((M, N), tl.float32)
    for first in range(0, K, BLOCK):
        k = first + tl.arange(0, BLOCK)
        a, b = tl.load(a1 + m * K + k[None, :]), tl.load(b1 + k[:, None] * N + n)
        total = tl.dot(a, b, total)
        a, b = tl.load(a2 + m * K + k[None, :]), tl.load(b2 + k[:, None] * N + n)
        total = tl.dot(a, b, total)  # the second product
    tl.store(c + m * N + n, total)


@triton.jit
def into_two_sums(a1, a2, b1, b2, c, K, M: tl.constexpr, N: tl.constexpr, BLOCK: tl.constexpr):
    m, n = tl.arange(0, M)[:, None], tl.arange(0, N)[None, :]
    total1, total2 = tl.zeros((M, N), tl.float32), tl.zeros((M, N), tl.float32)
    for first in range(0, K, BLOCK):
        k = first + tl.arange(0, BLOCK)
        a, b = tl.load(a1 + m * K + k[None, :]), tl.load(b1 + k[:, None] * N + n)
        total1 = tl.dot(a, b, total1)
        a, b = tl.load(a2 + m * K + k[None, :]), tl.load(b2 + k[:, None] * N + n)
        total2 = tl.dot(a, b, total2)
    tl.store(c + m * N + n, total1 + total2)


def runs_of(ptxsim, kernel, folder):
    random = np.random.default_rng(1)
    a = random.integers(-2, 3, (2, M, K)).astype(np.float16)
    b = random.integers(-2, 3, (2, K, N)).astype(np.float16)
    total = np.einsum("imk,ikn->mn", a.astype(np.float32), b.astype(np.float32))
    arguments = {"a1": given(a[0]), "a2": given(a[1]), "b1": given(b[0]), "b2": given(b[1]), "c": wanted(total), "K": K}
    constants = {"M": M, "N": N, "BLOCK": 64}
    peer = Peer(kernel.fn.__name__, kernel, arguments, constants, (1,), (100,), {"num_stages": 3})
    case = peer.write(100, folder)
    command = [ptxsim, "run", folder / "kernel.ptx", "--case", case, "--schedule", "all", "--json"]
    return json.loads(subprocess.run([*map(str, command)], capture_output=True, text=True, check=False).stdout)


def main() -> int:
    lines, start = inspect.getsourcelines(into_one_sum.fn)
    second = start + ["# the second product" in line for line in lines].index(True)
    wrong = []
    with tempfile.TemporaryDirectory() as name:
        bad, good = (
            runs_of(sys.argv[1], kernel, pathlib.Path(name) / kernel.fn.__name__) for kernel in (into_one_sum, into_two_sums)
        )
    for run in bad:
        errors = [report for report in run["reports"] if report["severity"] == "error"]
        found = {(report["rule"], report["place"]["source_line"]) for report in errors}
        is_wrong = any("expected 0x" in text or "elements differ" in text for text in run["mismatches"])
        if not {("R5", second), ("R6", second)} <= found or not is_wrong:
            wrong.append(
                f"into one sum, {run['schedule']}: {sorted(found)}, {run['mismatches'][:1]}; must be R5, R6 at {second}"
            )
    wrong += [f"into two sums, {run['schedule']}: {run['mismatches'][:1]}; must be right" for run in good if not run["passed"]]
    print("\n".join(wrong) or "Liger-Kernel#1435: found, and right with two sums")
    return int(bool(wrong))


if __name__ == "__main__":
    sys.exit(main())
