import itertools
import math

import pytest
import torch
from torch_geometric.data import Batch, Data

from cases import GRAPHS
from nlsf.errors import ModelError, SignalError
from nlsf.nn import GraphClassifier, GraphClassifierConfig
from nlsf.spectral import DyadicBands, IndexBands, Lens, laplacian, partial_eigh
from nlsf.spectral.lens import FixedNorms
from nlsf.testing import assert_shift_invariant
from nlsf.testing.graphs import torus, weighted
from pairs import every_pair

DATA = [Data(edge_index=g.edge_index, num_nodes=g.num_nodes) for g in GRAPHS.values()]
BATCH = Batch.from_data_list(DATA)
BANDS = {"index_bands": IndexBands(4), "value_bands": DyadicBands(0.5, 4, 3)}


SPECTRA = {
    name: [
        partial_eigh(laplacian(d.edge_index, num_nodes=d.num_nodes, normalization=normalization))
        for d in DATA
    ]
    for name, normalization in (("L", None), ("N", "sym"))
}
OPERATORS = [
    {"index_operator": index, "value_operator": value, "complement": complement}
    for index, value, complement in itertools.product("LN", "LN", (True, False))
]
every_operator = pytest.mark.parametrize(
    "operators", OPERATORS, ids=lambda fields: "-".join(map(str, fields.values()))
)


def model(**fields):
    torch.manual_seed(0)
    made = GraphClassifier(in_channels=3, out_channels=2, hidden_channels=6, **BANDS, **fields)
    for parameter in made.parameters():
        torch.nn.init.normal_(parameter, std=0.3)
    return made.double().eval()


def features():
    generator = torch.Generator().manual_seed(1)
    return torch.randn(BATCH.num_nodes, 3, dtype=torch.float64, generator=generator)


@pytest.mark.parametrize(
    "fields", [{"level": "graph"}, {"level": "pooling"}, {"level": "pooling", "node_norm": True}]
)
@pytest.mark.parametrize("branches", ["attention", "index", "value"])
@pytest.mark.parametrize("score", ["scalar", "spectral"])
def test_a_batch_equals_its_graphs_one_by_one(fields, branches, score):
    made = model(branches=branches, score=score, **fields)
    x = features()
    out = made(x, BATCH.edge_index, None, BATCH.batch)
    assert out.shape == (len(DATA), 2)
    parts = x.split([d.num_nodes for d in DATA])
    for g, (data, signal) in enumerate(zip(DATA, parts, strict=True)):
        alone = made(signal, data.edge_index)
        torch.testing.assert_close(alone[0], out[g], atol=1e-9, rtol=1e-9)


@every_operator
@pytest.mark.parametrize("level", ["graph", "pooling"])
def test_each_branch_reads_its_operator(operators, level):
    made = model(level=level, **operators)
    x = features()
    out = made(x, BATCH.edge_index, None, BATCH.batch)
    pair = [SPECTRA[operators["index_operator"]], SPECTRA[operators["value_operator"]]]
    torch.testing.assert_close(made(x, spectrum=pair), out, atol=1e-9, rtol=1e-9)
    for i in range(2):
        wrong = list(pair)
        wrong[i] = SPECTRA["N" if pair[i] is SPECTRA["L"] else "L"]
        assert not torch.allclose(made(x, spectrum=wrong), out, atol=1e-3)
    parts = x.split([d.num_nodes for d in DATA])
    alone = [made(s, d.edge_index)[0] for s, d in zip(parts, DATA, strict=True)]
    torch.testing.assert_close(torch.stack(alone), out, atol=1e-9, rtol=1e-9)


@every_operator
@pytest.mark.parametrize("score", ["scalar", "spectral"])
def test_the_fast_path_reads_the_same_operators(operators, score):
    made = model(**operators, score=score)
    x = features()
    plain = made(x, BATCH.edge_index, None, BATCH.batch)
    prepared = made.prepare(x, BATCH.edge_index, None, BATCH.batch)
    torch.testing.assert_close(made.forward_prepared(prepared), plain, atol=1e-9, rtol=1e-9)
    graph = weighted(15)
    signals = torch.randn(7, 15, 3, dtype=torch.float64)
    plain = made(signals, graph.edge_index, graph.edge_weight)
    prepared = made.prepare(signals, graph.edge_index, graph.edge_weight)
    torch.testing.assert_close(made.forward_prepared(prepared), plain, atol=1e-9, rtol=1e-9)


