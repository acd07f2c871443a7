"""pytest's plug-in: a test with the mark ``ptxsim`` runs in a process of its own below ``ptxsim exec``, and fails on findings.

    @pytest.mark.ptxsim                            # or ptxsim(device="b200", strict=True)
    def test_kernel(): ...

``--ptxsim-baseline FILE``: findings that are known, as `exec --baseline` has them (docs/command.md); only others fail.
``--ptxsim-write-baseline FILE``: writes those of this run there.
"""

from __future__ import annotations

import json
import os
import pathlib
import subprocess
import sys
import tempfile
from typing import Any

import pytest

from ptxsim._files import command

_INSIDE = "PTXSIM_PYTEST_INSIDE"
_KNOWN: list[dict[str, Any]] = []


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("ptxsim")
    group.addoption("--ptxsim-baseline", metavar="FILE", help="findings that are known: only others fail")
    group.addoption("--ptxsim-write-baseline", metavar="FILE", help="write the findings of this run to a baseline")


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "ptxsim(device='h100', strict=False, timeout=600): run the test below `ptxsim exec`")


def _report(item: pytest.Item, mark: pytest.Mark, folder: pathlib.Path) -> dict[str, Any]:
    """What `exec` says of the test, run in a process of its own."""
    cache, kept, report, known = (folder / name for name in ("cache", "kept", "report.json", "known.json"))
    for made in (cache, kept):
        made.mkdir()
    arguments = [str(command()), "exec", "--device", mark.kwargs.get("device", "h100"), "--json", "--report", str(report)]
    arguments += ["--ptx", str(cache), "--ptx", str(kept)] + ["--strict"] * bool(mark.kwargs.get("strict"))
    if item.config.getoption("--ptxsim-write-baseline"):
        arguments += ["--write-baseline", str(known)]
    elif baseline := item.config.getoption("--ptxsim-baseline"):
        arguments += ["--baseline", str(pathlib.Path(baseline).resolve())]
    library = command().resolve().parent.parent / "lib" / "ptxsim"
    environment = os.environ | {_INSIDE: "1", "TRITON_CACHE_DIR": str(cache), "TRITON_LIBCUDA_PATH": str(library)}
    # CuTe DSL writes the PTX of what it compiles, with the lines of the source, and takes nothing from an earlier run.
    environment |= {"CUTE_DSL_KEEP": "ptx,cubin", "CUTE_DSL_DUMP_DIR": str(kept), "CUTE_DSL_LINEINFO": "1"}
    environment |= {"CUTE_DSL_CACHE_DIR": str(folder / "cute")}
    # The same test, whatever folder pytest takes for its root.
    test = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "no:xdist"]
    test += ["--rootdir", str(item.config.rootpath), "::".join([str(item.path), *item.nodeid.split("::")[1:]])]
    done = subprocess.run(
        [*arguments, "--", *test],
        cwd=item.config.rootpath,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=mark.kwargs.get("timeout", 600),
    )
    if not report.exists():
        pytest.fail(done.stdout, pytrace=False)
    told: dict[str, Any] = json.loads(report.read_text())
    told["output"] = done.stdout
    if known.exists():
        _KNOWN.extend(entry for entry in json.loads(known.read_text()) if entry not in _KNOWN)
    return told


@pytest.hookimpl(tryfirst=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> bool | None:
    mark = pyfuncitem.get_closest_marker("ptxsim")
    if mark is None or os.environ.get(_INSIDE):
        return None
    with tempfile.TemporaryDirectory(prefix="ptxsim-") as name:
        told = _report(pyfuncitem, mark, pathlib.Path(name))
    findings = told.get("findings", [])
    bad = [f for f in findings if f["severity"] == "error" or mark.kwargs.get("strict")]
    if bad:
        pytest.fail("\n\n".join(finding["text"] for finding in bad), pytrace=False)
    if told["status"] != 0:
        pytest.fail(told["output"], pytrace=False)
    return True


def pytest_sessionfinish(session: pytest.Session) -> None:
    file = session.config.getoption("--ptxsim-write-baseline")
    if hasattr(session.config, "workeroutput"):  # of pytest-xdist: the first process writes
        session.config.workeroutput["ptxsim"] = _KNOWN
    elif file and not os.environ.get(_INSIDE):
        pathlib.Path(file).write_text(json.dumps(_KNOWN, indent=1) + "\n")


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node: Any) -> None:
    for entry in getattr(node, "workeroutput", {}).get("ptxsim", []):
        if entry not in _KNOWN:
            _KNOWN.append(entry)
