#!/usr/bin/env python3
"""Compiles and runs every example of README, CONTRIBUTING, docs and the public headers.

- A fenced block of cpp, c or sh in a Markdown file is an example. "<!-- not run: reason -->" before it leaves it out, and
  the reason is printed. "<!-- prologue: name -->" before it puts it in the place of EXAMPLE; in prologues/name.cpp (.c).
  Without one, C and C++ are whole programs.
- The shell blocks of one file run in order in one empty folder, with the commands of this build in PATH; a block ends at
  the first command that fails.
- In a public header an example is a comment, indented by three blanks, whose first line is "// prologue: name" or
  "/* prologue: name */"; it ends at the first line that is not indented so. A statement in such a comment without that
  first line is an error, so that none escapes.
"""
import argparse
import os
import pathlib
import re
import subprocess
import sys
import tempfile

SECONDS = 300  # a limit for what hangs, nothing is expected to come near
MARKER = re.compile(r"<!--\s*(not run|prologue):\s*(.*?)\s*-->")
SHOWN = {"json", "cuda", "text", "cmake", "python"}  # languages that are shown only


class Example:
    def __init__(self, where, language, text, prologue=None, reason=None):
        self.where, self.language, self.text = where, language, text
        self.prologue, self.reason = prologue, reason


def of_markdown(path, name):
    """(examples, mistakes) of one file."""
    examples, mistakes, marks, fence = [], [], {}, None
    for number, line in enumerate(path.read_text().split("\n"), 1):
        stripped = line.strip()
        if fence is not None:
            if stripped == "```":
                examples.append(Example(fence[0], fence[1], "\n".join(fence[2]) + "\n", **fence[3]))
                fence = None
            else:
                fence[2].append(line[fence[4]:])
        elif stripped.startswith("```"):
            language, where = stripped[3:].strip(), f"{name}:{number}"
            if language not in ("cpp", "c", "sh", "") and language not in SHOWN:
                mistakes.append(f"{where}: language '{language}'; write cpp, c or sh, or one of {sorted(SHOWN)}")
            fence = (where, language, [], dict(prologue=marks.get("prologue"), reason=marks.get("not run")),
                     len(line) - len(line.lstrip()))
            marks = {}
        elif MARKER.fullmatch(stripped):
            kind, text = MARKER.fullmatch(stripped).groups()
            marks[kind] = text
            if not text:
                mistakes.append(f"{name}:{number}: '{kind}:' says nothing")
        elif stripped:
            if marks:
                mistakes.append(f"{name}:{number}: a marker without a block behind it")
            marks = {}
    if fence is not None:
        mistakes.append(f"{fence[0]}: the block has no end")
    return [e for e in examples if e.language in ("cpp", "c", "sh")], mistakes


def of_header(path, name):
    examples, mistakes, block = [], [], None
    language = "c" if path.suffix == ".h" else "cpp"
    for number, line in enumerate(path.read_text().split("\n") + [""], 1):
        comment = re.match(r"\s*(?://| \*)( {3,}\S.*)?$", line)
        code = comment.group(1)[3:] if comment and comment.group(1) else None
        mark = re.match(r"(?://|/\*) prologue: (\w+)", code) if code is not None else None
        if mark:
            block = Example(f"{name}:{number}", language, "", prologue=mark.group(1))
            examples.append(block)
        elif code is None:
            block = None
        elif block is not None:
            block.text += code + "\n"
        elif code.endswith(";") and "=" in code:
            mistakes.append(f"{name}:{number}: a statement in a comment, without '// prologue: name' before it")
    return examples, mistakes


def collect(root):
    examples, mistakes = [], []
    pages = [root / "README.md", root / "CONTRIBUTING.md", *sorted((root / "docs").rglob("*.md"))]
    headers = sorted((root / "include" / "dualgemm").glob("*.h*"))
    for path in pages + headers:
        found = (of_markdown if path.suffix == ".md" else of_header)(path, str(path.relative_to(root)))
        examples += found[0]
        mistakes += found[1]
    return examples, mistakes


class Runner:
    def __init__(self, options, scratch):
        self.options, self.scratch = options, scratch
        self.count = 0
        self.environment = dict(os.environ, OMP_WAIT_POLICY="PASSIVE")
        self.environment["PATH"] = f"{options.bin}:{os.environ['PATH']}"
        self.environment["LD_LIBRARY_PATH"] = ":".join(str(pathlib.Path(path).parent) for path in options.library)

    def call(self, command, folder):
        """None, or what went wrong."""
        try:
            done = subprocess.run(command, cwd=folder, env=self.environment, text=True, timeout=SECONDS,
                                  stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        except subprocess.TimeoutExpired:
            return f"did not end in {SECONDS} s"
        return None if done.returncode == 0 else f"exit status {done.returncode}\n{done.stdout[-3000:]}"

    def source_of(self, example):
        if example.prologue is None:
            return example.text
        path = pathlib.Path(self.options.prologues) / f"{example.prologue}.{example.language}"
        if not path.exists():
            return None
        return path.read_text().replace("EXAMPLE;", example.text)

    def run(self, example):
        page = self.scratch / re.sub(r"\W", "_", example.where.split(":")[0])
        page.mkdir(exist_ok=True)
        if example.language == "sh":
            return self.call(["bash", "-euo", "pipefail", "-c", example.text], page)
        source = self.source_of(example)
        if source is None:
            return f"no prologues/{example.prologue}.{example.language}"
        self.count += 1
        file = self.scratch / f"example_{self.count}.{example.language}"
        program = file.with_suffix("")
        file.write_text(source)
        compiler, standard = ((self.options.cxx, "-std=c++20") if example.language == "cpp" else
                              (self.options.cc, "-std=c99"))
        return (self.call([compiler, standard, "-Wall", "-Wextra", f"-I{self.options.root}/include", str(file), "-o",
                           str(program), *self.options.library, "-lm"], page) or self.call([str(program)], page))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    here = pathlib.Path(__file__).resolve().parent
    parser.add_argument("root", help="of the tree whose examples are run")
    parser.add_argument("--library", required=True, action="append", help="shared or static; may be repeated")
    parser.add_argument("--bin", required=True, help="folder of the commands")
    parser.add_argument("--cxx", default="c++")
    parser.add_argument("--cc", default="cc")
    parser.add_argument("--prologues", default=here / "prologues")
    options = parser.parse_args()
    root = pathlib.Path(options.root).resolve()
    options.root, options.library = root, [str(pathlib.Path(path).resolve()) for path in options.library]
    options.bin = str(pathlib.Path(options.bin).resolve())

    examples, mistakes = collect(root)
    failed = len(mistakes)
    for mistake in mistakes:
        print(f"FAILED   {mistake}")
    ran = left_out = 0
    with tempfile.TemporaryDirectory() as scratch:
        runner = Runner(options, pathlib.Path(scratch))
        for example in examples:
            if example.reason is not None:
                left_out += 1
                print(f"not run  {example.where} {example.language}: {example.reason}")
                continue
            wrong = runner.run(example)
            ran += 1
            failed += wrong is not None
            print(f"{'ran' if wrong is None else 'FAILED':<8} {example.where} {example.language}"
                  + (f": {wrong}" if wrong else ""), flush=True)
    print(f"examples: {ran} ran, {left_out} not run, {failed} failed")
    return 1 if failed or ran == 0 else 0


if __name__ == "__main__":
    sys.exit(main())
