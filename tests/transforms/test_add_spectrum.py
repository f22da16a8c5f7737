import copy
import functools
import pickle
from multiprocessing.reduction import ForkingPickler
from pathlib import Path

import pytest
import torch
from torch_geometric.data import Batch, Data, HeteroData, InMemoryDataset
from torch_geometric.loader import DataLoader
from torch_geometric.transforms import Compose

from cases import GRAPHS
from nlsf.data import block_model
from nlsf.errors import BandError, GraphError, NotSymmetricError
from nlsf.nn import GraphNLSF, LaplacianAttention, NodeNLSF, PoolingNLSF
from nlsf.spectral import (
    DyadicBands,
    IndexBands,
    ShiftOperator,
    Spectrum,
    adjacency,
    laplacian,
    magnetic_laplacian,
    partial_eigh,
)
from nlsf.transforms import AddSpectrum

DYADIC, INDEX = DyadicBands(r=0.5, S=4), IndexBands(J=3)
FIELDS = ("far", "reach", "gap_tol", "nullity", "name", "order", "solver")


def graphs(count=30):
    """Graphs of different sizes, one node and isolated nodes among them, some weighted."""
    hostile = ["one node", "isolated nodes", "one edge and an isolated node", "weighted"]
    chosen = [GRAPHS[name] for name in hostile]
    chosen += [block_model(10 + 2 * i, 2, 3.0, seed=i) for i in range(count - len(hostile))]
    generator = torch.Generator().manual_seed(0)
    found = []
    for graph in chosen:
        edges, nodes = graph.edge_index, graph.num_nodes
        x = torch.randn(nodes, 3, dtype=torch.float64, generator=generator)
        weight = getattr(graph, "edge_weight", None)
        weight = torch.ones(edges.shape[1], dtype=torch.float64) if weight is None else weight
        found.append(Data(x=x, edge_index=edges, edge_weight=weight))
    return found


def one_way():
    return Data(x=torch.eye(3), edge_index=torch.tensor([[0, 1], [1, 2]]))


def assert_same(actual, expected):
    assert isinstance(actual, Spectrum)
    for name in ("values", "vectors", "residuals"):
        assert torch.equal(getattr(actual, name), getattr(expected, name)), name
    for name in FIELDS:
        assert getattr(actual, name) == getattr(expected, name), name


@pytest.mark.parametrize("bands", [DYADIC, INDEX], ids=["dyadic", "index"])
@pytest.mark.parametrize("normalization", ["sym", None])
def test_it_is_the_spectrum_of_the_laplacian(bands, normalization):
    data = graphs()[3]
    expected = partial_eigh(laplacian(data, normalization=normalization), bands=bands)
    assert_same(AddSpectrum(bands, normalization=normalization)(data).spectrum, expected)
    assert "spectrum" not in data  # as every transform, it leaves what it is given alone


def test_how_many_eigenpairs():
    data = graphs()[-1]
    assert AddSpectrum()(data).spectrum.is_complete
    assert 4 <= AddSpectrum(k=4)(data).spectrum.num_pairs < data.num_nodes


def test_self_loops_and_symmetrize():
    data = one_way()
    spectrum = AddSpectrum(self_loops=True, symmetrize="max")(data).spectrum
    expected = laplacian(data, normalization="sym", self_loops=True, symmetrize="max")
    assert_same(spectrum, partial_eigh(expected))


def test_other_operators():
    assert AddSpectrum(operator=adjacency)(graphs()[5]).spectrum.order == "descending"
    directed = functools.partial(magnetic_laplacian, q=0.1)
    assert AddSpectrum(operator=directed)(one_way()).spectrum.vectors.is_complex()


LAYERS = {
    "node": lambda: NodeNLSF(3, 5, DYADIC, start="ppr"),
    "graph": lambda: GraphNLSF(3, 5, DYADIC),
    "pooling": lambda: PoolingNLSF(3, 5, bands=DYADIC),
}


@pytest.mark.parametrize("layer", LAYERS)
def test_layers_read_the_spectra_of_a_batch(layer):
    torch.manual_seed(0)
    layer = LAYERS[layer]().double()
    data = [AddSpectrum(DYADIC)(graph) for graph in graphs()]
    for batch in DataLoader(data, batch_size=11):
        kept = layer(batch.x, spectrum=batch.spectrum)
        built = layer(batch.x, batch.edge_index, batch.edge_weight, batch.batch)
        torch.testing.assert_close(kept, built, rtol=1e-10, atol=1e-10)


@pytest.mark.parametrize("score", ["scalar", "spectral"])
def test_attention_reads_two_spectra(score):
    torch.manual_seed(0)
    transform = Compose(
        [
            AddSpectrum(INDEX, normalization=None, attr="spectrum_l"),
            AddSpectrum(DYADIC, attr="spectrum_n"),
        ]
    )
    first, second = NodeNLSF(3, 4, INDEX, normalization=None), NodeNLSF(3, 4, DYADIC)
    attention = LaplacianAttention(first, second, score).double()
    for batch in DataLoader([transform(graph) for graph in graphs()], batch_size=11):
        kept = attention(batch.x, spectrum=(batch.spectrum_l, batch.spectrum_n))
        built = attention(batch.x, batch.edge_index, batch.edge_weight, batch.batch)
        torch.testing.assert_close(kept, built, rtol=1e-10, atol=1e-10)


