"""One Python text of a file and of the files beside it that it imports from.

`from .name import x` and `from name import x`, where name.py lies beside the file, are replaced by what
name.py says, once, in front of the first use; `from task import x` stays, as the harness provides it.
"""

import ast
import io
import pathlib
import tokenize
from collections.abc import Iterator

from submission.errors import Refused

PROVIDED = "task"  # the module that the harness puts beside a submission
PACKAGE = "dualgemm"  # what a submission may use only where it is
RULE = "a file beside it must be imported at the top, by `from name import x`"


def _statements(path: pathlib.Path) -> tuple[list[str], list[ast.stmt]]:
    try:
        text = path.read_text(encoding="utf-8")
        return text.splitlines(keepends=True), ast.parse(text).body
    except (OSError, UnicodeDecodeError, SyntaxError) as error:
        raise Refused(f"{path.name}: {error}; it must be a Python file") from error


def _first_line(statement: ast.stmt) -> int:
    decorators: list[ast.expr] = getattr(statement, "decorator_list", [])
    return min([statement.lineno, *(decorator.lineno for decorator in decorators)])


def _is_main(statement: ast.stmt) -> bool:
    return isinstance(statement, ast.If) and ast.unparse(statement.test) == "__name__ == '__main__'"


def _is_docstring(statement: ast.stmt) -> bool:
    return (
        isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant) and isinstance(statement.value.value, str)
    )


def _targets(node: ast.AST) -> Iterator[str]:
    """What a statement binds in its module, its blocks included."""
    if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
        yield node.name
    elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
        yield node.id
    elif not isinstance(
        node, (ast.Import, ast.ImportFrom, ast.Lambda, ast.ListComp, ast.DictComp, ast.SetComp, ast.GeneratorExp)
    ):
        for child in ast.iter_child_nodes(node):
            yield from _targets(child)


def _meaning(node: ast.Import | ast.ImportFrom, alias: ast.alias) -> str:
    if isinstance(node, ast.ImportFrom):
        return f"{node.module}.{alias.name}"
    return alias.name if alias.asname else alias.name.split(".")[0]


