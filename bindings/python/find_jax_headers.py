"""Prints the folder of XLA's headers in an installed jaxlib, or nothing: for CMakeLists.txt. jaxlib is not imported."""
import importlib.util
import pathlib
import sysconfig


def main() -> None:
    folders = [pathlib.Path(sysconfig.get_path(name)) / "jaxlib/include" for name in ("purelib", "platlib")]
    spec = importlib.util.find_spec("jaxlib")
    if spec is not None and spec.submodule_search_locations:
        folders.insert(0, pathlib.Path(spec.submodule_search_locations[0]) / "include")
    for folder in folders:
        if (folder / "xla/ffi/api/ffi.h").is_file():
            print(folder)
            return


if __name__ == "__main__":
    main()
