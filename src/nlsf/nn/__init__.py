"""Nonlinear spectral filters as PyTorch layers.

| layer | from | to | symmetry (norm p = 2) |
|---|---|---|---|
| `NodeNLSF` | (N, d) | (N, d') | commutes with functional shifts |
| `GraphNLSF` | (N, d) | (G, d') | invariant to functional shifts |
| `PoolingNLSF` | (N, d) | (G, d') | invariant to permutations |
| `LaplacianAttention` | two of a kind | both, weighted | that of its branches |
| `MixingNLSF` | (..., N, d) on one graph | (..., N, d') | commutes with functional shifts |
| `NLSFStack` | (N, d) | (N, d') | commutes with functional shifts |
| `NodeClassifier` | (N, d) | (N, classes) | that of its encoder and filters |
| `GraphClassifier` | (N, d) | (G, classes) | that of its filters |
| `SignalClassifier` | (..., N, d) on one graph | (..., classes) | none: it knows every node |

Every layer is called as ``layer(x, edge_index, edge_weight, batch)``, and computes the spectrum of
a graph once, or as ``layer(x, spectrum=...)`` with what `nlsf.spectral.partial_eigh` gave.
"""

from nlsf.nn.dropout import Dropout
from nlsf.nn.layers.attention import LaplacianAttention
from nlsf.nn.layers.graph import GraphNLSF
from nlsf.nn.layers.node import MixingNLSF, NodeNLSF
from nlsf.nn.layers.pooling import PoolingNLSF, Readout
from nlsf.nn.layers.spectra import forget_spectra
from nlsf.nn.layers.stack import InvariantNorm, NLSFStack
from nlsf.nn.models import (
    GraphClassifier,
    GraphClassifierConfig,
    NodeClassifier,
    NodeClassifierConfig,
    SignalClassifier,
    SignalClassifierConfig,
    parameter_groups,
)
from nlsf.nn.responses.psi import Psi, Start, register_response
from nlsf.nn.responses.response import Response

__all__ = [
    "Dropout",
    "GraphClassifier",
    "GraphClassifierConfig",
    "GraphNLSF",
    "InvariantNorm",
    "LaplacianAttention",
    "MixingNLSF",
    "NLSFStack",
    "NodeClassifier",
    "NodeClassifierConfig",
    "NodeNLSF",
    "PoolingNLSF",
    "Psi",
    "Readout",
    "Response",
    "SignalClassifier",
    "SignalClassifierConfig",
    "Start",
    "forget_spectra",
    "parameter_groups",
    "register_response",
]
