"""What CONTRIBUTING shows is all that it takes: its code, one file each, keeps the laws."""

import re
import sys
import types
from pathlib import Path

import pytest
import torch

import cases
from data.readers import test_all_readers
from nlsf.data import catalogue
from nlsf.data.catalogue import statistics
from nlsf.errors import ConfigError
from nlsf.nn import NodeNLSF
from nlsf.nn.plans import plan_of
from nlsf.nn.responses.psi import RESPONSES
from nlsf.spectral import Lens, UniformBands
from nlsf.testing import assert_shift_equivariant
from nlsf.train import predict, register_model, train
from nlsf.train.settings import models, toml
from nn import layers, test_equivariance, test_plans
from peers import test_all_peers
from spectral import test_laws
from train.small import node_data

TEXT = (Path(__file__).parents[1] / "CONTRIBUTING.md").read_text()

IMPORTS = {
    "A new family of bands": """
from dataclasses import dataclass
from torch import Tensor
from nlsf.spectral import Bands, Demand, Spectrum
""",
    "A new response": """
from typing import Any
import torch
from torch import Tensor, nn
from nlsf.nn import Psi, register_response
from nlsf.spectral.kernels.norms import relative
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
    for operator in cases.OPERATORS:
        test_laws.test_projections_partition_the_identity(operator, "half", "float64")
        test_laws.test_partial_and_complete_spectra_give_the_same_projections(
            operator, "half", "float64"
        )
    assert toml.kind_of(family) == "half"
    monkeypatch.setitem(toml.BANDS, "half", family)
    chosen = {"name": "value", "value_bands": {"kind": "half"}}
    result = train("csbm", {**QUICK, "model": chosen}, output=tmp_path / "run", cache=False)
    assert 'kind = "half"' in result.folder.read_config()


def test_a_response(file, monkeypatch, tmp_path):
    monkeypatch.setitem(RESPONSES, "power", None)  # so that it is taken back in the end
    del RESPONSES["power"]
    response = file("A new response", "nlsf.nn.responses.power").PowerResponse

    def layer():
        return NodeNLSF(2, 2, UniformBands(4), response="power", start="heat")

    assert isinstance(layer().response, response)
    monkeypatch.setitem(layers.LAYERS, "power", layer)
    node_level = (*test_equivariance.NODE_LEVEL, "power")
    monkeypatch.setattr(test_equivariance, "NODE_LEVEL", node_level)
    test_equivariance.test_the_basis_inside_an_eigenspace_does_not_matter("power")
    for name, graph in test_equivariance.GRAPHS.items():
        test_equivariance.test_numbering_the_nodes_otherwise_renumbers_the_output("power", name)
        lens = Lens.of(layers.spectrum_of(graph), UniformBands(4))
        made = layers.randomised(layer())
        x = layers.signal(graph.num_nodes, 2)
        assert_shift_equivariant(lambda x, f=made, p=lens: f(x, spectrum=p), lens, x)
    assert "power" in repr(layer())
    chosen = {"name": "value", "response": "power"}
    result = train("csbm", {**QUICK, "model": chosen}, output=tmp_path / "run", cache=False)
    assert 'response = "power"' in result.folder.read_config()


def test_a_peer(file, monkeypatch, tmp_path):
    peer = file("A new peer", "nlsf.peers.sgc").SGC
    monkeypatch.setitem(test_all_peers.PEERS, peer.name, peer)
    monkeypatch.setitem(models.MODELS, peer.name, models._peer(peer))
    test_all_peers.test_renumbered_nodes_have_renumbered_outputs("sgc")
    test_all_peers.test_a_batch_is_its_graphs_one_by_one("sgc")
    for level in peer.for_levels:
        test_all_peers.test_every_parameter_has_a_gradient("sgc", level)
    for sparse in (False, True):
        test_all_peers.test_models_together_have_the_outputs_that_they_have_alone("sgc", sparse)
    test_all_peers.test_every_peer_says_what_it_is("sgc")
    test_all_peers.test_there_is_something_to_search_and_a_run_accepts_every_choice("sgc")
    test_all_peers.test_a_graph_without_edges_is_no_obstacle("sgc")
    result = train("csbm", {**QUICK, "model": {"name": "sgc"}}, output=tmp_path / "run")
    assert [row["model"] for row in result.rows] == ["sgc", "sgc"]


def test_a_data_set(file, monkeypatch, tmp_path):
    module = file("A new data set", "nlsf.data.readers.sensors")
    folder, entry = tmp_path / "sensors", module.ENTRY
    folder.mkdir()
    monkeypatch.setitem(test_all_readers.READERS, "sensors", module.sensors)
    for law in (
        test_all_readers.test_whole_files_are_a_valid_data_set_each_time,
        test_all_readers.test_other_bytes_are_read_or_refused,
        test_all_readers.test_a_file_that_is_not_there_is_named,
        test_all_readers.test_arrays_of_another_kind_or_shape_are_read_or_refused,
    ):
        law("sensors", folder)
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
        assert 8 <= max(sizes) <= 24, section
