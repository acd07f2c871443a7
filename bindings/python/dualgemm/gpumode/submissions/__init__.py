"""The files of python/: beside this one where the package is installed, in the checkout's root where it is not.

They stay where a reader of the challenge looks for them, and run on a server that has no dualgemm; so the package
imports them, and not the other way round.
"""
from pathlib import Path

_in_checkout = Path(__file__).resolve().parents[5] / "python"
if not (Path(__file__).parent / "task.py").exists():
    __path__.append(str(_in_checkout))

FOLDER = Path(__path__[-1])
