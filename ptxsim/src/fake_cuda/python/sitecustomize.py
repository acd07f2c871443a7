"""Below `ptxsim exec`, for Python programs: cuda.bindings.runtime has NVIDIA's runtime linked into it without its names,
which would look for NVIDIA's driver. The calls that CuTe DSL's launchers make of it are answered by the stand-in."""

import ctypes
import importlib.machinery
import importlib.util
import os
import sys

MODULE = "cuda.bindings.runtime"


def _answer(module):
    runtime = ctypes.CDLL(None)  # the preloaded library

    def cudaGetDeviceCount():
        count = ctypes.c_int()
        status = module.cudaError_t(runtime.cudaGetDeviceCount(ctypes.byref(count)))
        return status, count.value

    def cudaLibraryUnload(library):
        return (module.cudaError_t(runtime.cudaLibraryUnload(ctypes.c_void_p(int(library)))),)

    module.cudaGetDeviceCount = cudaGetDeviceCount
    module.cudaLibraryUnload = cudaLibraryUnload


class _Finder:
    @staticmethod
    def find_spec(name, path=None, target=None):
        if name != MODULE:
            return None
        spec = importlib.machinery.PathFinder.find_spec(name, path, target)
        if spec is not None:
            execute = spec.loader.exec_module

            def exec_module(module):
                execute(module)
                _answer(module)

            spec.loader.exec_module = exec_module
        return spec


def _run_the_next_one():
    """The sitecustomize that this one hides."""
    here = os.path.dirname(os.path.abspath(__file__))
    places = [place for place in sys.path if os.path.abspath(place or ".") != here]
    spec = importlib.machinery.PathFinder.find_spec("sitecustomize", places)
    if spec is not None:
        spec.loader.exec_module(importlib.util.module_from_spec(spec))


sys.meta_path.insert(0, _Finder)
_run_the_next_one()
