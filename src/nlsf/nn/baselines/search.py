"""Values that the NLSF paper searches for every method (App. E.1), for the peers' ``search``."""

from __future__ import annotations

WIDTHS = (64, 128)
"""Hidden channels."""

DROPOUTS = (0.0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9)
"""Dropout rates."""

LAYERS = (1, 2, 3, 4)
"""Layers, of the paper's 1 to 10: a small number of trials is better spent on these."""
