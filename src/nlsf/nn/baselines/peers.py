"""All peers by name: `PEERS`."""

from __future__ import annotations

from collections.abc import Mapping

from nlsf.nn.baselines import (
    appnp,
    arma,
    bernnet,
    cayleynet,
    chebnet,
    chebnetii,
    cpgnn,
    diffpool,
    fagcn,
    fsgnn,
    gat,
    gatsep,
    gbkgnn,
    gcn,
    gin,
    glognn,
    gprgnn,
    gt,
    gtsep,
    h2gcn,
    jacobiconv,
    link,
    linkx,
    mlp,
    optbasisgnn,
    resnet,
    resnet_adj,
    resnet_sgc,
    sage,
    specformer,
)
from nlsf.nn.baselines.base import Peer

_METHODS = (
    mlp,
    gcn,
    chebnet,
    chebnetii,
    cayleynet,
    arma,
    appnp,
    gprgnn,
    bernnet,
    jacobiconv,
    optbasisgnn,
    specformer,
    gat,
    gatsep,
    gt,
    gtsep,
    sage,
    fagcn,
    h2gcn,
    cpgnn,
    gbkgnn,
    gin,
    fsgnn,
    glognn,
    resnet,
    resnet_sgc,
    resnet_adj,
    link,
    linkx,
    diffpool,
)

PEERS: Mapping[str, Peer] = {method.PEER.name: method.PEER for method in _METHODS}
