"""Checks commands and options that pages name but do not run: in prose, in tables, and in blocks that are left out.

- `dualgemm SUB --option value`: the command, the option, and the value where there is a list of them, are those of
  `dualgemm help --json`. ptxsim and the benchmarks of this build: options as their --help has them.
- make: its targets. cmake, ctest: presets. scripts/NAME is there, and knows the option.
- An option alone, `--x`: on the pages of one program it belongs to the command that the heading or the paragraph names,
  or to any command of the program where none is named; on other pages to any program.
"""

import json
import re
import shlex
import subprocess

from pages import logical_lines

ABOUT = {
    "docs/cli.md": "dualgemm",
    "docs/checkpoints.md": "dualgemm",
    "ptxsim/README.md": "ptxsim",
    **{
        f"ptxsim/docs/{page}.md": "ptxsim"
        for page in ("guide", "command", "cases", "instructions", "rules", "exec", "clock", "evidence", "python")
    },
}
SPAN = re.compile(r"(?<!`)(`+)(?!`)(.+?)(?<!`)\1(?!`)")
OPTION = re.compile(r"--?[A-Za-z][\w-]*")
PTXSIM = ("run", "check", "case", "mutate", "speed", "exec", "time")
OPERATORS = {"|", "||", "&&", ";", "&", ">", ">>", "<"}


def output_of(command):
    return subprocess.run(
        command, text=True, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=60
    ).stdout


class Programs:
    """What the commands of this build and of the tree take."""

    def __init__(self, folder, root):
        self.root = root
        self.options = {}  # "dualgemm run" -> {option: choices}
        if (folder / "dualgemm").exists():
            for command in json.loads(output_of([folder / "dualgemm", "help", "--json"]))["commands"]:
                self.options["dualgemm " + command["command"]] = {
                    name: set(option["choices"]) for option in command["options"] for name in option["names"]
                }
        if (folder / "ptxsim").exists():
            for command in PTXSIM:
                self.add("ptxsim " + command, [folder / "ptxsim", command, "--help"])
        for path in sorted(folder.glob("bench_*")):
            self.add(path.name, [path, "--help"])
        makefile, presets = root / "Makefile", root / "CMakePresets.json"
        text = makefile.read_text() if makefile.exists() else ""
        self.targets = {name for line in re.findall(r"^([\w -]+):(?!=)", text, re.M) for name in line.split()}
        kinds = json.loads(presets.read_text()) if presets.exists() else {}
        self.presets = {
            kind: {preset["name"] for preset in kinds.get(kind + "Presets", []) if "hidden" not in preset}
            for kind in ("configure", "build", "test")
        }
        self.scripts = {
            str(path.relative_to(root)): text_of_script(path)
            for pattern in ("scripts/*", "scripts/*/*", "ptxsim/scripts/*", ".ci/*")
            for path in sorted(root.glob(pattern))
            if path.is_file() and path.suffix != ".pyc"
        }
        # The benchmarks that this build has not.
        self.bench = "".join(path.read_text() for path in sorted((root / "bench").rglob("*.cpp")))

    def add(self, name, command):
        self.options[name] = {option: set() for option in OPTION.findall(output_of(command))}

    def everywhere(self, begin=""):
        return {option for name, options in self.options.items() if name.startswith(begin) for option in options}


def text_of_script(path):
    """The text of a script, and of the one that it is an entry point of."""
    text = path.read_text()
    target = re.fullmatch(r'#!/bin/sh\nexec "\$\(dirname "\$0"\)/([\w/]+)" "\$@"\n', text)
    return text + (path.parent / target[1]).read_text() if target else text


def words_of(text):
    """The commands of a line, each a list of words."""
    try:
        words = shlex.split(text, comments=True)
    except ValueError:
        words = text.split()
    commands = [[]]
    for word in words:
        if word in OPERATORS:
            commands.append([])
        elif commands[-1] or not re.match(r"[A-Za-z_]\w*=", word):
            commands[-1].append(word)
    return [command for command in commands if command]


