#!/usr/bin/env python3
"""No module of the Python package imports itself by way of others. Usage: imports_test.py <folder of the package>

Every import counts, wherever it stands: at the top, in a function, for type checkers alone, or by import_module() of a
literal. A name that a package takes from one of its modules counts for that module.
"""

import ast
import pathlib
import sys
import tempfile


def modules_of(folder):
    """Name -> file of every module; of a package, its __init__.py."""
    found = {}
    for path in sorted(folder.rglob("*.py")):
        parts = path.relative_to(folder.parent).with_suffix("").parts
        found[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path
    return found


def imported(name, path, modules):
    """The modules of the package that a file imports."""
    package = name if path.name == "__init__.py" else name.rpartition(".")[0]

    def absolute(level, relative):
        parts = package.split(".")
        return ".".join(parts[: len(parts) - level + 1] + ([relative] if relative else [])) if level else relative

    found = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            found.update(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            source = absolute(node.level, node.module)
            for alias in node.names:
                whole = f"{source}.{alias.name}"
                found.add(whole if whole in modules else source)
        elif isinstance(node, ast.Call) and ast.unparse(node.func).split(".")[-1] == "import_module" and node.args:
            argument = node.args[0]
            if isinstance(argument, ast.Constant) and isinstance(argument.value, str):
                relative = argument.value.lstrip(".")
                found.add(absolute(len(argument.value) - len(relative), relative))
    return found & set(modules)


def circles(graph):
    """The groups of modules that reach each other, and modules that import themselves (Tarjan)."""
    order, low, stack, found = {}, {}, [], []

    def visit(name):
        order[name] = low[name] = len(order)
        stack.append(name)
        for other in sorted(graph[name]):
            if other not in order:
                visit(other)
                low[name] = min(low[name], low[other])
            elif other in stack:
                low[name] = min(low[name], order[other])
        if low[name] == order[name]:
            group = stack[stack.index(name) :]
            del stack[stack.index(name) :]
            if len(group) > 1 or name in graph[name]:
                found.append(sorted(group))

    for name in sorted(graph):
        if name not in order:
            visit(name)
    return found


def circles_below(folder):
    modules = modules_of(folder)
    return len(modules), circles({name: imported(name, path, modules) for name, path in modules.items()})


# Files of a package "p" -> the circles that must be found.
PLANTED = (
    ({"a": "from .b import x", "b": "import p.a"}, [["p.a", "p.b"]]),
    ({"a": "from . import b", "b": "def f():\n    from .a import y"}, [["p.a", "p.b"]]),
    (
        {"a": "from .b import x", "b": "from .s.c import y", "s.__init__": "", "s.c": "from .. import a"},
        [["p.a", "p.b", "p.s.c"]],
    ),
    ({"a": "import importlib\nimportlib.import_module('.b', 'p')", "b": "from .a import x"}, [["p.a", "p.b"]]),
    ({"a": "if TYPE_CHECKING:\n    from .b import x", "b": "from .a import x"}, [["p.a", "p.b"]]),
    ({"__init__": "from .a import x", "a": "from . import x"}, [["p", "p.a"]]),
    ({"__init__": "from .a import x", "a": "from . import b\nimport torch", "b": "import os", "torch": "import torch"}, []),
)


def main():
    failures = []
    for files, wanted in PLANTED:
        with tempfile.TemporaryDirectory() as root:
            for name, text in {"__init__": "", **files}.items():
                path = pathlib.Path(root, "p", *name.split(".")).with_suffix(".py")
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_text(text, encoding="utf-8")
            found = circles_below(pathlib.Path(root, "p"))[1]
        if found != wanted:
            failures.append(f"of {files}: {found}; must find {wanted}")
    count, found = circles_below(pathlib.Path(sys.argv[1]))
    if count < 30:
        failures.append(f"{sys.argv[1]} has {count} modules; must be the package's folder")
    failures += [f"modules that import each other: {', '.join(group)}" for group in found]
    for failure in failures:
        print(failure)
    print(f"imports: {count} modules, {len(PLANTED)} planted packages, {len(failures)} failed")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
