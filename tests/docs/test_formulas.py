"""Formulas become MathML that browsers show, or end the build."""

import importlib.util
from pathlib import Path

import pytest
from mkdocs.exceptions import PluginError

HOOK = Path(__file__).parents[2] / "docs" / "hooks" / "formulas.py"


@pytest.fixture(scope="module")
def mathml():
    spec = importlib.util.spec_from_file_location("formulas", HOOK)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.mathml


def test_lines_are_rows_of_a_table(mathml):
    """``<mspace linebreak="newline">`` would be shown as one line."""
    shown = mathml(r"a = 1 \\ b = 2", "page.md", "block")
    assert shown.count("<mtr>") == 2
    assert "linebreak" not in shown


def test_what_is_not_known_ends_the_build(mathml):
    with pytest.raises(PluginError, match=r"page\.md: .*notacommand"):
        mathml(r"\notacommand{x}", "page.md")
