import pathlib
import sys

import pytest

_PYTHON = pathlib.Path(__file__).resolve().parent.parent / "python"
sys.path[:0] = [str(_PYTHON), str(_PYTHON / "torch"), str(_PYTHON / "nn"), str(pathlib.Path(__file__).parent)]
pytest.importorskip("torch", reason="torch is not installed: no public report was tried")
