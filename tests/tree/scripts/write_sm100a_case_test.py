#!/usr/bin/env python3
"""scripts/write_sm100a_case: the cases that it writes fit the Blackwell kernels, which `ptxsim time` takes on benchmark
shapes. Usage: write_sm100a_case_test.py ROOT PTXSIM PTX_FOLDER"""

import json
import pathlib
import subprocess
import sys
import tempfile
import unittest

ROOT, PTXSIM, PTX = pathlib.Path(sys.argv[1]), sys.argv[2], pathlib.Path(sys.argv[3])
SCRIPT = ROOT / "scripts/write_sm100a_case"
MODULES = {
    "tcgen05": "dual_gemm_sm100a",
    "tcgen05pair": "dual_gemm_sm100a_pair",
    "skinny": "dual_gemm_sm100a_skinny",
    "w4a16": "dual_gemm_sm100a_w4a16",
    "tcgen05persistent": "dual_gemm_sm100a_pair_persistent",
    "skinnypersistent": "dual_gemm_sm100a_skinny_groups",
    "w4a16persistent": "dual_gemm_sm100a_w4a16_groups",
}
# Their PTX has entries for unpacked and for prepared weights.
OF_BOTH = ("w4a16", "tcgen05persistent", "skinnypersistent", "w4a16persistent")


def timed(*arguments, kernel="tcgen05"):
    with tempfile.NamedTemporaryFile(suffix=".json") as case:
        subprocess.run([SCRIPT, *arguments, "--kernel", kernel, "--out", case.name], check=True)
        of_its_own = "--prepared" in arguments and kernel not in OF_BOTH
        module = PTX / f"{MODULES[kernel]}{'_prepared' if of_its_own else ''}.ptx"
        run = subprocess.run(
            [PTXSIM, "time", module, "--case", case.name, "--sass", "off", "--draws", "5", "--json"],
            check=True,
            stdout=subprocess.PIPE,
        )
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

    def test_a_pair_takes_less_than_one_cta(self):
        # The study has 12.3 and 12.9 us for kernels built so.
        shape = ("256", "4096", "7168")
        self.assertLess(timed(*shape, kernel="tcgen05pair")["us"], timed(*shape)["us"])

    def test_prepared_weights_take_less_than_unpacked_ones(self):
        shape = ("512", "3072", "7168")
        wide = timed(*shape, "--tile-n", "128", kernel="tcgen05pair")["us"]
        self.assertLess(timed(*shape, "--tile-n", "96", "--prepared", kernel="tcgen05pair")["us"], wide)

    def test_few_rows_take_less_by_the_kernel_for_them(self):
        shape = ("16", "4096", "7168")
        few = timed(*shape, kernel="skinny")
        self.assertLess(few["us"], timed(*shape)["us"])
        self.assertGreater(few["first_wave_us"], 5.5)  # 33 MB of weights
        for tile_n in ("32", "64"):
            prepared = timed(*shape, "--tile-n", tile_n, "--prepared", kernel="skinny")
            self.assertAlmostEqual(prepared["us"], few["us"], delta=0.3)

    def test_persistent_pairs_take_less_over_many_columns(self):
        shape = ("1", "28672", "1024")
        few = timed(*shape, kernel="skinny")["us"]
        for prepared in ((), ("--prepared",)):
            self.assertLess(timed(*shape, "--tile-n", "128", *prepared, kernel="tcgen05persistent")["us"], few)

    def test_persistent_ctas_take_less_over_many_columns(self):
        shape = ("1", "28672", "1024")
        for kernel in ("skinny", "w4a16"):
            few = timed(*shape, kernel=kernel)["us"]
            for prepared in ((), ("--prepared",)):
                launch = timed(*shape, *prepared, kernel=f"{kernel}persistent")
                self.assertEqual(launch["waves"], 1)
                self.assertLess(launch["us"], few)
                self.assertGreater(launch["us"], 5.5)  # 33 MB of weights

    def test_few_rows_of_16_bits(self):
        for a_type in ("f16", "bf16"):
            for prepared in ((), ("--prepared",)):
                launch = timed("16", "4096", "7168", "--a-type", a_type, "--split", "2", *prepared, kernel="w4a16")
                self.assertEqual(launch["waves"], 1)
                self.assertGreater(launch["first_wave_us"], 5.5)  # 33 MB of weights

    def test_a_tile_that_is_not_there(self):
        for arguments in (("256", "64", "64", "--kernel", "skinny"), ("256", "64", "64", "--tile-n", "48")):
            run = subprocess.run([SCRIPT, *arguments], capture_output=True, text=True)
            self.assertEqual(run.returncode, 1)
            self.assertIn("has no such tile for 256 rows", run.stderr)

    def test_what_the_kernel_does_not_take_is_refused(self):
        run = subprocess.run([SCRIPT, "256", "4096", "256", "--prepared"], capture_output=True, text=True)
        self.assertEqual(run.returncode, 1)
        self.assertIn("takes unpacked weights only", run.stderr)
        run = subprocess.run([SCRIPT, "256", "4096", "100"], capture_output=True, text=True)
        self.assertEqual(run.returncode, 1)
        self.assertIn("K a multiple of 64", run.stderr)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
