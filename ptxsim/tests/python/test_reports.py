"""What the package's command prints as JSON, by the schema in the package and a validator of others."""

import importlib.resources
import json
import subprocess
import sys

import jsonschema
import pytest

KERNEL = """
.version 8.0
.target sm_80
.address_size 64
.visible .entry store(.param .u64 x)
{
  .reg .b32 %r<2>;
  .reg .b64 %rd<2>;
  ld.param.u64 %rd1, [x];
  mov.u32 %r1, %tid.x;
  st.global.u32 [%rd1], %r1;
  ret;
}
"""
CASE = {"block": [64], "buffers": [{"name": "x", "type": "u32", "count": 1}], "params": [{"buffer": "x"}]}


@pytest.fixture
def validator():
    schema = json.loads((importlib.resources.files("ptxsim") / "reports.json").read_text())
    jsonschema.Draft202012Validator.check_schema(schema)
    return jsonschema.Draft202012Validator(schema)


@pytest.fixture
def printed(tmp_path):
    def run(*arguments):
        (tmp_path / "k.ptx").write_text(KERNEL)
        (tmp_path / "c.json").write_text(json.dumps(CASE))
        command = [sys.executable, "-P", "-m", "ptxsim", *arguments, "k.ptx", "--case", "c.json", "--json"]
        return json.loads(subprocess.run(command, capture_output=True, text=True, cwd=tmp_path).stdout)

    return run


def test_reports_fit_the_schema(validator, printed):
    runs = printed("run", "--schedule", "all")
    assert [report["rule"] for run in runs for report in run["reports"] if report["severity"] == "error"] == ["R17"] * 3
    validator.validate(runs)
    validator.validate(printed("time", "--gpu", "h100"))


def test_another_report_does_not(validator, printed):
    runs = printed("run")
    runs[0]["reports"][0]["severity"] = "fatal"
    with pytest.raises(jsonschema.ValidationError):
        validator.validate(runs)
