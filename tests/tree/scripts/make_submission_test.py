#!/usr/bin/env python3
"""scripts/make_submission: what a file of the strategy fused has and has not, and what is refused.

Usage: make_submission_test.py TREE
"""

import ast
import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest

TREE = pathlib.Path(sys.argv.pop(1)).resolve()
sys.dont_write_bytecode = True
sys.path.insert(0, str(TREE / "scripts"))
from submission.errors import Refused
from submission.expand import Expansion, without_comments, without_unused_macros

WORD = "stream"


def run(tree, *arguments):
    return subprocess.run(
        [sys.executable, tree / "scripts/make_submission", *map(str, arguments)], capture_output=True, text=True
    )


class Case(unittest.TestCase):
    def setUp(self):
        self.folder = pathlib.Path(tempfile.mkdtemp())
        self.addCleanup(shutil.rmtree, self.folder)

    def made(self, tree, *arguments):
        out = self.folder / "submission.py"
        result = run(tree, "--out", out, *arguments)
        self.assertEqual(result.returncode, 0, result.stderr)
        return out.read_text()

    def copy_of_the_tree(self):
        """Without a build: what the generator reads."""
        tree = self.folder / "elsewhere"
        for name in ("include", "src", "tools/submission", "scripts"):
            shutil.copytree(TREE / name, tree / name)
        shutil.copy(TREE / "Makefile", tree)
        return tree


class FusedTest(Case):
    def test_what_a_server_takes(self):
        for arch, gpu in (("sm_100a", "B200"), ("sm_90a", "H100")):
            text = self.made(TREE, "--arch", arch)
            self.assertEqual(text.splitlines()[:2], ["#!POPCORN leaderboard nvfp4_dual_gemm", f"#!POPCORN gpu {gpu}"])
            self.assertLess(len(text.encode()), 1_000_000)
            self.assertNotIn(WORD, text.lower())
            self.assertIn("def custom_kernel(data: input_t) -> output_t:", text)

    def test_it_stands_alone(self):
        for arch in ("sm_100a", "sm_90a"):
            text = self.made(TREE, "--arch", arch)
            self.assertNotIn('#include "', text)
            self.assertNotIn(str(TREE), text)
            self.assertNotRegex(text, "@[A-Z_]+@", "no place to fill in is left")
            imported = set()
            for node in ast.walk(ast.parse(text)):
                if isinstance(node, ast.Import):
                    imported |= {alias.name.split(".")[0] for alias in node.names}
                elif isinstance(node, ast.ImportFrom):
                    self.assertEqual(node.level, 0)
                    imported.add(node.module.split(".")[0])
            self.assertEqual(imported, {"ctypes", "task", "torch"})

    def test_the_same_bytes_always_and_anywhere(self):
        tree = self.copy_of_the_tree()
        for arch in ("sm_100a", "sm_90a"):
            first = self.made(TREE, "--arch", arch)
            self.assertEqual(first, self.made(TREE, "--arch", arch))
            self.assertEqual(first, self.made(tree, "--arch", arch))

    def test_only_the_instances_that_are_needed(self):
        text = self.made(TREE, "--arch", "sm_90a")
        self.assertEqual(text.count("X(dual_gemm_sm90a, "), 3)
        self.assertNotIn("DUALGEMM_SM90A_INSTANCES", text)
        self.assertNotIn("kBF16, bf16", self.made(TREE, "--arch", "sm_100a"))

    def test_the_word_in_a_source(self):
        tree = self.copy_of_the_tree()
        source = tree / "tools/submission/call.hpp"
        first = self.made(tree)
        source.write_text("// A Stream in a comment.\n/* and a\nstream */\n" + source.read_text())
        self.assertEqual(self.made(tree), first)
        source.write_text(source.read_text() + "\nint number_of_Streams = 0;\n")
        out = self.folder / "kept.py"
        out.write_text("as it was")
        result = run(tree, "--out", out)
        self.assertEqual(result.returncode, 1)
        self.assertRegex(
            result.stderr,
            r"^make_submission: line \d+: int number_of_Streams = 0;; "
            "the server refuses a file with the word 'stream'\n$",
        )
        self.assertEqual(out.read_text(), "as it was")
        self.assertEqual(list(self.folder.glob("kept.py*")), [out], "nothing half-written is left")

    def test_a_file_that_is_too_large(self):
        tree = self.copy_of_the_tree()
        source = tree / "tools/submission/call.hpp"
        source.write_text(source.read_text() + "\nint table[] = {" + "1234567,\n" * 120_000 + "};\n")
        result = run(tree, "--out", self.folder / "large.py")
        self.assertRegex(result.stderr, r"^make_submission: 1\d{6} bytes; the server takes less than 1000000\n$")
        self.assertFalse((self.folder / "large.py").exists())


