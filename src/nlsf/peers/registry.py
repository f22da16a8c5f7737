"""All methods to compare with, by name: `PEERS`, and `SOLVERS`, which need no epochs."""

from __future__ import annotations

from collections.abc import Mapping

from nlsf.peers.adaptive import OPTBASISGNN_PEER, SPECFORMER_PEER
from nlsf.peers.adjacency import GLOGNN_PEER, LINK_PEER, LINKX_PEER
from nlsf.peers.attention import FAGCN_PEER, GAT_PEER, GBKGNN_PEER
from nlsf.peers.base import Peer, Solver
from nlsf.peers.controls import (
    MAJORITY_SOLVER,
    MLP_PEER,
    RESNET_ADJ_PEER,
    RESNET_PEER,
    RESNET_SGC_PEER,
)
from nlsf.peers.convolutions import GCN_PEER, GIN_PEER, SAGE_PEER
from nlsf.peers.graph_level import DIFFPOOL_PEER
from nlsf.peers.heterophily import CPGNN_PEER, FSGNN_PEER, H2GCN_PEER
from nlsf.peers.kernels import GRAPHLET_SOLVER, WL_SOLVER
from nlsf.peers.polynomials import (
    BERNNET_PEER,
    CHEBNET_PEER,
    CHEBNETII_PEER,
    GPRGNN_PEER,
    JACOBICONV_PEER,
)
from nlsf.peers.rational import APPNP_PEER, ARMA_PEER, CAYLEYNET_PEER
from nlsf.peers.residual_attention import GATSEP_PEER, GT_PEER, GTSEP_PEER

_TRAINED = (
    MLP_PEER,
    GCN_PEER,
    CHEBNET_PEER,
    CHEBNETII_PEER,
    CAYLEYNET_PEER,
    ARMA_PEER,
    APPNP_PEER,
    GPRGNN_PEER,
    BERNNET_PEER,
    JACOBICONV_PEER,
    OPTBASISGNN_PEER,
    SPECFORMER_PEER,
    GAT_PEER,
    GATSEP_PEER,
    GT_PEER,
    GTSEP_PEER,
    SAGE_PEER,
    FAGCN_PEER,
    H2GCN_PEER,
    CPGNN_PEER,
    GBKGNN_PEER,
    GIN_PEER,
    FSGNN_PEER,
    GLOGNN_PEER,
    RESNET_PEER,
    RESNET_SGC_PEER,
    RESNET_ADJ_PEER,
    LINK_PEER,
    LINKX_PEER,
    DIFFPOOL_PEER,
)

PEERS: Mapping[str, Peer] = {peer.name: peer for peer in _TRAINED}

SOLVERS: Mapping[str, Solver] = {
    solver.name: solver for solver in (MAJORITY_SOLVER, WL_SOLVER, GRAPHLET_SOLVER)
}
