#!/usr/bin/env python3
"""scripts/write_sm100a_groups_case: the cases that it writes fit the kernel, whose time `ptxsim time` bounds by memory.
Usage: write_sm100a_groups_case_test.py ROOT PTXSIM PTX_FOLDER"""

import json
import pathlib
import subprocess
import sys
import tempfile
import unittest

ROOT, PTXSIM, PTX = pathlib.Path(sys.argv[1]), sys.argv[2], pathlib.Path(sys.argv[3])
SCRIPT = ROOT / "scripts/write_sm100a_groups_case"


def timed(*arguments):
    with tempfile.NamedTemporaryFile(suffix=".json") as case:
        subprocess.run([SCRIPT, *arguments, "--out", case.name], check=True)
        module = "w4a16" if "--a-type" in arguments else "pair" if "256" in arguments[4:] else "skinny"
        kernel = PTX / f"dual_gemm_sm100a_{module}_groups.ptx"
        run = subprocess.run(
            [PTXSIM, "time", kernel, "--case", case.name, "--sass", "off", "--draws", "5", "--json"],
            check=True,
            stdout=subprocess.PIPE,
        )
    return json.loads(run.stdout)["launches"][0]


class WriteSm100aGroupsCase(unittest.TestCase):
    def test_twice_the_experts_read_twice_the_weights(self):
        # 37.7 MB of weights take 6.3 us at 6 TB/s.
        once, twice = (timed("4", "1024", "2048", experts)["us"] for experts in ("16", "32"))
        self.assertGreater(once, 6.3)
        self.assertGreater(twice, once + 5.5)

    def test_prepared_weights_are_as_many_bytes(self):
        shape = ("4", "1024", "2048", "16")
        self.assertAlmostEqual(timed(*shape, "--prepared")["us"], timed(*shape)["us"], delta=0.5)

    def test_every_tile(self):
        for rows in ("16", "32", "64", "128", "256"):
            self.assertEqual(timed("20", "128", "256", "3", "--tile-m", rows)["waves"], 1)

    def test_pairs_take_many_rows_sooner(self):
        # 2 * 2 * 4096 * 2048 * 2048 products take 8.9 us of 148 SMs.
        shape = ("512", "2048", "2048", "8")
        pairs = timed(*shape, "--tile-m", "256")["us"]
        self.assertGreater(pairs, 8.9)
        self.assertAlmostEqual(timed(*shape, "--tile-m", "256", "--prepared")["us"], pairs, delta=0.5)
        self.assertLess(pairs, timed(*shape, "--tile-m", "128")["us"])

    def test_16_bit_rows(self):
        shape = ("4", "1024", "2048", "16")
        for a_type, more in (("f16", ()), ("bf16", ("--tile-m", "64")), ("f16", ("--prepared",))):
            self.assertGreater(timed(*shape, "--a-type", a_type, *more)["us"], 6.3)

    def test_what_the_kernel_does_not_take_is_refused(self):
        run = subprocess.run(
            [SCRIPT, "1", "64", "64", "2", "--a-type", "f16", "--tile-m", "16"], capture_output=True, text=True
        )
        self.assertEqual(run.returncode, 1)
        self.assertIn("--tile-m 16: must be one of 32, 64", run.stderr)

        run = subprocess.run([SCRIPT, "1", "64", "100", "2"], capture_output=True, text=True)
        self.assertEqual(run.returncode, 1)
        self.assertIn("K a multiple of 64", run.stderr)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
