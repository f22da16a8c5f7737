import dataclasses
import warnings

import pytest
import torch
from torch_geometric.data import Data

from nlsf.data import torus
from nlsf.data.dataset import Dataset
from nlsf.data.features import FeatureConfig, fit, with_features
from nlsf.errors import ConfigError


def star(leaves, x=None):
    """Node 0 joined to every other."""
    ends = torch.arange(1, leaves + 1)
    pairs = torch.stack([torch.zeros_like(ends), ends])
    return Data(edge_index=torch.cat([pairs, pairs.flip(0)], dim=1), num_nodes=leaves + 1, x=x)


def graphs(*members, **more):
    y = torch.zeros(len(members), dtype=torch.int64)
    return Dataset("toy", "graph", members, y, classes=("a",), **more)


def csr(x):
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Sparse CSR")
        return x.to_sparse_csr()


@pytest.fixture
def x():
    values = torch.randn(5, 4, generator=torch.Generator().manual_seed(0))
    values[2] = 0
    values[:, 1] = 0
    return values


def apply(dataset, **options):
    return with_features(dataset, fit(FeatureConfig(**options), dataset))


@pytest.mark.parametrize("layout", ["dense", "sparse"])
def test_rows_sum_to_one(x, layout):
    given = csr(x) if layout == "sparse" else x.clone()
    old = graphs(star(4, given))
    new = apply(old, row_normalize=True).graphs[0].x
    assert new.layout == given.layout
    torch.testing.assert_close(new.to_dense().abs().sum(1), torch.tensor([1.0, 1.0, 0.0, 1.0, 1.0]))
    assert (new.to_dense() * x >= 0).all(), "signs stay"
    kept = old.graphs[0].x.to_dense()
    assert kept.equal(x), "the given features are not touched"


def test_order_of_channels(x):
    dataset = apply(graphs(star(4, x)), constant=True, degree="scaled", row_normalize=True)
    new = dataset.graphs[0].x
    assert dataset.num_features == 6
    assert new[:, 4].equal(torch.ones(5))
    assert new[:, 5].equal(torch.tensor([1.0, 0.25, 0.25, 0.25, 0.25]))
    torch.testing.assert_close(new[3, :4].abs().sum(), torch.tensor(1.0))
    assert dataset.graphs[0].edge_index.equal(star(4).edge_index)


def test_sparse_features_become_dense_when_channels_are_added(x):
    sparse, dense = (
        apply(graphs(star(4, each)), constant=True, row_normalize=True) for each in (csr(x), x)
    )
    torch.testing.assert_close(sparse.graphs[0].x, dense.graphs[0].x)


def test_too_many_sparse_features_are_not_made_dense():
    wide = csr(torch.zeros(5, 1)).resize_(5, 30_000_000)
    dataset = graphs(star(4, wide))
    assert apply(dataset, row_normalize=True).num_features == 30_000_000
    with pytest.raises(ConfigError, match=r"5 x 30000000\).*features\.constant = false"):
        apply(dataset, constant=True)


def test_one_hot_degrees_of_graphs_without_features():
    dataset = apply(graphs(star(3), star(2), star(0)), degree="one-hot")
    assert dataset.num_features == 4
    hot = [graph.x.argmax(1).tolist() for graph in dataset.graphs]
    assert hot == [[3, 1, 1, 1], [2, 1, 1], [0]]
    assert all(graph.x.sum(1).equal(torch.ones(graph.num_nodes)) for graph in dataset.graphs)


@pytest.mark.parametrize("largest", [1, 2, 3, 5, 8, 9, 200])
def test_bins_of_degrees_part_them_in_order_and_grow_by_less_than_two(largest):
    stars = graphs(*(star(leaves) for leaves in range(largest + 1)))
    dataset = apply(stars, degree="binned")
    hubs = torch.stack([graph.x[0] for graph in dataset.graphs])  # degrees 0 to largest
    assert torch.equal(hubs.sum(1), torch.ones(largest + 1))
    place = hubs.argmax(1)
    assert bool((place.diff() >= 0).all())
    assert int(place[-1]) == dataset.num_features - 1
    first = torch.searchsorted(place, torch.arange(dataset.num_features))
    assert bool((first[2:] <= 2 * first[1:-1]).all())
    assert torch.equal(place[:4], torch.arange(min(4, largest + 1))), "small ones are told apart"


