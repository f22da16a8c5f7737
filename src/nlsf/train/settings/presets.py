"""Settings that suit a kind of data, so that a first run is a good one."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch

from nlsf.data.dataset import Dataset, Level
from nlsf.errors import ConfigError, unknown_name
from nlsf.train.settings.toml import Table, merged

if TYPE_CHECKING:
    from nlsf.train.settings.models import ModelKind

LARGE = 8_000
"""Nodes from which on no band may need half of the eigenvectors."""

HALF = 6_000
"""Nodes from which on half of the eigenvectors, which even bands need, cost more than polynomials
of the operator: an epoch on the 7,600 nodes of Actor takes 1.3 s with them, and 0.05 s without."""

MILLIONS = 100_000
"""Nodes from which on a training step must not see the graph."""

_NODES: Table = {
    "training": {
        "lr": 0.01,
        "weight_decay": 2e-3,
        "psi_lr": 2e-3,
        "psi_weight_decay": 0.01,
        "patience": 200,
    }
}

_SMOOTH: Table = {
    "kind": "polynomial",
    "base": {"kind": "dyadic", "r": 0.5, "S": 5},
    "order": 16,
}

# A response that is a network overfits. Decayed, it shall be a linear filter, not none.
_RESPONSE: Table = {"psi_weight_decay": 0.03, "gain_weight_decay": 0.0}

# Filters of the graph level have no response: it is the scores of their attention that decay.
_SCORES: Table = {"psi_weight_decay": 0.03}

_GRAPHS: Table = {
    "lr": 5e-3,
    "weight_decay": 1e-4,
    "patience": 100,
    "epochs": 300,
    "batch_size": 64,
    "warmup": 10,
    "average": 0.1,
}

# Peers of graphs lose accuracy by an input dropout, which is for nodes (docs/accuracy.md).
_GRAPH_MODEL: Table = {"input_dropout": 0.0, "dropout": 0.3, "node_norm": True}

_HOMOPHILOUS: Table = {
    **_NODES,
    "model": {
        "value_bands": {"kind": "dyadic", "r": 0.5, "S": 6},
        "self_loops": True,
        "start": {"name": "ppr", "t": 9.0},
        "input_dropout": 0.8,
        "dropout": 0.5,
    },
}

_HETEROPHILOUS: Table = {
    "training": {**_NODES["training"], "lr": 0.05, "weight_decay": 5e-3},
    "model": {
        "value_bands": {"kind": "uniform", "S": 20},
        "self_loops": False,
        "start": {"name": "all-pass"},
        "input_dropout": 0.0,
        "dropout": 0.5,
    },
}

PRESETS: dict[str, Table] = {
    # Neighbours are alike: smooth, with the gains of a personalised PageRank to start from.
    "homophilous": _HOMOPHILOUS,
    # And features are indicators, of words for example: long texts must not weigh more.
    "documents": {**_HOMOPHILOUS, "features": {"row_normalize": True}},
    # They are not: leave every band open, with bands fine enough to set heavy eigenvalues apart.
    "heterophilous": _HETEROPHILOUS,
    # The same with fewer and softer bands, which need no eigenvectors.
    "heterophilous-large": merged(
        _HETEROPHILOUS,
        {
            "model": {
                "value_bands": {
                    "kind": "polynomial",
                    "base": {"kind": "uniform", "S": 8},
                    "order": 16,
                }
            }
        },
    ),
    # A wide band of a large graph has too many eigenvectors: polynomials of N instead.
    "large": {
        **_NODES,
        "model": {
            "index_bands": {"kind": "index", "J": 32},
            "value_bands": _SMOOTH,
            "self_loops": True,
            "start": {"name": "ppr", "t": 9.0},
            "input_dropout": 0.5,
            "dropout": 0.5,
        },
    },
    # The way to the filter is linear, so all bands are computed once, and then rows are enough.
    "millions": {
        "training": {
            **_NODES["training"],
            "weight_decay": 1e-5,
            "psi_weight_decay": 1e-5,
            "epochs": 50,
            "patience": 10,
            "batch_size": 8192,
        },
        "model": {
            "encoder": "linear",
            "place": "hidden",
            "index_bands": {"kind": "index", "J": 8},
            "value_bands": _SMOOTH,
            "self_loops": True,
            "start": {"name": "all-pass"},
            "input_dropout": 0.0,
            "dropout": 0.2,
        },
    },
    "graphs": {
        "training": _GRAPHS,
        "features": {"constant": True, "degree": "scaled"},
        "model": _GRAPH_MODEL,
    },
    # Measured attributes have units: bring them to one scale.
    "attributed": {
        "training": _GRAPHS,
        "features": {"zscore": True, "constant": True, "degree": "scaled"},
        "model": _GRAPH_MODEL,
    },
    "unattributed": {
        "training": _GRAPHS,
        "features": {"constant": True, "degree": "binned"},
        "model": _GRAPH_MODEL,
    },
    "signals": {
        "training": {
            "lr": 5e-3,
            "weight_decay": 1e-4,
            "patience": 50,
            "epochs": 200,
            "batch_size": 256,
        },
    },
    "regression": {**_NODES, "model": {"input_dropout": 0.0, "dropout": 0.0}},
}


def default_model(level: Level) -> str:
    """The model that is trained when none is named."""
    return {"node": "att-node", "graph": "pooling", "signal": "graph"}[level]


def preset(name: str | None, dataset: Dataset, kind: ModelKind, homophilous: bool | None) -> Table:
    """The preset of this name, or the one that fits; only the keys that the model has.

    Args:
        name: one of `PRESETS`, or ``None``.
        dataset: the data.
        kind: the model.
        homophilous: whether neighbours tend to be alike, where that is known.
    """
    if name is None:
        name = _fitting(dataset, homophilous)
    if name not in PRESETS:
        raise ConfigError(unknown_name("preset", name, PRESETS))
    table: dict[str, Any] = dict(PRESETS[name])
    if kind.solve is not None:  # it has no epochs, and compares features as they are
        made = {} if dataset.num_features else {"degree": "one-hot"}
        return {"features": made, "model": {}}
    model = table.get("model", {})
    table = {**table, "model": {k: v for k, v in model.items() if k in kind.keys}}
    if dataset.level == "graph" and "response" in kind.keys:
        pools = kind.fixed.get("level") == "pooling"
        table = merged(table, {"training": _RESPONSE if pools else _SCORES})
    if kind.preset and dataset.level == "signal":
        return merged(table, kind.preset)
    if not kind.preset or dataset.level != "node":
        return table
    # A peer keeps the schedule of the data, and has its own rates and its own architecture.
    return {**merged(table, kind.preset), "model": {}}


def _fitting(dataset: Dataset, homophilous: bool | None) -> str:
    if dataset.level == "signal":
        return "signals"
    if dataset.level == "graph":
        if not dataset.num_features:
            return "unattributed"
        return "graphs" if _zeros_and_ones(dataset) else "attributed"
    if dataset.num_examples > MILLIONS:
        return "millions"
    if homophilous is False and dataset.num_examples > HALF:
        return "heterophilous-large"
    if dataset.num_examples > LARGE:
        return "large"
    if dataset.is_regression:
        return "regression"
    if homophilous is False:
        return "heterophilous"
    return "documents" if _zeros_and_ones(dataset) else "homophilous"


def _zeros_and_ones(dataset: Dataset) -> bool:
    """Whether the features are indicators, as one-hot labels and words are."""
    graphs = dataset.graphs if dataset.signals is None and dataset.num_features else ()
    values = [g.x if g.x.layout == torch.strided else g.x.values() for g in graphs]
    return bool(values) and all(bool(((x == 0) | (x == 1)).all()) for x in values)
