"""python -m dualgemm.gpumode {test,benchmark,leaderboard,profile} FILE, or rank."""

from __future__ import annotations

import argparse
import os
import sys
from dataclasses import replace
from pathlib import Path

from .cases import BadCases, Case, read_cases
from .eval import LIMIT_SECONDS, UNUSABLE, WRONG, refused
from .modes import MODES, run_mode
from .pages import Page
from .process import Submission
from .rank import rank
from .timing import BENCHMARK, LEADERBOARD, MIB, Rules

CPU_LIMIT_SECONDS = 10 * LIMIT_SECONDS
MOST_FILE_BYTES = 1_000_000
FORBIDDEN = "str" + "eam"


def positive(text: str) -> int:
    if not (text.isascii() and text.isdigit() and 0 < int(text) < 1 << 40):
        raise argparse.ArgumentTypeError(f"{text or 'nothing'}; must be a number of at least 1")
    return int(text)


def parser() -> argparse.ArgumentParser:
    top = argparse.ArgumentParser(
        prog="python -m dualgemm.gpumode",
        description="The GPU MODE challenge's referee. Exit status: 0; 112 a check failed; 113 a case file "
        "that cannot be used; 2 wrong arguments.",
    )
    commands = top.add_subparsers(dest="mode", required=True, metavar="{" + ",".join(MODES) + ",rank}")
    common = argparse.ArgumentParser(add_help=False)
    common.add_argument("--device", choices=("cpu", "cuda"), help="default: cuda where there is a GPU")
    common.add_argument(
        "--cases",
        type=Path,
        metavar="FILE",
        help="in place of the challenge's, one case a line: 'm: 256; n: 4096; k: 7168; l: 1; seed: 1111'",
    )
    common.add_argument(
        "--limit",
        type=positive,
        metavar="SECONDS",
        help=f"for a mode, everything included (default: the server's {LIMIT_SECONDS:g}; on a CPU {CPU_LIMIT_SECONDS:g})",
    )
    common.add_argument("--inputs", type=positive, default=BENCHMARK.inputs, help="of a benchmark (%(default)s)")
    common.add_argument("--rounds", type=positive, help="at most (200; leaderboard 1000)")
    common.add_argument(
        "--clear",
        type=positive,
        default=BENCHMARK.clear_bytes // MIB,
        metavar="MIB",
        help="written before each round (%(default)s; cut to half of a GPU's free memory, or 256 on a CPU)",
    )
    for mode, what in zip(
        MODES,
        (
            "the ten test shapes",
            "the four benchmark shapes",
            "test, benchmark, and the ranked run: more rounds, every output checked",
            "the benchmark shapes under torch.profiler",
        ),
    ):
        command = commands.add_parser(mode, parents=[common], help=what, description=what)
        command.add_argument("file", type=Path, help="defines custom_kernel(data)")
    command = commands.add_parser("rank", parents=[common], help="every strategy of python/: a table and a picture")
    command.add_argument("--svg", type=Path, metavar="FILE", help="the picture")
    return top


def cases_of(mode: str, path: Path | None) -> list[Case]:
    if path is not None:
        return read_cases(path)
    from .submissions import task

    return [Case(**values) for values in (task.TEST_CASES if mode == "test" else task.BENCHMARK_CASES)]


def rules_of(mode: str, arguments: argparse.Namespace) -> Rules:
    rules = replace(
        LEADERBOARD if mode == "leaderboard" else BENCHMARK, inputs=arguments.inputs, clear_bytes=arguments.clear * MIB
    )
    return rules if arguments.rounds is None else replace(rules, most_rounds=arguments.rounds)


def warn_of_refusal(file: Path) -> None:
    text = file.read_bytes()
    if FORBIDDEN in text.decode("utf-8", errors="replace").lower():
        print(f"gpumode: {file.name}: contains '{FORBIDDEN}'; a server refuses it for that", file=sys.stderr)
    if len(text) > MOST_FILE_BYTES:
        print(f"gpumode: {file.name}: {len(text)} bytes; a server takes at most {MOST_FILE_BYTES}", file=sys.stderr)


def judge(arguments: argparse.Namespace, device: str, limit: float) -> int:
    modes = ("test", "benchmark", "leaderboard") if arguments.mode == "leaderboard" else (arguments.mode,)
    warn_of_refusal(arguments.file)
    for mode in modes:  # a process each, as the server has it
        cases = cases_of(mode, arguments.cases)
        with Submission(arguments.file, device, limit) as submission:
            print(f"{arguments.file.name} on {submission.device_name or device}: ", end="")
            if run_mode(mode, cases, rules_of(mode, arguments), submission, Page(sys.stdout)) is None:
                return WRONG
    return 0


def main() -> int:
    arguments = parser().parse_args()
    try:
        import torch  # not for what is only a wrong argument
    except ImportError as error:
        return refused(f"torch: {error}; submissions are functions of torch tensors", 2)

    device = arguments.device or ("cuda" if torch.cuda.is_available() else "cpu")
    if device == "cuda" and not torch.cuda.is_available():
        return refused("--device: cuda; there is no GPU that torch can use", 2)
    limit = float(arguments.limit or (LIMIT_SECONDS if device == "cuda" else CPU_LIMIT_SECONDS))
    try:
        if arguments.mode == "rank":
            if arguments.svg is not None and not os.access(arguments.svg.absolute().parent, os.W_OK):
                return refused(f"--svg: {arguments.svg}; must lie in a folder that can be written", 2)
            cases = {mode: cases_of(mode, arguments.cases) for mode in ("test", "benchmark")}
            return WRONG if rank(cases, rules_of("benchmark", arguments), device, limit, arguments.svg) else 0
        if not arguments.file.is_file():
            return refused(f"{arguments.file}: no such file; must define custom_kernel(data)", 2)
        return judge(arguments, device, limit)
    except BadCases as error:
        return refused(error, UNUSABLE)
    except KeyboardInterrupt:
        return refused("interrupted", 130)
    except BrokenPipeError:  # the reader has closed the pipe
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        return 141
    except OSError as error:  # of a file that cannot be read or written
        return refused(error, 2)


if __name__ == "__main__":
    sys.exit(main())
