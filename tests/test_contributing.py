"""What CONTRIBUTING shows is all that it takes: its code, one file each, keeps the laws."""

import re
import sys
import types
from pathlib import Path

import pytest
import torch

import cases
from contracts import keep_laws
from data.readers import test_all_readers
from nlsf.data import catalogue
from nlsf.data.catalogue import statistics
from nlsf.errors import ConfigError
from nlsf.nn import NodeNLSF
from nlsf.nn.plans import plan_of
from nlsf.nn.responses.psi import RESPONSES
from nlsf.spectral import Lens, UniformBands
from nlsf.testing import assert_shift_equivariant
from nlsf.testing.graphs import torus
from nlsf.train import predict, register_model, train
from nlsf.train.settings import models, toml
from nn import layers, test_equivariance, test_plans, test_spectral_layer
from peers import test_all_peers
from spectral import test_laws
from spectral.bands import test_bands
from spectral.lens import test_all_lenses
from train.small import node_data

TEXT = (Path(__file__).parents[1] / "CONTRIBUTING.md").read_text()

IMPORTS = {
    "A new family of bands": """
from dataclasses import dataclass
from torch import Tensor
from nlsf.spectral import Bands, Demand, Spectrum
""",
    "A new lens": """
from dataclasses import dataclass
from typing import Any
import torch
from torch import Tensor
from nlsf.errors import BandError
from nlsf.spectral import Bands, Demand, Lens, Spectrum, View
""",
    "A new response": """
from typing import Any
import torch
from torch import Tensor, nn
from nlsf.nn import Psi, register_response
from nlsf.spectral.kernels.dense import relative
""",
    "A new peer": """
from torch import Tensor
from nlsf.nn.networks import FeatureLinear, dropped
from nlsf.peers import Neighbourhood, Peer, PeerConfig
from nlsf.spectral.kernels.sparse_signal import SparseSignal
""",
    "A new data set": """
from collections.abc import Sequence
from pathlib import Path
from nlsf.data.dataset import Dataset
from nlsf.data.catalogue.entry import Entry, Statistics
from nlsf.data.catalogue.files import RemoteFile
from nlsf.data.readers import checks
from nlsf.data.readers.raw_files import ending, table
""",
    "A new model": """
from dataclasses import dataclass
from typing import Any
from torch import Tensor, nn
from nlsf.nn.plans import Examples, Plan
from nlsf.peers.matrices import Neighbourhood
from nlsf.train import ModelKind

@dataclass(frozen=True)
class AveragedConfig:
    in_channels: int
    out_channels: int
""",
}
OF_FIXED_EDGES = ("test_limits_are_the_ends_of_the_bands",)
COMPILED = ("test_a_compiled_layer_gives_the_same_numbers",)
QUICK = {"training": {"epochs": 3}, "seeds": 2}


def files_of(section):
    (text,) = re.findall(rf"## {section}\n(.*?)(?:\n## |\Z)", TEXT, flags=re.DOTALL)
    return re.findall(r"```python\n(.*?)```", text, flags=re.DOTALL)


@pytest.fixture
def file(monkeypatch):
    """The code of a section as a module of this name."""

    def make(section, name):
        code = "\n\n".join(files_of(section))
        module = types.ModuleType(name)
        monkeypatch.setitem(sys.modules, name, module)
        exec(compile(IMPORTS[section] + code, name, "exec"), module.__dict__)
        return module

    return make


def test_a_family_of_bands(file, monkeypatch, tmp_path):
    family = file("A new family of bands", "nlsf.spectral.bands.half").HalfBands
    monkeypatch.setitem(cases.BANDS, "half", family())
    assert len(keep_laws(test_laws, "bands", "half", tmp_path)) >= 9
    keep_laws(test_bands, "name", "half", tmp_path, but=OF_FIXED_EDGES)
    assert toml.kind_of(family) == "half"
    monkeypatch.setitem(toml.BANDS, "half", family)
    chosen = {"name": "value", "value_bands": {"kind": "half"}}
    result = train("csbm", {**QUICK, "model": chosen}, output=tmp_path / "run", cache=False)
    assert 'kind = "half"' in result.folder.read_config()


def test_a_lens(file, monkeypatch, tmp_path):
    monkeypatch.setattr(Lens, "kinds", dict(Lens.kinds))
    bands = file("A new lens", "nlsf.spectral.lens.ramps").RampBands()
    monkeypatch.setitem(test_all_lenses.LENSES, "ramps", bands)
    for refused in ("OF_ONE_GRAPH", "NOT_FIXED"):
        names = [*getattr(test_all_lenses, refused), "ramps"]
        monkeypatch.setattr(test_all_lenses, refused, names)
    assert len(keep_laws(test_all_lenses, "name", "ramps", tmp_path)) >= 14
    made, graph = layers.randomised(NodeNLSF(2, 3, bands)), torus(3, 4)
    x, spectrum = layers.signal(12, 2), layers.spectrum_of(graph)
    assert_shift_equivariant(lambda x: made(x, graph.edge_index), spectrum, x)
    monkeypatch.setitem(toml.BANDS, "ramp", type(bands))
    chosen = {"name": "value", "value_bands": {"kind": "ramp"}}
    result = train("csbm", {**QUICK, "model": chosen}, output=tmp_path / "run", cache=False)
    assert [row["together"] for row in result.rows] == [2, 2]


