"""The lists of strangers' programs: one JSON file a family, with what each program needs, and how its run is known to end."""

from __future__ import annotations

import json
import pathlib
import zlib
from typing import Any, NamedTuple

HERE = pathlib.Path(__file__).resolve().parent
DEVICES = {"sm_90": "h100", "sm_90a": "h100", "sm_100a": "b200"}
FIELDS = frozenset(
    "name for folder sources sizes flags arguments runs kernels program files python says limit ends why".split()
)
WORDS = {
    "right": "right",
    "0": "ends with 0",
    "waived": "says that the GPU lacks what it needs",
    "finding": "finding",
    "sampled": "no finding in a sample",
    "limit": "limit of ptxsim",
    "time": "not ready in time",
    "not compiled": "not compiled",
    "wrong": "fails",
    "": "not tried yet",
}


class Program(NamedTuple):
    family: str
    checkout: str  # folder below the one that the caller names
    name: str
    target: str
    folder: str  # inside of the checkout: where it is compiled and where it runs
    sources: list[str]  # of the folder
    flags: list[str]
    arguments: list[str]
    runs: list[list[str]]  # besides; once with each of these arguments; what is not well counts
    sizes: dict[str, str]  # texts of the sources and what a copy has in their place, where main() has sizes for a GPU
    kernels: dict[str, str]  # what the program loads while it runs, a fat binary or PTX, and its source
    program: str  # of this folder, compiled in place of the stranger's own main(), which it includes
    files: str  # of this folder: a script of Python that writes what the program reads, to a folder where it then runs, FILES
    python: list[str]  # run by Python in place of a compiled program
    says: str  # a regular expression: how the program says that its result is right; none: by its exit status, or not at all
    limit: float | None  # seconds of the processor, where those of the command line are too few
    ends: str  # a key of WORDS
    why: str

    @property
    def device(self) -> str:
        return DEVICES[self.target]

    @property
    def sizes_of_ours(self) -> str:
        """What a copy of the sources has in place of the stranger's sizes, and options, as text of a table's cell."""
        # An option alone reads as one of ptxsim's.
        name = [f"./{self.name}"] if self.arguments and self.arguments[0].startswith("--") else []
        ours = " ".join(" ".join([*self.sizes.values(), *name, *self.arguments]).split())
        return f"sizes of ours: `{ours}`" if ours else ""

    @property
    def file_name(self) -> str:
        sizes = f"_{zlib.crc32(json.dumps(self.sizes).encode()):08x}" if self.sizes else ""
        return "".join(letter if letter.isalnum() else "_" for letter in f"{self.name}_{self.target}{sizes}")


class Family(NamedTuple):
    name: str
    repository: str
    revision: str
    programs: list[Program]


def program(entry: dict[str, Any], family: dict[str, Any]) -> Program:
    where = f"{family['family']}, {entry.get('name')}"
    unknown = set(entry) - FIELDS
    if unknown:
        raise ValueError(f"{where}: {sorted(unknown)}; a program has only {sorted(FIELDS)}")
    ends = entry.get("ends", "")
    if ends not in WORDS:
        raise ValueError(f"{where}: ends: {ends}; must be one of {sorted(WORDS)}")
    if ends not in ("", "right", "0") and not entry.get("why"):
        raise ValueError(f'{where}: ends: {ends}; what is not right needs a "why"')
    return Program(
        family=family["family"],
        checkout=family["repository"].rpartition("/")[2],
        name=entry["name"],
        target=entry.get("for") or family["for"],
        folder=entry.get("folder") or family.get("folder", "."),
        sources=entry.get("sources", []),
        flags=family.get("flags", []) + entry.get("flags", []),
        arguments=entry.get("arguments", []),
        runs=entry.get("runs", [[]]),
        sizes=entry.get("sizes", {}),
        kernels=entry.get("kernels", {}),
        program=entry.get("program", ""),
        files=entry.get("files", ""),
        python=entry.get("python", []),
        says=entry.get("says", family.get("says", "")),
        limit=entry.get("limit"),
        ends=ends,
        why=entry.get("why", ""),
    )


def families(folder: pathlib.Path = HERE) -> list[Family]:
    found = []
    for file in sorted(folder.glob("*.json")):
        family = json.loads(file.read_text(encoding="utf-8"))
        programs = [program(entry, family) for entry in family["programs"]]
        found.append(Family(family["family"], family["repository"], family["revision"], programs))
    return found
