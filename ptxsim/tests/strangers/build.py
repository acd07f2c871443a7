"""Compiles a stranger's program, as it is, to PTX for the GPU that it is for."""

from __future__ import annotations

import pathlib
import shutil
import subprocess

from programs import HERE, Program

HEADERS = (".h", ".hpp", ".cuh")


def nvcc() -> str | None:
    return shutil.which("nvcc") or shutil.which("/usr/local/cuda/bin/nvcc")


def resized(program: Program, sources: list[pathlib.Path], folder: pathlib.Path) -> tuple[list[pathlib.Path], str]:
    """Copies of the sources, and of the headers beside them, with sizes of ours, and what is wrong."""
    folder.mkdir(parents=True, exist_ok=True)
    left = dict(program.sizes)
    headers = [file for source in sources for file in source.parent.iterdir() if file.suffix in HEADERS]
    for file in [*sources, *headers]:
        text = file.read_text(encoding="utf-8", errors="surrogateescape")
        for theirs, ours in program.sizes.items():
            if theirs in text:
                left.pop(theirs, None)
            text = text.replace(theirs, ours)
        (folder / file.name).write_text(text, encoding="utf-8", errors="surrogateescape")
    copies = [folder / source.name for source in sources]
    return copies, f"sizes: {next(iter(left))!r} is in none of the sources" if left else ""


def flags_of(program: Program, checkout: pathlib.Path, output: pathlib.Path) -> list[str]:
    """The program's own, with folders for CHECKOUT, FILES (what its script writes) and TESTS (this one)."""
    places = {"CHECKOUT": checkout, "FILES": output.with_suffix(".files"), "TESTS": HERE}
    flags = []
    for flag in program.flags:
        for word, place in places.items():
            flag = flag.replace(word, str(place))
        flags.append(flag)
    return flags


def compiled(program: Program, checkout: pathlib.Path, driver: pathlib.Path, output: pathlib.Path) -> str:
    """What is wrong; nothing: the program is at `output`."""
    folder = checkout / program.folder
    sources = [folder / name for name in program.sources]
    missing = [str(source) for source in sources if not source.is_file()]
    if missing:
        return f"{missing[0]} is not there; the checkout must be that of the revision in the list"
    compute = program.target.replace("sm_", "compute_")
    parents = [source.parent for source in sources] if program.sizes else []
    if program.sizes:
        sources, wrong = resized(program, sources, output.with_suffix(".sources"))
        if wrong:
            return wrong
    options = [f"-gencode=arch={compute},code={compute}", "-O2", "-lineinfo", "-w"]
    options += [option for parent in dict.fromkeys([folder, *parents]) for option in ("-I", str(parent))]
    options += flags_of(program, checkout, output)
    if program.program:
        options.append(f'-DSTRANGER="{sources[0]}"')
        sources = [HERE / "sources" / program.program]
    linked = [f"-L{driver}", "-l:libcuda.so.1", "-Xlinker", "--allow-shlib-undefined"]
    commands = [[*options, "-o", str(output), *map(str, sources), *linked]]
    for name, source in program.kernels.items():
        kind = "-ptx" if name.endswith(".ptx") else "-fatbin"
        commands.append([*options, kind, "-o", str(folder / name), str(folder / source)])
    output.parent.mkdir(parents=True, exist_ok=True)
    for command in commands:
        done = subprocess.run([nvcc() or "nvcc", *command], capture_output=True, text=True, errors="replace", check=False)
        if done.returncode:
            lines = [line for line in (done.stderr + done.stdout).splitlines() if "error" in line]
            return (lines or [f"nvcc ended with {done.returncode}"])[0]
    return ""
