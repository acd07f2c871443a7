#!/usr/bin/env python3
"""scripts/tune_sm90a in a tree of its own: what it chooses, keeps, refuses. Usage: tune_sm90a_test.py SCRIPT"""

import json
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

SCRIPT = pathlib.Path(sys.argv.pop(1))


def point(m, tile_m, microseconds, **other):
    return {
        "device": "a GPU",
        "sms": 132,
        "n": 4096,
        "k": 7168,
        "m": m,
        "a": "e2m1",
        "scales": "linear",
        "kernel": "wgmma",
        "tile_m": tile_m,
        "tile_n": 64,
        "k_warpgroups": 1,
        "max_ctas": 132,
        "microseconds": microseconds,
        **other,
    }


class TuneTest(unittest.TestCase):
    def setUp(self):
        self.root = pathlib.Path(tempfile.mkdtemp())
        self.addCleanup(shutil.rmtree, self.root)
        self.folder = self.root / "src/cuda/kernels/sm90a"
        self.folder.mkdir(parents=True)
        (self.root / "scripts/gpu").mkdir(parents=True)
        self.script = shutil.copy(SCRIPT, self.root / "scripts/gpu/tune_sm90a")
        self.keep([point(8, 8, 10.0)])

    def keep(self, points):
        (self.folder / "tuning_points.json").write_text(json.dumps(points))

    def run_script(self, *arguments):
        return subprocess.run([sys.executable, self.script, *map(str, arguments)], capture_output=True, text=True)

    def rows(self, *arguments):
        result = self.run_script(*arguments)
        self.assertEqual(result.returncode, 0, result.stderr)
        text = (self.folder / "tuning_table.cpp").read_text()
        return [tuple(map(int, re.findall(r"\b\d+\b(?!\.)", row)[:5])) for row in re.findall(r"^      \{(.*)\},$", text, re.M)]

    def measured(self, name, points):
        path = self.root / name
        path.write_text(json.dumps(points))
        return path

    def test_the_fastest_instance_is_taken(self):
        self.keep([point(8, 8, 10.0), point(8, 16, 9.0), point(8, 32, 11.0)])
        self.assertEqual(self.rows(), [(132, 4096, 7168, 8, 16)])

    def test_only_points_of_the_whole_gpu_in_nvfp4_count(self):
        self.keep(
            [
                point(8, 8, 10.0),
                point(8, 16, 1.0, max_ctas=64),
                point(8, 32, 1.0, a="f16"),
                point(8, 64, 1.0, scales="swizzled_128x4"),
                point(8, 128, 1.0, prepared=True),
            ]
        )
        self.assertEqual(self.rows(), [(132, 4096, 7168, 8, 8)])

    def test_points_of_prepared_weights_replace_none_of_the_others(self):
        prepared = self.measured("prepared.json", [point(8, 16, 1.0, prepared=True)])
        self.assertEqual(self.rows(prepared), [(132, 4096, 7168, 8, 8)])
        kept = json.loads((self.folder / "tuning_points.json").read_text())
        self.assertEqual([(p["tile_m"], p["prepared"]) for p in kept], [(8, False), (16, True)])

    def test_tiles_never_shrink_as_m_grows(self):
        # By itself m = 16 would take 64 and m = 32 then 16: together 32 costs less than either twice.
        self.keep(
            [
                point(16, 16, 20.0),
                point(16, 32, 11.0),
                point(16, 64, 10.0),
                point(32, 16, 10.0),
                point(32, 32, 11.0),
                point(32, 64, 20.0),
            ]
        )
        self.assertEqual([row[4] for row in self.rows()], [32, 32])

    def test_rows_are_ordered(self):
        self.keep([point(128, 8, 1.0), point(8, 8, 1.0), point(16, 8, 1.0, n=1024), point(16, 8, 1.0, sms=114, max_ctas=114)])
        self.assertEqual(
            self.rows(),
            [(114, 4096, 7168, 16, 8), (132, 1024, 7168, 16, 8), (132, 4096, 7168, 8, 8), (132, 4096, 7168, 128, 8)],
        )

    def test_new_points_replace_those_of_their_shape(self):
        self.keep([point(8, 8, 10.0), point(64, 8, 10.0), point(8, 8, 10.0, n=1024)])
        rows = self.rows(self.measured("points.json", [point(8, 16, 12.0)]))
        self.assertEqual(rows, [(132, 1024, 7168, 8, 8), (132, 4096, 7168, 8, 16)])
        self.assertEqual(self.rows(), rows)  # kept
        self.assertEqual(self.rows(self.measured("f16.json", [point(8, 64, 1.0, a="f16")])), rows)

    def test_other_families_do_not_count(self):
        self.keep([point(8, 8, 10.0), point(8, 16, 1.0, kernel="skinny")])
        self.assertEqual(self.rows(), [(132, 4096, 7168, 8, 8)])

    def test_check_notices_a_table_that_is_not_the_points(self):
        self.rows()
        self.assertEqual(self.run_script("--check").returncode, 0)
        self.keep([point(8, 16, 10.0)])
        result = self.run_script("--check")
        self.assertEqual(result.returncode, 1)
        self.assertIn("run scripts/tune_sm90a", result.stderr)

    def test_wrong_input_is_refused_and_nothing_written(self):
        self.rows()
        before = (self.folder / "tuning_table.cpp").read_text()
        lacking = point(8, 8, 1.0)
        del lacking["k_warpgroups"]
        for points, message in [
            ([point(8, 8, 1.0, share_of_bound=1.5)], "a wrong result"),
            ([lacking], "without k_warpgroups"),
            ([point(8, 8, 0.0)], "not above 0"),
        ]:
            result = self.run_script(self.measured("bad.json", points))
            self.assertEqual(result.returncode, 1)
            self.assertIn(message, result.stderr)
        self.assertEqual(self.run_script(self.root / "missing.json").returncode, 1)
        self.assertEqual(self.run_script("--no-such-option").returncode, 1)
        self.assertEqual((self.folder / "tuning_table.cpp").read_text(), before)


unittest.main()
