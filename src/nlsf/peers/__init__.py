"""The methods that NLSFs are compared with, a file a family.

Each is a `Body` (features and a graph in, one vector a node out) with a frozen dataclass of
settings; `PeerModel` makes it a model for nodes or for graphs. `PEERS` names them all. A `Solver`
is not trained in epochs: it looks at a lesson, and knows all outputs. `SOLVERS` names those.
"""

from nlsf.peers.base import Body, Peer, PeerConfig, PeerModel, Solve, Solved, Solver, SolverConfig
from nlsf.peers.matrices import Neighbourhood
from nlsf.peers.registry import PEERS, SOLVERS

__all__ = [
    "PEERS",
    "SOLVERS",
    "Body",
    "Neighbourhood",
    "Peer",
    "PeerConfig",
    "PeerModel",
    "Solve",
    "Solved",
    "Solver",
    "SolverConfig",
]
