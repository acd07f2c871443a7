"""Case files and seeds: one case a line, `m: 256; n: 4096; k: 7168; l: 1; seed: 1111`."""

from __future__ import annotations

from dataclasses import asdict, dataclass, replace
from pathlib import Path

NAMES = ("m", "n", "k", "l", "seed")
SEED_STEP = 42  # between the inputs of a benchmark, and before the first


class BadCases(Exception):
    """A case file, or a secret seed, that cannot be used: 'what: observed; rule'."""


@dataclass(frozen=True)
class Case:
    """Extents in elements; A is [m, k], Gate and Up are [n, k], l of each."""

    m: int
    n: int
    k: int
    l: int
    seed: int

    def spec(self) -> str:
        return "; ".join(f"{name}: {value}" for name, value in asdict(self).items())

    def shape(self) -> str:
        return f"{self.m} x {self.n} x {self.k}" + (f" x {self.l}" if self.l != 1 else "")

    def with_secret(self, secret: int | None) -> Case:
        return self if secret is None else replace(self, seed=paired(self.seed, secret))

    def later(self, inputs: int) -> Case:
        """The case of input number `inputs`, from 1 on."""
        return replace(self, seed=self.seed + SEED_STEP * inputs)


def paired(seed: int, secret: int) -> int:
    """The Cantor pairing: no two pairs of a case's seed and a secret one give the same."""
    return seed + (seed + secret) * (seed + secret + 1) // 2


def parsed(line: str, where: str) -> Case:
    values: dict[str, int] = {}
    for part in line.split(";"):
        name, colon, value = (piece.strip() for piece in part.partition(":"))
        if not colon or name not in NAMES or name in values:
            raise BadCases(f"{where}: '{part.strip()}'; must be one each of {', '.join(f'{n}: number' for n in NAMES)}")
        if not (value.isascii() and value.isdigit() and len(value) <= 18):
            raise BadCases(f"{where}: {name}: '{value}'; must be a number of at most 18 digits")
        values[name] = int(value)
    missing = [name for name in NAMES if name not in values]
    if missing:
        raise BadCases(f"{where}: no {', '.join(missing)}; must have {', '.join(NAMES)}")
    case = Case(**values)
    if min(case.m, case.n, case.k, case.l) < 1 or case.k % 16:
        raise BadCases(f"{where}: {case.spec()}; m, n, k, l must be at least 1 and k a multiple of 16")
    return case


def read_cases(path: Path) -> list[Case]:
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise BadCases(f"{path}: {getattr(error, 'strerror', None) or 'not UTF-8'}; must be a file of cases") from error
    cases = [parsed(line, f"{path}:{number}") for number, line in enumerate(lines, 1) if line.strip()]
    if not cases:
        raise BadCases(f"{path}: empty; must have a case")
    return cases


def read_secret(text: str | None) -> int | None:
    """POPCORN_SEED; None or nothing: there is none."""
    if not text:
        return None
    if not (text.isascii() and text.isdigit() and len(text) <= 9):
        raise BadCases(f"POPCORN_SEED: '{text}'; must be a number of at most 9 digits")
    return int(text)
