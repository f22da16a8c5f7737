"""Which layers of PyTorch Geometric respect which symmetry? The assertions of nlsf.testing tell.

They take any callable. Every layer here commutes with a renumbering of the nodes. Functional
shifts are a larger group: linear spectral filters commute with them; activations, attention and
biases do not.
"""

import numpy as np
import torch
from torch_geometric.nn import APPNP, ChebConv, GATConv, GCNConv

from nlsf.nn import NodeNLSF
from nlsf.spectral import IndexBands, adjacency, laplacian, partial_eigh
from nlsf.testing import assert_permutation_equivariant, assert_shift_equivariant, tiny_graphs

torch.manual_seed(0)
LAYERS = {
    "ChebConv": ChebConv(3, 3, K=3, bias=False),
    "APPNP": APPNP(K=5, alpha=0.1),
    "GCNConv": GCNConv(3, 3, bias=False),
    "GCNConv with bias": GCNConv(3, 3),
    "GATConv": GATConv(3, 3),
    "NodeNLSF": NodeNLSF(3, 3, IndexBands(J=6), start="random"),
}
torch.nn.init.ones_(LAYERS["GCNConv with bias"].bias)  # zero at first, which would hide it

graph = tiny_graphs()["torus"]
edges = adjacency(graph.edge_index)
group = partial_eigh(laplacian(graph.edge_index, normalization="sym"))  # what commutes with N
x = torch.randn(graph.num_nodes, 3, dtype=torch.float64)


def holds(check, *arguments):
    try:
        check(*arguments)
    except AssertionError:
        return "no"
    return "yes"


print(f"{'layer':25} renumbering  functional shifts")
for name, layer in LAYERS.items():
    layer.double()
    for activation in (torch.nn.Identity(), torch.nn.ReLU()):

        def f(x, operator=edges, layer=layer, activation=activation):
            return activation(layer(x, torch.tensor(np.array(operator.matrix.nonzero()))))

        label = name if isinstance(activation, torch.nn.Identity) else f"{name}, ReLU"
        renumbered = holds(assert_permutation_equivariant, f, edges, x)
        print(f"{label:25} {renumbered:12} {holds(assert_shift_equivariant, f, group, x)}")
