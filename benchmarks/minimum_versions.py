"""The lower bounds of pyproject.toml as a constraints file, to try the oldest versions allowed.

    python benchmarks/minimum_versions.py > oldest.txt             of the package itself
    python benchmarks/minimum_versions.py tune cluster > oldest.txt    with those of extras
    python -m venv old && old/bin/pip install -c oldest.txt '.[tune,cluster]' pytest

A bound is worth what was tried with it: `docs/decisions.md` says what was.
"""

import argparse
import tomllib
from collections.abc import Iterable
from pathlib import Path

from packaging.requirements import Requirement

PYPROJECT = Path(__file__).parents[1] / "pyproject.toml"


def oldest(requirements: Iterable[str]) -> list[str]:
    """The least version of each requirement as a line ``name==version``, sorted by name.

    Raises:
        ValueError: a requirement has no lower bound, so that any version would do.
    """
    lines = []
    for text in requirements:
        requirement = Requirement(text)
        bounds = [s.version for s in requirement.specifier if s.operator in (">=", "==", "~=")]
        if len(bounds) != 1:
            raise ValueError(f"{text} must have one lower bound.")
        lines.append(f"{requirement.name}=={bounds[0]}")
    return sorted(lines, key=str.lower)


def declared(extras: Iterable[str] = ()) -> list[str]:
    """The requirements of the package and of these extras; extras of extras are followed."""
    project = tomllib.loads(PYPROJECT.read_text())["project"]
    found = list(project["dependencies"])
    waiting, seen = list(extras), set()
    while waiting:
        extra = waiting.pop()
        if extra in seen:
            continue
        seen.add(extra)
        for text in project["optional-dependencies"][extra]:
            requirement = Requirement(text)
            if requirement.name == project["name"]:
                waiting += requirement.extras
            else:
                found.append(text)
    return list(dict.fromkeys(found))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("extras", nargs="*", help="extras of pyproject.toml")
    print("\n".join(oldest(declared(parser.parse_args().extras))))


if __name__ == "__main__":
    main()
