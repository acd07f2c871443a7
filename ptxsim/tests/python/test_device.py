"""Arrays without a GPU and without `ptxsim exec`: an error that says what is missing."""

import ctypes

import pytest
from ptxsim import _device


def test_without_exec(monkeypatch):
    def missing(name):
        raise OSError(f"{name}: cannot open shared object file")

    monkeypatch.setattr(ctypes, "CDLL", missing)
    with pytest.raises(RuntimeError, match="libcuda.so.1.*a test needs the mark `ptxsim`, and a program `ptxsim exec`"):
        _device.cuda.__wrapped__()


def test_a_status_is_told():
    with pytest.raises(RuntimeError, match="cuMemAlloc: status 2; is the program run by `ptxsim exec`"):
        _device.check(2, "cuMemAlloc")