class CommandTest(Case):
    def refusal(self, *arguments):
        out = self.folder / "refused.py"
        result = run(TREE, "--out", out, *arguments)
        self.assertEqual(result.returncode, 1)
        self.assertFalse(out.exists())
        return result.stderr.removeprefix("make_submission: ").strip()

    def test_refusals_say_the_rule(self):
        self.assertEqual(self.refusal("--arch", "sm_120a"), "ARCH=sm_120a; must be sm_100a or sm_90a")
        self.assertEqual(self.refusal("--arch", ""), "ARCH=; must be sm_100a or sm_90a")
        self.assertEqual(self.refusal("--strategy", "fast"), "STRATEGY=fast; must be fused, baseline, cached, graph, triton")
        self.assertRegex(
            self.refusal("--strategy", "streams"), "^STRATEGY=streams; the server refuses a file with the word 'stream'"
        )
        self.assertEqual(
            self.refusal("--strategy", "graph", "--python", self.folder),
            "STRATEGY=graph: there is no submission_best.py; it must lie in python/",
        )

    def test_an_output_that_cannot_be_written(self):
        (self.folder / "file").write_text("")
        result = run(TREE, "--out", self.folder / "file/submission.py")
        self.assertEqual(result.returncode, 1)
        self.assertNotIn("Traceback", result.stderr)
        (self.folder / "folder").mkdir()
        result = run(TREE, "--out", self.folder / "folder")
        self.assertEqual(result.returncode, 1)
        self.assertNotIn("Traceback", result.stderr)
        self.assertEqual(sorted(path.name for path in self.folder.iterdir()), ["file", "folder"])

    @unittest.skipUnless(shutil.which("make"), "make is not here")
    def test_make(self):
        tree = self.copy_of_the_tree()
        out = self.folder / "with a blank.py"
        make = ["make", "--no-print-directory", "-C", tree, "submission"]
        result = subprocess.run([*make, f"OUT={out}", "STRATEGY=fused", "ARCH=sm_90a"], capture_output=True, text=True)
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertEqual(out.read_text(), self.made(TREE, "--arch", "sm_90a"))
        result = subprocess.run(make, capture_output=True, text=True)
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertEqual((tree / "build/submission/submission.py").read_text(), self.made(TREE))
        result = subprocess.run([*make, "ARCH=sm_80"], capture_output=True, text=True)
        self.assertNotEqual(result.returncode, 0)
        self.assertIn("ARCH=sm_80; must be sm_100a or sm_90a", result.stderr)


class ExpansionTest(Case):
    def expand(self, **files):
        for name, text in files.items():
            (self.folder / f"{name}.hpp").write_text(text)
        return Expansion(self.folder).text_of(self.folder / "main.hpp")

    def test_each_file_once_and_headers_in_front(self):
        text = self.expand(
            main='#include <span>\n#include "a.hpp"\n#include "b.hpp"\nint m;\n',
            a='#pragma once\n#include "b.hpp"\nint a;\n',
            b='#pragma once\n#  include <array>  // why\nint b;\n',
        )
        self.assertEqual(text.split(), "#include <array> #include <span> int b; int a; int m;".split())

    def test_what_cannot_be_made_flat(self):
        conditional = '#include "a.hpp"\n#ifdef X\n#include "b.hpp"\n#endif\n'
        for main, reason in (
            (conditional, "depends on a condition"),
            ('#include "main.hpp"\n', "itself"),
            ('#include "none.hpp"\n', "must be a file of"),
        ):
            with self.assertRaisesRegex(Refused, reason):
                self.expand(main=main, a="", b="")

    def test_comments_and_strings(self):
        for code in ('"// no comment"', r'"\"/* neither"', "'\"'", "1'000'000 + 2'0", 'R"x(// )" /* )x"'):
            self.assertEqual(without_comments(f"f({code}); // {code}\ng;"), f"f({code});  \ng;")
        self.assertEqual(without_comments("a /* b\nc */ d"), "a   d")
        self.assertEqual(without_comments("a // b \\\n still\nc"), "a  \nc")

    def test_macros_that_nothing_names(self):
        rest = "#define D\nint c = A;\n#ifdef D\n#endif\n"
        text = "#define A 1\n#define B(x) \\\n  A + x\n#define C B(2)\n" + rest
        self.assertEqual(without_unused_macros(text), "#define A 1\n" + rest)


if __name__ == "__main__":
    unittest.main()
