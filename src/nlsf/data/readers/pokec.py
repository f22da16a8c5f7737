"""Pokec: a social network of Slovakia."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from nlsf.data.dataset import Dataset
from nlsf.data.readers._linkx import read_edge_list

if TYPE_CHECKING:
    from nlsf.data.entry import Entry


def read(entry: Entry, paths: Sequence[Path]) -> Dataset:
    """The network; a user's class is the gender, -1 where it is not given.

    Args:
        entry: names the data set.
        paths: ``pokec.mat``, with ``edge_index`` (2, E), ``node_feat`` (N, 65), ``label`` (1, N).
    """
    return read_edge_list(entry, paths)
