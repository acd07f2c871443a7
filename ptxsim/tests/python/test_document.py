"""docs/python.md's snippets run."""

import pathlib
import re

PAGE = pathlib.Path(__file__).resolve().parents[2] / "docs/python.md"


def test_snippets_run(capsys):
    snippets = re.findall(r"(?<!-->\n)^```python\n(.*?)^```$", PAGE.read_text(), flags=re.S | re.M)
    assert len(snippets) == 1
    exec(compile(snippets[0], str(PAGE), "exec"), {})
    counted, estimate = capsys.readouterr().out.splitlines()
    assert f'print(result.instructions["warp_instructions"])  # {counted}:' in snippets[0]
    assert estimate.endswith("an estimate")


def test_the_test_of_the_page_is_that_of_the_plug_in():
    kernel = re.search(r"^def collide.*?\n\n", PAGE.read_text(), flags=re.S | re.M).group()
    assert "tl.store(y + at % 4, tl.load(x + at))" in kernel
    assert "tl.store(y + at % 4, tl.load(x + at))" in (PAGE.parents[1] / "tests/python/test_pytest_plugin.py").read_text()
