"""The tutorials: every block of Python in them is run, in order."""

import importlib.util
import re
from pathlib import Path

import pytest
import stan_toolchain

ROOT = Path(__file__).parents[3]
DOCUMENTS = [ROOT / "README.md", *sorted((ROOT / "docs" / "python").glob("*.md"))]


def test_there_are_tutorials():
    assert len(DOCUMENTS) > 8


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: str(path.relative_to(ROOT)))
def test_blocks_run(document, tmp_path, monkeypatch):
    text = document.read_text(encoding="utf-8")
    needs = re.search(r"<!-- needs: (.*?) -->", text)
    for package in needs.group(1).split() if needs else []:
        if importlib.util.find_spec(package) is None:
            pytest.skip(f"{package} is not installed: pip install {package}")
    if "<!-- needs the Stan toolchain -->" in text:
        stan_toolchain.require_toolchain()
    monkeypatch.chdir(tmp_path)
    blocks = re.findall(r"^```python\n(.*?)^```", text, re.DOTALL | re.MULTILINE)
    assert blocks
    names: dict = {"__name__": "__main__"}
    for block in blocks:
        # Lines are numbered as in the document.
        above = text[: text.index(block)].count("\n")
        exec(compile("\n" * above + block, str(document), "exec"), names)
