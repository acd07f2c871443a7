"""What came of the runs, as lines and as the table of docs/strangers.md."""

from __future__ import annotations

import pathlib
import re
from typing import NamedTuple

from judge import Outcome
from programs import WORDS, Family, Program


class Row(NamedTuple):
    program: Program
    first: Outcome
    plain: Outcome | None  # without the sanitizer
    again: Outcome | None  # with --once and more seconds

    @property
    def last(self) -> Outcome:
        return self.again or self.first

    @property
    def as_listed(self) -> bool:
        """Without the sanitizer nothing but the findings may change."""
        plain = self.plain is None or self.plain.ends == self.first.ends or self.first.ends == "finding"
        return plain and self.last.ends == self.program.ends

    @property
    def seconds(self) -> str:
        if self.again:
            return f"{self.first.seconds:.0f}, then {self.again.seconds:.0f}"
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


def markdown(families: list[Family], rows: list[Row]) -> str:
    found = {(row.program.family, row.program.name, row.program.target): row for row in rows}
    lines = []
    for family in families:
        lines += [f"### {family.name}", "", f"`{family.repository}` at `{family.revision[:12]}`", ""]
        lines += ["| program | for | result | seconds | findings | why |", "|---|---|---|---|---|---|"]
        for program in family.programs:
            row = found.get((family.name, program.name, program.target))
            cells = [program.name, program.target, WORDS[row.last.ends if row else program.ends]]
            cells += [row.seconds, ", ".join(row.last.findings)] if row else ["", ""]
            cells.append(program.why)
            lines.append(f"| {' | '.join(cells)} |")
        lines.append("")
    return "\n".join(lines)


BEGIN, END = "<!-- strangers:begin -->", "<!-- strangers:end -->"


def write(page: pathlib.Path, families: list[Family], rows: list[Row]) -> None:
    text = page.read_text(encoding="utf-8")
    table = f"{BEGIN}\n\n{markdown(families, rows)}\n{END}"
    page.write_text(re.sub(f"{BEGIN}.*{END}", lambda _: table, text, flags=re.DOTALL), encoding="utf-8")
