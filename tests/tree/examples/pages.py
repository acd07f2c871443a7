"""Reads the examples of Markdown pages and public headers, and finds what looks like one and would escape."""

import re

RUN = {"cpp", "c", "sh"}
SHOWN = {"", "json", "cuda", "text", "cmake", "python", "yaml"}  # languages that are shown only
KINDS = "not run|prologue|needs|file|in|exit status"
MARKER = re.compile(rf"<!--\s*({KINDS}):\s*(.*?)\s*-->")
FENCE = re.compile(r"(\s*)(`{3,}|~{3,})\s*([^`]*)")
# An indented block, also as the first thing of a quotation or of an item.
INDENTED = re.compile(r"(?:\s*>)*(?: {4,}| *\t|\s*(?:[-*+]|\d+[.)])(?: {5,}| *\t))\s*(\S.*)")

# What a line of a shell begins with: a prompt, assignments, and a command of the project or one that people type.
PROGRAMS = r"""dualgemm ptxsim ptxsim_silicon bench_\w+ test_\w+ make cmake ctest ninja source git pkg-config
    pre-commit nvcc gcc g\+\+ cc c\+\+ clang clang\+\+ python python3 pip pip3 apt apt-get sudo cd export bash sh man
    curl wget objdump cuobjdump nm ldd mkdir cp mv rm ln cat echo printf ls grep sed awk tar docker taskset perf
    nvidia-smi compute-sanitizer ncu nsys env time \$EDITOR"""
COMMAND = re.compile(
    r"(?:[$%#>] +)?(?:[A-Za-z_]\w*=\S* +)*(?:"
    + "|".join(PROGRAMS.split())
    + r"|\.{1,2}/\S+|(?:\.ci|scripts|build|bin)/\S+)(?=[\s;&|]|$)"
)


class Example:
    def __init__(self, where, language, text, marks=None):
        marks = marks or {}
        self.where, self.language, self.text = where, language, text
        self.prologue, self.reason, self.file = marks.get("prologue"), marks.get("not run"), marks.get("file")
        self.needs = [word.strip() for word in marks.get("needs", "").split(",") if word.strip()]
        self.in_tree = "in" in marks
        self.status = int(marks.get("exit status", 0))

    def page(self):
        return self.where.rsplit(":", 1)[0]


class Prose:
    """A paragraph or a row of a table, with the heading above it."""

    def __init__(self, where, heading, text):
        self.where, self.heading, self.text = where, heading, text


def looks_like_command(line):
    return COMMAND.match(line.strip()) is not None


def logical_lines(text):
    """Lines of a shell without comments, empty ones, and breaks behind a backslash."""
    lines = re.sub(r"\\\n\s*", " ", text).split("\n")
    return [line.strip() for line in lines if line.strip() and not line.strip().startswith("#")]


