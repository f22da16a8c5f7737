"""What CONTRIBUTING shows is all that it takes: its code, one file each, keeps the laws."""

import re
import sys
import types
from pathlib import Path

import pytest
import torch

import cases
from nlsf.data import catalogue
from nlsf.data.catalogue import statistics
from nlsf.errors import ConfigError
from nlsf.nn import NodeNLSF
from nlsf.nn.plans import plan_of
from nlsf.nn.responses.psi import RESPONSES
from nlsf.spectral import Projector, UniformBands
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
from nlsf.spectral.norms import relative
""",
    "A new peer": """
from torch import Tensor
from nlsf.nn.networks import FeatureLinear, dropped
from nlsf.peers import Neighbourhood, Peer, PeerConfig
from nlsf.spectral.sparse_signal import SparseSignal
""",
    "A new data set": """
from collections.abc import Sequence
from pathlib import Path
import numpy as np
import torch
from torch_geometric.data import Data
from nlsf.data.dataset import Dataset
from nlsf.data.dataset import undirected
from nlsf.data.catalogue.entry import Entry, Statistics
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


@pytest.fixture
def file(monkeypatch):
    """The code of a section as a module of this name."""

    def make(section, name):
        (code,) = re.findall(rf"## {section}\n.*?```python\n(.*?)```", TEXT, flags=re.DOTALL)
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
        projector = Projector(layers.spectrum_of(graph), UniformBands(4))
        made = layers.randomised(layer())
        x = layers.signal(graph.num_nodes, 2)
        assert_shift_equivariant(lambda x, f=made, p=projector: f(x, spectrum=p), projector, x)
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
    entry = file("A new data set", "nlsf.data.readers.ladder").ENTRY
    monkeypatch.setitem(catalogue._BY_KEY, "ladder", entry)
    dataset = catalogue.load("Ladder")
    assert statistics(dataset) == entry.statistics
    assert catalogue.options(entry) == {"rungs": 40}
    assert catalogue.load("ladder", rungs=10).num_examples == 20
    pairs = dataset.graphs[0].edge_index
    assert torch.equal(pairs.flip(0).unique(dim=1), pairs.unique(dim=1))
    result = train("Ladder", QUICK, output=tmp_path / "run", cache=False)
    assert [row["data"] for row in result.rows] == ["Ladder", "Ladder"]


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
        (code,) = re.findall(rf"## {section}\n.*?```python\n(.*?)```", TEXT, flags=re.DOTALL)
        assert 8 <= len(code.splitlines()) <= 24, section
