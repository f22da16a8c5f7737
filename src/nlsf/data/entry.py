"""What the catalogue says of one data set: `Entry` and its `Statistics`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from nlsf.data.files import RemoteFile

if TYPE_CHECKING:
    from nlsf.data.dataset import Level, Metric


@dataclass(frozen=True)
class Statistics:
    """Counts of a data set as its reader gives it by default; ``None`` where they do not apply.

    Attributes:
        nodes: of the one graph.
        edges: undirected, of all graphs together, without self loops and doubles.
        features: channels of the input; 0 where nodes have none.
        classes: how many there are.
        examples: nodes, graphs or signals, also those without a label.
        min_nodes: of the smallest graph.
        max_nodes: of the largest graph.
        average_nodes: over graphs, rounded to two digits.
    """

    nodes: int | None = None
    edges: int | None = None
    features: int | None = None
    classes: int | None = None
    examples: int | None = None
    min_nodes: int | None = None
    max_nodes: int | None = None
    average_nodes: float | None = None


@dataclass(frozen=True)
class Entry:
    """One data set of the catalogue.

    Attributes:
        name: as the paper writes it.
        level: what an example is: a node, a graph, or a signal on one graph.
        reader: ``"module:function"``; see `nlsf.data.catalogue.load`.
        statistics: its counts.
        protocol: how it is divided unless another protocol is asked for.
        source: who made it, and where it is published.
        licence: what is known of the terms of use.
        task: what is learned.
        files: what the reader needs, in its order; none for an embedded data set.
        directed: what it needs beside them for the option ``directed``.
        metric: what is reported first.
        homophilous: whether neighbours tend to be of one class; ``None`` where it depends.
        aliases: other names; case, spaces, ``-`` and ``_`` never matter.
        note: what a user may stumble over.
    """

    name: str
    level: Level
    reader: str
    statistics: Statistics
    protocol: str
    source: str
    licence: str
    task: Literal["classification", "regression"] = "classification"
    files: tuple[RemoteFile, ...] = ()
    directed: RemoteFile | None = None
    metric: Metric = "accuracy"
    homophilous: bool | None = None
    aliases: tuple[str, ...] = ()
    note: str = ""

    @property
    def all_files(self) -> tuple[RemoteFile, ...]:
        """Those that the reader may ask for with any options."""
        return self.files if self.directed is None else (*self.files, self.directed)