def test_a_response(file, monkeypatch, tmp_path):
    monkeypatch.setitem(RESPONSES, "power", None)  # so that it is taken back in the end
    del RESPONSES["power"]
    response = file("A new response", "nlsf.nn.responses.power").PowerResponse

    def layer():
        return NodeNLSF(2, 3, UniformBands(4), response="power", start="heat")

    assert isinstance(layer().response, response)
    monkeypatch.setitem(layers.LAYERS, "power", layer)
    for module in (test_equivariance, test_spectral_layer):
        monkeypatch.setattr(module, "NODE_LEVEL", [*layers.NODE_LEVEL, "power"])
    assert len(keep_laws(test_spectral_layer, "name", "power", tmp_path, but=COMPILED)) >= 12
    assert len(keep_laws(test_equivariance, "name", "power", tmp_path)) >= 2
    for graph in test_equivariance.GRAPHS.values():
        made, x = layers.randomised(layer()), layers.signal(graph.num_nodes, 2)
        lens = Lens.of(layers.spectrum_of(graph), made.bands, complement=made.complement)
        assert_shift_equivariant(lambda x, f=made, p=lens: f(x, spectrum=p), lens, x)
    assert "power" in repr(layer())
    chosen = {"name": "value", "response": "power"}
    result = train("csbm", {**QUICK, "model": chosen}, output=tmp_path / "run", cache=False)
    assert 'response = "power"' in result.folder.read_config()


def test_a_peer(file, monkeypatch, tmp_path):
    peer = file("A new peer", "nlsf.peers.sgc").SGC
    monkeypatch.setitem(test_all_peers.PEERS, peer.name, peer)
    monkeypatch.setitem(models.MODELS, peer.name, models._peer(peer))
    assert len(keep_laws(test_all_peers, "name", "sgc", tmp_path)) >= 7
    result = train("csbm", {**QUICK, "model": {"name": "sgc"}}, output=tmp_path / "run")
    assert [row["model"] for row in result.rows] == ["sgc", "sgc"]


def own_folder(folder):
    """A folder of the name that the files of the entry are in."""
    (folder / "sensors").mkdir()
    return folder / "sensors"


def test_a_data_set(file, monkeypatch, tmp_path):
    module = file("A new data set", "nlsf.data.readers.sensors")
    folder, entry = tmp_path / "sensors", module.ENTRY
    folder.mkdir()
    monkeypatch.setitem(test_all_readers.READERS, "sensors", module.sensors)
    laws = keep_laws(test_all_readers, "name", "sensors", tmp_path / "laws", folder=own_folder)
    assert len(laws) >= 4
    module.sensors(folder)
    monkeypatch.setitem(catalogue._BY_KEY, "sensors", entry)
    monkeypatch.setenv("NLSF_DATA", str(tmp_path))
    assert statistics(catalogue.load("SENSORS")) == entry.statistics
    assert catalogue.options(entry) == {"unit": 1.0}
    assert catalogue.load("sensors", unit=10).y.max() == 9
    result = train("Sensors", QUICK, output=tmp_path / "run", cache=False)
    assert [row["data"] for row in result.rows] == ["Sensors", "Sensors"]


def test_a_model(file, monkeypatch, tmp_path):
    kind = file("A new model", "nlsf.nn.models.averaged").AVERAGED
    monkeypatch.setitem(models.MODELS, "averaged", None)  # so that it is taken back in the end
    del models.MODELS["averaged"]
    register_model(kind)
    with pytest.raises(ConfigError, match="averaged"):
        register_model(kind)
    dataset = node_data()
    model = kind.build({}, dataset.num_features, dataset.num_outputs).double()
    start, end = dataset.graphs[0].edge_index
    A = torch.eye(60, dtype=torch.float64)
    A[start, end] = 1.0
    x = dataset.graphs[0].x.double()
    plain = model.lin(A @ x / A.sum(1, keepdim=True))
    plan = plan_of(model, dataset, dtype=torch.float64)
    test_plans.assert_outputs(plan, model.eval(), plain, rtol=1e-5)
    training = {"epochs": 3, "batch_size": 8}  # it has no forward: only the plan can train it
    settings = {"model": {"name": "averaged"}, "seeds": 2, "training": training}
    result = train("csbm", settings, output=tmp_path / "run", cache=False)
    assert [row["together"] for row in result.rows] == [2, 2]
    alone = train("csbm", {**settings, "seeds": [1]}, output=tmp_path / "alone", cache=False)
    assert alone.rows[0]["test_loss"] == pytest.approx(result.rows[1]["test_loss"], rel=1e-5)
    said = predict(result.folder.path, catalogue.load("csbm"), seed=1, cache=False)
    assert said.metrics["accuracy"] == result.rows[1]["test_accuracy"]


def test_each_is_short():
    for section in IMPORTS:
        sizes = [len(code.splitlines()) for code in files_of(section)]
        assert 8 <= max(sizes) <= 28, section
