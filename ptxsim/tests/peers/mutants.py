"""Mutation campaigns over kernels of Triton's compiler: each mutant must be noticed, or survivors.json says why it is harmless.

    python ptxsim/tests/peers/mutants.py --ptxsim build/default/bin/ptxsim [--limit N] [--table FILE] [--list FOLDER]

A mutant that survives without a reason fails, and so does a reason whose mutant is noticed (of whole campaigns, without --limit).
Exit status: 0; 1 something failed; 2 wrong arguments.
"""

from __future__ import annotations

import argparse
import collections
import json
import pathlib
import re
import resource
import subprocess
import sys
import tempfile
import textwrap
from typing import Any, NamedTuple

import peers

# Kernels of different make: wgmma fed by TMA, persistent; scaled blocks by tcgen05, fed by cp.async; mma.sync fed by
# TMA.
CAMPAIGNS = (("persistent product by TMA", 90), ("product of NVFP4", 100), ("attention", 120))
REASONS = pathlib.Path(__file__).parent / "survivors.json"
SEEDS = 3
FATES = ("wrong result", "reported", "fault", "deadlock", "survived", "not executed", "invalid")


class Campaign(NamedTuple):
    name: str
    target: int
    executed: int
    noticed: int
    reasons: dict[str, int]  # of survivors, with how many there are
    missed: int  # of them, those that matter: holes of ptxsim, which survivors.json names
    failures: list[str]
    seconds: float  # of ptxsim, of the processor


def processor_seconds() -> float:
    """The processor time of the programs that have ended: what else runs on the machine does not count."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def reasons_of(name: str, target: int) -> list[dict[str, Any]]:
    """Each {"reason", "is_miss"?, "mutants": [{"text", "occurrence"?, "what"?}]}, mutants with the keys of ptxsim's --allow."""
    listed = json.loads(REASONS.read_text(encoding="utf-8"))
    return next((one["survivors"] for one in listed if (one["kernel"], one["target"]) == (name, target)), [])


def run_one(ptxsim: str, name: str, target: int, limit: int, listing: pathlib.Path | None) -> Campaign:
    peer = next(peer for peer in peers.all_of_them() if peer.name == name)
    reasons = reasons_of(name, target)
    # ptxsim prints the reason of a survivor: the number before it says whose it is.
    mutants = [(number, mutant) for number, of in enumerate(reasons) for mutant in of["mutants"]]
    allowed = [{**mutant, "reason": f"#{index}"} for index, (_, mutant) in enumerate(mutants)]
    with tempfile.TemporaryDirectory() as temporary:
        folder = pathlib.Path(temporary)
        case = peer.write(target, folder)
        (folder / "allowed.json").write_text(json.dumps(allowed), encoding="utf-8")
        start = processor_seconds()
        done = subprocess.run(
            [
                ptxsim,
                "mutate",
                str(folder / "kernel.ptx"),
                "--case",
                str(case),
                "--seeds",
                str(SEEDS),
                "--resident",
                "1",
                "--strict",
                "--list",
                "--limit",
                str(limit),
                "--allow",
                str(folder / "allowed.json"),
            ],
            text=True,
            capture_output=True,
            check=False,
        )
    seconds = processor_seconds() - start
    if listing:
        listing.mkdir(parents=True, exist_ok=True)
        (listing / f"{name.replace(' ', '_')}_{target}.txt").write_text(done.stdout + done.stderr, encoding="utf-8")
    fates = collections.Counter(line.split(":")[0] for line in done.stdout.splitlines() if line.split(":")[0] in FATES)
    executed = sum(fates.values()) - fates["not executed"]
    if done.returncode not in (0, 1) or executed == 0:
        return Campaign(name, target, 0, 0, {}, 0, [done.stderr.strip() or f"exit status {done.returncode}"], seconds)
    survived = [line for line in done.stdout.splitlines() if line.startswith("survived: ")]
    used = [int(found[1]) for line in survived if (found := re.search(r"\[allowed: #(\d+)\]$", line))]
    failures = [line.replace(f"{folder}/", "") for line in survived if "[allowed: #" not in line]
    failures += [f"invalid: {fates['invalid']} mutants"] * (fates["invalid"] > 0)
    if not limit:
        failures += [
            f"noticed, or not there, although survivors.json has it: {mutants[index][1]}"
            for index in range(len(mutants))
            if index not in used
        ]
    counts = collections.Counter(reasons[mutants[index][0]]["reason"] for index in used)
    missed = sum(reasons[mutants[index][0]].get("is_miss", False) for index in used)
    return Campaign(name, target, executed, executed - fates["survived"], dict(counts), missed, failures, seconds)


def table(campaigns: list[Campaign]) -> str:
    lines = [
        "| kernel | for | executed | noticed | harmless, each with its reason | missed by ptxsim, by name | survived without a reason "
        "| seconds |",
        "|---|---|---|---|---|---|---|---|",
    ]
    lines += [
        f"| {one.name} | sm_{one.target}a | {one.executed} | {one.noticed} | {sum(one.reasons.values()) - one.missed} | "
        f"{one.missed} | {one.executed - one.noticed - sum(one.reasons.values())} | {one.seconds:.0f} |"
        for one in campaigns
    ]
    for one in campaigns:
        lines += ["", f"Survivors of {one.name}, sm_{one.target}a:", ""]
        for of in reasons_of(one.name, one.target):
            texts = ", ".join(sorted({f"`{mutant['text']}`" for mutant in of["mutants"]}))
            lines += textwrap.wrap(
                f"- {one.reasons.get(of['reason'], 0)} × {texts}: {of['reason']}", 120, subsequent_indent="  "
            )
    return "\n".join(lines) + "\n"


def main() -> int:
    parser = argparse.ArgumentParser(prog="mutants", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--ptxsim", required=True, help="the command")
    parser.add_argument("--limit", type=int, default=0, help="mutants of each kernel at most, spread over the groups; 0: all")
    parser.add_argument("--table", type=pathlib.Path, help="write the kill rates and the reasons there, as Markdown")
    parser.add_argument("--list", type=pathlib.Path, help="folder for what ptxsim says about each mutant")
    options = parser.parse_args()
    campaigns = []
    for name, target in CAMPAIGNS:
        one = run_one(options.ptxsim, name, target, options.limit, options.list)
        campaigns.append(one)
        rate = 100 * one.noticed / max(one.executed, 1)
        print(
            f"{'FAILED' if one.failures else 'passed'}  mutants of {name}, sm_{target}a: {one.noticed} of {one.executed} noticed ({rate:.1f} %), "
            f"{sum(one.reasons.values()) - one.missed} harmless for a reason, {one.missed} missed ({one.seconds:.1f} s)",
            flush=True,
        )
        for failure in one.failures:
            print(f"  {failure}", flush=True)
    if options.table:
        options.table.write_text(table(campaigns), encoding="utf-8")
    return 1 if any(one.failures for one in campaigns) else 0


if __name__ == "__main__":
    sys.exit(main())
