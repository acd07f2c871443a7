#!/usr/bin/env python3
"""Compiles and runs every example of README, CONTRIBUTING, docs and the public headers.

A fenced block of cpp, c or sh in a Markdown file is an example. Lines of HTML comments before it say more:

  <!-- not run: reason -->     left out, and the reason is printed
  <!-- needs: a, b -->         left out where one of them is missing: cuda (a build with CUDA), gpu (one that the
                               kernels take), hopper, ptxsim_lib (its archives, with which the example is linked),
                               matplotlib, or a command in PATH. What --has names may not be missing.
  <!-- prologue: name -->      put in the place of EXAMPLE; in prologues/name.cpp (.c, .sh). Without one C and C++ are
                               whole programs.
  <!-- file: name -->          a block of any language that is not run, but written to this file before the page's
                               first command
  <!-- in: tree -->            runs in a copy of the tree instead of the page's folder
  <!-- exit status: 1 -->      of one command, instead of 0

- The shell blocks of a page run in order in one empty folder, with the commands of this build in PATH and an $EDITOR
  that changes nothing; a block ends at the first command that fails.
- In a public header an example is a comment, indented by three blanks, whose first line is "// prologue: name"; it ends
  at the first line that is not indented so.
- Nothing escapes: commands in other blocks, indented ones among them, and statements in headers' comments are mistakes,
  and so are commands and options that are only named and do not exist (named_commands.py).
"""

import argparse
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import time

sys.dont_write_bytecode = True  # the tree stays as it is
from named_commands import check_named
from pages import read_pages

SECONDS = 300  # a limit for what hangs, nothing is expected to come near
SUFFIX = {"cpp": "cpp", "c": "c", "sh": "sh"}


class Runner:
    def __init__(self, options, scratch):
        self.options, self.scratch = options, scratch
        self.count = 0
        self.there = {}  # of what is needed
        self.environment = dict(os.environ, OMP_WAIT_POLICY="PASSIVE", EDITOR="true")
        self.environment["PATH"] = ":".join([options.bin, *options.path, os.environ["PATH"]])
        self.environment["LD_LIBRARY_PATH"] = ":".join(str(pathlib.Path(path).parent) for path in options.library)

    def call(self, command, folder, status=0):
        """None, or what went wrong."""
        try:
            done = subprocess.run(
                command,
                cwd=folder,
                env=self.environment,
                text=True,
                timeout=SECONDS,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
            )
        except subprocess.TimeoutExpired:
            return f"did not end in {SECONDS} s"
        return None if done.returncode == status else f"exit status {done.returncode}\n{done.stdout[-3000:]}"

    def is_there(self, need):
        if need not in self.there:
            probes = {
                "cuda": ["dualgemm", "plan", "--device", "h200"],
                "gpu": ["dualgemm", "plan", "--device", "cuda"],
                "hopper": ["dualgemm", "plan", "--device", "cuda", "--isa", "sm90a"],
                "matplotlib": ["python3", "-c", "import matplotlib"],
                "triton": ["python3", "-c", "import triton"],
            }
            if need == "ptxsim_lib":
                found = bool(self.options.ptxsim)
            elif need in probes:
                found = self.call(probes[need], self.scratch) is None
            else:
                found = shutil.which(need, path=self.environment["PATH"]) is not None
            self.there[need] = found
        return self.there[need]

    def missing(self, example):
        return [need for need in example.needs if not self.is_there(need)]

    def folder(self, example):
        name = re.sub(r"\W", "_", example.page())
        folder = self.scratch / (name + "_tree" if example.in_tree else name)
        if example.in_tree and not folder.exists():
            shutil.copytree(self.options.root, folder, symlinks=True, ignore=self.left_behind)
        folder.mkdir(exist_ok=True)
        return folder

    def left_behind(self, folder, names):
        top = pathlib.Path(folder) == self.options.root
        return [name for name in names if top and re.fullmatch(r"build(-.*)?|\.git|shared", name)]

    def write_file(self, example):
        (self.folder(example) / example.file).write_text(example.text)

    def source_of(self, example):
        if example.prologue is None:
            return example.text
        path = pathlib.Path(self.options.prologues) / f"{example.prologue}.{SUFFIX[example.language]}"
        return re.sub("EXAMPLE;?", lambda _: example.text, path.read_text(), count=1) if path.exists() else None

    def run(self, example):
        source = self.source_of(example)
        if source is None:
            return f"no prologues/{example.prologue}.{SUFFIX[example.language]}"
        folder = self.folder(example)
        if example.language == "sh":
            return self.call(["bash", "-euo", "pipefail", "-c", source], folder, example.status)
        self.count += 1
        file = self.scratch / f"example_{self.count}.{example.language}"
        program = file.with_suffix("")
        file.write_text(source)
        compiler, standard = (self.options.cxx, "-std=c++20") if example.language == "cpp" else (self.options.cc, "-std=c99")
        includes, libraries = [f"-I{self.options.root}/include"], [*self.options.library, "-lm"]
        if "ptxsim_lib" in example.needs:
            includes += [f"-I{self.options.root}/ptxsim/include"]
            libraries = self.options.ptxsim + libraries
        build = [compiler, standard, "-Wall", "-Wextra", *includes, str(file), "-o", str(program), *libraries]
        return self.call(build, folder) or self.call([str(program)], folder, example.status)


