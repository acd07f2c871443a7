"""The engines' interface files: of the installed package, or of an unpacked wheel that a variable names. Read, not imported."""

from __future__ import annotations

import ast
import importlib.util
import os
import pathlib

import pytest


def sources(package: str) -> pathlib.Path:
    """The package's folder; skips where there is none. DUALGEMM_VLLM_SOURCE, DUALGEMM_SGLANG_SOURCE: the folder that has it."""
    named = os.environ.get(f"DUALGEMM_{package.upper()}_SOURCE")
    if named:
        return pathlib.Path(named) / package
    try:
        spec = importlib.util.find_spec(package)
    except (ImportError, ValueError):
        spec = None
    if spec is None or not spec.submodule_search_locations:
        pytest.skip(f"no {package}; unpack its wheel and set DUALGEMM_{package.upper()}_SOURCE to the folder")
    return pathlib.Path(next(iter(spec.submodule_search_locations)))


def definition(file: pathlib.Path, name: str) -> ast.AST:
    """A class, a function, or a method by "Class.method"."""
    node: ast.AST = ast.parse(file.read_text())
    for part in name.split("."):
        node = next(one for one in ast.walk(node) if getattr(one, "name", None) == part)
    return node


def parameters(file: pathlib.Path, name: str) -> list[str]:
    function = definition(file, name)
    assert isinstance(function, ast.FunctionDef)
    return [argument.arg for argument in function.args.args]
