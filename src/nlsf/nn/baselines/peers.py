"""All peers by name: `PEERS`."""

from __future__ import annotations

from collections.abc import Mapping

from nlsf.nn.baselines import (
    appnp,
    arma,
    bernnet,
    chebnet,
    chebnetii,
    gat,
    gcn,
    gin,
    gprgnn,
    jacobiconv,
    mlp,
    sage,
)
from nlsf.nn.baselines.base import Peer

_METHODS = (
    mlp,
    gcn,
    chebnet,
    chebnetii,
    arma,
    appnp,
    gprgnn,
    bernnet,
    jacobiconv,
    gat,
    sage,
    gin,
)

PEERS: Mapping[str, Peer] = {method.PEER.name: method.PEER for method in _METHODS}