@pytest.mark.parametrize("kind", ["scaled", "binned", "one-hot"])
def test_unseen_degrees_are_clipped(kind):
    config = fit(FeatureConfig(degree=kind), graphs(star(3), star(2)))
    assert config.max_degree == 3
    assert fit(config, graphs(star(9))) == config, "a fitted configuration stays"
    seen = with_features(graphs(star(3)), config).graphs[0].x
    unseen = with_features(graphs(star(9)), config).graphs[0].x
    assert unseen.shape[1] == seen.shape[1]
    assert unseen[0].equal(seen[0])
    assert unseen.max() <= 1


def test_one_hot_has_at_most_512_channels():
    hub = graphs(star(600))
    assert apply(hub, degree="one-hot").num_features == 512
    assert fit(FeatureConfig(degree="scaled"), hub).max_degree == 600


@pytest.mark.parametrize("kind", ["scaled", "binned", "one-hot"])
def test_permuting_nodes_permutes_rows(kind, x):
    start, end = torus(3, 4).edge_index
    keep = ~((start == 0) | (end == 0)) | ((start + end) < 2)
    own = torch.randn(12, 2)
    order = torch.randperm(12, generator=torch.Generator().manual_seed(1))
    place = order.argsort()
    graph = Data(edge_index=torch.stack([start, end])[:, keep], num_nodes=12, x=own)
    moved = Data(edge_index=place[graph.edge_index], num_nodes=12, x=own[order])
    options = {"degree": kind, "constant": True, "row_normalize": True}
    first, second = (apply(graphs(g), **options).graphs[0].x for g in (graph, moved))
    assert second.equal(first[order])
    assert first[:, 3:].unique(dim=0).shape[0] > 1, "degrees differ, or the law says nothing"


def test_signals_get_channels():
    signals = torch.randn(6, 5, 2)
    dataset = dataclasses.replace(
        graphs(star(4)), level="signal", signals=signals, y=torch.zeros(6, dtype=torch.int64)
    )
    new = apply(dataset, constant=True, degree="scaled")
    assert new.signals.shape == (6, 5, 4)
    assert new.signals[..., :2].equal(signals)
    assert new.signals[3, :, 3].tolist() == [1, 0.25, 0.25, 0.25, 0.25]
    assert new.num_features == 4
    assert apply(dataset) is dataset
    with pytest.raises(ConfigError, match=r"features\.row_normalize needs node features"):
        apply(dataset, row_normalize=True)


def test_nothing_asked_changes_nothing(x):
    dataset = graphs(star(4, x))
    assert apply(dataset) is dataset


def test_no_features_at_all():
    with pytest.raises(ConfigError, match=r'no node features: set features\.degree = "binned"'):
        apply(graphs(star(2)))
    with pytest.raises(ConfigError, match=r"row_normalize needs node features"):
        apply(graphs(star(2)), row_normalize=True, constant=True)


def test_features_must_be_fitted():
    with pytest.raises(ConfigError, match="fit the features first"):
        with_features(graphs(star(2)), FeatureConfig(degree="scaled"))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"degree": "onehot"}, r"features\.degree must be one of .*'one-hot', not 'onehot'"),
        ({"degree": None}, r"features\.degree must be one of"),
        ({"constant": 1}, r"features\.constant must be true or false"),
        ({"row_normalize": "yes"}, r"features\.row_normalize must be true or false"),
        ({"max_degree": 0}, r"features\.max_degree must be a whole number above 0, not 0"),
        ({"max_degree": True}, r"features\.max_degree"),
        ({"max_degree": 2.0}, r"features\.max_degree"),
        ({"max_degree": 512, "degree": "one-hot"}, "at most 511 for one-hot"),
    ],
)
def test_wrong_settings_are_named(options, message):
    with pytest.raises(ConfigError, match=message):
        FeatureConfig(**options)


