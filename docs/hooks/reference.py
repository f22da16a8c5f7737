"""The API reference: one page a package with every name that it exports.

As a hook of MkDocs this file writes the pages; as an extension of Griffe it turns the docstrings'
notation (reStructuredText formulas, ``Example:`` sections, names in backticks) into Markdown.
"""

from __future__ import annotations

import re
import sys
import textwrap
from functools import cache
from importlib import import_module
from pathlib import Path
from types import ModuleType

import griffe
from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files

PACKAGES = (
    "nlsf.spectral",
    "nlsf.nn",
    "nlsf.nn.models",
    "nlsf.nn.plans",
    "nlsf.peers",
    "nlsf.transforms",
    "nlsf.data",
    "nlsf.train",
    "nlsf.tables",
    "nlsf.report",
    "nlsf.lab",
    "nlsf.cluster",
    "nlsf.testing",
    "nlsf.plotting",
    "nlsf.errors",
)


def on_files(files: Files, *, config: MkDocsConfig) -> None:
    """Adds the page of every package."""
    pages = {"index": overview(), **{package: page_of(package) for package in PACKAGES}}
    for name, content in pages.items():
        files.append(File.generated(config, f"reference/{name}.md", content=content))


def overview() -> str:
    """The first page: what each package is for."""
    rows = ["| package | what |", "|---|---|"]
    for package in PACKAGES:
        first = (import_module(package).__doc__ or "").split("\n\n")[0].replace("\n", " ")
        rows.append(f"| [`{package}`]({package}.md) | {first} |")
    return (
        "# Reference\n\nEverything that the packages export, from the docstrings.\n\n"
        + "\n".join(rows)
    )


def page_of(package: str) -> str:
    """The page of a package, as Markdown."""
    module = import_module(package)
    parts = [f"# {package}", markdown_of(module.__doc__ or "")]
    for name, path in sorted(exported(package).items(), key=lambda item: item[0].lower()):
        if path not in _on_earlier_pages(package):
            # The heading is what one imports; the definition may lie in a file of the package.
            parts.append(
                f"::: {path}\n    options:\n      heading: {name}\n      toc_label: {name}"
            )
    return "\n\n".join(parts)


@cache
def exported(package: str) -> dict[str, str]:
    """Where each exported name of a package is defined."""
    module = import_module(package)
    names = getattr(module, "__all__", None) or _own_names(module)
    return {name: _definition(module, name) for name in names}


def _on_earlier_pages(package: str) -> set[str]:
    before = PACKAGES[: PACKAGES.index(package)]
    return {path for earlier in before for path in exported(earlier).values()}


def _own_names(module: ModuleType) -> list[str]:
    """Public functions and classes of a file without ``__all__``."""
    members = vars(module).items()
    return [
        name
        for name, value in members
        if not name.startswith("_") and getattr(value, "__module__", "") == module.__name__
    ]


def _definition(package: ModuleType, name: str) -> str:
    value = getattr(package, name)
    home = getattr(value, "__module__", "")
    if home.startswith("nlsf.") and getattr(value, "__name__", "") == name:
        # A class may go by the name of an older place: its file is that of the module there.
        return f"{sys.modules[home].__name__}.{name}"
    # A constant or an alias does not know its file.
    assigned = re.compile(rf"^{name}\b.*=", flags=re.MULTILINE)
    for other, module in sorted(sys.modules.items()):
        if other.startswith(package.__name__) and vars(module).get(name) is value:
            source = getattr(module, "__file__", None)
            if source and assigned.search(Path(source).read_text()):
                return f"{other}.{name}"
    raise LookupError(f"{package.__name__}.{name} is exported, but defined nowhere.")


@cache
def _places() -> dict[str, str]:
    """Where each name is that only one package exports."""
    places: dict[str, str] = {}
    twice = set()
    for package in PACKAGES:
        for name, path in exported(package).items():
            if places.setdefault(name, path) != path:
                twice.add(name)
    return {name: path for name, path in places.items() if name not in twice}


def markdown_of(docstring: str) -> str:
    """A docstring in the Markdown that mkdocstrings reads."""
    text = re.sub(
        r"^( *)\.\. math::( .*\n|\n(?:\1 +.*\n?|\n(?=\1 ))+)", _formula, docstring, flags=re.M
    )
    text = re.sub(r"^( *)\.\. code-block:: (\w+)\n\n((?:\1 +.*\n?|\n)+)", _code, text, flags=re.M)
    text = re.sub(r":math:`([^`]+)`", r"$\1$", text)
    text = re.sub(r"^( *)Example:$", r"\1Examples:", text, flags=re.MULTILINE)
    return re.sub(r"(?<![`\w$\[])`([A-Za-z][\w.]*)`(?![`\w\]])", _link, text)


def _formula(match: re.Match[str]) -> str:
    indent = match[1]
    body = textwrap.indent(textwrap.dedent(match[2]).strip(), indent)
    return f"{indent}$$\n{body}\n{indent}$$\n\n"


def _code(match: re.Match[str]) -> str:
    indent, language = match[1], match[2]
    body = textwrap.indent(textwrap.dedent(match[3]).strip("\n"), indent)
    return f"{indent}```{language}\n{body}\n{indent}```\n\n"


def _link(match: re.Match[str]) -> str:
    """A name in backticks, as a link where it has a place in the reference."""
    name = match[1]
    package, _, last = name.rpartition(".")
    path = exported(package).get(last) if package in PACKAGES else _places().get(name)
    return f"[`{name}`][{path}]" if path else match[0]


class DocstringNotation(griffe.Extension):
    """Rewrites every docstring before Griffe takes it apart."""

    def on_object(self, *, obj: griffe.Object, **_: object) -> None:
        """Called for every module, class, function and attribute."""
        if obj.docstring:
            obj.docstring.value = markdown_of(obj.docstring.value)
