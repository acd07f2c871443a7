"""The servers' entry: descriptor, verdict lines, seeds, exit statuses."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from harness import PACKAGE, SMALL, Done

from dualgemm.gpumode import eval
from dualgemm.gpumode.cases import paired

RIGHT = "from task import input_t, output_t, ref_kernel\n\ndef custom_kernel(data: input_t) -> output_t:\n    return ref_kernel(data)\n"
WRONG = RIGHT.replace("return ref_kernel(data)", "c = ref_kernel(data); c[0, 0, 0] += 1; return c")
SPECS = SMALL.splitlines()
Evaluated = Callable[..., Done]


def test_test_passes(evaluated: Evaluated) -> None:
    done = evaluated(RIGHT)
    assert done.status == 0
    assert done.lines == [
        "test-count: 2",
        f"test.0.spec: {SPECS[0]}",
        "test.0.status: pass",
        f"test.1.spec: {SPECS[1]}",
        "test.1.status: pass",
        "check: pass",
    ]


def test_test_fails_with_112(evaluated: Evaluated) -> None:
    done = evaluated(WRONG)
    assert done.status == 112 and done.verdict["check"] == "fail"
    for index in (0, 1):
        assert done.verdict[f"test.{index}.status"] == "fail"
        assert "1 of" in done.verdict[f"test.{index}.error"]


def test_benchmark_reports_nanoseconds(evaluated: Evaluated, cases: Path) -> None:
    cases.write_text("m: 5; n: 48; k: 80; l: 1; seed: 7\n")
    done = evaluated(RIGHT, "benchmark")
    assert done.status == 0, done.talk
    assert [line.split(": ")[0] for line in done.lines] == ["benchmark-count"] + [
        f"benchmark.0.{name}" for name in ("spec", "runs", "mean", "std", "err", "best", "worst")
    ] + ["check"]
    best, mean, worst = (float(done.verdict[f"benchmark.0.{name}"]) for name in ("best", "mean", "worst"))
    assert 1e3 < best <= mean <= worst < 1e10 and 3 <= int(done.verdict["benchmark.0.runs"]) <= 6


@pytest.mark.parametrize("mode", ["benchmark", "leaderboard", "profile"])
def test_every_mode_checks(evaluated: Evaluated, mode: str) -> None:
    done = evaluated(WRONG, mode)
    assert done.status == 112 and done.verdict["check"] == "fail"
    assert done.verdict["benchmark.0.status"] == "fail" and "benchmark.0.mean" not in done.verdict


def test_the_leaderboard_checks_every_round(evaluated: Evaluated, cases: Path) -> None:
    cases.write_text("m: 5; n: 48; k: 80; l: 1; seed: 7\n")
    lazy = (
        RIGHT.replace(
            "    return ref_kernel(data)",
            "    global calls\n    calls += 1\n    if calls > 15: return data[-1]\n"
            "    data[-1].copy_(ref_kernel(data)); return data[-1]",
        )
        + "calls = 0\n"
    )
    assert evaluated(lazy, "benchmark").status == 0, "a benchmark checks the first calls alone, as the servers do"
    done = evaluated(lazy, "leaderboard")
    assert done.status == 112 and "of a timed round" in done.verdict["benchmark.0.error"]


def test_profile_prints_a_table(evaluated: Evaluated, cases: Path) -> None:
    cases.write_text("m: 5; n: 48; k: 80; l: 1; seed: 7\n")
    done = evaluated(RIGHT, "profile")
    assert done.status == 0 and done.verdict["check"] == "pass" and "aten::" in done.out


def test_a_secret_seed_changes_the_inputs(evaluated: Evaluated) -> None:
    done = evaluated(RIGHT, POPCORN_SEED="5")
    assert done.status == 0 and done.verdict["test.0.spec"] == SPECS[0].replace("1111", str(paired(1111, 5)))
    hidden = "import os\nassert 'POPCORN_SEED' not in os.environ and 'POPCORN_FD' not in os.environ\n" + RIGHT
    assert evaluated(hidden, POPCORN_SEED="5").status == 0


def test_without_a_descriptor_111(cases: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    for descriptor in ("", "x", "977"):
        monkeypatch.setenv("POPCORN_FD", descriptor)
        assert eval.main(["test", str(cases)]) == 111
        assert "POPCORN_FD: no open descriptor; must be" in capsys.readouterr().err


def test_what_cannot_be_used_113(evaluated: Evaluated, tmp_path: Path) -> None:
    bad = tmp_path / "bad.txt"
    bad.write_text("m: 1\n")
    for done in (
        evaluated(RIGHT, "test", bad),
        evaluated(RIGHT, "test", tmp_path / "absent"),
        evaluated(RIGHT, "mode"),
        evaluated(RIGHT, POPCORN_SEED="x"),
    ):
        assert done.status == 113 and done.lines == [] and "Traceback" not in done.talk


def test_a_message_cannot_write_a_verdict(evaluated: Evaluated) -> None:
    done = evaluated(
        "def custom_kernel(data):\n    raise ValueError('x\\ncheck: pass\\r\\ntest.0.status: pass\\u2028check: pass')\n"
    )
    assert done.status == 112 and done.lines[-1] == "check: fail"
    assert [line for line in done.lines if line.startswith("check")] == ["check: fail"]


def test_one_process_stays_for_all_cases(evaluated: Evaluated) -> None:
    done = evaluated(
        "import os\nseen = []\n"
        + RIGHT.replace(
            "    return", "    seen.append(os.getpid())\n    if len(seen) == 2: raise ValueError(len(set(seen)))\n    return"
        )
    )
    assert done.verdict["test.0.status"] == "pass" and done.verdict["test.1.error"].startswith("ValueError: 1 ")


def test_as_a_server_calls_it(tmp_path: Path, cases: Path) -> None:
    """And there is no submission."""
    with open(tmp_path / "verdict", "w") as file:
        done = subprocess.run(
            [sys.executable, "-m", "dualgemm.gpumode.eval", "test", str(cases)],
            cwd=tmp_path,
            text=True,
            env={**os.environ, "PYTHONPATH": str(PACKAGE), "POPCORN_FD": str(file.fileno())},
            pass_fds=(file.fileno(),),
            capture_output=True,
            timeout=300,
        )
    assert done.returncode == 112 and "FileNotFoundError" in (tmp_path / "verdict").read_text()
    assert "Traceback" not in done.stdout + done.stderr
