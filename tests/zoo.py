"""200 seeded random graphs, most of them built so that eigenvalues repeat."""

import networkx as nx
import numpy as np
from scipy import sparse

from nlsf.data import block_model, preferential_attachment, random_geometric, torus
from nlsf.spectral.operators import adjacency_matrix


def union(*parts):
    """Graphs side by side."""
    return sparse.block_diag([adjacency_matrix(p) for p in parts], format="csr")


def twins(graph, rng, share=0.3):
    """Copies some nodes with all their neighbours: a heavy eigenvalue 1 of N."""
    A = adjacency_matrix(graph).toarray()
    chosen = rng.choice(len(A), max(1, int(share * len(A))), replace=False)
    rows = np.concatenate([np.arange(len(A)), chosen])
    B = A[rows][:, rows]
    B[len(A) :, len(A) :] = 0
    B[len(A) :, chosen] = 0
    B[chosen, len(A) :] = 0
    return sparse.csr_array(B)


def weighted(graph, rng):
    """Random weights, symmetric."""
    A = sparse.triu(adjacency_matrix(graph), k=1).tocoo()
    A.data = rng.uniform(0.1, 3.0, A.nnz)
    return (A + A.T).tocsr()


def _pendants(n, hubs, leaves):
    """A path with equal bunches of leaves."""
    graph = nx.path_graph(n)
    for hub in range(hubs):
        graph.add_edges_from((hub, n + hub * leaves + leaf) for leaf in range(leaves))
    return graph


def zoo(index):
    """Graph number ``index`` of 200, as (kind, graph)."""
    rng = np.random.default_rng(index)
    n = int(rng.integers(200, 300))
    seed = int(rng.integers(1 << 30))
    side = int(rng.integers(11, 14))
    tree = nx.random_labeled_tree(n, seed=seed)
    kinds = {
        "block model": lambda: block_model(n, 4, 6.0, seed=seed),
        "geometric": lambda: random_geometric(n, 6.0, seed=seed),
        "tree": lambda: tree,
        "preferential": lambda: preferential_attachment(n, 2, seed=seed),
        "equal trees": lambda: union(*[nx.random_labeled_tree(150, seed=seed)] * 3, tree),
        "equal pieces": lambda: union(*[torus(side, side)] * 3, nx.cycle_graph(12), tree),
        "weighted": lambda: weighted(random_geometric(n, 6.0, seed=seed), rng),
        "equal weighted": lambda: union(*[weighted(block_model(200, 3, seed=seed), rng)] * 2),
        "bipartite": lambda: nx.bipartite.random_graph(n // 2, n // 3, 0.02, seed=seed),
        "hypercube and torus": lambda: union(nx.hypercube_graph(8), torus(side, side + 1)),
        "twins": lambda: twins(block_model(n, 3, 6.0, seed=seed), rng),
        "pendant copies": lambda: _pendants(n, 5, 12),
        "caveman": lambda: nx.connected_caveman_graph(n // 6, 6),
        "regular": lambda: nx.random_regular_graph(4, n + n % 2, seed=seed),
        "barbell": lambda: nx.barbell_graph(side, n),
        "isolated nodes": lambda: union(block_model(n, 3, 2.0, seed=seed), np.zeros((7, 7))),
    }
    kind = sorted(kinds)[index % len(kinds)]
    return kind, kinds[kind]()
