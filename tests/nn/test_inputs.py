"""What layers and models are called with: graphs in every form, and what is wrong, said."""

import pytest
import torch
from torch_geometric.data import Data
from torch_geometric.testing import assert_module

from nlsf.errors import GraphError, ModelError, SignalError
from nlsf.nn import (
    GraphClassifier,
    GraphNLSF,
    LaplacianAttention,
    MixingNLSF,
    NLSFStack,
    NodeClassifier,
    NodeNLSF,
    PoolingNLSF,
    SignalClassifier,
)
from nlsf.spectral import IndexBands, PolynomialBands, UniformBands, laplacian, partial_eigh
from nlsf.testing.graphs import torus
from nn.layers import signal

EDGES = torus(4, 5).edge_index
N, D, OUT = 20, 3, 4
SMOOTH = PolynomialBands(UniformBands(3), 8)

MODULES = {
    "node": lambda: NodeNLSF(D, OUT),
    "node, polynomial": lambda: NodeNLSF(D, OUT, SMOOTH),
    "graph": lambda: GraphNLSF(D, OUT),
    "graph, mapped": lambda: GraphNLSF(D, OUT, channels=2),
    "pooling": lambda: PoolingNLSF(D, OUT),
    "attention": lambda: LaplacianAttention(NodeNLSF(D, 2, IndexBands(4), None), NodeNLSF(D, 2)),
    "attention of graphs": lambda: LaplacianAttention(GraphNLSF(D, 2, channels=3), GraphNLSF(D, 2)),
    "mixing": lambda: MixingNLSF(D, OUT),
    "stack": lambda: NLSFStack([NodeNLSF(D, D), NodeNLSF(D, OUT)]),
    "node model": lambda: NodeClassifier(in_channels=D, out_channels=OUT),
    "node model, linear": lambda: NodeClassifier(in_channels=D, out_channels=OUT, encoder="linear"),
    "graph model": lambda: GraphClassifier(in_channels=D, out_channels=OUT),
    "signal model": lambda: SignalClassifier(in_channels=D, out_channels=OUT, num_nodes=N),
}
GRAPH_LEVEL = {"graph", "graph, mapped", "pooling", "attention of graphs", "graph model"}

every_module = pytest.mark.parametrize("name", MODULES)


def module_of(name):
    torch.manual_seed(0)
    return MODULES[name]().double().eval()


@every_module
@pytest.mark.filterwarnings("ignore:Sparse:UserWarning")
def test_every_layout_of_pytorch_geometric(name):
    shape = (1, OUT) if name in GRAPH_LEVEL else (OUT,) if name == "signal model" else (N, OUT)
    assert_module(module_of(name), signal(N, D), EDGES, expected_size=shape)


@every_module
def test_other_forms_of_a_graph(name):
    module, x = module_of(name), signal(N, D)
    expected = module(x, EDGES)
    dense = torch.zeros(N, N).index_put((EDGES[0], EDGES[1]), torch.ones(()))
    for form in (EDGES.tolist(), EDGES.numpy(), dense, Data(edge_index=EDGES, num_nodes=N)):
        torch.testing.assert_close(module(x, form), expected)


def test_weights_in_a_matrix_and_a_batch_of_matrices():
    layer, x, weight = module_of("graph"), signal(N, D), 1 + signal(10).abs()
    weight = torch.cat([weight, weight])
    edges = torch.stack([torch.arange(10), torch.arange(10, 20)])
    edges = torch.cat([edges, edges.flip(0)], dim=1)
    matrix = torch.sparse_coo_tensor(edges, weight, (N, N))
    torch.testing.assert_close(layer(x, matrix), layer(x, edges, weight))
    order = torch.stack([torch.arange(10), torch.arange(10) + 10], 1).flatten()
    swapped = torch.sparse_coo_tensor(order.argsort()[edges], weight, (N, N))
    pairs = torch.arange(10).repeat_interleave(2)
    torch.testing.assert_close(
        layer(x, swapped, None, pairs), layer(x, order.argsort()[edges], weight, pairs)
    )
    with pytest.raises(GraphError, match="a matrix holds its own weights"):
        layer(x, matrix, weight)


@every_module
@pytest.mark.parametrize("channels", [2, 4])
def test_other_channels(name, channels):
    with pytest.raises(SignalError, match=f"has {channels} channels, the layer 3"):
        module_of(name)(signal(N, channels), EDGES)


@every_module
@pytest.mark.parametrize("value", [torch.nan, torch.inf])
def test_a_value_that_is_not_finite(name, value):
    module, x = module_of(name), signal(N, D)
    module(x, EDGES)
    x[3, 1] = value
    for _ in range(2):
        with pytest.raises(SignalError, match=rf"has the value {value} at \[3, 1\]"):
            module(x, EDGES)
    x[3, 1] = 0
    assert module(x, EDGES).isfinite().all()


@every_module
def test_what_a_model_computes_itself_may_diverge(name):
    """A training that has diverged shows it in its loss, also where no gradient is computed."""
    module, x = module_of(name), signal(N, D)
    with torch.no_grad():
        next(module.parameters()).fill_(torch.nan)
        assert module(x, EDGES).isnan().any()


def test_large_numbers_are_finite():
    x = torch.full((N, D), 3e38, dtype=torch.float32)
    with pytest.raises(SignalError, match="inf"):
        NodeNLSF(D, D)(x * 2, EDGES)
    NodeNLSF(D, D)(x, EDGES)


HALVES = torch.arange(2).repeat_interleave(10)


