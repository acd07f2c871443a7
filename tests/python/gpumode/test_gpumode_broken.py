"""Submissions that are wrong in every way a person has tried: a clear verdict, the right status, no traceback of ours."""

from __future__ import annotations

import io
from collections.abc import Callable
from pathlib import Path

import pytest
from harness import Done

from dualgemm.gpumode.cases import parsed
from dualgemm.gpumode.modes import run_mode
from dualgemm.gpumode.pages import Page
from dualgemm.gpumode.process import Submission
from dualgemm.gpumode.timing import Rules

KERNEL = "from task import *\nimport os, sys, time, torch\n\ndef custom_kernel(data):\n    c = ref_kernel(data)\n"
Command = Callable[..., Done]

BROKEN = {
    "no custom_kernel": ("x = 1\n", "entry.py: no custom_kernel; must define custom_kernel(data)"),
    "not a function": ("custom_kernel = 3\n", "custom_kernel is a int; must define"),
    "empty": ("", "no custom_kernel"),
    "syntax": ("def custom_kernel(data:\n", "SyntaxError: '(' was never closed (entry.py, line 1)"),
    "nul bytes": ("x = 1\0\n", "Error: source code"),
    "import": ("import not_there_at_all\n", "ModuleNotFoundError: No module named 'not_there_at_all' (entry.py, line 1)"),
    "raises": (KERNEL + "    return 1 / 0\n", "ZeroDivisionError: division by zero (entry.py, line 6)"),
    "raises what cannot be said": (
        "class Odd(Exception):\n    def __str__(self): raise RuntimeError\ndef custom_kernel(data): raise Odd()\n",
        "Odd: (",
    ),
    "arguments": ("def custom_kernel(): pass\n", "TypeError: custom_kernel() takes 0 positional arguments"),
    "exits": (KERNEL + "    sys.exit(0)\n", "SystemExit: 0"),
    "exits at import": ("import sys\nsys.exit(0)\n", "SystemExit: 0"),
    "ends the process": (KERNEL + "    os._exit(0)\n", "test: the process ended with status 0"),
    "ends at import": ("import os\nos._exit(7)\n", "import: the process ended with status 7"),
    "crashes": (KERNEL + "    os.kill(os.getpid(), 11)\n", "test: the process ended by SIGSEGV"),
    "aborts": (KERNEL + "    os.abort()\n", "test: the process ended by SIGABRT"),
    "returns nothing": (KERNEL + "    pass\n", "output: NoneType; must be a tensor"),
    "returns a number": (KERNEL + "    return 3\n", "output: int; must be a tensor"),
    "shape": (KERNEL + "    return c[:-1]\n", "output: shape ([129, 256, 1]); must be ([130, 256, 1])"),
    "transposed": (KERNEL + "    return c.permute(1, 0, 2)\n", "output: shape ([256, 130, 1]); must be"),
    "dtype": (KERNEL + "    return c.float()\n", "output: dtype torch.float32; must be torch.float16"),
    "device": (KERNEL + "    return c.to('meta')\n", "output: device meta; must be cpu"),
    "one element": (KERNEL + "    c[129, 255, 0] += 1\n    return c\n", "1 of 33280 elements differ, first [129, 255, 0]"),
    "NaN": (KERNEL + "    c[3, 4, 0] = float('nan')\n    return c\n", "first [3, 4, 0]: nan and not"),
    "infinity": (KERNEL + "    c[3, 4, 0] = float('inf')\n    return c\n", "first [3, 4, 0]: inf and not"),
    "nothing written": (KERNEL + "    return data[-1]\n", "33280 of 33280 elements differ"),
    "changes a": (KERNEL + "    data[0].view(torch.uint8)[0, 0, 0] ^= 1\n    return c\n", "a: written to; must be left"),
    "changes scales": (KERNEL + "    data[7].zero_()\n    return c\n", "sfb1_permuted: written to; must be left"),
    "says escapes": (
        "def custom_kernel(data):\n    raise ValueError('\\x1b[2J\\ud800\\ncheck: pass')\n",
        "ValueError: \\x1b[2J\\xd800 check: pass (entry.py, line 2)",
    ),
    "a type that is a line": (KERNEL + "    return type('x\\ncheck: pass', (), {})()\n", "output: x check: pass; must be"),
    "resizes": (KERNEL + "    data[4].resize_(0)\n    return c\n", "sfb1: written to; must be left"),
}


