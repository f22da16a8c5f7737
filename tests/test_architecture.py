"""Dependencies point one way, and importing the package is cheap."""

import ast
import subprocess
import sys
from pathlib import Path

import pytest

import nlsf

SOURCE = Path(nlsf.__file__).parent
MAY_USE = {
    "__main__": {"cli"},
    "errors": set(),
    "spectral": {"errors"},
    "nn": {"errors", "spectral"},
    "transforms": {"errors", "spectral"},
    "cluster": {"errors", "spectral"},
    "data": {"errors"},
    "testing": {"errors", "spectral"},
    "plotting": {"errors", "spectral"},
    "train": {"errors", "spectral", "nn", "data"},
    "report": {"errors", "spectral", "nn", "data", "train"},
    "experiments": {"errors", "spectral", "nn", "data", "train"},
    "lab": {"errors", "spectral", "nn", "data", "train", "testing", "report"},
    "cli": {
        "errors",
        "spectral",
        "nn",
        "transforms",
        "cluster",
        "data",
        "train",
        "plotting",
        "report",
        "experiments",
        "lab",
    },
}


def imported(path):
    """The nlsf subpackages that a file imports, also inside functions."""
    for node in ast.walk(ast.parse(path.read_text())):
        names = []
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and node.module:
            names = [node.module] + [f"{node.module}.{alias.name}" for alias in node.names]
        for name in names:
            parts = name.split(".")
            if parts[0] == "nlsf" and len(parts) > 1:
                yield parts[1]


FILES = sorted(SOURCE.rglob("*.py"))


@pytest.mark.parametrize("path", FILES, ids=lambda p: str(p.relative_to(SOURCE)))
def test_dependencies_point_one_way(path):
    layer = path.relative_to(SOURCE).parts[0].removesuffix(".py")
    if layer == "__init__":
        return
    assert layer in MAY_USE, f"say in this test what {layer} may depend on"
    assert set(imported(path)) <= MAY_USE[layer] | {layer}


@pytest.mark.parametrize("path", FILES, ids=lambda p: str(p.relative_to(SOURCE)))
def test_the_spectral_core_has_no_modules(path):
    if "spectral" in path.parts:
        assert "nn.Module" not in path.read_text()


def test_importing_the_package_imports_nothing_heavy():
    program = "import sys, nlsf; assert 'torch' not in sys.modules; nlsf.spectral.laplacian"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def test_unknown_attributes_are_refused():
    with pytest.raises(AttributeError, match="no attribute 'spektral'"):
        _ = nlsf.spektral
    assert set(dir(nlsf)) >= {"spectral", "testing", "data", "errors", "__version__"}