def test_a_batch_is_taken_apart():
    batch = Batch.from_data_list(graphs(6))
    for spectrum, data in zip(AddSpectrum(DYADIC)(batch).spectrum, graphs(6), strict=True):
        assert_same(spectrum, AddSpectrum(DYADIC)(data).spectrum)


def test_a_batch_gives_back_what_went_in():
    data = [AddSpectrum(DYADIC)(graph) for graph in graphs(6)]
    batch = Batch.from_data_list(data)
    assert isinstance(batch.spectrum, list)
    assert all(a.spectrum is b.spectrum for a, b in zip(batch.to_data_list(), data, strict=True))


class Stored(InMemoryDataset):
    """A data set as people write them: processed once, then read from its file."""

    def __init__(self, root, count, pre_transform=None):
        self.count = count
        super().__init__(str(root), pre_transform=pre_transform, log=False)
        self.load(self.processed_paths[0])

    @property
    def processed_file_names(self):
        return ["data.pt"]

    def process(self):
        self.save(
            [self.pre_transform(graph) for graph in graphs(self.count)], *self.processed_paths
        )


@pytest.mark.parametrize("count", [30, 5])
def test_a_data_set_stores_it(tmp_path, count):
    transform = AddSpectrum(DYADIC)
    Stored(tmp_path, count, transform)
    again = Stored(tmp_path, count, AddSpectrum(DYADIC))  # a warning would be an error here
    assert len(again) == count
    for data, graph in zip(again, graphs(count), strict=True):
        assert_same(data.spectrum, transform(graph).spectrum)
        assert torch.equal(data.x, graph.x)
    assert len(again.copy([1, 3]).spectrum) == 2


@pytest.mark.parametrize("weights_only", [True, False])
def test_a_spectrum_stored_by_the_first_version_is_read(weights_only):
    stored = Path(__file__).with_name("spectrum_stored_by_0_1.pt")
    edges = torch.tensor([[0, 1, 1, 2, 2, 0, 2, 3], [1, 0, 2, 1, 0, 2, 3, 2]])
    found = torch.load(stored, weights_only=weights_only)
    expected = partial_eigh(laplacian(edges, normalization="sym"))
    assert isinstance(found, Spectrum)
    torch.testing.assert_close(found.values, expected.values)
    assert [getattr(found, f) for f in FIELDS[2:]] == [getattr(expected, f) for f in FIELDS[2:]]
    assert b"nlsf.spectral.spectrum\nSpectrum" in pickle.dumps(found, 0), "and older ones read ours"


def test_a_data_set_notices_another_transform(tmp_path):
    Stored(tmp_path, 5, AddSpectrum(DYADIC))
    with pytest.warns(UserWarning, match="`pre_transform` argument differs"):
        Stored(tmp_path, 5, AddSpectrum(INDEX))


@pytest.mark.parametrize("batched", [False, True])
def test_it_moves_with_the_data(batched):
    data = [AddSpectrum(DYADIC)(graph) for graph in graphs(5)]
    data = Batch.from_data_list(data) if batched else data[3]
    moved = copy.copy(data).to("meta", non_blocking=True)  # stands for a GPU, which is not here
    for spectrum in moved.spectrum if batched else [moved.spectrum]:
        for tensor in (spectrum.values, spectrum.vectors, spectrum.residuals):
            assert tensor.device.type == "meta"
    back = copy.copy(data).cpu()
    pairs = zip(back.spectrum, data.spectrum, strict=True) if batched else []
    for a, b in pairs or [(back.spectrum, data.spectrum)]:
        assert_same(a, b)


def test_cpu_and_to_keep_everything_but_the_device():
    spectrum = AddSpectrum(DYADIC)(graphs()[3]).spectrum
    assert_same(spectrum.cpu(), spectrum)
    moved = spectrum.to(device="meta")
    assert [getattr(moved, f) for f in FIELDS] == [getattr(spectrum, f) for f in FIELDS]


COPIES = {
    "clone": lambda data, _: data.clone(),
    "deepcopy": lambda data, _: copy.deepcopy(data),
    "pickle": lambda data, _: pickle.loads(pickle.dumps(data)),
    "another process": lambda data, _: ForkingPickler.loads(ForkingPickler.dumps(data)),
    "torch.save": lambda data, path: _saved(data, path, weights_only=False),
    "torch.save, safe": lambda data, path: Data(**_saved(data.to_dict(), path, weights_only=True)),
}


def _saved(value, path, **options):
    torch.save(value, path / "value.pt")
    return torch.load(path / "value.pt", **options)


