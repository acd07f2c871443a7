"""The protocol of the challenge's servers: `python -m dualgemm.gpumode.eval MODE CASES`, submission.py in this folder.

POPCORN_FD: the descriptor of the verdict's lines. POPCORN_SEED: a secret seed, or nothing. Exit status: 0; 111 without a
descriptor; 112 where a check failed; 113 for a case file, mode or seed that cannot be used.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from pathlib import Path

from .cases import BadCases, read_cases, read_secret
from .modes import MODES, run_mode
from .process import Submission
from .timing import BENCHMARK, LEADERBOARD
from .verdicts import Verdicts

NO_DESCRIPTOR, WRONG, UNUSABLE = 111, 112, 113
LIMIT_SECONDS = 180.0  # the server's, for a mode


def refused(message: object, status: int) -> int:
    print(f"gpumode: {message}", file=sys.stderr)
    return status


def main(arguments: Sequence[str]) -> int:
    try:
        # Not handed on: a process that a submission leaves behind must not hold it open, or write to it.
        descriptor = int(os.environ.get("POPCORN_FD", ""))
        os.set_inheritable(descriptor, False)
        out = os.fdopen(descriptor, "w", encoding="utf-8")
    except (ValueError, OSError):
        return refused("POPCORN_FD: no open descriptor; must be the number of one", NO_DESCRIPTOR)
    with out:
        if len(arguments) != 2 or arguments[0] not in MODES:
            return refused(f"{' '.join(arguments) or 'nothing'}; must be {'|'.join(MODES)} and a file of cases", UNUSABLE)
        mode = arguments[0]
        try:
            secret = read_secret(os.environ.get("POPCORN_SEED"))
            cases = [case.with_secret(secret) for case in read_cases(Path(arguments[1]))]
        except BadCases as error:
            return refused(error, UNUSABLE)
        os.environ.pop("POPCORN_SEED", None)  # the submission's process must not know it
        rules = LEADERBOARD if mode == "leaderboard" else BENCHMARK
        with Submission(Path("submission.py"), None, LIMIT_SECONDS) as submission:
            is_right = run_mode(mode, cases, rules, submission, Verdicts(out, sys.stdout)) is not None
    return 0 if is_right else WRONG


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
