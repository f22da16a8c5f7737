"""Models built from the filters, each from one frozen dataclass."""

from nlsf.nn.models.graph_classifier import GraphClassifier, GraphClassifierConfig
from nlsf.nn.models.node_classifier import NodeClassifier, NodeClassifierConfig
from nlsf.nn.models.parts import ParameterGroup, parameter_groups
from nlsf.nn.models.signal_classifier import SignalClassifier, SignalClassifierConfig
from nlsf.nn.networks import Head

__all__ = [
    "GraphClassifier",
    "GraphClassifierConfig",
    "Head",
    "NodeClassifier",
    "NodeClassifierConfig",
    "ParameterGroup",
    "SignalClassifier",
    "SignalClassifierConfig",
    "parameter_groups",
]
