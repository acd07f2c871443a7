#!/usr/bin/env python3
"""scripts/write_sm100a_case: the case that it writes fits the Blackwell kernel, which `ptxsim time` takes on a benchmark
shape. Usage: write_sm100a_case_test.py ROOT PTXSIM PTX"""
import json
import pathlib
import subprocess
import sys
import tempfile
import unittest

ROOT, PTXSIM, PTX = pathlib.Path(sys.argv[1]), sys.argv[2], sys.argv[3]
SCRIPT = ROOT / "scripts/write_sm100a_case"


def timed(*arguments):
    with tempfile.NamedTemporaryFile(suffix=".json") as case:
        subprocess.run([SCRIPT, *arguments, "--out", case.name], check=True)
        run = subprocess.run([PTXSIM, "time", PTX, "--case", case.name, "--draws", "5", "--json"], check=True,
                             stdout=subprocess.PIPE)
    return json.loads(run.stdout)["launches"][0]


class WriteSm100aCase(unittest.TestCase):
    def test_the_kernel_is_timed_on_a_benchmark_shape(self):
        launch = timed("256", "4096", "7168", "--tile-n", "64")
        self.assertEqual(launch["waves"], 1)
        self.assertAlmostEqual(sum(share["percent"] for share in launch["critical_path"]), 100, places=6)
        roles = {wait["role"] for wait in launch["waits"]}
        self.assertLessEqual({"load", "mma", "epilogue"}, roles)
        # Memory alone takes 33 MB / 6 TB/s.
        self.assertGreater(launch["first_wave_us"], 5.5)

    def test_twice_the_k_takes_longer_but_not_twice(self):
        once, twice = (timed("256", "3072", k)["us"] for k in ("2048", "4096"))
        self.assertLess(once, twice)
        self.assertLess(twice, 2 * once)

    def test_what_the_kernel_does_not_take_is_refused(self):
        run = subprocess.run([SCRIPT, "256", "4096", "100"], capture_output=True, text=True)
        self.assertEqual(run.returncode, 1)
        self.assertIn("K a multiple of 64", run.stderr)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
