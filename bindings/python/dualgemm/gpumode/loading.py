"""A submission's file, loaded as the leaderboard loads it: its custom_kernel."""

from __future__ import annotations

import sys
from collections.abc import Callable
from importlib import util
from pathlib import Path
from types import ModuleType
from typing import Any

from .faults import Fault

Kernel = Callable[[Any], Any]


def task_module() -> ModuleType:
    from .submissions import task

    return task


def load(file: Path) -> Kernel:
    """custom_kernel of a file; beside it stands our task.py, whatever lies in its folder."""
    sys.modules["task"] = task_module()
    sys.path.insert(0, str(file.parent))
    # A name of its own, so that no module of Python or torch is hidden by it.
    name = f"submission_{file.stem}"
    spec = util.spec_from_file_location(name, file)
    if spec is None or spec.loader is None:
        raise Fault(f"{file.name}: not a Python file; must end in .py")
    module = util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    kernel = getattr(module, "custom_kernel", None)
    if not callable(kernel):
        what = "no custom_kernel" if kernel is None else f"custom_kernel is a {type(kernel).__name__}"
        raise Fault(f"{file.name}: {what}; must define custom_kernel(data)")
    return kernel
