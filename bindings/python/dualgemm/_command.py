"""The command `dualgemm` of an installed package: the program that lies in it, with the same arguments."""

from __future__ import annotations

import os
import pathlib
import sys
from typing import NoReturn

PROGRAM = pathlib.Path(__file__).parent / "bin" / "dualgemm"


def main() -> NoReturn:
    """Becomes the program: exit codes, signals and streams are its own."""
    if not PROGRAM.exists():
        sys.exit(f"dualgemm: {PROGRAM}: missing; the package was built without CLI11 (libcli11-dev)")
    try:
        if not os.access(PROGRAM, os.X_OK):  # unpacked by a program that knows no modes
            PROGRAM.chmod(PROGRAM.stat().st_mode | 0o111)
        os.execv(PROGRAM, ["dualgemm", *sys.argv[1:]])
    except OSError as error:
        sys.exit(f"dualgemm: {PROGRAM}: {error.strerror}; must be a program that this system can run")


if __name__ == "__main__":
    main()
