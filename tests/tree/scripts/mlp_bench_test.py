#!/usr/bin/env python3
"""What bench/peers/mlp_bench.py does without a GPU: arguments, points, samples, and its face of the C interface.

mlp_bench_test.py <root of the tree> [libdualgemm.so]      without the library its part is left out
"""

import ctypes
import pathlib
import subprocess
import sys
import unittest

sys.dont_write_bytecode = True  # the tree stays as it is
ROOT = pathlib.Path(sys.argv[1])
LIBRARY = sys.argv[2] if len(sys.argv) > 2 else None
PEERS = ROOT / "bench" / "peers"
sys.path.insert(0, str(PEERS))
import dualgemm_c as c
import rounds


def bench(*arguments, **options):
    return subprocess.run([sys.executable, "-B", PEERS / "mlp_bench.py", *arguments], text=True, capture_output=True, **options)


class Arguments(unittest.TestCase):
    def test_lists_its_points(self):
        done = bench("--list", "--m", "1,1024")
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        self.assertEqual(
            done.stdout.splitlines(),
            [
                "14336x4096, m 1: 99.1 MB of packed weights, 5 sets, 10 calls",
                "14336x4096, m 1024: 99.1 MB of packed weights, 5 sets, 5 calls",
                "28672x8192, m 1: 396.4 MB of packed weights, 2 sets, 8 calls",
                "28672x8192, m 1024: 396.4 MB of packed weights, 2 sets, 2 calls",
            ],
        )
        self.assertEqual(len(bench("--list", "--shapes", "1024x512").stdout.splitlines()), 7)

    def test_refuses(self):
        for part, words in (
            ("--shapes: 1024; must be INTERMEDIATExHIDDEN", "--shapes 1024"),
            ("--shapes: 1024x100; must", "--shapes 1024x100"),
            ("--shapes: nothing; must", "--shapes 64x64,"),
            ("--m: 0; must be 1 to", "--m 1,0"),
            ("--rounds: 0; must be", "--rounds 0"),
            ("--unknown", "--unknown"),
        ):
            done = bench(*words.split())
            self.assertEqual(done.returncode, 2, words)
            self.assertIn(part, done.stderr)

    def test_needs_torch_a_gpu_and_the_library(self):
        done = bench("--library", "/absent.so", env={"CUDA_VISIBLE_DEVICES": "-1"})
        self.assertEqual((done.returncode, done.stdout, len(done.stderr.splitlines())), (2, "", 1), done.stderr)
        self.assertTrue(done.stderr.startswith("mlp_bench: "))


class Points(unittest.TestCase):
    def test_calls_are_cold_and_take_all_sets(self):
        for least, size, sets in ((8, 10_000_000, 3), (2, 500_000_000, 1), (8, 99_090_432, 5)):
            calls = rounds.calls_of(least, size, sets)
            self.assertEqual(calls % sets, 0)
            self.assertGreaterEqual(calls, least)
            self.assertGreaterEqual(calls * size, rounds.COLD_BYTES)

    def test_samples_have_both_ends(self):
        self.assertEqual(rounds.sampled_rows(1), [0])
        self.assertEqual(rounds.sampled_rows(5), [0, 1, 2, 3, 4])
        rows = rounds.sampled_rows(4096)
        self.assertEqual((len(rows), rows[0], rows[-1]), (rounds.SAMPLED_ROWS, 0, 4095))


@unittest.skipUnless(LIBRARY, "no library")
class Face(unittest.TestCase):
    """16 by 16 ones, times 1, 1 and 1/2; x is ones: gate and up are 4, h 16 silu(4)."""

    def setUp(self):
        self.library = c.Library(LIBRARY)
        self.x = self.array(ctypes.c_uint16, [0x3F80] * 16)  # bf16
        self.ones = self.array(ctypes.c_uint8, [0x22] * 128)
        self.scales = self.array(ctypes.c_uint8, [0x38] * 16)  # 1
        self.y = self.array(ctypes.c_float, [float("nan")] * 16)
        self.kept = []

    @staticmethod
    def array(kind, values):
        return (kind * len(values))(*values)

    def memory(self, size):
        """A multiple of 64."""
        self.kept.append(self.array(ctypes.c_uint8, [0] * (size + 64)))
        return -(-ctypes.addressof(self.kept[-1]) // 64) * 64

    def mlp(self, quantize, prepared):
        problem = self.library.mlp_problem(1, 16, 16, c.BF16, quantize)
        problem.y.type = c.F32
        return c.Mlp(self.library, problem, device=c.CPU, prepared=prepared)

    def run_it(self, mlp, **others):
        at = ctypes.addressof
        buffers = self.library.mlp_buffers(x=at(self.x), y=at(self.y), alpha_gate=0.25, alpha_up=0.25, alpha_down=0.5, **others)
        mlp.run(buffers, self.memory(mlp.workspace_bytes))
        return list(self.y)

    def pointers(self):
        at = ctypes.addressof
        return {
            name: at(of)
            for product in ("gate", "up", "down")
            for name, of in ((product, self.ones), (f"{product}_scales", self.scales))
        }

    def test_both_kinds_on_the_cpu(self):
        for value in self.run_it(self.mlp(False, False), **self.pointers()):
            self.assertAlmostEqual(value, 8 * 15.71221, delta=8 * 2**-5)  # h is rounded to bf16
        for value in self.run_it(self.mlp(True, False), h_global_scale=1.0, **self.pointers()):
            self.assertEqual(value, 8 * 15.0)  # a scale of e4m3(15.71 / 6) = 2.5, times 6

    def test_prepared_weights(self):
        mlp = self.mlp(False, True)
        views = {}
        for product in ("gate_up", "down"):
            plan = getattr(mlp, product)
            self.assertTrue(plan.config().startswith("cpu_"))
            descriptor = plan.prepared_descriptor()
            memory = self.memory(descriptor.bytes)
            plan.prepare_into(mlp.weights(product, self.library.mlp_buffers(**self.pointers())), memory, descriptor.bytes)
            views[f"prepared_{product}"] = ctypes.pointer(c.PreparedView(descriptor, memory, descriptor.bytes))
        prepared = self.run_it(mlp, **views)
        self.assertEqual(prepared, self.run_it(self.mlp(False, False), **self.pointers()))

    def test_says_why(self):
        with self.assertRaisesRegex(c.Failed, "^hidden: 17; must be"):
            c.Mlp(self.library, self.library.mlp_problem(1, 16, 17, c.BF16, False), device=c.CPU)


unittest.main(argv=sys.argv[:1])
