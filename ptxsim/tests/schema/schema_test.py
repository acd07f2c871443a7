#!/usr/bin/env python3
"""What ptxsim prints as JSON, and the baselines that it writes, against schema/reports.json; and what is wrong is told.

Usage: schema_test.py PTXSIM [PROGRAM]     PROGRAM: of the driver's interface, run by `ptxsim exec`
"""

import copy
import json
import pathlib
import subprocess
import sys
import tempfile

from checker import Checker

HERE = pathlib.Path(__file__).resolve().parent
RULES, SCHEMA = HERE.parent / "rules", HERE.parents[1] / "schema" / "reports.json"


def printed(*command, statuses=(0,), stream="stdout"):
    done = subprocess.run([*map(str, command)], capture_output=True, text=True)
    if done.returncode not in statuses:
        raise RuntimeError(f"{command}: exit status {done.returncode}; must be one of {statuses}\n{done.stderr}")
    return json.loads(getattr(done, stream))


def outputs(ptxsim, program, folder):
    """(name, definition, value) of what the commands print, of every kind."""
    racing, right = RULES / "R16_bad.ptx", RULES / "R16_good.ptx"
    known, unexpected = folder / "known.json", folder / "racing.ptx"
    unexpected.write_text(racing.read_text().replace('"expect_reports": ["R16"]', '"strict": false'))
    everything = ["--schedule", "all", "--seeds", "2", "--json"]
    yield "clean", "run", printed(ptxsim, "run", right, *everything)
    yield "findings", "run", printed(ptxsim, "run", unexpected, *everything, "--write-baseline", known, statuses=[1])
    yield "baseline", "findings_file", json.loads(known.read_text())
    yield "suppressed", "run", printed(ptxsim, "run", unexpected, "--json", "--baseline", known)
    yield "deadlock", "run", printed(ptxsim, "run", RULES / "R13_bad.ptx", "--json")
    yield "fault", "run", printed(ptxsim, "run", HERE.parent / "insn" / "bulk_outside_buffer.ptx", "--json")
    yield "printf", "run", printed(ptxsim, "run", HERE.parent / "calls" / "printf.ptx", "--json")
    yield "tensor memory", "run", printed(ptxsim, "run", RULES / "R6_bad.ptx", "--json")
    yield "time", "time", printed(ptxsim, "time", right, "--gpu", "h100", "--json")
    yield "time by the table", "time", printed(ptxsim, "time", right, "--sass", "off", "--json")
    if program:
        yield "program", "exec", printed(ptxsim, "exec", "--time", "--json", "--", program, stream="stderr")
        refused = printed(ptxsim, "exec", "--json", "--", program, "texture", statuses=range(256), stream="stderr")
        yield "refused call", "exec", refused


def spoilt(value):
    """(what was done, the value) with one thing wrong in each."""
    first = value[0] if isinstance(value, list) else value
    for name in first:
        for change, wrong in (("missing", None), ("another type", {"x": 1})):
            other = copy.deepcopy(value)
            target = other[0] if isinstance(other, list) else other
            if wrong is None:
                del target[name]
            else:
                target[name] = wrong
            yield f"{name} {change}", other


def main():
    ptxsim, program = sys.argv[1], sys.argv[2] if len(sys.argv) > 2 else None
    schema = json.loads(SCHEMA.read_text())
    open_checker, strict_checker = Checker(schema), Checker(schema, known_names=True)
    errors, seen = [], set()
    with tempfile.TemporaryDirectory() as name:
        for what, definition, value in outputs(ptxsim, program, pathlib.Path(name)):
            rule = schema["$defs"][definition]
            errors += [f"{what}: {text}" for text in strict_checker.wrong(value, rule)]
            if definition != "findings_file":
                errors += [f"{what}, as any report: {text}" for text in open_checker.wrong(value, schema)]
            first = value[0] if isinstance(value, list) else value
            seen |= set(first) | {name for report in first.get("reports", []) for name in report}
            optional = {"error", "printed"} | ({"kernel", "source"} if definition == "findings_file" else set())
            for change, wrong in spoilt(value):
                if not open_checker.wrong(wrong, rule) and change not in {f"{name} missing" for name in optional}:
                    errors.append(f"{what}: {change}: nothing is said to be wrong; it must be")
    for name in ("error", "printed", "reports", "finding", "launches", "reason"):
        if name not in seen:
            errors.append(f"no output has '{name}'; one must, so that it is checked")
    print("\n".join(errors) or "schema: passed")
    return int(bool(errors))


if __name__ == "__main__":
    sys.exit(main())
