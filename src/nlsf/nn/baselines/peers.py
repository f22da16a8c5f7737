"""All peers by name: `PEERS`."""

from __future__ import annotations

from collections.abc import Mapping

from nlsf.nn.baselines import gcn
from nlsf.nn.baselines.base import Peer

_METHODS = (gcn,)

PEERS: Mapping[str, Peer] = {method.PEER.name: method.PEER for method in _METHODS}
