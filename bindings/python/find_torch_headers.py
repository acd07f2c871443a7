"""Prints the folder of torch's headers (>= 2.10), or nothing: for CMakeLists.txt, which runs it in the build folder.
With "installed" as its argument it fetches nothing.

torch is not imported. pip builds in an environment of its own without it; sysconfig still names the site-packages of the
environment that pip installs into. Where no torch is installed its wheel is fetched from the package index and the 2 MB
of headers are taken from it: the operators then wait for whichever torch comes later.
"""
import importlib.util
import pathlib
import subprocess
import sys
import sysconfig
import tempfile
import zipfile

WHEEL = "torch==2.10.0"
FOLDERS = ("torch/include/torch/csrc/stable/", "torch/include/torch/headeronly/", "torch/include/torch/csrc/inductor/aoti_torch/")


def is_new_enough(include: pathlib.Path) -> bool:
    shim = include / "torch/csrc/stable/c/shim.h"
    return shim.is_file() and "torch_call_dispatcher" in shim.read_text()


def installed() -> list[pathlib.Path]:
    folders = [pathlib.Path(sysconfig.get_path(name)) / "torch/include" for name in ("purelib", "platlib")]
    spec = importlib.util.find_spec("torch")
    if spec is not None and spec.submodule_search_locations:
        folders.insert(0, pathlib.Path(spec.submodule_search_locations[0]) / "include")
    return folders


def fetched(target: pathlib.Path) -> pathlib.Path:
    """Extracts the headers of WHEEL below `target`, unless they are there."""
    include = target / "torch/include"
    if is_new_enough(include):
        return include
    print(f"no torch here; fetching {WHEEL} for its headers (half a gigabyte, not kept)", file=sys.stderr)
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run([sys.executable, "-m", "pip", "download", "-q", "--no-deps", "--only-binary", ":all:", "-d", folder, WHEEL],
                       check=True, stdout=sys.stderr)
        with zipfile.ZipFile(next(pathlib.Path(folder).glob("*.whl"))) as wheel:
            wheel.extractall(target, [name for name in wheel.namelist() if name.startswith(FOLDERS)])
    return include


def main() -> None:
    for include in installed():
        if is_new_enough(include):
            print(include)
            return
    if sys.argv[1:] == ["installed"]:
        return
    try:
        print(fetched(pathlib.Path.cwd() / "torch_headers"))
    except (subprocess.CalledProcessError, OSError, StopIteration, zipfile.BadZipFile) as error:
        print(f"torch's headers were not fetched: {error}", file=sys.stderr)


if __name__ == "__main__":
    main()