@every_module
@pytest.mark.parametrize(
    ("edges", "says"),
    [
        (EDGES.double(), "must hold integers, not float64"),
        (EDGES.T, r"must have the shape \(2, E\), not \(80, 2\)"),
        (EDGES + 5, "Edge 3 of edge_index joins nodes 5 and 20, but the graph has 20 nodes"),
        (torch.eye(19), "19 rows, but num_nodes is 20"),
        ("cora", "Cannot read a graph from str"),
    ],
    ids=["float", "transposed", "range", "size", "name"],
)
def test_what_is_no_graph(name, edges, says):
    with pytest.raises(GraphError, match=says):
        module_of(name)(signal(N, D), edges)


@every_module
def test_weights_that_require_a_gradient(name):
    module, x = module_of(name), signal(N, D)
    weight = torch.ones(EDGES.shape[1], requires_grad=True)
    matrix = torch.sparse_coo_tensor(EDGES, weight, (N, N))
    for graph in ((EDGES, weight), (matrix,)):
        with pytest.raises(GraphError, match=r"pass edge_weight\.detach"):
            module(x, *graph)
    module(x, EDGES, weight.detach())


@pytest.mark.parametrize("name", sorted(set(MODULES) - {"mixing", "signal model"}))
@pytest.mark.parametrize(
    ("batch", "says"),
    [
        (HALVES[:15], r"each of the 20 nodes, .* has the shape \(15,\)"),
        (HALVES.repeat(2), r"has the shape \(40,\)"),
        (HALVES.double(), "is of torch.float64"),
        (HALVES[:, None], r"has the shape \(20, 1\)"),
        (HALVES.flip(0), "must be sorted"),
        (HALVES - 1, "begins with -1"),
        (HALVES.bool(), "is of torch.bool"),
        (HALVES.tolist(), "must be a tensor, not list"),
        (HALVES.numpy(), "must be a tensor, not ndarray"),
    ],
    ids=["short", "long", "float", "column", "unsorted", "negative", "bool", "list", "array"],
)
def test_what_is_no_batch(name, batch, says):
    inside = EDGES[:, (EDGES[0] < 10) == (EDGES[1] < 10)]
    module_of(name)(signal(N, D), inside, None, HALVES)
    with pytest.raises(GraphError, match=says):
        module_of(name)(signal(N, D), inside, None, batch)


@pytest.mark.parametrize("name", ["node", "graph", "attention", "stack", "node model"])
def test_weights_beside_a_tensor_of_edges_may_be_numbers(name):
    module, x = module_of(name).eval(), signal(N, D)
    weight = 1 + (EDGES[0] + EDGES[1]) % 3
    expected = module(x, EDGES, weight.double())
    for one in (weight.double().numpy(), weight.tolist()):
        torch.testing.assert_close(module(x, EDGES, one), expected)


@pytest.mark.parametrize("layer", [NodeNLSF, GraphNLSF, PoolingNLSF])
def test_a_batch_of_other_graphs_than_the_spectra(layer):
    spectra = [partial_eigh(laplacian(EDGES[:, :0], num_nodes=n)) for n in (12, 8)]
    module, x, fits = layer(D, OUT).double(), signal(N, D).double(), torch.arange(N) // 12
    torch.testing.assert_close(
        module(x, None, None, fits, spectrum=spectra), module(x, spectrum=spectra)
    )
    with pytest.raises(ModelError, match="other graphs than the 2 of spectrum"):
        module(x, None, None, HALVES, spectrum=spectra)


def test_an_operator_is_no_spectrum():
    with pytest.raises(ModelError, match="not a ShiftOperator: make Lens"):
        NodeNLSF(D, OUT)(signal(N, D), spectrum=laplacian(EDGES))


def test_a_model_says_that_a_list_is_no_signal():
    with pytest.raises(SignalError, match="must be a tensor, not list"):
        module_of("node model")(signal(N, D).tolist(), EDGES)


@pytest.mark.parametrize("layer", [NodeNLSF, GraphNLSF, PoolingNLSF])
def test_an_unknown_normalization_is_refused_at_once(layer):
    with pytest.raises(ModelError, match="normalization must be 'sym', for N, or None, for L"):
        layer(D, OUT, normalization="symm")


def test_what_are_no_bands():
    """A width in the third place, for example."""
    for layer in (NodeNLSF, GraphNLSF, PoolingNLSF, MixingNLSF):
        with pytest.raises(ModelError, match=r"bands must be bands, .* not 64"):
            layer(D, OUT, 64)


@pytest.mark.parametrize("bands", [UniformBands(3), SMOOTH], ids=["exact", "polynomial"])
@pytest.mark.parametrize("many", [False, True])
def test_autocast_behind_a_linear_map(bands, many):
    """What a linear map gives is of half precision then, which bands would not survive."""
    torch.manual_seed(0)
    before, layer, x = torch.nn.Linear(D, D), NodeNLSF(D, D, bands, a=0.0), signal(N, D).float()
    batch = torch.zeros(N, dtype=torch.int64) if many else None
    weight = signal(N, D, seed=1).float()
    with torch.autocast("cpu", dtype=torch.bfloat16):
        y = layer(before(x), EDGES, None, batch)
    (y * weight).sum().backward()
    half = before.weight.grad.clone()
    before.zero_grad()
    exact = layer(before(x), EDGES, None, batch)
    (exact * weight).sum().backward()
    assert (y - exact).norm() <= 0.02 * exact.norm()
    assert (half - before.weight.grad).norm() <= 0.05 * before.weight.grad.norm()
