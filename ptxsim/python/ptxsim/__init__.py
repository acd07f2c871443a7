"""ptxsim: runs kernels in PTX without a GPU, finds races in them, and estimates their time.

``run`` and ``time`` take a kernel and arrays of NumPy; ``ptxsim.triton`` launches Triton's kernels below ``ptxsim exec``; the
pytest plug-in runs tests that are marked ``ptxsim`` there, and fails on findings. docs/python.md has examples.
"""

from ptxsim._kernel import Finding, InputError, Result, Time, Unwritten, run, time

__all__ = ["Finding", "InputError", "Result", "Time", "Unwritten", "run", "time"]
