"""The package under test and the tree, and the package's commands as a user calls them."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parents[3]
sys.path.insert(0, str(ROOT))  # for the folder python/
try:
    import dualgemm
except ImportError:  # not installed: that of the tree, which has its library if it was built there
    sys.path.insert(0, str(ROOT / "bindings" / "python"))
    import dualgemm
PACKAGE = Path(dualgemm.__file__).parents[1]

SMALL = "m: 130; n: 256; k: 256; l: 1; seed: 1111\nm: 5; n: 48; k: 80; l: 2; seed: 7\n"


class Done(NamedTuple):
    status: int
    verdict: dict[str, str]  # of the protocol; empty for the command
    lines: list[str]
    out: str
    talk: str


def called(arguments: list[str], folder: Path, **more: str) -> Done:
    """A module of the package as a command."""
    environment = {**os.environ, "PYTHONPATH": str(PACKAGE), "PYTHONDONTWRITEBYTECODE": "1", **more}
    done = subprocess.run(
        [sys.executable, "-m", *arguments], cwd=folder, env=environment, text=True, capture_output=True, timeout=300
    )
    return Done(done.returncode, {}, [], done.stdout, done.stderr)
