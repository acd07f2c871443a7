#!/usr/bin/env python3
"""scripts/clock_points, clock_tables, clock_programs and calibrate_clock: the tables of ptxsim/docs/clock.md are what the
clock says and what is kept, measured points are read and divided, bad ones refused. Usage: clock_tables_test.py ROOT PTXSIM"""

import json
import pathlib
import subprocess
import sys
import tempfile
import unittest

ROOT, PTXSIM = pathlib.Path(sys.argv[1]), sys.argv[2]
DOCUMENT = ROOT / "ptxsim/docs/clock.md"
# Recorded on an H200: bench_sm90a --all --n 4096 --k 7168 --json, three points of many.
POINT = {
    "device": "NVIDIA H200",
    "sms": 132,
    "n": 4096,
    "k": 7168,
    "a": "e2m1",
    "scales": "linear",
    "max_ctas": 132,
    "kernel": "wgmma",
    "k_warpgroups": 1,
}
POINTS = [
    dict(POINT, m=128, tile_m=128, tile_n=64, microseconds=27.219428547791072),
    dict(POINT, m=512, tile_m=256, tile_n=64, microseconds=79.88571269171578),
    dict(POINT, m=1, kernel="skinny", tile_m=8, tile_n=32, k_warpgroups=0, microseconds=12.17828584568841),
]


def run(script, *arguments):
    return subprocess.run([ROOT / "scripts" / script, *map(str, arguments)], capture_output=True, text=True)


