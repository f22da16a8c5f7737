"""Which part of a model a parameter belongs to: `parameter_groups`."""

from __future__ import annotations

from typing import Literal, TypeAlias

from torch import nn

from nlsf.nn.attention import LaplacianAttention
from nlsf.nn.graph_nlsf import GraphNLSF
from nlsf.nn.psi import Psi

ParameterGroup: TypeAlias = Literal["encoder", "psi", "gain", "decoder"]


def parameter_groups(model: nn.Module) -> dict[str, ParameterGroup]:
    r"""The group of every parameter, by name, for optimisers that treat them differently.

    - ``encoder``: what stands before the filters: the ``encoder`` of a model, and the linear map in
      front of the norms of a `GraphNLSF`
    - ``psi``: the responses :math:`\Psi`, the scores of an attention, and the ``coefficients`` of a
      peer's filter
    - ``gain``: of a response, what is the same for every signal (`Psi.gain_parameters`): the
      linear filter that is left where all else in it has decayed
    - ``decoder``: all else: linear maps after the filters, decoder, head. The network of a
      `GraphNLSF` belongs here: it is most of that model, and not a correction of a linear filter
    """
    prefixes: dict[str, ParameterGroup] = {"encoder.": "encoder"}
    gains: set[str] = set()
    for path, part in model.named_modules():
        inside = f"{path}." if path else ""
        if isinstance(part, Psi):
            prefixes[inside] = "psi"
            gains |= {inside + name for name in part.gain_parameters}
        elif isinstance(part, LaplacianAttention):
            for name in ("scores", "first_score.", "second_score."):
                prefixes[inside + name] = "psi"
        elif isinstance(part, GraphNLSF):
            prefixes[f"{inside}lin."] = "encoder"
    groups: dict[str, ParameterGroup] = {}
    for name, _ in model.named_parameters():
        if name in gains:
            groups[name] = "gain"
        elif "coefficients" in name.split("."):
            groups[name] = "psi"
        else:
            found = (group for prefix, group in prefixes.items() if name.startswith(prefix))
            groups[name] = next(found, "decoder")
    return groups
