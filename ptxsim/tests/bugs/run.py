#!/usr/bin/env python3
"""Public bugs of GPU kernels, made again: each must be found by its rule, and its repaired twin must be silent.

bugs.json names each bug, where it was reported, and the rule that finds it, or why none does. Kernels are compiled by nvcc.
Usage: run.py PTXSIM [--only PART...] [--document]
Exit status 1: a bug is missed, a twin is blamed, or the table of docs/evidence.md is another; 77: no nvcc.
--document: writes that table.
"""

import argparse
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import textwrap
from concurrent.futures import ThreadPoolExecutor

HERE = pathlib.Path(__file__).resolve().parent
PAGE = HERE.parents[1] / "docs" / "evidence.md"
BEGIN, END = "<!-- bugs:begin -->\n", "<!-- bugs:end -->"


def compiled(nvcc, file, target, repaired, folder):
    ptx = folder / f"{pathlib.Path(file).stem}{'_repaired' if repaired else ''}.ptx"
    options = ["-DREPAIRED"] if repaired else []
    subprocess.run([nvcc, f"-arch={target}", "-O3", "-lineinfo", "-ptx", *options, HERE / file, "-o", ptx], check=True)
    return ptx


def rules_of(run, severity):
    """The rules that are reported with this severity; a fault and a deadlock name theirs in the message."""
    rules = {report["rule"] for report in run["reports"] if report["severity"] == severity}
    if severity == "error" and "error" in run:
        rules |= set(re.findall(r"\((R\d+)\)", run["error"]["message"]))
    return rules


def runs_of(ptxsim, ptx, case):
    command = [ptxsim, "run", ptx, "--case", case, "--schedule", "all", "--seeds", "3", "--json"]
    done = subprocess.run(command, capture_output=True, text=True)
    if not done.stdout:
        raise RuntimeError(f"{ptx.name}, {case.name}: {done.stderr.strip()}")
    return json.loads(done.stdout)


def judge(bug, ptxsim, kernels, folder):
    case = folder / f"{bug['entry']}.json"
    case.write_text(json.dumps(bug["case"]))
    wrong = []
    severity = bug.get("severity", "error")
    runs = runs_of(ptxsim, kernels[bug["file"], False], case)
    rules = set().union(*(rules_of(run, severity) for run in runs))
    if bug["rule"] and bug["rule"] not in rules:
        wrong.append(f"{bug['entry']}: reported as {severity} are {sorted(rules)}; {bug['rule']} must be")
    if not bug["rule"] and rules:
        wrong.append(f"{bug['entry']}: reported are {sorted(rules)}; found must be {bug['why']}")
    for run in runs:
        # Which of two accesses comes second, and so which rule names them, depends on the schedule.
        told = not run["passed"] or bool(rules_of(run, severity))
        if told != bug.get("found", True):
            wrong.append(f"{bug['entry']}, {run['schedule']} seed {run['seed']}: reported {told}; must be {not told}")
    for run in runs_of(ptxsim, kernels[bug["file"], True], case):
        rules = rules_of(run, "error") | rules_of(run, severity)
        if rules or not run["passed"]:
            wrong.append(
                f"{bug['entry']}, repaired, {run['schedule']}: {sorted(rules)} {run['mismatches']}; there must be none"
            )
    return wrong


def table(files, bugs):
    lines = ["| reported as | about | what is wrong | found by |", "|---|---|---|---|"]
    for bug in bugs:
        found = f"[{bug['rule']}](rules.md#{bug['rule'].lower()})" if bug["rule"] else bug["why"]
        if "severity" in bug:
            found += ", a warning" if bug["severity"] == "warning" else ", an advisory"
        lines.append(f"| {', '.join(bug['public'])} | {files[bug['file']]['about']} | {bug['what']} | {found} |")
    counts = {of["about"]: sum(bug["file"] == file for bug in bugs) for file, of in files.items()}
    missed = sum(not bug["rule"] and not bug["found"] for bug in bugs)
    text = f"{len(bugs)} bugs: {', '.join(f'{count} of {about}' for about, count in counts.items())}; {missed} missed."
    return textwrap.fill(text, 120) + "\n\n" + "\n".join(lines) + "\n"


def check_page(files, bugs, write):
    before, rest = PAGE.read_text().split(BEGIN)
    has, after = rest.split(END)
    must = "\n" + table(files, bugs) + "\n"
    if write:
        PAGE.write_text(before + BEGIN + must + END + after)
    elif has != must:
        return [f"{PAGE.name}: the table of public bugs is not that of bugs.json; --document writes it"]
    return []


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("ptxsim", type=pathlib.Path)
    parser.add_argument("--only", nargs="+")
    parser.add_argument("--document", action="store_true")
    args = parser.parse_args()
    corpus = json.loads((HERE / "bugs.json").read_text())
    files, bugs = corpus["files"], corpus["bugs"]
    wrong = check_page(files, bugs, args.document)
    nvcc = os.environ.get("DUALGEMM_NVCC") or shutil.which("nvcc") or shutil.which("/usr/local/cuda/bin/nvcc")
    if not nvcc:
        print("\n".join([*wrong, "no nvcc"]))
        return 1 if wrong else 77
    bugs = [bug for bug in bugs if not args.only or any(part in bug["entry"] for part in args.only)]
    with tempfile.TemporaryDirectory() as name, ThreadPoolExecutor(os.cpu_count()) as pool:
        folder = pathlib.Path(name)
        wanted = sorted({(bug["file"], repaired) for bug in bugs for repaired in (False, True)})
        made = pool.map(lambda key: compiled(nvcc, key[0], files[key[0]]["target"], key[1], folder), wanted)
        kernels = dict(zip(wanted, made))
        wrong += [text for texts in pool.map(lambda bug: judge(bug, args.ptxsim, kernels, folder), bugs) for text in texts]
    print("\n".join(wrong + [f"{len(bugs)} bugs and their repaired twins: {len(wrong)} wrong"]))
    return int(bool(wrong))


if __name__ == "__main__":
    sys.exit(main())
