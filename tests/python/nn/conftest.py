import pathlib
import sys

import pytest

sys.path.insert(0, str(pathlib.Path(__file__).parent.parent / "torch"))  # operands
pytest.importorskip("torch", reason="torch is not installed: no test of weights and modules was run")
