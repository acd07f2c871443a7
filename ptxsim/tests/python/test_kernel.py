"""ptxsim.run and ptxsim.time: arrays in and out, findings, errors, bad input."""

import numpy as np
import ptxsim
import pytest

HEAD = ".version 8.0\n.target sm_80\n.address_size 64\n"
# y[i] = x[i] + 1 for i < n.
ADD = (
    HEAD
    + """.visible .entry add(.param .u64 x, .param .u64 y, .param .u32 n)
{
  .reg .pred %p<2>;
  .reg .b32 %r<4>;
  .reg .f32 %f<3>;
  .reg .b64 %rd<6>;
  ld.param.u64 %rd1, [x];
  ld.param.u64 %rd2, [y];
  ld.param.u32 %r1, [n];
  mov.u32 %r2, %tid.x;
  setp.ge.u32 %p1, %r2, %r1;
  @%p1 ret;
  mul.wide.u32 %rd3, %r2, 4;
  add.s64 %rd4, %rd1, %rd3;
  add.s64 %rd5, %rd2, %rd3;
  ld.global.f32 %f1, [%rd4];
  add.f32 %f2, %f1, 0f3F800000;
  st.global.f32 [%rd5], %f2;
  ret;
}
"""
)
# Every thread of two CTAs writes its number into one word.
RACE = (
    HEAD
    + """.visible .entry race(.param .u64 x)
{
  .reg .b32 %r<2>;
  .reg .b64 %rd<2>;
  ld.param.u64 %rd1, [x];
  mov.u32 %r1, %ctaid.x;
  st.global.u32 [%rd1], %r1;
  ret;
}
"""
)


def test_arrays_come_back():
    x = np.arange(40, dtype=np.float32)
    result = ptxsim.run(ADD, block=64, args=[x, ptxsim.Unwritten(40, np.float32), np.uint32(40)])
    assert result.passed and result.error is None and result.findings == []
    np.testing.assert_array_equal(result.arrays[1], x + 1)
    np.testing.assert_array_equal(result.arrays[0], np.arange(40, dtype=np.float32))
    assert result.instructions["warp_instructions"] > 20


def test_shapes_and_types_stay(tmp_path):
    file = tmp_path / "add.ptx"
    file.write_text(ADD)
    x = np.arange(24, dtype=np.float32).reshape(2, 3, 4)[:, ::-1]
    y = ptxsim.run(file, "add", block=(32, 1), args=[x, np.zeros_like(x), np.uint32(24)]).arrays[1]
    assert y.shape == (2, 3, 4) and y.dtype == np.float32
    np.testing.assert_array_equal(y, x + 1)


def test_a_race_is_a_finding():
    result = ptxsim.run(RACE, grid=2, block=1, args=[np.zeros(1, np.uint32)], schedule="all")
    assert not result.passed and result.error is None
    assert {finding.rule for finding in result.findings} == {"R17"}
    assert result.findings[0].severity == "error" and result.findings[0].source.endswith("kernel.ptx:10")


def test_a_finding_can_be_known(tmp_path):
    known = tmp_path / "known.json"
    known.write_text('[{"rule": "R17", "kernel": "race", "reason": "the last one wins"}]')
    assert ptxsim.run(RACE, grid=2, args=[np.zeros(1, np.uint32)], suppress=known).passed


def test_a_fault_is_an_error_of_the_result():
    result = ptxsim.run(ADD, block=64, args=[np.zeros(40, np.float32), np.zeros(64, np.float32), np.uint32(64)])
    assert not result.passed and "is not inside a registered buffer" in result.error


def test_unwritten_memory_is_not_read_silently():
    result = ptxsim.run(ADD, block=32, args=[ptxsim.Unwritten(32, np.float32), np.zeros(32, np.float32), np.uint32(32)])
    assert not result.passed


ARGUMENTS = dict(grid=1, block=64, args=[np.zeros(64, np.float32), np.zeros(64, np.float32), np.uint32(64)])


def test_time_is_an_estimate_with_an_interval():
    time = ptxsim.time(ADD, gpu="h100", warm=True, graph=True, sass="off", **ARGUMENTS)
    assert 0.5 < time.low_us < time.us < time.high_us < 5
    assert time.unknown_percent == 0 and time.critical_path
    assert ptxsim.time(ADD, gpu="h100", sass="off", **ARGUMENTS).us > time.us
    assert time.details["instructions"]["from"] == "table"
    with pytest.raises(ptxsim.InputError, match="cannot read"):
        ptxsim.time(ADD, sass="none.sass", **ARGUMENTS)


def test_time_counts_where_there_are_tools(tmp_path, monkeypatch):
    listing = tmp_path / "listing"
    store = ADD.splitlines().index(next(line for line in ADD.splitlines() if "st.global" in line)) + 1
    listing.write_text(
        f'\t.section .text.add\n//## File ".nv_debug_ptx_txt", line {store}\n /*0000*/ STG.E desc[UR4][R4.64], R5 ;\n'
    )
    tools = {"ptxas": "exit 0", "nvdisasm": f"cat '{listing}'"}
    (tmp_path / "bin").mkdir()
    for name, does in tools.items():
        (tmp_path / "bin" / name).write_text(f"#!/bin/sh\n{does}\n")
        (tmp_path / "bin" / name).chmod(0o755)
    monkeypatch.setenv("CUDA_HOME", str(tmp_path))
    told = ptxsim.time(ADD, gpu="h100", **ARGUMENTS).details["instructions"]
    assert told["from"] == "ptxas" and told["counted"] > 0 and told["note"] == ""
    monkeypatch.setenv("CUDA_HOME", str(tmp_path / "nowhere"))
    monkeypatch.setenv("CUDA_PATH", "")
    monkeypatch.setenv("PATH", "")
    told = ptxsim.time(ADD, gpu="h100", **ARGUMENTS).details["instructions"]
    assert told["from"] == "table" and told["counted"] == 0 and told["note"] == "no ptxas was found"
    with pytest.raises(ptxsim.InputError, match="no ptxas in"):
        ptxsim.time(ADD, sass="ptxas", **ARGUMENTS)


@pytest.mark.parametrize(
    "change, message",
    [
        (dict(args=[np.zeros(4, np.float32), np.zeros(4, np.float32), 5]), r"args\[2\]: int; must be"),
        (dict(args=[np.zeros(4, np.float32)]), "bytes of parameters; entry 'add' has 20"),
        (dict(ptx="none.ptx"), "'none.ptx' is no file"),
        (dict(ptx=HEAD + "no ptx\n"), "error: "),
        (dict(entry="other"), "other"),
        (dict(schedule="slow"), "schedule"),
    ],
)
def test_what_is_not_valid_is_refused(change, message):
    arguments = dict(ptx=ADD, block=4, args=[np.zeros(4, np.float32), np.zeros(4, np.float32), np.uint32(4)]) | change
    with pytest.raises(ptxsim.InputError, match=message):
        ptxsim.run(**arguments)


def test_an_unknown_gpu_is_refused():
    with pytest.raises(ptxsim.InputError, match="b100"):
        ptxsim.time(RACE, gpu="b100", args=[np.zeros(1, np.uint32)])
