"""What must hold for every peer, whatever its formula."""

import pytest
import torch

from nlsf.data.generators import contextual_block_model
from nlsf.nn import parameter_groups
from nlsf.nn.plans import Plan
from nlsf.peers import PEERS, PeerModel
from nlsf.spectral.kernels.sparse_signal import SparseSignal
from nlsf.train.loop.model_batch import ModelBatch
from nlsf.train.settings.models import MODELS

F64 = torch.float64
NODES, FEATURES, CLASSES = 24, 5, 3
EXACT = {"rtol": 1e-8, "atol": 1e-9}


def graph(num_nodes=NODES, seed=0):
    data = contextual_block_model(num_nodes, CLASSES, FEATURES, degree=4.0, seed=seed)
    keep = (data.edge_index != num_nodes - 1).all(0)  # the last node is isolated
    return data.x.to(F64), data.edge_index[:, keep]


def model_of(name, level="node", seed=0, **fields):
    kind = MODELS[name]
    torch.manual_seed(seed)
    settings = {"hidden_channels": 8, **fields}
    settings = {k: v for k, v in settings.items() if k in kind.keys}
    return kind.build(settings, FEATURES, CLASSES, level, NODES).to(F64)


def levels(level):
    return [name for name, peer in PEERS.items() if level in peer.for_levels]


@pytest.mark.parametrize("name", levels("node"))
def test_renumbered_nodes_have_renumbered_outputs(name):
    if MODELS[name].of_one_graph:
        pytest.skip("has parameters for every node: renumbering nodes renumbers them")
    x, edges = graph()
    model = model_of(name).eval()
    order = torch.randperm(NODES, generator=torch.Generator().manual_seed(1))
    place = torch.argsort(order)
    expected = model(x, edges)[order]
    torch.testing.assert_close(model(x[order], place[edges]), expected, rtol=1e-6, atol=1e-8)


@pytest.mark.parametrize("name", levels("graph"))
def test_a_batch_is_its_graphs_one_by_one(name):
    model = model_of(name, "graph").eval()
    parts = [graph(n, seed=n) for n in (9, 12, 7)]
    sizes = torch.tensor([len(x) for x, _ in parts])
    first = sizes.cumsum(0) - sizes
    edges = torch.cat([e + s for (_, e), s in zip(parts, first.tolist(), strict=True)], dim=1)
    batch = torch.repeat_interleave(sizes)
    together = model(torch.cat([x for x, _ in parts]), edges, batch=batch)
    alone = [model(x, e, batch=torch.zeros(len(x), dtype=torch.int64)) for x, e in parts]
    torch.testing.assert_close(together, torch.cat(alone), rtol=1e-6, atol=1e-8)


@pytest.mark.parametrize(
    ("name", "level"), [(n, lev) for lev in ("node", "graph") for n in levels(lev)]
)
def test_every_parameter_has_a_gradient(name, level):
    x, edges = graph()
    model = model_of(name, level, dropout=0.0, input_dropout=0.0)
    batch = None if level == "node" else torch.arange(NODES) // 8
    if level == "graph":  # edges inside of the three graphs
        edges = edges[:, edges[0] // 8 == edges[1] // 8]
    weights = torch.randn(CLASSES, dtype=F64, generator=torch.Generator().manual_seed(2))
    for _ in range(2):  # a zero last layer hides those before it: take a step first
        out = model(x, edges, batch=batch)
        ((out - 1).square() @ weights.abs()).sum().backward()
        missing = [n for n, p in model.named_parameters() if p.grad is None]
        assert not missing
        grads = {n: p.grad.clone() for n, p in model.named_parameters()}
        with torch.no_grad():
            for p in model.parameters():
                p -= 0.05 * p.grad / (p.grad.norm() + 1e-12)
                p.grad = None
    assert all(g.isfinite().all() for g in grads.values())
    flat = [n for n, g in grads.items() if not g.any()]
    assert not flat


class _Whole(Plan):
    whole = True

    def __init__(self, x, edges, together):
        self.x, self.edges, self.together = x, edges, together

    def apply(self, model, chosen):
        return model(self.x, self.edges)[chosen]


@pytest.mark.parametrize("name", [n for n in levels("node") if PEERS[n].together])
@pytest.mark.parametrize("sparse", [False, True])
def test_models_together_have_the_outputs_that_they_have_alone(name, sparse):
    x, edges = graph()
    signal = SparseSignal.of(x * (x > 0.3)) if sparse else x
    models = [model_of(name, seed=seed) for seed in range(3)]
    rows = torch.stack([torch.arange(NODES)] * 3)
    together = ModelBatch(models, _Whole(signal, edges, True), [0, 1, 2])
    alone = [ModelBatch([m], _Whole(signal, edges, True), [i]) for i, m in enumerate(models)]
    for training in (True, False):
        out = together.outputs(rows, training=training)
        for m, one in enumerate(alone):
            torch.testing.assert_close(out[m], one.outputs(rows[:1], training=training)[0], **EXACT)


@pytest.mark.parametrize("name", PEERS)
def test_every_peer_says_what_it_is(name):
    peer = PEERS[name]
    assert peer.formula
    assert peer.reference
    assert peer.scaling.startswith("O(")
    assert peer.__doc__
    groups = parameter_groups(model_of(name, peer.for_levels[0]))
    assert set(groups.values()) <= {"encoder", "psi", "decoder"}


@pytest.mark.parametrize("name", PEERS)
def test_there_is_something_to_search_and_a_run_accepts_every_choice(name):
    peer, kind = PEERS[name], MODELS[name]
    assert peer.settings().search
    for key, choices in peer.settings().search.items():
        assert choices, f"{key} has no choice"
        assert len(set(choices)) == len(choices)
        for value in choices:
            assert kind.resolve({key: value})[key] == value
            model = kind.build({key: value}, 4, 3, peer.for_levels[0], num_nodes=5)
            assert getattr(model.config, key) == value


@pytest.mark.parametrize("name", levels("node"))
def test_a_graph_without_edges_is_no_obstacle(name):
    x, _ = graph()
    model = model_of(name).eval()
    assert model(x, torch.zeros(2, 0, dtype=torch.int64)).isfinite().all()


def test_a_peer_is_for_nodes_or_graphs():
    from nlsf.errors import ModelError

    peer = PEERS["gcn"]
    with pytest.raises(ModelError, match="for nodes or graphs"):
        PeerModel(peer, peer.settings()(2, 2), "signal")