@pytest.mark.parametrize("layout", ["dense", "sparse"])
def test_standardized_features_have_mean_0_and_deviation_1(x, layout):
    given = csr(x) if layout == "sparse" else x.clone()
    dataset = graphs(star(4, given), star(4, 3 * x + 1))
    new = torch.cat([g.x for g in apply(dataset, zscore=True).graphs])
    torch.testing.assert_close(new.mean(0), torch.zeros(4), atol=1e-6, rtol=0)
    torch.testing.assert_close(new.std(0, correction=0), torch.ones(4))


def test_other_graphs_are_standardized_with_the_fitted_numbers(x):
    config = fit(FeatureConfig(zscore=True), graphs(star(4, x)))
    assert fit(config, graphs(star(4, x + 1))) == config
    shifted = with_features(graphs(star(4, x + 1)), config).graphs[0].x
    plain = with_features(graphs(star(4, x)), config).graphs[0].x
    scale = torch.tensor(config.scale)
    assert scale[1] == 1, "a constant feature is not divided by 0"
    torch.testing.assert_close(shifted - plain, (1 / scale).expand(5, -1))


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"zscore": True, "row_normalize": True}, "exclude each other"),
        ({"center": (1.0,)}, "of one length"),
        ({"center": (1.0,), "scale": (0.0,)}, "above 0"),
        ({"zscore": 1}, "true or false"),
    ],
)
def test_impossible_standardizations_are_refused(options, says):
    with pytest.raises(ConfigError, match=says):
        FeatureConfig(**options)


def test_standardization_needs_features_that_fit(x):
    with pytest.raises(ConfigError, match="toy does not have"):
        fit(FeatureConfig(zscore=True), graphs(star(4)))
    config = fit(FeatureConfig(zscore=True), graphs(star(4, x)))
    with pytest.raises(ConfigError, match="4 numbers for the 2 features of toy"):
        with_features(graphs(star(4, x[:, :2])), config)


def node_set(graph):
    y = torch.zeros(graph.num_nodes, dtype=torch.int64)
    return Dataset("toy", "node", (graph,), y, classes=("a",))


@pytest.mark.parametrize("layout", ["dense", "sparse"])
@pytest.mark.parametrize("weighted", [False, True])
def test_links_are_rows_of_the_adjacency_matrix(x, layout, weighted):
    graph = star(4, csr(x) if layout == "sparse" else x)
    if weighted:
        graph.edge_weight = torch.arange(1.0, 9.0)
    A = torch.zeros(5, 5)
    A[tuple(graph.edge_index)] = graph.edge_weight if weighted else torch.ones(8)
    assert apply(node_set(graph), adjacency="only").graphs[0].x.to_dense().equal(A)
    both = apply(node_set(graph), adjacency="add", row_normalize=True, constant=True)
    shares = x / x.abs().sum(1, keepdim=True).clamp(min=1e-30)
    expected = torch.cat([shares, A, torch.ones(5, 1)], dim=1)
    torch.testing.assert_close(both.graphs[0].x, expected)


def test_links_that_go_out_are_taken_where_they_are_known(x):
    graph = star(4, x)
    graph.adj_out = csr(torch.ones(5, 5).triu(1))
    assert (
        apply(node_set(graph), adjacency="only")
        .graphs[0]
        .x.to_dense()
        .equal(torch.ones(5, 5).triu(1))
    )


def test_links_need_one_graph(x):
    with pytest.raises(ConfigError, match="one graph with labelled nodes"):
        apply(graphs(star(4, x)), adjacency="add")
    with pytest.raises(ConfigError, match=r"adjacency must be one of .* not 'rows'"):
        FeatureConfig(adjacency="rows")
    with pytest.raises(ConfigError, match="exclude each other"):
        apply(node_set(star(4, x)), adjacency="add", zscore=True)
