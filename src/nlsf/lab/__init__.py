"""The paper's theory as studies that run: each measures a claim, draws it, and says if it holds.

    from nlsf.lab import find_study, perform, write_gallery

    outcome = perform(find_study("activations"))
    outcome.finding.conclusion, outcome.finding.holds
    write_gallery([outcome], Path("gallery.html"))

``nlsf lab all`` runs every study and writes one page. A study is a file of this folder: its
settings, what it measures, and its charts. What it examines (a filter, a synthesis, a way to draw
shifts) is an argument of its ``run``. So a test can hand it something broken.
"""

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
from nlsf.lab.study import (
    Finding,
    Outcome,
    Study,
    gallery_page,
    perform,
    read_settings,
    write_gallery,
)
from nlsf.lab.transfer import TRANSFER
from nlsf.lab.translation import TRANSLATION

__all__ = [
    "STUDIES",
    "Finding",
    "Outcome",
    "Study",
    "find_study",
    "gallery_page",
    "perform",
    "read_settings",
    "write_gallery",
]

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