class Checker:
    def __init__(self, programs):
        self.programs, self.mistakes = programs, []
        self.count = 0  # of commands and options

    def mistake(self, where, message):
        self.mistakes.append(f"{where}: {message}")

    def page(self, page):
        for example in page.examples:
            if example.reason is not None and example.language in ("sh", ""):
                for line in logical_lines(example.text):
                    self.line(example.where, line)
        for prose in page.prose:
            spans = [match[2].strip().replace("\\|", "|") for match in SPAN.finditer(prose.text)]
            for span in spans:
                if OPTION.match(span):
                    self.option_alone(prose, spans, span)
                else:
                    self.line(prose.where, span)

    def line(self, where, text):
        for words in words_of(text):
            self.command(where, words)

    def command(self, where, words):
        program = words[0].removeprefix("build/default/bin/")
        if program in ("dualgemm", "ptxsim") and len(words) > 1:
            self.subcommand(where, program, words)
        elif program in self.programs.options:
            self.count += 1
            self.options(where, program, words[1:])
        elif program == "make":
            self.count += 1
            for word in words[1:]:
                if "=" not in word and not word.startswith("-") and word not in self.programs.targets:
                    self.mistake(where, f"make {word}: no such target")
        elif program in ("cmake", "ctest"):
            self.preset(where, program, words)
        elif re.fullmatch(r"(scripts|\.ci)/\w+", program):
            self.script(where, program, words)

    def subcommand(self, where, program, words):
        name = f"{program} {words[1]}"
        if words[1] in ("--version", "--help") or words[1].isupper():
            return
        self.count += 1
        if "--" in words:  # what follows is another program's command
            end = words.index("--")
            if words[end + 1 :]:
                self.command(where, words[end + 1 :])
            words = words[:end]
        if name in self.programs.options:
            self.options(where, name, words[2:])
        elif any(known.startswith(program + " ") for known in self.programs.options):
            self.mistake(where, f"{name}: no such command")

    def options(self, where, name, words):
        known = self.programs.options[name]
        for i, word in enumerate(words):
            option, _, value = word.strip("[]").partition("=")
            if not OPTION.fullmatch(option):
                continue
            if option not in known:
                self.mistake(where, f"{name} {option}: no such option")
                continue
            if not value and i + 1 < len(words):
                value = words[i + 1].strip("[]")
            self.value(where, f"{name} {option}", known[option], value)

    def value(self, where, name, choices, value):
        if not choices or re.search(r"[A-Z./]", value):  # a placeholder, or a file
            return
        spelled = {choice.replace("-", "_") for choice in choices}
        for part in re.split(r"[,|]", value):
            if part and part.replace("-", "_") not in spelled:
                self.mistake(where, f"{name} {part}: must be one of {', '.join(sorted(choices))}")

    def preset(self, where, program, words):
        kind = "test" if program == "ctest" else "build" if "--build" in words else "configure"
        for option, value in zip(words, words[1:]):
            if option == "--preset" and not value.startswith("<"):
                self.count += 1
                if value not in self.programs.presets[kind]:
                    self.mistake(where, f"{program} --preset {value}: no such {kind} preset")

    def script(self, where, program, words):
        self.count += 1
        if program not in self.programs.scripts:
            self.mistake(where, f"{program}: no such file")
            return
        for word in words[1:]:
            option = word.strip("[]").partition("=")[0]
            # Some scripts hand their options on to a benchmark.
            if option.startswith("--") and option not in self.programs.scripts[program] + self.programs.bench:
                self.mistake(where, f"{program} {option}: no such option")

    def option_alone(self, prose, spans, span):
        words = words_of(span)
        option = words[0][0].partition("=")[0] if words else ""
        if not option.startswith("--"):
            return  # of a compiler
        self.count += 1
        program = ABOUT.get(prose.where.rsplit(":", 1)[0])
        if program is None:
            texts = [self.programs.bench, *self.programs.scripts.values()]
            if option not in self.programs.everywhere() and not any(option in text for text in texts):
                self.mistake(prose.where, f"{option}: no program has this option")
            return
        names = {f"{program} {word}" for word in [prose.heading, *spans]}
        names |= {" ".join(span.split()[:2]) for span in spans if span.startswith(program + " ")}
        named = sorted(names & self.programs.options.keys())
        owners = [name for name in named if option in self.programs.options[name]]
        if not owners and (named or option not in self.programs.everywhere(program + " ")):
            self.mistake(prose.where, f"{option}: no option of {', '.join(named) or program}")
        for name in owners:
            self.options(prose.where, name, words[0])


def check_named(pages, folder, root):
    """(how many were named, mistakes)."""
    checker = Checker(Programs(folder, root))
    for page in pages:
        checker.page(page)
    return checker.count, checker.mistakes