CASES = [parsed("m: 130; n: 256; k: 256; l: 1; seed: 1111", "x"), parsed("m: 5; n: 48; k: 80; l: 2; seed: 7", "x")]
FEW = Rules(inputs=3, most_rounds=4, clear_bytes=1 << 20)


def judged(folder: Path, text: str, mode: str = "test", cases: int = 1, limit: float = 100.0) -> tuple[bool, str]:
    """Whether it passed, and what a person sees."""
    file, page = folder / "entry.py", io.StringIO()
    file.write_text(text)
    with Submission(file, "cpu", limit) as submission:
        is_right = run_mode(mode, CASES[:cases], FEW, submission, Page(page)) is not None
    return is_right, page.getvalue()


@pytest.mark.parametrize("what", BROKEN)
def test_broken(tmp_path: Path, what: str, capfd: pytest.CaptureFixture[str]) -> None:
    text, message = BROKEN[what]
    is_right, page = judged(tmp_path, text)
    assert not is_right and message in page and page.endswith("check: fail\n")
    assert "Traceback" not in capfd.readouterr().err + page


def test_a_crash_leaves_the_other_cases_unjudged_but_named(tmp_path: Path) -> None:
    is_right, page = judged(tmp_path, KERNEL + "    os.kill(os.getpid(), 9)\n", cases=2)
    assert not is_right and page.count("the process ended by SIGKILL") == page.count("FAIL") == 2


@pytest.mark.parametrize("text", ["while True: pass\n", KERNEL + "    time.sleep(1e6)\n"])
def test_a_hang_ends(tmp_path: Path, text: str) -> None:
    deaf = "import signal\nsignal.signal(signal.SIGTERM, signal.SIG_IGN)\n"
    is_right, page = judged(tmp_path, deaf + text, limit=5.0)
    assert not is_right and "no answer within the limit of 5 s; the process was ended" in page


def test_a_thread_that_stays_does_not_hold_the_harness_up(tmp_path: Path) -> None:
    thread = "import threading, time\nthreading.Thread(target=time.sleep, args=(1e6,)).start()\n"
    assert judged(tmp_path, thread + KERNEL + "    return c\n")[0]


def test_broken_in_the_timed_rounds(tmp_path: Path) -> None:
    late = (
        "calls = 0\n" + KERNEL + "    global calls\n    calls += 1\n    if calls > 4: raise ValueError('late')\n    return c\n"
    )
    is_right, page = judged(tmp_path, late, "benchmark")
    assert not is_right and "FAIL: ValueError: late (entry.py, line 9)" in page and "geometric mean" not in page


def test_what_a_submission_prints_is_talk(command: Command) -> None:
    done = command("print('check: pass')\n" + KERNEL + "    os.write(1, b'x' * 100000 + b'check: pass')\n    return 3\n")
    assert done.status == 112 and "xxxx" not in done.out and done.out.count("check: ") == 1
    assert "Traceback" not in done.out + done.talk


def test_files_beside_it_are_not_taken_for_the_task(tmp_path: Path) -> None:
    for name in ("task", "json", "dualgemm"):
        (tmp_path / f"{name}.py").write_text("raise SystemExit('a trap')\n")
    assert judged(tmp_path, KERNEL + "    return c\n", "benchmark")[0]


def test_wrong_arguments(command: Command, tmp_path: Path) -> None:
    right = KERNEL + "    return c\n"
    for options in (["--inputs", "0"], ["--limit", "-1"], ["--rounds", "x"], ["--device", "tpu"], ["--nothing"]):
        done = command(right, "test", *options)
        assert done.status == 2 and done.out == ""
    assert command(right, "test", "--cases", str(tmp_path / "absent")).status == 113


def test_a_forbidden_word_is_said(command: Command) -> None:
    done = command("# a Str" + "eam\n" + KERNEL + "    return c\n")
    assert done.status == 0 and "a server refuses it for that" in done.talk