class Flattening:
    """Joins the file `main` and the modules beside it that it imports; the imports of those are left out."""

    def __init__(self, main: pathlib.Path):
        self.folder, self.main = main.parent, main
        self.done: list[str] = []
        self.meaning: dict[str, str] = {}  # of a name: the file or the import that it comes from
        self.future: set[str] = set()
        self.provided: set[str] = set()  # what is imported from the harness's module, as source says it
        self.docstring = ""

    def text(self) -> str:
        body = self._module(self.main, ())
        parts = [self.docstring]
        if self.future:
            parts.append(f"from __future__ import {', '.join(sorted(self.future))}\n")
        if self.provided:
            parts.append(f"from {PROVIDED} import {', '.join(sorted(self.provided))}\n")
        return "".join(parts) + "\n" + body.strip("\n") + "\n"

    def _sibling(self, node: ast.AST) -> str | None:
        """The name of the module that an import names and that lies beside the file."""
        if not isinstance(node, ast.ImportFrom):
            return None
        name = node.module or ""
        if node.level == 0 and name.startswith(self.folder.name + "."):
            name = name[len(self.folder.name) + 1 :]
        beside = name == PROVIDED or (self.folder / f"{name}.py").is_file()
        return name if node.level <= 1 and name and beside else None

    def _module(self, path: pathlib.Path, within: tuple[str, ...]) -> str:
        if path.stem in within:
            raise Refused(f"{path.name}: it imports itself, by {' and '.join(within)}; it must not")
        lines, statements = _statements(path)
        self._check(path, statements)
        kept: list[str] = []
        at = 0
        for number, statement in enumerate(statements):
            first, last = _first_line(statement) - 1, statement.end_lineno or 0
            if first < at:
                raise Refused(f"{path.name}:{first + 1}: two statements in a line; there must be one")
            kept += lines[at:first]
            source = "".join(lines[first:last])
            kept.append(self._statement(path, number, statement, source, (*within, path.stem)))
            at = last
        return "".join(kept + lines[at:])

    def _statement(self, path: pathlib.Path, number: int, statement: ast.stmt, source: str, within: tuple[str, ...]) -> str:
        imports = self._imports_of(statement)
        if imports is not None:
            return "".join(self._inlined(path, node, within) for node in imports)
        if isinstance(statement, ast.ImportFrom) and statement.module == "__future__":
            self.future |= {alias.name for alias in statement.names}
            return ""
        if number == 0 and _is_docstring(statement):
            if path == self.main:
                self.docstring = source + "\n"
            return ""
        if path != self.main and (_is_main(statement) or "__all__" in _targets(statement)):
            return ""
        if isinstance(statement, (ast.Import, ast.ImportFrom)):
            known = [
                self._binds(path, alias.asname or alias.name.split(".")[0], _meaning(statement, alias))
                for alias in statement.names
            ]
            return "" if all(known) else source
        for name in _targets(statement):
            self._binds(path, name, path.name)
        return source

    def _binds(self, path: pathlib.Path, name: str, meaning: str) -> bool:
        """Whether the name was bound before; never to something else."""
        known = name in self.meaning
        if self.meaning.setdefault(name, meaning) != meaning:
            raise Refused(f"{path.name}: {name} is of {meaning} and of {self.meaning[name]}; a name must have one meaning")
        return known

    def _imports_of(self, statement: ast.stmt) -> list[ast.ImportFrom] | None:
        """What to inline in the place of a statement: an import of a sibling, or a try that falls back to
        another spelling of the same. None: something else."""
        if isinstance(statement, ast.ImportFrom) and self._sibling(statement):
            return [statement]
        if not isinstance(statement, ast.Try) or statement.orelse or statement.finalbody:
            return None
        ways = [statement.body, *(handler.body for handler in statement.handlers)]
        if not all(self._sibling(node) for way in ways for node in way):
            return None
        return [node for node in statement.body if isinstance(node, ast.ImportFrom)]

    def _inlined(self, path: pathlib.Path, node: ast.ImportFrom, within: tuple[str, ...]) -> str:
        name = self._sibling(node) or ""
        if any(alias.name == "*" for alias in node.names):
            raise Refused(f"{path.name}:{node.lineno}: import *; names must be listed")
        if name == PROVIDED:
            self.provided |= {ast.unparse(alias) for alias in node.names}
            return ""
        text = ""
        if name not in self.done:
            text = self._module(self.folder / f"{name}.py", within).strip("\n") + "\n\n\n"
            self.done.append(name)
        for alias in node.names:
            if alias.asname in (None, alias.name):
                continue
            if not self._binds(path, alias.asname, _meaning(node, alias)):
                text += f"{alias.asname} = {alias.name}\n"
        return text

    def _check(self, path: pathlib.Path, statements: list[ast.stmt]) -> None:
        """Refuses imports that cannot be replaced."""
        replaced = {
            id(node) for statement in statements if self._imports_of(statement) is not None for node in ast.walk(statement)
        }
        for node in (node for statement in statements for node in ast.walk(statement)):
            place = f"{path.name}:{getattr(node, 'lineno', 0)}"
            if isinstance(node, ast.Import):
                names = [alias.name.split(".")[0] for alias in node.names]
            elif isinstance(node, ast.ImportFrom):
                names = [(node.module or "").split(".")[0]]
                if id(node) not in replaced and (node.level > 0 or self._sibling(node)):
                    raise Refused(f"{place}: {ast.unparse(node)}; {RULE}")
            else:
                continue
            if PACKAGE in names and node in statements:
                raise Refused(f"{place}: {ast.unparse(node)}; a submission must do where the package is not")
            if isinstance(node, ast.Import) and any((self.folder / f"{name}.py").is_file() for name in names):
                raise Refused(f"{place}: {ast.unparse(node)}; {RULE}")


def without_comments_that_say(word: str, text: str) -> str:
    """Leaves out the comments that have `word` in any case."""
    lines = text.splitlines(keepends=True)
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type == tokenize.COMMENT and word in token.string.lower():
            row, column = token.start
            lines[row - 1] = lines[row - 1][:column].rstrip() + "\n"
    return "".join(lines)
