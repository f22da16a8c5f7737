"""Genius: users of a site for song lyrics, who follow each other."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from nlsf.data.dataset import Dataset
from nlsf.data.readers._linkx import read_edge_list

if TYPE_CHECKING:
    from nlsf.data.entry import Entry


def read(entry: Entry, paths: Sequence[Path]) -> Dataset:
    """The network; a user's class is whether the account is marked as gone.

    Args:
        entry: names the data set.
        paths: ``genius.mat``, with ``edge_index`` (2, E), ``node_feat`` (N, 12), ``label`` (N, 1).
    """
    return read_edge_list(entry, paths)
