"""The least versions are those that pyproject.toml names."""

import pytest
from packaging.requirements import Requirement
from packaging.version import Version

import minimum_versions


def test_bounds_become_pins():
    lines = minimum_versions.oldest(["b>=2.1,<3", "A>=1", "c[extra]==4"])
    assert lines == ["A==1", "b==2.1", "c==4"]


@pytest.mark.parametrize("text", ["a", "a<3", "a!=2"])
def test_a_requirement_without_a_bound_is_named(text):
    with pytest.raises(ValueError, match=f"{text} must have one lower bound"):
        minimum_versions.oldest([text])


def test_extras_of_extras_are_followed():
    alone, docs = (minimum_versions.declared(e) for e in ((), ("docs",)))
    assert set(alone) < set(docs)
    names = {Requirement(text).name for text in docs}
    assert {"mkdocs", "dask", "optuna", "matplotlib"} <= names
    assert "nlsf" not in names


def test_everything_has_a_bound_that_the_pins_keep():
    """`make` installs versions within the ranges; a name that pip spells otherwise is the same."""
    root = minimum_versions.PYPROJECT.parent
    pins = dict(
        line.lower().replace("_", "-").split("==")
        for line in (root / "constraints.txt").read_text().splitlines()
        if "==" in line
    )
    for line in minimum_versions.oldest(minimum_versions.declared(["dev"])):
        name, least = line.lower().replace("_", "-").split("==")
        assert Version(pins[name]) >= Version(least), name
