"""The files of python/: beside this one where the package is installed, in the checkout's root where it is not.

They stay where a reader of the challenge looks for them, and run on a server that has no dualgemm; so the package
imports them, and not the other way round.
"""

from pathlib import Path

FOLDER = Path(__file__).parent
if not (FOLDER / "task.py").exists():
    FOLDER = Path(__file__).resolve().parents[5] / "python"
    __path__.append(str(FOLDER))
