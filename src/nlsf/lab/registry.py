"""All studies by name: `STUDIES`, `find_study`."""

from __future__ import annotations

from nlsf.errors import ConfigError, unknown_name
from nlsf.lab.activations import ACTIVATIONS
from nlsf.lab.approximation import APPROXIMATION
from nlsf.lab.attention import ATTENTION
from nlsf.lab.bands import BANDS
from nlsf.lab.commuting import COMMUTING
from nlsf.lab.complexity import COMPLEXITY
from nlsf.lab.cut_norm import CUT_NORM
from nlsf.lab.grids import GRIDS
from nlsf.lab.inverse import INVERSE
from nlsf.lab.perturbation import PERTURBATION
from nlsf.lab.pooling import POOLING
from nlsf.lab.study import Study
from nlsf.lab.transfer import TRANSFER
from nlsf.lab.translation import TRANSLATION

_ALL = (
    ACTIVATIONS,
    TRANSLATION,
    PERTURBATION,
    GRIDS,
    COMMUTING,
    APPROXIMATION,
    INVERSE,
    POOLING,
    BANDS,
    CUT_NORM,
    TRANSFER,
    ATTENTION,
    COMPLEXITY,
)

STUDIES: dict[str, Study] = {study.name: study for study in _ALL}
"""In the order in which the gallery shows them."""


def find_study(name: str) -> Study:
    """The study of this name.

    Raises:
        ConfigError: there is none; the message has the nearest name.
    """
    if name not in STUDIES:
        raise ConfigError(unknown_name("study", name, STUDIES))
    return STUDIES[name]
