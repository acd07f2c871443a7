#!/usr/bin/env python3
"""scripts/rtx50_day with programs that only say what they were told: nothing that was measured is lost, whatever fails behind
it; the clock's parameters are found again that the times were made with; a card of the family that is no RTX 5090 has no aims.

Usage: rtx50_day_test.py <root of the tree>
"""

import json
import pathlib
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(sys.argv.pop(1)).resolve()
RTX5090 = {"name": "NVIDIA GeForce RTX 5090", "isas": ["sm120a", "sm80"], "num_sms": 170, "l2_bytes": 96 << 20}
RTX5060 = {"name": "NVIDIA GeForce RTX 5060", "isas": ["sm120a", "sm80"], "num_sms": 30, "l2_bytes": 32 << 20}
# What the times are made of: TB/s of memory, and the share of its rate that mma.sync reaches.
HBM, PART, GAP = 1.5, 0.8, 0.9
PREAMBLE = f"""
function us(hbm, part) {{
  read_us = 2 * n * k * 0.5625 / hbm / 1e6
  mma_us = 2 * m * n * k / (170 * 2048 * 2870 * part)
  return (read_us > mma_us ? read_us : mma_us) + {GAP}
}}"""
DUALGEMM = r"""#!/bin/bash
isa=sm120a
while [[ $# -gt 0 ]]; do
  case $1 in
    info | plan | verify | bench) command=$1 ;;
    -m) m=$2 ;; -n) n=$2 ;; -k) k=$2 ;;
    --isa) isa=$2 ;;
    --json) [[ ${2:-} == /* ]] && file=$2 ;;
  esac
  shift
done
case $command in
  info) echo '{"gpu": GPU, "build": {"revision": "abc"}}' ;;
  plan) echo '{"strategy": "fused", "kernel": "k", "config": "k_t64"}' ;;
  verify) echo '{"cases": [{"results": [{"status": "ok"}]}], "status": "ok"}' ;;
  bench)
    [[ $m-$n == "${BAD:-}" ]] && { echo "launch: out of memory" >&2; exit 3; }
    awk -v m="$m" -v n="$n" -v k="$k" -v isa="$isa" 'PREAMBLE
      BEGIN {
        printf "{\"shapes\": [{\"results\": ["
        printf "{\"prepared\": true, \"median_ms\": %.9f, \"config\": \"%s_prepared\"},", 0.9 * us(HBM, PART) / 1e3, isa
        printf "{\"prepared\": false, \"median_ms\": %.9f, \"config\": \"%s\"}]}]}", us(HBM, PART) / 1e3, isa
      }' >"$file" ;;
esac
"""
PROBES = {
    "clocks": {"SM clock, all SMs multiply": {"value": 2.8, "unit": "GHz"}},
    "launch_period": {"launch period less the kernel, stream": {"value": GAP + 0.1, "unit": "us"}},
    "mma_nvf4": {"an MMA, 4 warps a scheduler": {"value": 16.0, "unit": "clk"}},
    "tensor_pipe": {"refused": "compute capability: 12.0"},
}
# The clock: of the parameters in --gpu, or other ones.
PTXSIM = (
    r"""#!/bin/bash
isa=sm120a
while [[ $# -gt 0 ]]; do
  case $1 in
    --m) m=$2 ;; --n) n=$2 ;; --k) k=$2 ;;
    --config) isa=${2#isa=} ;;
    --report) report=$2 ;;
    --gpu) gpu=$2 ;;
  esac
  shift
done
value() { # <parameter> <without a file>
  if [[ -n ${gpu:-} ]]; then sed -nE "/\"$1\"/,/value/ s/.*\"value\": ([0-9.]+).*/\1/p" "$gpu" | head -1; else echo "$2"; fi
}
awk -v m="$m" -v n="$n" -v k="$k" -v isa="$isa" -v hbm="$(value hbm_tb_per_s 1.56)" -v part="$(value mma_sync_part 0.896)" 'PREAMBLE
  BEGIN {
    all = us(hbm, part)
    what = read_us > mma_us ? "HBM" : "mma.sync"
    printf "{\"kernels\": [{\"name\": \"dual_gemm_%s_g1\", \"microseconds\": %.9f, \"low_microseconds\": %.9f,", isa, all, all / 2
    printf "\"high_microseconds\": %.9f, \"gap_microseconds\": GAP, \"power_microseconds\": 0,", 2 * all
    printf "\"critical_path\": [{\"what\": \"%s\", \"us\": %.9f}]}]}", what, all - GAP
  }' >"$report"
echo "$isa"
"""
).replace("GAP", str(GAP))