@every_operator
@pytest.mark.parametrize("branches", ["index", "value"])
def test_functional_shifts_of_the_operator_are_ignored(operators, branches):
    graph = weighted(15)
    normalization = {"N": "sym"}.get(operators[f"{branches}_operator"])
    spectrum = partial_eigh(laplacian(graph, normalization=normalization))
    made = model(**operators, branches=branches)
    assert_shift_invariant(lambda x: made(x, spectrum=spectrum), spectrum)


@pytest.mark.parametrize("branches", ["attention", "index", "value"])
@pytest.mark.parametrize("score", ["scalar", "spectral"])
@pytest.mark.parametrize("channels", [None, 5])
@pytest.mark.parametrize("standardize", [True, False])
def test_the_fast_path_has_the_numbers_of_the_plain_one(branches, score, channels, standardize):
    made = model(branches=branches, score=score, channels=channels, standardize=standardize)
    x = features()
    plain = made(x, BATCH.edge_index, None, BATCH.batch)
    prepared = made.prepare(x, BATCH.edge_index, None, BATCH.batch)
    fast = made.forward_prepared(prepared)
    torch.testing.assert_close(fast, plain, atol=1e-9, rtol=1e-9)
    wanted = torch.autograd.grad(plain.sin().sum(), list(made.parameters()), allow_unused=True)
    found = torch.autograd.grad(fast.sin().sum(), list(made.parameters()), allow_unused=True)
    for a, b in zip(found, wanted, strict=True):
        torch.testing.assert_close(a, b, atol=1e-7, rtol=1e-7)
    index = torch.tensor([4, 1, 7])
    torch.testing.assert_close(made.forward_prepared([p[index] for p in prepared]), plain[index])
    assert len(prepared[0]) == len(DATA)


def test_the_remainder_takes_no_more_rows_than_there_are_features():
    data = Data(edge_index=torch.stack([torch.arange(200), torch.arange(200).roll(1)]))
    data.edge_index = torch.cat([data.edge_index, data.edge_index.flip(0)], dim=1)
    batch = Batch.from_data_list([Data(edge_index=data.edge_index, num_nodes=200)] * 2)
    x = torch.randn(400, 3, dtype=torch.float64)
    made = model(branches="index")
    (prepared,) = made.prepare(x, batch.edge_index, None, batch.batch)
    assert prepared.counts.tolist() == [7 + 3] * 2  # 4 eigenspaces of a ring: 1 + 2 + 2 + 2 columns


@pytest.mark.parametrize("branches", ["attention", "index", "value"])
@pytest.mark.parametrize("score", ["scalar", "spectral"])
@pytest.mark.parametrize("channels", [None, 5])
def test_the_fast_path_for_signals_on_one_graph(branches, score, channels):
    made = model(branches=branches, score=score, channels=channels)
    graph = torus(5, 6)
    x = torch.randn(7, 30, 3, dtype=torch.float64)
    plain = made(x, graph.edge_index)
    assert plain.shape == (7, 2)
    torch.testing.assert_close(plain[4], made(x[4], graph.edge_index)[0])
    torch.testing.assert_close(made(x.unsqueeze(0), graph.edge_index), plain.unsqueeze(0))
    prepared = made.prepare(x, graph.edge_index)
    for one in prepared:
        assert one.counts.max() <= 3 * one.n_bands
        assert len(one.place) == len(one.rows) == one.counts.sum()
    fast = made.forward_prepared(prepared)
    torch.testing.assert_close(fast, plain, atol=1e-9, rtol=1e-9)
    wanted = torch.autograd.grad(plain.sin().sum(), list(made.parameters()))
    found = torch.autograd.grad(fast.sin().sum(), list(made.parameters()))
    for a, b in zip(found, wanted, strict=True):
        torch.testing.assert_close(a, b, atol=1e-7, rtol=1e-7)
    index = torch.tensor([4, 1])
    torch.testing.assert_close(made.forward_prepared([p[index] for p in prepared]), plain[index])


def test_pooling_takes_signals_on_one_graph():
    made = model(level="pooling", score="spectral")
    graph = torus(5, 6)
    x = torch.randn(7, 30, 3, dtype=torch.float64)
    out = made(x, graph.edge_index)
    assert out.shape == (7, 2)
    for signal, expected in zip(x, out, strict=True):
        torch.testing.assert_close(made(signal, graph.edge_index)[0], expected)


