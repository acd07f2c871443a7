"""One CUDA text of many files: the project's own includes in the place of their lines, once each."""

import pathlib
import re

from submission.errors import Refused

TOKEN = re.compile(
    r"""(?P<comment>//(?:\\\n|[^\n])*|/\*.*?\*/)
      | (?P<raw>\bR"(?P<mark>[^()\\\s]{0,16})\(.*?\)(?P=mark)")
      | (?P<quoted>"(?:\\.|[^"\\\n])*"|(?<![0-9a-zA-Z_])'(?:\\.|[^'\\\n])*')""",
    re.VERBOSE | re.DOTALL,
)
INCLUDE = re.compile(r'[ \t]*#[ \t]*include[ \t]*(?:"([^"]+)"|<([^>]+)>)[ \t]*$')
DEFINE = re.compile(r"^[ \t]*#[ \t]*define[ \t]+(\w+)(?:\\\n|[^\n])*\n", re.MULTILINE)


def without_comments(text: str) -> str:
    """A comment becomes a blank, as the compiler sees it; strings stay."""
    return TOKEN.sub(lambda found: " " if found.group("comment") else found.group(), text)


def without_unused_macros(text: str) -> str:
    """Leaves out every #define of a name that occurs nowhere else, until there is none."""
    while True:
        names = re.findall(r"\b[A-Za-z_]\w*\b", text)
        counts: dict[str, int] = {}
        for name in names:
            counts[name] = counts.get(name, 0) + 1
        shorter = DEFINE.sub(lambda found: found.group() if counts[found.group(1)] > 1 else "", text)
        if shorter == text:
            return text
        text = shorter


class Expansion:
    """The text of a file and of what it includes; headers of the system stand in front, once each."""

    def __init__(self, tree: pathlib.Path, folders: tuple[str, ...] = ("include", "src", "")):
        self.folders = [tree / folder for folder in folders]
        self.files: list[pathlib.Path] = []  # in the order in which they are complete
        self.system: set[str] = set()

    def text_of(self, source: pathlib.Path) -> str:
        body = self._expand(source, ())
        includes = "".join(f"#include <{name}>\n" for name in sorted(self.system))
        text = without_unused_macros(includes + "\n" + body)
        return re.sub(r"\n\n\n+", "\n\n", re.sub(r"[ \t]+$", "", text, flags=re.MULTILINE)).strip() + "\n"

    def _expand(self, path: pathlib.Path, within: tuple[pathlib.Path, ...]) -> str:
        if path in within:
            raise Refused(f"{path.name}: it includes itself; a file that is made flat must not")
        lines: list[str] = []
        depth = 0  # of #if
        for line in without_comments(path.read_text(encoding="utf-8")).splitlines():
            directive = re.match(r"[ \t]*#[ \t]*(\w+)", line)
            word = directive.group(1) if directive else ""
            depth += word in ("if", "ifdef", "ifndef")
            depth -= word == "endif"
            include = INCLUDE.match(line)
            if word == "pragma" and line.split()[-1] == "once":
                continue
            if include is None:
                lines.append(line)
                continue
            if depth > 0:
                raise Refused(f"{path.name}: {line.strip()} depends on a condition; an include must not")
            if include.group(2):
                self.system.add(include.group(2))
            else:
                lines.append(self._included(include.group(1), path, within))
        self.files.append(path)
        return "\n".join(lines) + "\n"

    def _included(self, name: str, path: pathlib.Path, within: tuple[pathlib.Path, ...]) -> str:
        found = next((folder / name for folder in self.folders if (folder / name).is_file()), None)
        if found is None:
            raise Refused(f'{path.name}: #include "{name}"; it must be a file of include/, src/ or the tree')
        return "" if found in self.files else self._expand(found, (*within, path))
