"""The methods that NLSFs are compared with, a file a family.

Each is a `Peer` (features and a graph in, one vector a node out) with a frozen dataclass of
settings; `PeerModel` makes it a model for nodes or for graphs. `PEERS` names them all. A `Solver`
is not trained in epochs: it looks at a lesson, and knows all outputs. `SOLVERS` names those.
"""

from collections.abc import Mapping as _Mapping

from nlsf.peers.adaptive import OptBasisGNN, Specformer
from nlsf.peers.adjacency import LINK, LINKX, GloGNN
from nlsf.peers.attention import FAGCN, GAT, GBKGNN
from nlsf.peers.base import Peer, PeerConfig, PeerModel
from nlsf.peers.convolutions import GCN, GIN, MLP, SAGE
from nlsf.peers.graph_level import DiffPool
from nlsf.peers.heterophily import CPGNN, FSGNN, H2GCN
from nlsf.peers.kernels import GRAPHLETS, WEISFEILER_LEHMAN
from nlsf.peers.matrices import Neighbourhood
from nlsf.peers.polynomials import GPRGNN, BernNet, ChebNet, ChebNetII, JacobiConv
from nlsf.peers.rational import APPNP, ARMA, CayleyNet
from nlsf.peers.residual import GT, GATSep, GTSep, ResNet, ResNetAdj, ResNetSGC
from nlsf.peers.solvers import MAJORITY, Solve, Solved, Solver, SolverConfig

__all__ = [
    "PEERS",
    "SOLVERS",
    "Neighbourhood",
    "Peer",
    "PeerConfig",
    "PeerModel",
    "Solve",
    "Solved",
    "Solver",
    "SolverConfig",
]

_METHODS: tuple[type[Peer], ...] = (
    *(MLP, GCN, ChebNet, ChebNetII, CayleyNet, ARMA, APPNP, GPRGNN, BernNet, JacobiConv),
    *(OptBasisGNN, Specformer, GAT, GATSep, GT, GTSep, SAGE, FAGCN, H2GCN, CPGNN, GBKGNN, GIN),
    *(FSGNN, GloGNN, ResNet, ResNetSGC, ResNetAdj, LINK, LINKX, DiffPool),
)

PEERS: _Mapping[str, type[Peer]] = {method.name: method for method in _METHODS}
"""Methods that are trained, by name, in the order of tables."""

SOLVERS: _Mapping[str, Solver] = {
    solver.name: solver for solver in (MAJORITY, WEISFEILER_LEHMAN, GRAPHLETS)
}
"""Methods that need no epochs, by name."""