class Page:
    """One Markdown file: its examples, its prose, and what is wrong with it."""

    def __init__(self, text, name):
        self.name = name
        self.examples, self.prose, self.mistakes = [], [], []
        self.heading, self.marks = "", {}
        self.paragraph = None  # Prose that goes on
        self.fence = None
        self.block_is_left_out = False  # the indented block that goes on has its reason
        for number, line in enumerate(text.split("\n"), 1):
            self.read(f"{name}:{number}", line)
        if self.fence is not None:
            self.mistake(self.fence["where"], "the block has no end")

    def mistake(self, where, message):
        self.mistakes.append(f"{where}: {message}")

    def read(self, where, line):
        opened = FENCE.fullmatch(line)
        if self.fence is not None:
            mark = self.fence["mark"]
            if opened and opened[2].startswith(mark) and not opened[3].strip():
                self.close()
            else:
                self.fence["lines"].append(line[self.fence["indent"] :])
        elif opened:
            self.paragraph = None
            self.open(where, opened)
        else:
            self.read_outside(where, line)

    def open(self, where, opened):
        self.block_is_left_out = False
        language = opened[3].strip()
        if language not in RUN | SHOWN:
            shown = sorted(SHOWN - {""})
            self.mistake(where, f"language '{language}'; write cpp, c or sh, or one of {shown}")
        self.fence = dict(where=where, language=language, lines=[], indent=len(opened[1]), mark=opened[2], marks=self.marks)
        self.marks = {}

    def close(self):
        where, language, lines, marks = (self.fence[key] for key in ("where", "language", "lines", "marks"))
        self.fence = None
        text = "\n".join(lines) + "\n"
        try:
            example = Example(where, language, text, marks)
        except ValueError:
            return self.mistake(where, f"exit status '{marks['exit status']}'; must be a number")
        if example.status != 0 and len(logical_lines(text)) != 1:
            self.mistake(where, "an exit status belongs to one command; make it a block of its own")
        if marks.get("in", "tree") != "tree":
            self.mistake(where, f"in: '{marks['in']}'; must be tree")
        if language not in RUN and example.file is None and example.reason is None:
            for line in filter(looks_like_command, lines):
                self.mistake(where, f"a command that no test runs: '{line.strip()}'; write ```sh, or say why not")
                break
        if language in RUN or example.file is not None or example.reason is not None:
            self.examples.append(example)

    def read_outside(self, where, line):
        stripped = line.strip()
        marker = MARKER.fullmatch(stripped)
        indented = INDENTED.fullmatch(line) if self.paragraph is None else None
        if marker:
            self.paragraph = None
            self.marks[marker[1]] = marker[2]
            if not marker[2]:
                self.mistake(where, f"'{marker[1]}:' says nothing")
        elif not stripped:
            self.paragraph = None
        elif indented:
            self.read_indented(where, indented[1])
        else:
            self.block_is_left_out = False
            self.read_prose(where, line, stripped)

    def read_indented(self, where, code):
        if "not run" in self.marks:
            self.examples.append(Example(where, "", code + "\n", self.marks))
            self.marks, self.block_is_left_out = {}, True
        elif self.block_is_left_out:
            self.examples[-1].text += code + "\n"
        elif looks_like_command(code):
            self.mistake(where, f"a command that no test runs: '{code}'; write it in ```sh")

    def read_prose(self, where, line, stripped):
        if self.marks:
            self.mistake(where, "a marker without a block behind it")
            self.marks = {}
        if re.match(r"\s*>.*(```|~~~)", line) or re.match(r"<(pre|code)\b", stripped):
            self.mistake(where, "a block that no test reads; write ``` at the left")
        if stripped.startswith("#"):
            self.heading = stripped.lstrip("#").strip()
            self.paragraph = None
        elif self.paragraph is None or re.match(r"\||[-*+] |\d+[.)] ", stripped):
            self.paragraph = Prose(where, self.heading, stripped)
            self.prose.append(self.paragraph)
        else:
            self.paragraph.text += " " + stripped


class Header:
    """One public header: an example is a comment that is indented by three blanks."""

    def __init__(self, text, name):
        self.examples, self.prose, self.mistakes = [], [], []
        block = None
        language = "c" if name.endswith(".h") else "cpp"
        for number, line in enumerate(text.split("\n") + [""], 1):
            where = f"{name}:{number}"
            comment = re.match(r"\s*(?://| \*)( {3,}\S.*)?$", line)
            code = comment[1][3:] if comment and comment[1] else None
            mark = re.match(r"// prologue: (\w+)", code) if code is not None else None
            if mark:
                block = Example(where, language, "", {"prologue": mark[1]})
                self.examples.append(block)
            elif code is None:
                block = None
            elif block is not None:
                block.text += code + "\n"
            elif code.endswith(";"):
                self.mistakes.append(f"{where}: a statement in a comment, without '// prologue: name' before it")
            elif looks_like_command(code):
                self.mistakes.append(f"{where}: a command that no test runs: '{code.strip()}'; it belongs into a page")


def read_pages(root):
    """Every page and public header of the tree."""
    markdown = [
        root / "README.md",
        root / "CONTRIBUTING.md",
        *sorted((root / "docs").rglob("*.md")),
        *sorted((root / "ptxsim").glob("*.md")),
        *sorted((root / "ptxsim/docs").glob("*.md")),
    ]
    headers = sorted((root / "include" / "dualgemm").glob("*.h*"))
    pages = [Page(path.read_text(), str(path.relative_to(root))) for path in markdown]
    return pages + [Header(path.read_text(), str(path.relative_to(root))) for path in headers]