class ClockTables(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def write(self, name, value):
        (self.folder / name).write_text(json.dumps(value))
        return self.folder / name

    def test_all_tables_are_what_the_clock_says(self):
        result = run("clock_tables", "--ptxsim", PTXSIM, "--everything", "--check", DOCUMENT)
        self.assertEqual(result.returncode, 0, result.stdout + result.stderr)
        wrong = self.folder / "wrong.md"
        before, mark, table = DOCUMENT.read_text().partition("<!-- clock-tables:begin h200_campaign -->")
        self.assertIn("Median error", table)
        wrong.write_text(before + mark + table.replace("Median error", "Mean error", 1))
        result = run("clock_tables", "--ptxsim", PTXSIM, "--everything", "--check", wrong)
        self.assertEqual(result.returncode, 1, result.stderr)
        self.assertIn("the tables of h200_campaign differ", result.stdout)

    def test_a_table_that_is_not_is_noticed(self):
        text = DOCUMENT.read_text()
        self.assertIn("| GN v2, pair | S1 |", text)
        wrong = self.folder / "wrong.md"
        wrong.write_text(text.replace("| GN v2, pair | S1 |", "| GN v2, pair | S0 |"))
        result = run("clock_tables", "--ptxsim", PTXSIM, "--check", wrong)
        self.assertEqual(result.returncode, 1, result.stderr)
        self.assertEqual(run("clock_tables", "--ptxsim", PTXSIM, "--update", wrong).returncode, 0)
        self.assertEqual(wrong.read_text(), text)

    def test_a_kernel_alone_has_no_gap_and_a_call_has_all_of_its_launches(self):
        launch = {
            "clusters": 170,
            "pipeline": {"stages": 3, "stages_per_tile": 40, "stage_bytes": 28672, "unique_bytes": 100000000},
            "mma": {"sync": True},
            "consumers": {"count": 8},
            "epilogue": {},
        }
        row = {"table": "all", "case": "", "published_us": 60}
        rows = [
            dict(row, kernel="launch", measure="period", launch=launch),
            dict(row, kernel="alone", measure="kernel", launch=launch),
            dict(row, kernel="call", measure="sum", launches=[launch, launch]),
        ]
        result = run("clock_tables", "--ptxsim", PTXSIM, "--gpu", "rtx5090", "--rows", self.write("rows.json", {"rows": rows}))
        self.assertEqual(result.returncode, 0, result.stderr)
        lines = [
            [cell.strip() for cell in line.split("|")[1:-1]] for line in result.stdout.splitlines() if line.startswith("| ")
        ]
        told = {line[0]: line for line in lines}
        whole, alone, call = (float(told[name][3]) for name in ("launch", "alone", "call"))
        self.assertAlmostEqual(alone, whole - 0.8, delta=0.11)
        self.assertEqual((told["alone"][2], told["alone"][4]), ("the kernel alone, cold", ""))
        self.assertAlmostEqual(call, 2 * whole, delta=0.11)
        self.assertEqual(told["call"][6], told["call"][3])

    def test_a_later_campaign_has_the_points_of_the_document(self):
        rows = self.folder / "h200_campaign.json"
        points = ROOT / "ptxsim/src/timing/measured/h200_2026_11_23.json"
        result = run("clock_points", points, "--out", rows)
        self.assertEqual(result.stdout, "152 points, 56 of them held out\n", result.stderr)

    def test_pairs_that_campaigns_order_otherwise_do_not_count(self):
        rows = [
            {
                "table": "all",
                "measure": "operation",
                "kernel": f"{stages} stages",
                "case": "shape",
                "published_us": measured,
                "others_us": [other],
                "launch": {
                    "pipeline": {"stages": 3, "stages_per_tile": stages, "stage_bytes": 28672},
                    "mma": {},
                    "epilogue": {},
                },
            }
            for stages, measured, other in ((100, 30, 30), (200, 10, 21), (300, 20, 20))
        ]
        result = run("clock_tables", "--ptxsim", PTXSIM, "--gpu", "h200", "--rows", self.write("rows.json", {"rows": rows}))
        self.assertEqual(result.returncode, 0, result.stderr)
        told = " ".join(result.stdout.split())
        self.assertIn("median -0.50, mean -0.50; of the other campaigns with this one median 0.50, mean 0.50.", told)
        self.assertIn("the same order for 2 of the 3 pairs of instances of a shape, and the clock has it for 0 of those", told)
        self.assertIn("Kendall's correlation over them: median -1.00, mean -1.00.", told)

    def test_programs_stand_beside_their_times(self):
        self.assertEqual(run("clock_programs", "--check", DOCUMENT).returncode, 0)
        wrong = self.folder / "wrong.md"
        text = DOCUMENT.read_text()
        self.assertIn("| triton_gemm | 2048, 2048, 2048 |", text)
        wrong.write_text(text.replace("| triton_gemm | 2048, 2048, 2048 |", "| triton_gemm | 2048, 2048, 2049 |"))
        result = run("clock_programs", "--check", wrong)
        self.assertEqual(result.returncode, 1, result.stderr)
        self.assertIn("the table of first differs", result.stdout)
        self.assertEqual(run("clock_programs", "--update", wrong).returncode, 0)
        self.assertEqual(wrong.read_text(), text)

    def test_points_are_divided(self):
        rows = self.folder / "rows.json"
        result = run("clock_points", self.write("points.json", POINTS), "--out", rows)
        self.assertEqual(result.stdout, "2 points, 1 of them held out\n", result.stderr)
        by_table = {row["table"]: row for row in json.loads(rows.read_text())["rows"]}
        self.assertEqual(by_table["held out"]["case"], "128x4096x7168")
        self.assertEqual(by_table["fitted"]["published_us"], 79.89)
        # 64 tiles: two CTAs each. 128 tiles of 256 rows: a CTA each, whole.
        self.assertEqual(by_table["held out"]["launch"]["clusters"], 128)
        self.assertEqual(by_table["held out"]["launch"]["pipeline"]["stages_per_tile"], 14)
        self.assertEqual(by_table["fitted"]["launch"]["pipeline"]["stages_per_tile"], 28)
        result = run("clock_tables", "--ptxsim", PTXSIM, "--gpu", "h200", "--rows", rows)
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertIn("| t128x64 k1 | 128x4096x7168 |", result.stdout)
        self.assertIn("**Held out**", result.stdout)

    def test_points_of_other_kernels_are_refused(self):
        result = run("clock_points", self.write("points.json", POINTS[2:]), "--out", self.folder / "rows.json")
        self.assertEqual(result.returncode, 1)
        self.assertIn("no point of the wgmma kernel", result.stderr)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
