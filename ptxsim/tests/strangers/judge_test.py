"""What the judge of strangers' programs makes of exit statuses, texts and findings, and the lists of what is to be known."""

import pathlib
import tempfile
import unittest

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

    def test_table(self):
        family = programs.Family("f", "somebody/f", "0123456789abcdef", [programs.program(ENTRY, FAMILY)])
        row = table.Row(family.programs[0], judge.Outcome("finding", "k.ptx:7", 2.0, ["R17 (error)"]), None, None, None)
        self.assertFalse(row.as_listed)
        with tempfile.TemporaryDirectory() as folder:
            page = pathlib.Path(folder) / "page.md"
            page.write_text(f"before {table.BEGIN} old {table.END} after")
            table.write(page, [family], [row])
            text = page.read_text()
        self.assertIn("| p | sm_90 | finding |", text)
        self.assertNotIn("old", text)
        self.assertTrue(text.startswith("before ") and text.endswith(" after"))


if __name__ == "__main__":
    unittest.main()
