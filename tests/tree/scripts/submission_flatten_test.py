#!/usr/bin/env python3
"""A Python strategy as one file: what scripts/submission/flatten.py makes of small folders.

Usage: submission_flatten_test.py TREE
"""

import pathlib
import shutil
import subprocess
import sys
import tempfile
import types
import unittest

TREE = pathlib.Path(sys.argv.pop(1)).resolve()
sys.dont_write_bytecode = True
sys.path.insert(0, str(TREE / "scripts"))
from submission.errors import Refused
from submission.flatten import Flattening, without_comments_that_say

BOTH = "try:\n    from {0} import {1}\nexcept ImportError:\n    from .{0} import {1}\n"
MAIN = '"""What it does."""\n' + BOTH.format("task", "input_t, output_t")


class FlattenTest(unittest.TestCase):
    def setUp(self):
        self.folder = pathlib.Path(tempfile.mkdtemp())
        self.addCleanup(shutil.rmtree, self.folder)
        self.write(task="input_t, output_t = int, int\n")

    def write(self, **files):
        for name, text in files.items():
            (self.folder / f"{name}.py").write_text(text)

    def flat(self, **files):
        self.write(**files)
        return Flattening(self.folder / "main.py").text()

    def run_flat(self, **files):
        """What the text defines, with the harness's module beside it and nothing else of the folder."""
        text = self.flat(**files)
        before = sys.modules.get("task")
        sys.modules["task"] = types.SimpleNamespace(input_t=int, output_t=int)
        names = {"__name__": "submission"}
        try:
            exec(compile(text, "flat", "exec"), names)  # it is what a harness does
        finally:
            sys.modules.pop("task")
            if before is not None:
                sys.modules["task"] = before
        return names

    def refusal(self, **files):
        with self.assertRaises(Refused) as refused:
            self.flat(**files)
        return str(refused.exception)

    def test_both_spellings_of_an_import(self):
        for how in ("from shared import f\n", "from .shared import f\n", BOTH.format("shared", "f")):
            names = self.run_flat(
                main=MAIN + how + "\n\ndef custom_kernel(data: input_t) -> output_t:\n    return f(data)\n",
                shared='"""Not this."""\n\n\ndef f(x):\n    return x + 1\n',
            )
            self.assertEqual(names["custom_kernel"](2), 3)
            self.assertEqual(names["__doc__"] if "__doc__" in names else None, "What it does.")

    def test_the_harnesss_module_stays(self):
        text = self.flat(main=MAIN + "from .shared import f\n", shared=BOTH.format("task", "input_t as i") + "f = i\n")
        self.assertEqual(text.count("import"), 1)
        self.assertIn("from task import input_t, input_t as i, output_t\n", text)

    def test_once_though_imported_twice(self):
        names = self.run_flat(
            main="from a import f\nfrom b import g, h as other\ntotal = f() + g() + other()\n",
            a="from .b import g\n\n\ndef f():\n    return g() * 10\n",
            b="count = []\ncount.append(1)\n\n\ndef g():\n    return len(count)\n\n\ndef h():\n    return 5\n",
        )
        self.assertEqual(names["total"], 16)

    def test_future_first_and_imports_once(self):
        future = "from __future__ import annotations\n"
        text = self.flat(main=future + "import math\nfrom a import x\ny = math.pi\n", a=future + "import math\nx = math.e\n")
        self.assertTrue(text.startswith(future))
        self.assertEqual(text.count("import math"), 1)

    def test_what_runs_only_as_a_program(self):
        names = self.run_flat(
            main="from a import x\nif __name__ == '__main__':\n    print(x)\n",
            a="__all__ = ['x']\nx = 1\nif __name__ == \"__main__\":\n    raise SystemExit\n",
        )
        self.assertEqual((names["x"], "__all__" in names), (1, False))

    def test_decorators_strings_and_guards_stay_as_they_are(self):
        shared = (
            "import functools\n\n\n@functools.lru_cache(\n    maxsize=None)\ndef f():\n"
            "    return '''\n\n\n\nfrom .x import y'''\n\n\nif True:\n    g = 1\nelse:\n    g = 2\n"
        )
        names = self.run_flat(main="from shared import f, g\n", shared=shared)
        self.assertEqual((names["f"](), names["g"]), ("\n\n\n\nfrom .x import y", 1))

    def test_a_guarded_use_of_the_package(self):
        guarded = (
            "def f():\n    try:\n        import dualgemm\n    except ImportError:\n        return None\n    return dualgemm\n"
        )
        self.assertIn("import dualgemm", self.flat(main=guarded))

    def test_refusals(self):
        rule = "; a file beside it must be imported at the top, by `from name import x`"
        self.assertEqual(self.refusal(main="import a\n", a=""), "main.py:1: import a" + rule)
        self.assertEqual(self.refusal(main="from . import a\n", a=""), "main.py:1: from . import a" + rule)
        self.assertEqual(self.refusal(main="from ..a import b\n", a=""), "main.py:1: from ..a import b" + rule)
        self.assertEqual(self.refusal(main="def f():\n    from a import x\n", a="x = 1\n"), "main.py:2: from a import x" + rule)
        self.assertEqual(self.refusal(main="from a import *\n", a=""), "main.py:1: import *; names must be listed")
        self.assertEqual(
            self.refusal(main="import dualgemm\n"), "main.py:1: import dualgemm; a submission must do where the package is not"
        )
        self.assertEqual(
            self.refusal(main="from a import f\nx = 2\n", a="x = 1\nf = x\n"),
            "main.py: x is of main.py and of a.py; a name must have one meaning",
        )
        self.assertEqual(
            self.refusal(main="from a import f\nfrom math import pi as x\n", a="x = 1\nf = x\n"),
            "main.py: x is of math.pi and of a.py; a name must have one meaning",
        )
        self.assertEqual(
            self.refusal(main="from a import f\n", a="from b import g\n", b="from a import f\n"),
            "a.py: it imports itself, by main and a and b; it must not",
        )
        self.assertEqual(
            self.refusal(main="x = 1; from a import f\n", a="f = 1\n"), "main.py:1: two statements in a line; there must be one"
        )
        self.assertRegex(self.refusal(main="def\n"), r"^main\.py: .*; it must be a Python file$")

    def test_comments_with_the_word_go_and_others_stay(self):
        text = "a = 1  # a Stream of words\n# streams\nb = '# stream'  # kept\n"
        self.assertEqual(without_comments_that_say("stream", text), "a = 1\n\nb = '# stream'  # kept\n")

    def test_by_the_command(self):
        kernel = "\n\ndef custom_kernel(data: input_t) -> output_t:\n    return f(data)\n"
        self.write(
            submission_best=MAIN + "from .shared import f\n" + kernel,
            shared="def f(x):  # on the default stream\n    return x\n",
        )
        out = self.folder / "out.py"
        command = [
            sys.executable,
            TREE / "scripts/make_submission",
            "--strategy",
            "graph",
            "--python",
            self.folder,
            "--out",
            out,
        ]
        result = subprocess.run(command, capture_output=True, text=True)
        self.assertEqual(result.returncode, 0, result.stderr)
        text = out.read_text()
        self.assertEqual(text.splitlines()[:2], ["#!POPCORN leaderboard nvfp4_dual_gemm", "#!POPCORN gpu B200"])
        self.assertNotIn("stream", text)
        self.write(shared="def f(x):\n    return x.stream\n")
        result = subprocess.run(command, capture_output=True, text=True)
        self.assertEqual(result.returncode, 1)
        self.assertIn("return x.stream; the server refuses a file with the word 'stream'", result.stderr)
        self.assertEqual(out.read_text(), text)


if __name__ == "__main__":
    unittest.main()
