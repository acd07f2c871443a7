#!/usr/bin/env python3
"""Public bugs of GPU kernels, made again: each must be found by its rule, and its repaired twin must be silent.

bugs.json names each bug, where it was reported, and the rule that finds it. Kernels are compiled by nvcc for sm_90a.
Usage: run.py PTXSIM [--only PART...] [--table]      exit status 1: a bug is missed or a twin is blamed; 77: no nvcc
--table: prints the table of docs/evidence.md.
"""

import argparse
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor

HERE = pathlib.Path(__file__).resolve().parent


def compiled(nvcc, file, repaired, folder):
    ptx = folder / f"{pathlib.Path(file).stem}{'_repaired' if repaired else ''}.ptx"
    options = ["-DREPAIRED"] if repaired else []
    subprocess.run([nvcc, "-arch=sm_90a", "-O3", "-lineinfo", "-ptx", *options, HERE / file, "-o", ptx], check=True)
    return ptx


def findings(ptxsim, ptx, case, severity):
    """The rules that are reported with this severity, under every schedule, and what else went wrong."""
    command = [ptxsim, "run", ptx, "--case", case, "--schedule", "all", "--seeds", "3", "--json"]
    done = subprocess.run(command, capture_output=True, text=True)
    if not done.stdout:
        return set(), done.stderr.strip()
    runs = json.loads(done.stdout)
    rules = {report["rule"] for run in runs for report in run["reports"] if report["severity"] == severity}
    errors = [run["error"]["message"] for run in runs if run.get("error")]
    return rules, errors[0] if errors else ""


def judge(bug, ptxsim, kernels, folder):
    case = folder / f"{bug['entry']}.json"
    case.write_text(json.dumps(bug["case"]))
    wrong = []
    severity = bug.get("severity", "error")
    rules, error = findings(ptxsim, kernels[bug["file"], False], case, severity)
    if bug["rule"] not in rules:
        wrong.append(f"{bug['entry']}: reported as {severity} are {sorted(rules)}; {bug['rule']} must be. {error}")
    for quiet in {"error", severity}:
        rules, error = findings(ptxsim, kernels[bug["file"], True], case, quiet)
        if rules or error:
            wrong.append(f"{bug['entry']}, repaired: {quiet} {sorted(rules)} {error}; there must be none")
    return wrong


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("ptxsim", type=pathlib.Path)
    parser.add_argument("--only", nargs="+")
    parser.add_argument("--table", action="store_true")
    args = parser.parse_args()
    bugs = json.loads((HERE / "bugs.json").read_text())["bugs"]
    if args.table:
        print("| reported as | what is wrong | found by |\n|---|---|---|")
        for bug in bugs:
            link = f"[{bug['rule']}](rules.md#{bug['rule'].lower()})"
            print(f"| {', '.join(bug['public'])} | {bug['what']} | {link}{', a warning' if 'severity' in bug else ''} |")
        return 0
    nvcc = os.environ.get("DUALGEMM_NVCC") or shutil.which("nvcc") or shutil.which("/usr/local/cuda/bin/nvcc")
    if not nvcc:
        print("no nvcc")
        return 77
    bugs = [bug for bug in bugs if not args.only or any(part in bug["entry"] for part in args.only)]
    with tempfile.TemporaryDirectory() as name, ThreadPoolExecutor(os.cpu_count()) as pool:
        folder = pathlib.Path(name)
        wanted = {(bug["file"], repaired) for bug in bugs for repaired in (False, True)}
        kernels = dict(zip(wanted, pool.map(lambda key: compiled(nvcc, *key, folder), wanted)))
        wrong = [text for texts in pool.map(lambda bug: judge(bug, args.ptxsim, kernels, folder), bugs) for text in texts]
    print("\n".join(wrong + [f"{len(bugs)} bugs and their repaired twins: {len(wrong)} wrong"]))
    return int(bool(wrong))


if __name__ == "__main__":
    sys.exit(main())