@every_pair(
    branches=["attention", "index"],
    score=["scalar", "spectral"],
    readout=["mean", "sum", "max", "lp", "rms"],
    fields=[
        {},
        {"norm": 1.0, "a": 0.5},
        {"response": "bandwise", "complement": False},
        {"p": math.inf, "node_norm": True},
    ],
)
def test_the_fast_path_of_pooling_has_the_numbers_of_the_plain_one(
    branches, score, readout, fields
):
    made = model(level="pooling", branches=branches, score=score, readout=readout, **fields)
    graph = (BATCH.edge_index, None, BATCH.batch)
    prepared = made.prepare(features(), *graph)
    index = torch.randperm(len(DATA), generator=torch.Generator().manual_seed(2))
    out = made.forward_prepared([p[index] for p in prepared])
    torch.testing.assert_close(out, made(features(), *graph)[index])


def test_graphs_prepared_in_chunks_are_the_graphs():
    made = model()
    x = features()
    whole = made.prepare(x, BATCH.edge_index, None, BATCH.batch)
    parts = []
    for some in (DATA[:4], DATA[4:5], DATA[5:]):
        batch = Batch.from_data_list(some)
        signal, x = x[: batch.num_nodes], x[batch.num_nodes :]
        parts.append(made.prepare(signal, batch.edge_index, None, batch.batch))
    joined = [FixedNorms.cat(branch) for branch in zip(*parts, strict=True)]
    assert [len(p) for p in joined] == [len(DATA)] * 2
    for a, b in zip(joined, whole, strict=True):
        torch.testing.assert_close(a.norms(), b.norms(), atol=1e-9, rtol=1e-9)
    torch.testing.assert_close(made.forward_prepared(joined), made.forward_prepared(whole))


def test_signals_prepared_in_chunks_are_the_signals():
    made = model(branches="index")
    graph = torus(5, 6)
    x = torch.randn(7, 30, 3, dtype=torch.float64)
    (whole,) = made.prepare(x, graph.edge_index)
    joined = FixedNorms.cat([made.prepare(s, graph.edge_index)[0] for s in x.split(3)])
    torch.testing.assert_close(joined.norms(), whole.norms())
    (other,) = model(branches="value").prepare(x, graph.edge_index)
    for parts in ([], [whole, other]):
        with pytest.raises(SignalError, match="equal bands"):
            FixedNorms.cat(parts)


def test_prepared_graphs_say_what_they_need():
    graph = torus(5, 6)
    bands = DyadicBands(0.5, 4, 3)
    lens = Lens.of(partial_eigh(laplacian(graph)), bands)
    with pytest.raises(SignalError, match=r"\(signals, nodes, channels\)"):
        FixedNorms.of(torch.randn(30, 3, dtype=torch.float64), lens)
    with pytest.raises(SignalError, match="real operators"):
        FixedNorms.of(torch.randn(2, 30, 3, dtype=torch.float64), lens.to(dtype=torch.complex128))


def test_the_head_is_that_of_the_paper():
    made = GraphClassifier(in_channels=3, out_channels=2)
    assert made.head.sizes == [128, 256, 128, 64, 2]


def test_what_does_not_fit_is_refused():
    for field in ("level", "branches"):
        with pytest.raises(ModelError, match=field):
            GraphClassifierConfig(3, 2, **{field: "other"})
    for field in ("index_operator", "value_operator"):
        with pytest.raises(ModelError, match="must be L or N, not 'A'"):
            GraphClassifierConfig(3, 2, **{field: "A"})
    for fields in ({"level": "pooling", "response": "full"}, {"norm": 1.0}):
        assert not model(**fields).can_prepare
        with pytest.raises(ModelError, match="fast path needs"):
            model(**fields).prepare(features(), BATCH.edge_index, None, BATCH.batch)
    with pytest.raises(ModelError, match="pass batch"):
        model().prepare(features()[:7], DATA[0].edge_index)


def test_reset_parameters():
    made = model()
    before = [p.clone() for p in made.parameters()]
    made.reset_parameters()
    assert any(not torch.equal(a, b) for a, b in zip(before, made.parameters(), strict=True))
