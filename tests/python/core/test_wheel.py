"""What is in the wheel, and what is not. DUALGEMM_WHEEL names it (scripts/test_python does)."""

from __future__ import annotations

import email
import os
import pathlib
import re
import zipfile

import dualgemm
import pytest

ROOT = pathlib.Path(__file__).parents[3]
WHEEL = os.environ.get("DUALGEMM_WHEEL", "")
pytestmark = pytest.mark.skipif(not WHEEL, reason="DUALGEMM_WHEEL names no wheel")


@pytest.fixture
def wheel() -> zipfile.ZipFile:
    return zipfile.ZipFile(WHEEL)


def test_one_file_for_every_python_and_gpu(wheel: zipfile.ZipFile) -> None:
    path = pathlib.Path(WHEEL)
    assert re.fullmatch(r"dualgemm-[0-9.]+-py3-none-manylinux_2_\d+_\w+\.whl", path.name)
    assert path.stat().st_size <= 20_000_000
    names = wheel.namelist()
    assert {"dualgemm/py.typed", "dualgemm/lib/libdualgemm.so.0", "dualgemm/lib/libdualgemm_checkpoint.so.0"} <= set(names)
    sources = {
        f"dualgemm/{path.relative_to(ROOT / 'bindings/python/dualgemm')}"
        for path in (ROOT / "bindings/python/dualgemm").rglob("*.py")
    }
    sources |= {
        f"dualgemm/gpumode/submissions/{path.name}" for path in (ROOT / "python").glob("*.py") if path.stem != "__init__"
    }
    assert sources == {name for name in names if name.endswith(".py")}
    assert "dualgemm/bin/dualgemm" in names
    libraries = [name for name in names if ".so" in name]
    assert all(re.search(r"/(_torch|_jax|lib/libdualgemm(_checkpoint)?)\.so(\.0)?$", name) for name in libraries), libraries


def test_no_path_of_the_machine_that_built_it(wheel: zipfile.ZipFile) -> None:
    for name in wheel.namelist():
        if name.endswith((".py", "METADATA")) or "_torch.so" in name:
            assert str(ROOT).encode() + b"/build" not in wheel.read(name), name


def test_metadata(wheel: zipfile.ZipFile) -> None:
    folder = next(name.split("/")[0] for name in wheel.namelist() if ".dist-info/" in name)
    metadata = email.message_from_bytes(wheel.read(f"{folder}/METADATA"))
    numbers = re.findall(r"VERSION_(?:MAJOR|MINOR|PATCH) (\d+)", (ROOT / "include/dualgemm/version.h").read_text())
    assert metadata["Version"] == ".".join(numbers) == dualgemm.__version__
    assert metadata["Requires-Python"] == ">=3.10"
    assert not [need for need in metadata.get_all("Requires-Dist", []) if "extra ==" not in need]
    entry_points = wheel.read(f"{folder}/entry_points.txt").decode()
    assert "[console_scripts]" in entry_points and "dualgemm = dualgemm._command:main" in entry_points
    assert "[vllm.general_plugins]" in entry_points and "[sglang.srt.plugins]" in entry_points
