"""What came of the runs, as lines and as the table of docs/strangers.md."""

from __future__ import annotations

import pathlib
import re
import textwrap
from collections import Counter
from typing import NamedTuple

from judge import Outcome
from programs import WORDS, Family, Program


class Row(NamedTuple):
    program: Program
    first: Outcome
    plain: Outcome | None  # without the sanitizer
    again: Outcome | None  # with --once and more seconds
    sample: Outcome | None  # with --once and --sample, where that was not ready either

    @property
    def last(self) -> Outcome:
        return self.sample or self.again or self.first

    @property
    def as_listed(self) -> bool:
        """Without the sanitizer nothing but the findings may change."""
        plain = self.plain is None or self.plain.ends == self.first.ends or self.first.ends == "finding"
        return plain and self.last.ends == self.program.ends

    @property
    def seconds(self) -> str:
        if self.again:
            tries = [one.seconds for one in (self.first, self.again, self.sample) if one]
            return ", then ".join(f"{seconds:.0f}" for seconds in tries)
        return f"{self.first.seconds:.1f} / {self.plain.seconds:.1f}" if self.plain else ""

    @property
    def line(self) -> str:
        program = self.program
        others = f"; without the sanitizer {self.plain.ends} {self.plain.detail[:80]}" if self.plain else ""
        detail = f"{self.last.detail[:300]}{others}" if not self.as_listed else ""
        return (
            f"{program.family}/{program.name}, {program.target}: {self.last.ends} (listed: {program.ends}) {self.seconds} s "
            f"{', '.join(self.last.findings)} {detail}"
        ).rstrip()


def cells(page: str) -> dict[tuple[str, str, str], list[str]]:
    """Family, program and target of the rows in a page, and their cells."""
    found, family = {}, ""
    for line in page.splitlines():
        if line.startswith("### "):
            family = line[4:]
        if line.startswith("| "):
            row = [cell.strip() for cell in line.strip("|").split("|")]
            found[family, row[0], row[1]] = row
    return found


def reason(program: Program) -> str:
    return "; ".join(filter(None, [program.sizes_of_ours, program.why]))


def summary(results: list[str]) -> str:
    """How many programs ended in each of the ways in WORDS."""
    counts = Counter(results)
    ways = ", ".join(f"{word} {counts[word]}" for word in WORDS.values() if counts[word])
    return "\n".join(textwrap.wrap(f"{len(results)} programs: {ways}.", 120))


def markdown(families: list[Family], rows: list[Row], before: str) -> str:
    """`before`: the table that this one replaces. What did not run this time keeps its seconds and findings there, if it
    ended as it is listed today."""
    found = {(row.program.family, row.program.name, row.program.target): row for row in rows}
    earlier = cells(before)
    lines: list[str] = []
    results: list[str] = []
    for family in families:
        lines += [f"### {family.name}", "", f"`{family.repository}` at `{family.revision[:12]}`", ""]
        lines += ["| program | for | result | seconds | findings | why |", "|---|---|---|---|---|---|"]
        for program in family.programs:
            key = (family.name, program.name, program.target)
            row = found.get(key)
            line = [program.name, program.target, WORDS[row.last.ends if row else program.ends]]
            if row:
                line += [row.seconds, ", ".join(row.last.findings)]
            else:
                line += earlier[key][3:5] if earlier.get(key, [])[2:3] == line[2:] else ["", ""]
            results.append(line[2])
            line.append(reason(program))
            lines.append(f"| {' | '.join(line)} |")
        lines.append("")
    return "\n".join([summary(results), "", *lines])


BEGIN, END = "<!-- strangers:begin -->", "<!-- strangers:end -->"


def write(page: pathlib.Path, families: list[Family], rows: list[Row]) -> None:
    text = page.read_text(encoding="utf-8")
    table = f"{BEGIN}\n\n{markdown(families, rows, text)}\n{END}"
    page.write_text(re.sub(f"{BEGIN}.*{END}", lambda _: table, text, flags=re.DOTALL), encoding="utf-8")
