"""What models share: the Laplacian that a branch reads, and the group of a parameter.

`normalization_of` and `check_operators` settle the first, `parameter_groups` the second.
"""

from __future__ import annotations

from typing import Literal, TypeAlias

from torch import nn

from nlsf.errors import ModelError
from nlsf.nn.layers.attention import LaplacianAttention
from nlsf.nn.layers.graph import GraphNLSF
from nlsf.nn.responses.psi import Psi
from nlsf.spectral.operators.shift import Normalization

Operator: TypeAlias = Literal["L", "N"]
"""The Laplacian L = D - A, or the normalised one N."""


def normalization_of(operator: Operator) -> Normalization:
    """The ``normalization`` of a layer that reads this operator."""
    return None if operator == "L" else "sym"


def check_operators(*operators: Operator) -> None:
    """Raises unless each is one of the two."""
    for operator in operators:
        if operator not in ("L", "N"):
            raise ModelError(f"The operator of a branch must be L or N, not {operator!r}.")


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