def run_all(runner, examples, has):
    """(ran, left out, failed)"""
    ran = left_out = failed = 0
    for example in examples:
        if example.file is not None:
            runner.write_file(example)
    for example in examples:
        if example.file is not None:
            continue
        kind = example.language or "block"
        missing = runner.missing(example)
        promised = sorted(set(missing) & has)
        reason = example.reason or ("needs " + ", ".join(missing) if missing else None)
        if reason is not None and not promised:
            left_out += 1
            print(f"not run  {example.where} {kind}: {reason}")
            continue
        begin = time.monotonic()
        wrong = f"needs {', '.join(promised)}, which should be here" if promised else runner.run(example)
        ran += 1
        failed += wrong is not None
        print(
            f"{'ran' if wrong is None else 'FAILED':<8} {example.where} {kind}, "
            f"{time.monotonic() - begin:.1f} s" + (f": {wrong}" if wrong else ""),
            flush=True,
        )
    return ran, left_out, failed


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    here = pathlib.Path(__file__).resolve().parent
    parser.add_argument("root", help="of the tree whose examples are run")
    parser.add_argument("--library", required=True, action="append", help="shared or static; may be repeated")
    parser.add_argument("--bin", required=True, help="folder of the commands")
    parser.add_argument("--cxx", default="c++")
    parser.add_argument("--cc", default="cc")
    parser.add_argument("--prologues", default=here / "prologues")
    parser.add_argument("--path", action="append", default=[], help="a further folder of commands; may be repeated")
    parser.add_argument("--ptxsim", action="append", default=[], help="an archive of the interpreter, in order")
    parser.add_argument("--has", action="append", default=[], help="this need must be there; may be repeated")
    parser.add_argument("--only", help="the examples whose page has this in its name")
    options = parser.parse_args()
    root = pathlib.Path(options.root).resolve()
    options.root, options.library = root, [str(pathlib.Path(path).resolve()) for path in options.library]
    options.bin = str(pathlib.Path(options.bin).resolve())
    options.ptxsim = [str(pathlib.Path(path).resolve()) for path in options.ptxsim]

    pages = read_pages(root)
    named, mistakes = check_named(pages, pathlib.Path(options.bin), root)
    mistakes = [mistake for page in pages for mistake in page.mistakes] + mistakes
    for mistake in mistakes:
        print(f"FAILED   {mistake}")
    examples = [example for page in pages for example in page.examples if (options.only or "") in example.page()]
    with tempfile.TemporaryDirectory() as scratch:
        ran, left_out, failed = run_all(Runner(options, pathlib.Path(scratch)), examples, set(options.has))
    failed += len(mistakes)
    print(f"examples: {ran} ran, {left_out} not run, {named} commands and options named, {failed} failed")
    return 1 if failed or ran == 0 else 0


if __name__ == "__main__":
    sys.exit(main())
