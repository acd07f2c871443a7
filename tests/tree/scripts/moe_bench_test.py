#!/usr/bin/env python3
"""What bench/peers/moe_bench.py does without a GPU: arguments, routing, rotation, and its face of the C interface.

moe_bench_test.py <root of the tree> [libdualgemm.so]      without the library its part is left out
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
import moe_routing as routing


def bench(*arguments):
    return subprocess.run([sys.executable, "-B", PEERS / "moe_bench.py", *arguments], text=True, capture_output=True)


class Arguments(unittest.TestCase):
    def test_lists_its_points(self):
        done = bench("--list", "--models", "mixtral_8x7b", "--tokens", "1,64", "--skewed", "mixtral_8x7b:8")
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        lines = done.stdout.splitlines()
        self.assertEqual(len(lines), 3 + len(routing.GROUPS))
        self.assertIn("mixtral_8x7b 14336x4096, 1 tokens: 2 rows, 2 of 8 experts, at most 1 rows, 132.1 MB of weights", lines)
        self.assertTrue(lines[2].startswith("mixtral_8x7b 14336x4096, 8 tokens skewed: 16 rows"), lines[2])
        self.assertIn("2 groups 4096x1536: 512 rows: 128, 384", lines)
        done = bench("--list", "--tokens", "1,2", "--skewed", "", "--no-groups")
        self.assertEqual(len(done.stdout.splitlines()), 2 * len(routing.MODELS))

    def test_refuses(self):
        for part, words in (
            ("--models: mixtral; must be of", "--models mixtral"),
            ("--tokens: 0; must be 1 to", "--tokens 1,0"),
            ("--tokens: nothing; must be", "--tokens 1,"),
            ("--tokens: 70000; must be", "--tokens 70000"),
            ("--skewed: x; must be of", "--skewed x:1"),
            ("--skewed: nothing; must be", "--skewed mixtral_8x7b"),
            ("--rounds: 0; must be", "--rounds 0"),
            ("--unknown", "--unknown"),
        ):
            done = bench(*words.split())
            self.assertEqual(done.returncode, 2, words)
            self.assertIn(part, done.stderr)

    def test_needs_torch_a_gpu_and_the_library(self):
        done = subprocess.run(
            [sys.executable, "-B", PEERS / "moe_bench.py", "--library", "/absent.so"],
            text=True,
            capture_output=True,
            env={"CUDA_VISIBLE_DEVICES": "-1"},
        )
        self.assertEqual((done.returncode, done.stdout, len(done.stderr.splitlines())), (2, "", 1), done.stderr)
        self.assertTrue(done.stderr.startswith("moe_bench: "))


class Routing(unittest.TestCase):
    def test_seeded(self):
        for model in routing.MODELS.values():
            for skewed in (False, True):
                rows = routing.route(model, 64, 1, skewed)
                self.assertEqual(rows, routing.route(model, 64, 1, skewed))
                self.assertNotEqual(rows, routing.route(model, 64, 2, skewed))
                self.assertEqual(len(rows), model.local)
                if model.local == model.experts:
                    self.assertEqual(sum(rows), 64 * model.top_k)
                self.assertLessEqual(max(rows), 64)  # an expert once for a token

    def test_local_experts_have_their_share_and_at_least_a_row(self):
        model = routing.MODELS["deepseek_v3"]
        self.assertAlmostEqual(sum(routing.route(model, 4096, 1)) / 4096, 1.0, delta=0.05)
        for seed in range(20):
            self.assertGreater(sum(routing.route(model, 1, seed)), 0)

    def test_skewed_is_unequal(self):
        model = routing.MODELS["qwen3_30b_a3b"]
        self.assertGreater(max(routing.route(model, 4096, 1, True)), 8 * max(routing.route(model, 4096, 1)) // 2)

    def test_rotation_takes_experts_that_were_not_touched(self):
        rows = [0, 3, 0, 1, 0, 2, 0, 0]
        calls = routing.rotate(rows, 2, 4, 1)
        self.assertEqual([number for number, _ in calls], [0, 1, 0, 1])
        touched = set()
        for number, of_experts in calls:
            self.assertEqual([count for count in of_experts if count], [3, 1, 2])
            labels = {(number, e) for e, count in enumerate(of_experts) if count}
            self.assertFalse(labels & touched)
            touched |= labels
        self.assertEqual(routing.rotate([5, 6], 3, 3, 1), [(0, [5, 6]), (1, [5, 6]), (2, [5, 6])])

    def test_tokens_of_rows(self):
        model = routing.MODELS["qwen3_30b_a3b"]
        for skewed in (False, True):
            rows = routing.route(model, 64, 1, skewed)
            tokens = routing.tokens_of_rows(rows, 64, 1)
            self.assertEqual(sorted(tokens), sorted(list(range(64)) * model.top_k))
            self.assertNotEqual(tokens, routing.tokens_of_rows(rows, 64, 2))
            offsets = routing.offsets(rows)
            for begin, end in zip(offsets, offsets[1:]):
                of_expert = tokens[begin:end]
                self.assertEqual(of_expert, sorted(set(of_expert)))

    def test_offsets(self):
        self.assertEqual(routing.offsets([0, 3, 0, 2]), [0, 0, 3, 3, 5])


@unittest.skipUnless(LIBRARY, "no library")
class Face(unittest.TestCase):
    def test_two_experts_on_the_cpu(self):
        self.run_two_experts([1, 1, 1])

    def test_rows_by_index(self):
        self.run_two_experts([4, 1], [1, 1, 1])

    def run_two_experts(self, factors, index=None):
        """A's rows of ones times these factors; those that the products have are ones."""
        library = c.Library(LIBRARY)
        problem = library.problem(3, 16, 16, 2, c.E2M1, c.F32)
        problem.a_rows = len(factors) if index else 0
        plan = c.Plan(library, problem, device=c.CPU)
        self.assertTrue(plan.config().startswith("cpu_"))

        def array(kind, values):
            return (kind * len(values))(*values)

        ones = array(ctypes.c_uint8, [0x22] * 256)  # rows of 16 ones
        a_scales = array(ctypes.c_uint8, [{1: 0x38, 4: 0x48}[factor] for factor in factors])
        scales = array(ctypes.c_uint8, [0x38] * 16 + [0x40] * 16)  # 1; 2
        alphas = array(ctypes.c_float, [0.5, 0.125])
        offsets = array(ctypes.c_int32, [0, 1, 3])
        rows = array(ctypes.c_int32, index or [0])
        d = array(ctypes.c_float, [float("nan")] * 48)
        workspace = array(ctypes.c_uint8, [0] * (plan.workspace_bytes + 64))
        at = ctypes.addressof
        buffers = library.buffers(
            a=at(ones),
            a_scales=at(a_scales),
            gate=at(ones),
            gate_scales=at(scales),
            up=at(ones),
            up_scales=at(scales),
            alpha_gate_per_batch=at(alphas),
            alpha_up_per_batch=at(alphas),
            expert_offsets=at(offsets),
            a_row_index=at(rows) if index else 0,
            d=at(d),
        )
        plan.run(buffers, -(-at(workspace) // 64) * 64)
        for row, expected in enumerate((63.97853, 15.71221, 15.71221)):  # silu(x) x of 8; of 4
            for value in d[16 * row : 16 * row + 16]:
                self.assertAlmostEqual(value, expected, places=4)

    def test_says_why(self):
        library = c.Library(LIBRARY)
        with self.assertRaisesRegex(c.Failed, "^k: 17; must be"):
            c.Plan(library, library.problem(1, 16, 17, None, c.E2M1, c.F16), device=c.CPU)
        with self.assertRaisesRegex(c.Failed, "config"):
            c.Plan(library, library.problem(1, 16, 16, None, c.E2M1, c.F16), device=c.CPU, config="kernel")


unittest.main(argv=sys.argv[:1])
