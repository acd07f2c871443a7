"""The challenge's ways of computing C, one a file: `from python.submission_best import custom_kernel`.

A file here is what a GPU MODE server runs, beside a task.py of its own, so none needs this package
(submission_fused.py alone needs the library). `dualgemm.gpumode` imports from here and holds no copy.
"""
