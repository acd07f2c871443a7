"""What the judge of strangers' programs makes of exit statuses, texts and findings, and the lists of what is to be known."""

import pathlib
import tempfile
import unittest

import build
import judge
import programs
import table

ENTRY = {"name": "p", "for": "sm_90", "says": "all is well", "ends": "right"}
FAMILY = {"family": "f", "repository": "somebody/f"}
RACE = {"severity": "error", "rule": "R17", "text": "k.ptx:7: error: two stores"}
REFUSED = {"severity": "error", "rule": "call", "text": "error: cudaNothing: not modelled"}


def ends(status, text, findings, **fields):
    return judge.judged(programs.program({**ENTRY, **fields}, FAMILY), status, text, findings, 1.0).ends


class Judge(unittest.TestCase):
    def test_results(self):
        self.assertEqual(ends(0, "all is well\n", []), "right")
        self.assertEqual(ends(0, "all is lost\n", []), "wrong")
        self.assertEqual(ends(1, "all is well\n", []), "wrong")
        self.assertEqual(ends(0, "", [], says=""), "0")
        self.assertEqual(ends(2, "", [], ends="waived", why="two GPUs"), "waived")
        self.assertEqual(ends(2, "", []), "wrong")

    def test_places_of_flags(self):
        program = programs.program(
            {**ENTRY, "flags": ["-I", "FILES", "-ICHECKOUT/x", "TESTS/sources"], "files": "w.py"}, FAMILY
        )
        flags = build.flags_of(program, pathlib.Path("/c"), pathlib.Path("/b/p"))
        self.assertEqual(flags, ["-I", "/b/p.files", "-I/c/x", str(programs.HERE / "sources")])

    def test_sizes_are_one_line_of_the_table(self):
        program = programs.program({**ENTRY, "sizes": {"n = 9;": "#include \"n.h\"\n    n = 1;"}}, FAMILY)
        self.assertEqual(program.sizes_of_ours, 'sizes of ours: `#include "n.h" n = 1;`')

    def test_findings(self):
        self.assertEqual(ends(0, "all is well", [RACE]), "finding")
        self.assertEqual(ends(0, "all is well", [{**RACE, "severity": "warning"}]), "right")
        self.assertEqual(ends(1, "", [REFUSED]), "limit")
        self.assertEqual(ends(judge.OUT_OF_TIME, "", [{**RACE, "rule": "run"}]), "time")
        self.assertEqual(ends(judge.OUT_OF_TIME, "", [RACE]), "finding")

    def test_lists(self):
        with self.assertRaisesRegex(ValueError, "needs a"):
            programs.program({**ENTRY, "ends": "limit"}, FAMILY)
        with self.assertRaisesRegex(ValueError, "nonsense"):
            programs.program({**ENTRY, "nonsense": 1}, FAMILY)
        for family in programs.families():
            self.assertGreater(len(family.programs), 0)

    def test_runs(self):
        right, late = judge.Outcome("right", "", 1.0, ["R10 (warning)"]), judge.Outcome("time", "late", 2.0, [])
        both = judge.together([right, late, right])
        self.assertEqual((both.ends, both.seconds, both.findings), ("time", 4.0, ["R10 (warning)"]))
        self.assertEqual(judge.together([right, right]).ends, "right")

    def test_samples(self):
        def sampled(status, findings):
            return judge.sampled(status, {"findings": findings}, 1.0).ends

        self.assertEqual(sampled(1, []), "sampled")  # its results are wrong, and it says so
        self.assertEqual(sampled(1, [RACE]), "finding")
        self.assertEqual(sampled(1, [REFUSED]), "limit")
        self.assertEqual(sampled(judge.OUT_OF_TIME, []), "time")

    def test_unwritten_bytes_of_cublas(self):
        unwritten = {**REFUSED, "text": "error: cublasSgemm_v2: byte 4 of allocation 5 was never written"}
        self.assertEqual(ends(1, "", [unwritten]), "finding")

    def test_sizes(self):
        with tempfile.TemporaryDirectory() as name:
            folder = pathlib.Path(name)
            (folder / "a.cu").write_text('#include "a.h"\nint n = 4096;')
            (folder / "a.h").write_text("#define M 4096")
            sizes = {"n = 4096;": "n = 64;", "M 4096": "M 32"}
            copies, wrong = build.resized(programs.program({**ENTRY, "sizes": sizes}, FAMILY), [folder / "a.cu"], folder / "b")
            self.assertEqual((wrong, copies[0].read_text()), ("", '#include "a.h"\nint n = 64;'))
            self.assertEqual((folder / "b" / "a.h").read_text(), "#define M 32")
            absent = programs.program({**ENTRY, "sizes": {"k = 1;": "k = 2;"}}, FAMILY)
            self.assertIn("'k = 1;'", build.resized(absent, [folder / "a.cu"], folder / "b")[1])

    def test_page(self):
        """The page has what the lists have."""
        page = pathlib.Path(__file__).resolve().parents[2] / "docs" / "strangers.md"
        text = page.read_text(encoding="utf-8")
        found = table.cells(text)
        results = []
        for family in programs.families():
            for program in family.programs:
                row = found[family.name, program.name, program.target]
                results.append(programs.WORDS[program.ends])
                self.assertEqual((row[2], row[5]), (results[-1], table.reason(program)), program.name)
        self.assertIn(f"\n{table.summary(results)}\n", text)

    def test_table(self):
        family = programs.Family("f", "somebody/f", "0123456789abcdef", [programs.program(ENTRY, FAMILY)])
        row = table.Row(family.programs[0], judge.Outcome("finding", "k.ptx:7", 2.0, ["R17 (error)"]), None, None, None)
        self.assertFalse(row.as_listed)
        with tempfile.TemporaryDirectory() as folder:
            page = pathlib.Path(folder) / "page.md"
            page.write_text(f"before {table.BEGIN} old {table.END} after")
            table.write(page, [family], [row])
            text = page.read_text()
        self.assertIn("| p | sm_90 | finding | ", text)
        self.assertIn("1 programs: finding 1.", text)
        self.assertNotIn("old", text)
        self.assertTrue(text.startswith("before ") and text.endswith(" after"))


if __name__ == "__main__":
    unittest.main()
