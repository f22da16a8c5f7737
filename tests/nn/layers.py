"""Layers and graphs that several test files share."""

import torch
from torch_geometric.data import Batch, Data

from nlsf.nn import GraphNLSF, LaplacianAttention, NLSFStack, NodeNLSF, PoolingNLSF
from nlsf.spectral import DyadicBands, IndexBands, UniformBands, laplacian, partial_eigh
from nlsf.testing import TinyGraph
from nlsf.testing.graphs import path, star, torus, weighted

F64 = torch.float64


def randomised(layer, seed=0, scale=0.5):
    """The layer in float64 with random parameters, so that no response is zero."""
    generator = torch.Generator().manual_seed(seed)
    layer = layer.double()
    with torch.no_grad():
        for parameter in layer.parameters():
            parameter.copy_(scale * torch.randn(parameter.shape, dtype=F64, generator=generator))
    return layer


def signal(*shape, seed=0, dtype=F64):
    return torch.randn(shape, dtype=dtype, generator=torch.Generator().manual_seed(seed))


def spectrum_of(graph, normalization="sym", bands=None):
    """As much of the spectrum as the bands need, all of it by default."""
    return partial_eigh(laplacian(graph, normalization=normalization), bands=bands)


def _stack():
    first = LaplacianAttention(
        NodeNLSF(2, 2, IndexBands(3), normalization=None, hidden=3, activation="tanh"),
        NodeNLSF(2, 2, UniformBands(3), complement=True, hidden=3, activation="tanh"),
        "spectral",
        hidden=3,
    )
    second = LaplacianAttention(
        NodeNLSF(4, 2, DyadicBands(S=3), hidden=3, activation="tanh"),
        NodeNLSF(4, 2, IndexBands(2), hidden=3, activation="tanh"),
    )
    return NLSFStack([first, second])


SMOOTH = {"hidden": 3, "activation": "tanh"}

LAYERS = {
    "node": lambda: NodeNLSF(2, 2, IndexBands(9), a=1.0, start="heat", **SMOOTH),
    "node, bandwise": lambda: NodeNLSF(2, 3, UniformBands(4), None, "bandwise", **SMOOTH),
    "node, constant": lambda: NodeNLSF(2, 3, UniformBands(4), None, "constant"),
    "node, full": lambda: NodeNLSF(2, 2, IndexBands(3), None, "full", start="ppr", **SMOOTH),
    "node, lead": lambda: NodeNLSF(2, 3, IndexBands(9), complement=False, **SMOOTH),
    "node, L_1": lambda: NodeNLSF(2, 2, IndexBands(3), norm_p=1.0, norm_per_node=True, **SMOOTH),
    "graph": lambda: GraphNLSF(2, 3, IndexBands(9), hidden=3, activation="tanh"),
    "graph, mapped": lambda: GraphNLSF(2, 3, channels=4, norm_per_node=True, **SMOOTH),
    "pooling": lambda: PoolingNLSF(
        2, 3, IndexBands(9), hidden_channels=4, readout="rms", activation="tanh"
    ),
    "pooling, max": lambda: PoolingNLSF(
        2, 3, hidden_channels=4, readout="max", activation=None, response="full"
    ),
    "pooling, no network": lambda: PoolingNLSF(2, 3, readout="lp", p=3.0, depth=0),
    "attention": lambda: LaplacianAttention(
        NodeNLSF(2, 2, IndexBands(9), None, a=1.0, **SMOOTH), NodeNLSF(2, 3, **SMOOTH)
    ),
    "attention, spectral": lambda: LaplacianAttention(
        NodeNLSF(2, 2, IndexBands(9), None, **SMOOTH), NodeNLSF(2, 3, **SMOOTH), "spectral", 16
    ),
    "attention, graphs": lambda: LaplacianAttention(
        GraphNLSF(2, 2, IndexBands(4), None, channels=3, **SMOOTH),
        PoolingNLSF(2, 2, hidden_channels=3, readout="rms", activation=None, hidden=3),
        "spectral",
        16,
    ),
    "stack": lambda: NLSFStack([NodeNLSF(2, 2, IndexBands(4), a=1.0, **SMOOTH) for _ in range(3)]),
    "stack of attention": _stack,
}
"""One of everything, with smooth activations, from 2 channels."""

NODE_LEVEL = [name for name in LAYERS if name.split()[0].strip(",") in ("node", "stack")]
NODE_LEVEL += ["attention", "attention, spectral"]

# Among them one node, two nodes, and graphs smaller than the J = 9 of some layers.
MIXED = [torus(4, 5), TinyGraph(torch.zeros(2, 0, dtype=torch.int64), 1), path(7), path(2), star(6)]


def layer_of(name, seed=0):
    return randomised(LAYERS[name](), seed)


def batch_of(graphs, channels=2, seed=0):
    """A PyTorch Geometric batch with random signals."""
    items = [
        Data(
            x=signal(g.num_nodes, channels, seed=seed + i),
            edge_index=g.edge_index,
            edge_weight=g.edge_weight,
        )
        for i, g in enumerate(graphs)
    ]
    return Batch.from_data_list(items)


def weighted_graphs():
    """Graphs that all have weights, as one batch must."""
    return [weighted(8), weighted(5), weighted(11)]
