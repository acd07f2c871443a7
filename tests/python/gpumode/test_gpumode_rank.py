"""rank: every strategy appears, measured, skipped with its reason or failed; table, bars, picture."""

from __future__ import annotations

import xml.etree.ElementTree
from pathlib import Path

import pytest
from harness import called

from dualgemm.gpumode import STRATEGIES, rank
from dualgemm.gpumode.bars import svg_of, text_bars
from dualgemm.gpumode.cases import parsed
from dualgemm.gpumode.timing import BENCHMARK, Stats

CASE = parsed("m: 130; n: 256; k: 256; l: 1; seed: 1111", "x")


def test_all_strategies(tmp_path: Path, cases: Path) -> None:
    done = called(
        [
            "dualgemm.gpumode",
            "rank",
            "--device",
            "cpu",
            "--cases",
            str(cases),
            "--inputs",
            "2",
            "--rounds",
            "2",
            "--clear",
            "1",
            "--svg",
            "rank.svg",
        ],
        tmp_path,
    )
    assert done.status == 0, done
    rows = [line for line in done.out.splitlines() if line.startswith("| ")]
    assert len(rows) == 2 + len(STRATEGIES)
    for name, stem in STRATEGIES.items():
        assert sum(f"| {name} | `python/{stem}.py` |" in row for row in rows) == 1
    assert "skipped: Triton needs a GPU" in done.out and "FAILED" not in done.out
    assert " | 1.00 | " in rows[2], "the best comes first"
    assert done.out.count("#") > 4 and "Traceback" not in done.talk
    xml.etree.ElementTree.parse(tmp_path / "rank.svg")
    assert {path.name for path in tmp_path.iterdir()} == {"cases.txt", "rank.svg"}


def test_a_strategy_that_fails(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    wrong = tmp_path / "wrong.py"
    wrong.write_text("def custom_kernel(data):\n    return data[-1]\n")
    monkeypatch.setattr(rank, "file_of", lambda strategy: wrong)
    monkeypatch.setattr(rank, "STRATEGIES", {"baseline": "submission", "triton": "submission_triton"})
    assert rank.rank({"test": [CASE], "benchmark": [CASE]}, BENCHMARK, "cpu", 100.0, None)
    out = capsys.readouterr().out
    assert "| baseline | `python/submission.py` | FAILED: test: 130 x 256 x 256: output: 33280 of 33280" in out
    assert "nothing was measured" in out


def test_the_table_sorts_and_compares() -> None:
    slow, quick = (
        rank.Entry(name, (Stats(3, ns, 0.0, 0.0, ns, ns),)) for name, ns in (("baseline", 9000.0), ("graph", 3000.0))
    )
    rows = rank.table([slow, quick], [CASE]).splitlines()
    assert rows[2] == "| graph | `python/submission_best.py` | 3.0 | 3.0 | 1.00 | ~30 |"
    assert rows[3] == "| baseline | `python/submission.py` | 9.0 | 9.0 | 3.00 | ~38 |"


def test_bars() -> None:
    lines = text_bars([("graph", 10.0), ("baseline", 40.0)]).splitlines()
    assert lines[1].count("#") == 50 and 12 <= lines[0].count("#") <= 13
    for bars in ([], [("a <b> & c", 1.0)], [("x", 1e-3), ("y", 1e9)]):
        xml.etree.ElementTree.fromstring(svg_of(bars, "<&>"))
