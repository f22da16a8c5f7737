"""The README's Python runs as it stands there, and its links lead somewhere."""

import re
from pathlib import Path

README = Path(__file__).parents[1] / "README.md"


def test_python_blocks_run():
    blocks = re.findall(r"```python\n(.*?)```", README.read_text(), flags=re.DOTALL)
    assert blocks
    for block in blocks:
        exec(compile(block, str(README), "exec"), {})


def test_links_lead_somewhere():
    for path in (README, README.with_name("CONTRIBUTING.md"), README.parent / "examples/README.md"):
        links = re.findall(r"\]\(([^)#]+)[^)]*\)", path.read_text())
        local = [link for link in links if not link.startswith("http")]
        assert [link for link in local if not (path.parent / link).exists()] == []
        assert local or path.stem == "CONTRIBUTING"
