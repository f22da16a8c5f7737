"""Dependencies point one way, and importing the package is cheap."""

import ast
import graphlib
import importlib
import re
import subprocess
import sys
import typing
from pathlib import Path

import pytest
import torch

import nlsf

SOURCE = Path(nlsf.__file__).parent
MAY_USE = {
    "__main__": {"cli"},
    "errors": set(),
    "store": {"errors"},
    "display": set(),
    "spectral": {"errors", "store"},
    "nn": {"errors", "store", "spectral"},
    "peers": {"errors", "store", "spectral", "nn", "data"},
    "transforms": {"errors", "store", "spectral"},
    "cluster": {"errors", "store", "display", "spectral"},
    "data": {"errors", "store", "display"},
    "testing": {"errors", "spectral"},
    "plotting": {"errors", "store", "spectral"},
    "train": {"errors", "store", "display", "spectral", "nn", "data", "peers"},
    "report": {"errors", "store", "display", "spectral", "nn", "data", "train"},
    "tables": {"errors", "store", "display", "spectral", "nn", "data", "train"},
    "lab": {"errors", "store", "display", "spectral", "nn", "data", "train", "testing", "report"},
    "cli": {
        "errors",
        "store",
        "display",
        "spectral",
        "nn",
        "transforms",
        "cluster",
        "data",
        "train",
        "plotting",
        "report",
        "tables",
        "lab",
    },
}


FILES = sorted(SOURCE.rglob("*.py"))
AT_MOST = 200
"""Files. What needs one more is most often a part of one that is there."""


def layer_of(path):
    """The package of a file, or the file where it stands alone."""
    inside = path.relative_to(SOURCE) if path.is_relative_to(SOURCE) else path
    return inside.parts[0].removesuffix(".py")


def module_name(path):
    """``nlsf.data.readers.tu`` of that file; that of a package for its ``__init__``."""
    parts = ("nlsf", *path.relative_to(SOURCE).with_suffix("").parts)
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


MODULES = {module_name(path): path for path in FILES}


