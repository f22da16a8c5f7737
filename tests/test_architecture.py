"""Dependencies point one way, and importing the package is cheap."""

import ast
import graphlib
import re
import subprocess
import sys
from pathlib import Path

import pytest

import nlsf

SOURCE = Path(nlsf.__file__).parent
MAY_USE = {
    "__main__": {"cli"},
    "errors": set(),
    "store": {"errors"},
    "spectral": {"errors", "store"},
    "nn": {"errors", "store", "spectral"},
    "peers": {"errors", "store", "spectral", "nn", "data"},
    "transforms": {"errors", "store", "spectral"},
    "cluster": {"errors", "store", "spectral"},
    "data": {"errors", "store"},
    "testing": {"errors", "spectral"},
    "plotting": {"errors", "store", "spectral"},
    "train": {"errors", "store", "spectral", "nn", "data", "peers"},
    "report": {"errors", "store", "spectral", "nn", "data", "train"},
    "tables": {"errors", "store", "spectral", "nn", "data", "train"},
    "lab": {"errors", "store", "spectral", "nn", "data", "train", "testing", "report"},
    "cli": {
        "errors",
        "store",
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


def module_name(path):
    """``nlsf.data.readers.tu`` of that file; that of a package for its ``__init__``."""
    parts = ("nlsf", *path.relative_to(SOURCE).with_suffix("").parts)
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


MODULES = {module_name(path): path for path in FILES}
each_file = pytest.mark.parametrize("path", FILES, ids=lambda p: str(p.relative_to(SOURCE)))


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


@each_file
def test_dependencies_point_one_way(path):
    layer = path.relative_to(SOURCE).parts[0].removesuffix(".py")
    if layer == "__init__":
        return
    assert layer in MAY_USE, f"say in this test what {layer} may depend on"
    assert layers_of(path) <= MAY_USE[layer] | {layer}


def test_the_layers_have_an_order():
    graphlib.TopologicalSorter(MAY_USE).prepare()


def circle(modules, gone=frozenset()):
    """Modules that import one another in a circle, the first one again at the end; else empty."""
    uses = {
        name: {module_of(found) for found in imports(ast.parse(path.read_text()))} - {name}
        for name, path in modules.items()
    }
    assert sum(map(len, uses.values())) >= len(modules) - 1
    uses = {name: {one for one in used if (name, one) not in gone} for name, used in uses.items()}
    try:
        graphlib.TopologicalSorter(uses).prepare()
    except graphlib.CycleError as error:
        return error.args[1]
    return []


# What is left to mend: the second is imported by the first, and imports it.
CIRCLES = {
    ("nlsf.spectral.column_decomposition", "nlsf.spectral.batch_projector"),
    ("nlsf.spectral.column_decomposition", "nlsf.spectral.projector"),
}


def test_no_two_files_import_each_other(tmp_path, monkeypatch):
    assert circle(MODULES, CIRCLES) == []
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
        "from nlsf.data import graph_arrays\n"
        "graph_arrays._pairs\n"
    )
    assert len(list(private_uses(path))) == 3


def test_no_file_is_long():
    root = Path(__file__).parents[1]
    folders = [root / name for name in ("src", "tests", "benchmarks", "examples", "docs/hooks")]
    written = [
        p for f in folders for kind in ("py", "js", "css", "html") for p in f.rglob(f"*.{kind}")
    ]
    length = {path: len(path.read_text(encoding="utf-8").splitlines()) for path in written}
    assert len(length) > len(FILES)
    assert [path for path, lines in length.items() if lines > 400] == []


@each_file
def test_the_spectral_core_has_no_modules(path):
    if "spectral" in path.parts:
        assert "nn.Module" not in path.read_text()


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
