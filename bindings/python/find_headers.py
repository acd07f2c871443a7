"""Prints the folder of the headers of torch (>= 2.10) or jaxlib, or nothing: for CMake and scripts/, neither is imported.

python3 find_headers.py torch|jaxlib [installed|fetched]

installed: those of the environment that is built for. pip builds in an environment of its own, without them; sysconfig still
names the site-packages of the one that pip installs into.
fetched: from the oldest wheel that is served, out of the package index, kept in the current folder: one file built with
them serves it and all newer ones. By default installed ones are taken first and torch's are fetched if there are none: its
operators then wait for whichever torch comes later.
"""

import dataclasses
import importlib.util
import pathlib
import subprocess
import sys
import sysconfig
import tempfile
import zipfile


@dataclasses.dataclass
class Headers:
    wheel: str
    include: str
    folders: tuple[str, ...]
    proof: str  # a header that must be there, and what must be in it
    text: str


KNOWN = {
    "torch": Headers(
        "torch==2.10.0",
        "torch/include",
        ("torch/csrc/stable/", "torch/headeronly/", "torch/csrc/inductor/aoti_torch/"),
        "torch/csrc/stable/c/shim.h",
        "torch_call_dispatcher",
    ),
    "jaxlib": Headers("jaxlib==0.6.0", "jaxlib/include", ("",), "xla/ffi/api/ffi.h", "XLA_FFI"),
}


def is_usable(headers: Headers, include: pathlib.Path) -> bool:
    proof = include / headers.proof
    return proof.is_file() and headers.text in proof.read_text()


def installed(name: str, headers: Headers) -> pathlib.Path | None:
    folders = [pathlib.Path(sysconfig.get_path(path)) for path in ("purelib", "platlib")]
    spec = importlib.util.find_spec(name)
    if spec is not None and spec.submodule_search_locations:
        folders.insert(0, pathlib.Path(spec.submodule_search_locations[0]).parent)
    return next((folder / headers.include for folder in folders if is_usable(headers, folder / headers.include)), None)


def fetched(name: str, headers: Headers) -> pathlib.Path | None:
    target = pathlib.Path.cwd() / f"{name}_headers"
    include = target / headers.include
    if is_usable(headers, include):
        return include
    print(f"fetching {headers.wheel} for its headers; the wheel is not kept", file=sys.stderr)
    try:
        with tempfile.TemporaryDirectory() as folder:
            subprocess.run(
                [
                    sys.executable,
                    "-m",
                    "pip",
                    "download",
                    "-q",
                    "--no-deps",
                    "--only-binary",
                    ":all:",
                    "-d",
                    folder,
                    headers.wheel,
                ],
                check=True,
                stdout=sys.stderr,
            )
            with zipfile.ZipFile(next(pathlib.Path(folder).glob("*.whl"))) as wheel:
                wanted = tuple(f"{headers.include}/{part}" for part in headers.folders)
                wheel.extractall(target, [entry for entry in wheel.namelist() if entry.startswith(wanted)])
    except (subprocess.CalledProcessError, OSError, StopIteration, zipfile.BadZipFile) as error:
        print(f"{name}'s headers were not fetched: {error}", file=sys.stderr)
        return None
    return include


def main() -> None:
    name, way = sys.argv[1], sys.argv[2] if len(sys.argv) > 2 else "any"
    headers = KNOWN[name]
    found = None if way == "fetched" else installed(name, headers)
    if found is None and (way == "fetched" or (way == "any" and name == "torch")):
        found = fetched(name, headers)
    if found is not None:
        print(found)


if __name__ == "__main__":
    main()
