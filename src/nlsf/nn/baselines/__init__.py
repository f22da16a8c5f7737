"""The methods that NLSFs are compared with, one file each, under one roof.

Each is a `Body` (features and a graph in, one vector a node out) with a frozen dataclass of
settings; `PeerModel` makes it a model for nodes or for graphs. `PEERS` names them all.
"""

from nlsf.nn.baselines.base import Body, Peer, PeerConfig, PeerModel
from nlsf.nn.baselines.neighbourhood import Neighbourhood
from nlsf.nn.baselines.peers import PEERS

__all__ = ["PEERS", "Body", "Neighbourhood", "Peer", "PeerConfig", "PeerModel"]
