"""Case files and seeds."""

from __future__ import annotations

from pathlib import Path

import pytest

from dualgemm.gpumode.cases import BadCases, Case, paired, parsed, read_cases, read_secret

LINE = "m: 256; n: 4096; k: 7168; l: 1; seed: 1111"


def test_a_line_and_back() -> None:
    assert parsed(LINE, "x") == Case(256, 4096, 7168, 1, 1111)
    assert parsed(LINE, "x").spec() == LINE
    assert parsed(" seed:3;k : 16;l:1 ; n:1;m:2 ", "x") == Case(2, 1, 16, 1, 3)


def test_seeds_are_paired_as_the_task_says() -> None:
    assert paired(1111, 0) == 1111 + 1111 * 1112 // 2
    assert paired(3, 4) == 3 + 7 * 8 // 2
    every = [(t, s) for t in range(40) for s in range(40)]
    assert len({paired(t, s) for t, s in every}) == len(every)


def test_a_secret_moves_the_seed_and_none_does_not() -> None:
    case = parsed(LINE, "x")
    assert case.with_secret(None) is case
    assert case.with_secret(9).seed == paired(1111, 9)


def test_inputs_of_a_benchmark_are_42_apart_and_begin_after_the_seed() -> None:
    case = parsed(LINE, "x")
    assert [case.later(i).seed for i in (1, 2, 50)] == [1153, 1195, 1111 + 2100]


@pytest.mark.parametrize(
    "line",
    [
        "m: 256; n: 4096; k: 7168; l: 1",
        LINE + "; m: 1",
        LINE + "; batch: 1",
        LINE.replace("256", "-1"),
        LINE.replace("256", "x"),
        LINE.replace("256", "0"),
        LINE.replace("7168", "7170"),
        LINE.replace("256", "1e3"),
        LINE.replace("1111", ""),
        LINE.replace("256", "2" * 30),
        "nonsense",
        LINE + ";",
        LINE.replace("256", "²"),
    ],
)
def test_bad_lines_are_refused_with_their_place(line: str, tmp_path: Path) -> None:
    file = tmp_path / "cases"
    file.write_text(f"{LINE}\n\n{line}\n")
    with pytest.raises(BadCases, match=r"cases:3: .*; must|cases:3: .*: '.*'; must|cases:3: .*must be at least 1"):
        read_cases(file)


def test_files_that_are_none(tmp_path: Path) -> None:
    for content in (b"", b"\n \n", b"\xff\xfe"):
        file = tmp_path / "cases"
        file.write_bytes(content)
        with pytest.raises(BadCases):
            read_cases(file)
    with pytest.raises(BadCases, match="No such file"):
        read_cases(tmp_path / "absent")
    with pytest.raises(BadCases):
        read_cases(tmp_path)


def test_secrets() -> None:
    assert read_secret(None) is None and read_secret("") is None and read_secret("17") == 17
    for text in ("x", "-1", "1.5", "9" * 12):
        with pytest.raises(BadCases):
            read_secret(text)
