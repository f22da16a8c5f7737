"""The paper's theory as studies that run: each measures a claim, draws it, and says if it holds.

    from nlsf.lab import find_study, perform, write_gallery

    outcome = perform(find_study("activations"))
    outcome.finding.conclusion, outcome.finding.holds
    write_gallery([outcome], Path("gallery.html"))

``nlsf lab all`` runs every study and writes one page. A study is a file of this folder: its
settings, what it measures, and its charts. What a study examines (a filter, a synthesis, a way to
draw shifts) is an argument of its ``run``, so that a test can hand it something broken.
"""

from nlsf.lab.gallery import gallery_page, write_gallery
from nlsf.lab.registry import STUDIES, find_study
from nlsf.lab.study import Finding, Outcome, Study, perform, read_settings

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