@pytest.mark.parametrize("operator", [adjacency, magnetic_laplacian])
@pytest.mark.parametrize("name", COPIES)
def test_copies_are_equal(name, operator, tmp_path):
    data = AddSpectrum(operator=operator)(graphs()[3])
    _ = data.spectrum.eigenspaces  # derived tensors that it keeps must not be in the way
    assert_same(COPIES[name](data, tmp_path).spectrum, data.spectrum)


def test_it_costs_no_open_files_between_processes():
    spectrum = AddSpectrum()(graphs()[3]).spectrum
    ForkingPickler.dumps(spectrum)
    assert not spectrum.vectors.is_shared()


def test_workers_deliver_it():
    data = [AddSpectrum(DYADIC)(graph) for graph in graphs(8)]
    batches = list(DataLoader(data, batch_size=4, num_workers=1))
    delivered = [spectrum for batch in batches for spectrum in batch.spectrum]
    for spectrum, graph in zip(delivered, data, strict=True):
        assert_same(spectrum, graph.spectrum)


def test_it_has_a_functional_name():
    pipe = pytest.importorskip("torch.utils.data").datapipes.iter.IterableWrapper(graphs(5))
    found = [data.spectrum for data in pipe.add_spectrum(DYADIC)]
    assert_same(found[3], AddSpectrum(DYADIC)(graphs(5)[3]).spectrum)


def test_repr():
    assert repr(AddSpectrum(INDEX, normalization=None, symmetrize="max")) == (
        "AddSpectrum(bands=IndexBands(J=3), k=None, normalization=None, self_loops=False, "
        "symmetrize='max', attr='spectrum')"
    )
    assert repr(AddSpectrum(k=3, operator=adjacency, attr="a")) == (
        "AddSpectrum(bands=None, k=3, operator='adjacency', attr='a')"
    )
    charged = functools.partial(magnetic_laplacian, normalization="sym", q=0.1)
    assert "partial(magnetic_laplacian, normalization='sym', q=0.1)" in repr(
        AddSpectrum(operator=charged)
    )


def test_operators_with_other_arguments_have_other_reprs():
    reprs = {
        repr(AddSpectrum(operator=operator))
        for operator in (
            adjacency,
            magnetic_laplacian,
            functools.partial(adjacency, symmetrize="max"),
            functools.partial(adjacency, symmetrize="sum"),
            functools.partial(functools.partial(adjacency, symmetrize="sum"), reduce="max"),
        )
    }
    assert len(reprs) == 5
    assert not any(" at 0x" in text for text in reprs)


class Nameless:
    def __call__(self, data):
        return adjacency(data)


@pytest.mark.parametrize(
    "operator",
    [
        lambda data: adjacency(data),
        functools.partial(lambda data, reduce: adjacency(data, reduce=reduce), reduce="max"),
        functools.partial(adjacency, edge_weight=Nameless()),
        Nameless(),
        Nameless().__call__,
    ],
    ids=["lambda", "partial of a lambda", "nameless argument", "object", "method"],
)
def test_an_operator_that_no_repr_can_tell_is_refused(operator):
    with pytest.raises(GraphError, match="has no name"):
        AddSpectrum(operator=operator)


def test_the_cache_is_used(tmp_path):
    data = graphs()[3]
    computed = AddSpectrum(DYADIC, cache=tmp_path)(data).spectrum
    (file,) = tmp_path.iterdir()
    written = file.stat().st_mtime_ns
    assert_same(AddSpectrum(DYADIC, cache=tmp_path)(data).spectrum, computed)
    assert file.stat().st_mtime_ns == written


def test_one_way_edges_are_refused():
    with pytest.raises(NotSymmetricError, match="symmetrize="):
        AddSpectrum()(one_way())


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"normalization": "rw"}, GraphError, "normalization must be"),
        ({"symmetrize": "both"}, GraphError, "symmetrize must be"),
        ({"k": 3, "bands": INDEX}, BandError, "not both"),
        ({"k": 0}, BandError, "at least 1"),
        ({"attr": "edge_index"}, GraphError, "a name of its own"),
        ({"attr": "my spectrum"}, GraphError, "a name of its own"),
        ({"operator": adjacency, "symmetrize": "max"}, GraphError, "give them to it"),
        ({"operator": adjacency, "normalization": None}, GraphError, "give them to it"),
        ({"num_bands": 3}, TypeError, "num_bands"),
    ],
)
def test_wrong_arguments_are_refused_at_once(options, error, message):
    with pytest.raises(error, match=message):
        AddSpectrum(**options)


def _bare(data):
    return torch.eye(data.num_nodes)


def _wrapped(data):
    return ShiftOperator.from_matrix(_bare(data))


def test_what_is_no_graph_is_refused():
    with pytest.raises(GraphError, match="HeteroData"):
        AddSpectrum()(HeteroData())
    with pytest.raises(GraphError, match="ShiftOperator, not Tensor"):
        AddSpectrum(operator=_bare)(graphs(4)[3])
    wrapped = AddSpectrum(operator=_wrapped)
    assert wrapped(one_way()).spectrum.multiplicities.tolist() == [3]