def imports(tree):
    """The full names of what a file imports from nlsf, at once, inside functions or for types."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (a.name for a in node.names if a.name.split(".")[0] == "nlsf")
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, "say where it is: from nlsf... import ..."
            if node.module.split(".")[0] == "nlsf":
                yield from (f"{node.module}.{alias.name}" for alias in node.names)


def layers_of(path):
    """The parts of nlsf that a file imports."""
    return {name.split(".")[1] for name in imports(ast.parse(path.read_text()))}


def module_of(name):
    """The module that an imported name is, or is in."""
    return name if name in MODULES else name.rpartition(".")[0]


def test_dependencies_point_one_way():
    layers = {layer_of(path) for path in FILES} - {"__init__"}
    assert layers == set(MAY_USE), "say in this test what a package may depend on"
    for path in FILES:
        layer = layer_of(path)
        assert layer == "__init__" or layers_of(path) <= MAY_USE[layer] | {layer}, path


def test_the_layers_have_an_order():
    graphlib.TopologicalSorter(MAY_USE).prepare()


def circle(modules):
    """Modules that import one another in a circle, the first one again at the end; else empty."""
    uses = {
        name: {module_of(found) for found in imports(ast.parse(path.read_text()))} - {name}
        for name, path in modules.items()
    }
    assert sum(map(len, uses.values())) >= len(modules) - 1
    try:
        graphlib.TopologicalSorter(uses).prepare()
    except graphlib.CycleError as error:
        return error.args[1]
    return []


def test_no_two_files_import_each_other(tmp_path, monkeypatch):
    assert circle(MODULES) == []
    # The look itself sees imports for types, and inside functions.
    first, second = tmp_path / "first.py", tmp_path / "second.py"
    first.write_text("if TYPE_CHECKING:\n    from nlsf.second import Second\n")
    second.write_text("def second():\n    from nlsf.first import First\n")
    modules = {"nlsf.first": first, "nlsf.second": second}
    monkeypatch.setitem(globals(), "MODULES", modules)
    assert set(circle(modules)) == {"nlsf.first", "nlsf.second"}


def private_uses(path):
    """What a file uses of other packages although its name begins with an underscore."""
    tree, own = ast.parse(path.read_text()), module_name(path)
    imported = list(imports(tree))
    for name in imported:
        parts = name.split(".")
        private = [k for k, part in enumerate(parts) if re.match("_[^_]", part)]
        if private:
            holder = ".".join(parts[: private[0]])
            package = holder if MODULES[holder].name == "__init__.py" else holder.rpartition(".")[0]
            if not f"{own}.".startswith(f"{package}."):
                yield f"{own}: {name}"
    modules = {name.rpartition(".")[2] for name in imported if name in MODULES}
    for node in ast.walk(tree):
        private = isinstance(node, ast.Attribute) and re.match("_[^_]", node.attr)
        if private and isinstance(node.value, ast.Name) and node.value.id in modules:
            yield f"{own}: {ast.unparse(node)}"


def test_what_is_private_stays_in_its_package(tmp_path, monkeypatch):
    assert [use for path in FILES for use in private_uses(path)] == []
    # The look itself: a file of another package that does what none may.
    monkeypatch.setitem(globals(), "SOURCE", tmp_path)
    path = tmp_path / "report" / "page.py"
    path.parent.mkdir()
    path.write_text(
        "from nlsf.data.readers._tables import table\n"
        "from nlsf.train.settings.config import _seeds\n"
        "from nlsf.data import dataset\n"
        "dataset._pairs\n"
    )
    assert len(list(private_uses(path))) == 3


def lines(path):
    return len(path.read_text(encoding="utf-8").splitlines())


def test_the_house_stays_small(capsys):
    total = sum(map(lines, FILES))
    with capsys.disabled():
        print(f"\nsrc: {len(FILES)} files, {total:,} lines, {total / len(FILES):.0f} a file")
    assert len(FILES) <= AT_MOST


def test_no_file_is_long():
    root = Path(__file__).parents[1]
    folders = [root / name for name in ("src", "tests", "benchmarks", "examples", "docs/hooks")]
    written = [
        p for f in folders for kind in ("py", "js", "css", "html") for p in f.rglob(f"*.{kind}")
    ]
    length = {path: lines(path) for path in written}
    assert len(length) > len(FILES)
    assert [path for path, length in length.items() if length > 400] == []


SIGNALS = re.compile(r"Lens|View|Fixed")


def classes(hint):
    """The classes of a union, a tuple or an alias."""
    parts = hint if isinstance(hint, tuple) else typing.get_args(hint)
    return [one for part in parts for one in classes(part)] if parts else [hint]


def is_model_or_signal(found):
    """Whether a class of ours is a model, or a signal seen through bands. A dropout is neither."""
    if issubclass(found, torch.nn.Module):
        return found.__name__ != "Dropout"
    return found.__module__.startswith("nlsf.spectral") and bool(SIGNALS.search(found.__name__))


def types_asked(path):
    """The models and lenses of other packages that a file asks for by type."""
    tree, own = ast.parse(path.read_text()), layer_of(path)
    places = {
        alias.asname or alias.name: (node.module, alias.name)
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom) and node.module.startswith("nlsf.")
        for alias in node.names
    }
    calls = [
        node
        for node in ast.walk(tree)
        if isinstance(node, ast.Call) and ast.unparse(node.func) in ("isinstance", "issubclass")
    ]
    asked = {ast.unparse(node) for call in calls for node in ast.walk(call.args[1])}
    for module, name in (places[one] for one in asked & set(places)):
        for found in classes(getattr(importlib.import_module(module), name)):
            ours = isinstance(found, type) and found.__module__.startswith("nlsf.")
            if ours and found.__module__.split(".")[1] != own and is_model_or_signal(found):
                yield f"{own}: {found.__name__}"


# Layers take a lens in the place of a spectrum, and ask which of the two they were given.
GIVEN = {"nn: Lens"}


def test_nobody_asks_a_model_or_a_lens_for_its_type(tmp_path):
    """They say themselves what they can do: in a method or an attribute."""
    assert {use for path in FILES for use in types_asked(path)} == GIVEN
    path = tmp_path / "page.py"
    path.write_text(
        "from nlsf.nn import NodeNLSF\n"
        "def section(layer):\n"
        "    from nlsf.nn import GraphNLSF as Other\n"
        "    return isinstance(layer, NodeNLSF | Other)\n"
    )
    assert len(list(types_asked(path))) == 2


def test_the_spectral_core_has_no_modules():
    core = [path for path in FILES if layer_of(path) == "spectral"]
    assert core
    assert [path for path in core if "nn.Module" in path.read_text()] == []


def test_a_package_imports_nothing_heavy_that_it_does_not_need():
    # Each in turn may import what those before it may, and what is new in its line.
    program = """
import sys
heavy = {"torch", "scipy", "numpy", "typer", "rich", "importlib.metadata"}
optional = {"torch_geometric", "sklearn", "pandas", "matplotlib", "networkx", "dask", "optuna"}
def check(*never):
    found = set(never) & set(sys.modules)
    assert not found, found
import nlsf
check(*heavy, *optional)
import nlsf.store.files, nlsf.store.locks, nlsf.store.json_lines, nlsf.store.memory
check(*heavy - {"numpy"}, *optional)
assert "spectral" in dir(nlsf)
nlsf.spectral.laplacian
check(*optional, "rich", "typer")
nlsf.nn.NodeNLSF
check(*optional, "rich", "typer", "torch._dynamo")
nlsf.train.train
check(*optional - {"torch_geometric"})
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def test_unknown_attributes_are_refused():
    with pytest.raises(AttributeError, match="no attribute 'spektral'"):
        _ = nlsf.spektral
    assert set(dir(nlsf)) >= {"spectral", "testing", "data", "errors", "__version__"}