def filled(text):
    for word, value in (("PREAMBLE", PREAMBLE), ("HBM, PART", f"{HBM}, {PART}")):
        text = text.replace(word, value)
    return text


class Rtx50Day(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.programs = pathlib.Path(folder.name) / "bin"
        self.programs.mkdir()
        self.out = pathlib.Path(folder.name) / "out"
        self.plant("ptxsim", filled(PTXSIM))
        self.plant("bench_launch", "#!/bin/sh\n")
        self.plant("bench_probes", f"#!/bin/sh\necho '{json.dumps({'probes': PROBES})}' >$2\n")
        self.plant("bench_cuda", "#!/bin/sh\nwhile [ $1 != --json ]; do shift; done\necho '{\"shapes\": []}' >$2\n")
        self.plant_gpu(RTX5090)

    def plant(self, name, text):
        (self.programs / name).write_text(text)
        (self.programs / name).chmod(0o755)

    def plant_gpu(self, gpu):
        self.plant("dualgemm", filled(DUALGEMM).replace("GPU", json.dumps(gpu)))

    def day(self, status, **environment):
        command = [ROOT / "scripts/rtx50_day", "--programs", self.programs, "--out", self.out]
        done = subprocess.run(
            command, env={"PATH": "/usr/bin:/bin", **environment}, capture_output=True, text=True, check=False
        )
        self.assertEqual(done.returncode, status, done.stdout + done.stderr)
        self.assertNotIn("Traceback", done.stderr)
        self.said = done.stdout + done.stderr

    def results(self):
        report = json.loads((self.out / "rtx50.json").read_text())
        return report, (self.out / "report.md").read_text()

    def expect_all_times(self, report, text):
        self.assertEqual(len(report["times"]), 19)
        for point in report["times"]:
            self.assertGreater(point["as_they_lie"]["us"], point["prepared"]["us"])
        self.assertIn("| sm120a | (17408, 5120) | 1 | 67.7 | 61.0 | 1480 |", text)
        self.assertIn("| sm80 | (4096, 7168) | 1024 |", text)

    def test_a_whole_day(self):
        self.day(0)
        report, text = self.results()
        self.expect_all_times(report, text)
        self.assertEqual(report["left_out"], [])
        self.assertIn("# NVIDIA GeForce RTX 5090, ", text)  # the day's own sections stand in front
        self.assertIn("| 65.2 (33 to 130) | HBM | 1.04 | 67.7 | 70, met |", text)
        parameters = json.loads((self.out / "parameters.json").read_text())["parameters"]
        self.assertAlmostEqual(parameters["hbm_tb_per_s"]["value"], HBM, places=3)
        self.assertAlmostEqual(parameters["mma_sync_part"]["value"], PART, places=3)
        self.assertAlmostEqual(parameters["launch_gap_us"]["value"], GAP, places=6)
        self.assertAlmostEqual(parameters["tensor_macs_per_clk"]["value"], 512, places=6)
        self.assertEqual(parameters["hbm_tb_per_s"]["kind"], "fitted")
        self.assertIn("| `hbm_tb_per_s` | 1.56 | 1.5 | ", text)
        self.assertIn("the other shape, not fitted to: ", text)
        self.assertIn(" before, 0 % over 8 after.", text)
        self.assertIn("Not read by a probe here: `graph_gap_us`", text)

    def expect_predictions_left_out(self, why):
        report, text = self.results()
        self.expect_all_times(report, text)
        self.assertIn("- left out: the prediction of sm120a, (17408, 5120), M = 1: ", text)
        self.assertIn(why, text)
        self.assertIn("- left out: parameters by the kernel's times", text)
        self.assertEqual(len(report["left_out"]), 5)
        self.assertIn("| `sm_clock_ghz` | 2.87 | 2.8 | bench_probes |", text)
        self.assertTrue((self.out / "parameters.json").exists())

    def test_no_ptxsim(self):
        (self.programs / "ptxsim").unlink()
        self.day(1)
        self.expect_predictions_left_out("No such file or directory")

    def test_a_ptxsim_that_refuses(self):
        self.plant("ptxsim", "#!/bin/sh\necho 'no PTX of this kernel' >&2\nexit 2\n")
        self.day(1)
        self.expect_predictions_left_out("no PTX of this kernel")

    def test_a_ptxsim_whose_report_is_none(self):
        self.plant("ptxsim", "#!/bin/sh\nwhile [ $1 != --report ]; do shift; done\necho '{}' >$2\n")
        self.day(1)
        self.expect_predictions_left_out("kernels")

    def test_a_ptxsim_that_takes_no_parameters(self):
        self.plant("ptxsim", filled(PTXSIM).replace("gpu=$2", "exit 2"))
        self.day(1)
        report, text = self.results()
        self.expect_all_times(report, text)
        self.assertIn("- left out: the rest of calibrate: NotPredictedError: ", text)
        self.assertTrue(all("predicted" in point for point in report["times"]))
        parameters = json.loads((self.out / "parameters.json").read_text())["parameters"]
        self.assertEqual((parameters["sm_clock_ghz"]["value"], parameters["hbm_tb_per_s"]["kind"]), (2.8, "fitted"))
        self.assertAlmostEqual(parameters["hbm_tb_per_s"]["value"], 1.56)

    def test_a_shape_that_fails(self):
        self.day(1, BAD="1024-17408")
        report, text = self.results()
        self.assertEqual([point["m"] for point in report["times"] if "left_out" in point], [1024])
        self.assertIn("| sm120a | (17408, 5120) | 1024 |  |  | launch: out of memory |", text)
        self.assertIn("| sm120a | (17408, 5120) | 512 | 1", text)
        self.assertIn("| `hbm_tb_per_s` | 1.56 | 1.5 | ", text)

    def test_no_probes(self):
        (self.programs / "bench_probes").unlink()
        self.day(1)
        report, text = self.results()
        self.expect_all_times(report, text)
        self.assertIn("| `hbm_tb_per_s` | 1.56 | 1.5 | ", text)

    def test_another_card_of_the_family(self):
        self.plant_gpu(RTX5060)
        self.day(0)
        report, text = self.results()
        self.expect_all_times(report, text)
        self.assertTrue(all(point["aim_us"] is None and "predicted" not in point for point in report["times"]))
        self.assertIn("No aim is stated for this card (30 SMs)", text)
        self.assertNotIn("met |", text)
        parameters = json.loads((self.out / "parameters.json").read_text())
        self.assertEqual(parameters["gpu"], RTX5060["name"])
        self.assertEqual(parameters["parameters"]["num_sms"]["value"], 30)

    def test_no_such_gpu(self):
        self.plant_gpu(None)
        self.day(2)
        self.assertIn("rtx50_day: device: no GPU", self.said)
        self.plant_gpu({"name": "NVIDIA H200", "isas": ["sm90a"]})
        self.day(2)
        self.assertIn("device: NVIDIA H200; needs compute capability 12.0 or 12.1", self.said)
        self.assertFalse(self.out.exists())


if __name__ == "__main__":
    unittest.main()
