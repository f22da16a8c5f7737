"""A finished run, loaded to be looked into: `TrainedRun`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import chain

import torch
from torch import Tensor, nn
from torch_geometric.data import Data

from nlsf.data.dataset import Dataset, Split
from nlsf.data.protocols import digest
from nlsf.errors import DataError
from nlsf.nn.layers.spectral_layer import SpectralLayer, spectral_branches
from nlsf.nn.observe import Observations, observe
from nlsf.nn.plans import Plan, Signals, WholeGraph, plan_of
from nlsf.nn.plans.spectral import SpectralBatches, maybe_sparse, operator_of, spectrum_argument
from nlsf.report.runs import RunRecord
from nlsf.spectral import (
    Bands,
    IndexBands,
    Lens,
    PolynomialBands,
    Spectrum,
    batched_eigh,
    partial_eigh,
)
from nlsf.train.run.job import Job
from nlsf.train.run.run import Run

_LEADING = 32
"""Eigenspaces that are shown of a graph whose filter needs none."""

_TOGETHER = 64
"""Graphs that are padded to one size and computed at a time."""

_SIGNALS = 1024
"""Signals that are computed at a time."""


@dataclass(frozen=True, eq=False)
class Branch:
    """One of the model's ways to see the graph.

    Attributes:
        layer: the first filter that goes this way.
        spectra: of the one graph; or of each predicted graph, where examples are graphs. Some
            leading eigenpairs, where the filter needs none.
        mark: tells it from another of the same kind; empty where there is none.
        smooth: the lenses of polynomial bands, one a graph; none for others.
    """

    layer: SpectralLayer
    spectra: Sequence[Spectrum]
    mark: str = ""
    smooth: Sequence[Lens] = ()

    @property
    def title(self) -> str:
        """What it is called on the page: ``"index filter on L"``, for example."""
        kind = "index" if isinstance(self.layer.bands, IndexBands) else "value"
        return f"{kind} filter on {self.spectra[0].name}{self.mark}"

    @property
    def bands(self) -> Bands:
        """What the spectrum is divided into on the page: eigenspaces, where bands are smooth."""
        if not self.smooth:
            return self.layer.bands
        every = [s.num_eigenspaces for s in self.spectra]
        incomplete = [s.num_eigenspaces for s in self.spectra if s.num_pairs < s.num_nodes]
        return IndexBands(min(incomplete, default=max(every)))

    @property
    def each(self) -> Sequence[Lens]:
        """The lens of each graph, from which batches are put together."""
        layer = self.layer
        return self.smooth or Lens.each(self.spectra, layer.bands, complement=layer.complement)

    def lens(self, number: int = 0) -> Lens:
        """The layer's bands on the one graph, or on one of the predicted graphs."""
        return self.smooth[number] if self.smooth else self._exact(number)

    def space(self, number: int = 0) -> Lens | Spectrum:
        """What shifts are drawn from that the filter commutes with.

        Smooth bands keep the symmetry of the operator, not the larger one of exact bands.
        """
        return self.spectra[number] if self.smooth else self._exact(number)

    def largest_band(self, number: int = 0) -> int:
        """The dimension of the largest band that such a shift turns as a whole; 0 for none."""
        bands = [] if self.smooth else self._exact(number).slices
        return max((int(band.stop - band.start) for band in bands), default=0)

    def _exact(self, number: int) -> Lens:
        layer = self.layer
        return Lens.of(self.spectra[number], layer.bands, complement=layer.complement)


@dataclass(frozen=True, eq=False)
class TrainedRun:
    """A model with its data, and what it says of them.

    Attributes:
        record: what the run has written down.
        job: its data and splits.
        split: that of the shown seed.
        model: with the selected weights of that seed.
        branches: one or two; none for a model without spectral filters.
        predicted: which examples: all nodes, or the test graphs or signals.
        output: (len(predicted), C), logits or predicted targets.
        seen: what the filters did meanwhile.
    """

    record: RunRecord
    job: Job
    split: Split
    model: nn.Module
    branches: tuple[Branch, ...]
    predicted: Tensor
    output: Tensor
    seen: Observations

    @classmethod
    def of(
        cls, record: RunRecord, dataset: Dataset | None = None, *, cache: bool = True
    ) -> TrainedRun:
        """Loads the data and the model, and applies it.

        Args:
            record: of a finished run.
            dataset: the data, before features are made; by default loaded by name.
            cache: keep spectra on disk.

        Raises:
            DataError: the data are not those of the training.
        """
        job = Job.of(record.settings, dataset)
        split = job.splits[record.seeds.index(record.seed)]
        run = Run(record.folder, trained=True)
        if not run.is_of(job.dataset) or digest(split) != record.result["split"]:
            raise DataError(
                f"{job.dataset.name} is not what {record.folder.path} was trained on: graph, "
                "features or splits have changed since; put the data back as they were."
            )
        model = run.model(record.seed, job.dataset.graphs[0].num_nodes)
        predicted = torch.arange(job.dataset.num_examples) if _on_nodes(job) else split.test
        numbers = predicted if job.dataset.level == "graph" else [0]
        graphs = [job.dataset.graphs[i] for i in numbers]
        branches = tuple(_branches(model, job, graphs, cache))
        if branches and job.dataset.level == "graph":
            features = [graph.x.to(job.dtype) for graph in graphs]
            parts, layers = [b.each for b in branches], [b.layer for b in branches]
            plan: Plan = SpectralBatches(features, parts, layers)
            output, seen = _apply(model, plan, torch.arange(len(predicted)))
        else:
            plan = _plan(model, job, branches, cache)
            output, seen = _apply(model, plan, predicted)
        return cls(record, job, split, model, branches, predicted, output, seen)

    @property
    def dataset(self) -> Dataset:
        """The data, with features made."""
        return self.job.dataset

    @property
    def test_output(self) -> Tensor:
        """The outputs at the test examples."""
        return self.output[self.split.test] if _on_nodes(self.job) else self.output

    @property
    def test_labels(self) -> Tensor:
        """Their labels."""
        return self.job.test_labels(self.split)

    @property
    def channels(self) -> list[str]:
        """Names of the filtered channels: classes, where class scores are filtered."""
        if getattr(self.model, "filters_scores", False) and self.dataset.classes:
            return list(self.dataset.classes)
        count = self.seen.filters[0].norms.shape[-1] if self.seen.filters else 0
        return [f"channel {i + 1}" for i in range(count)]


def _on_nodes(job: Job) -> bool:
    return job.dataset.level == "node"


def _branches(model: nn.Module, job: Job, graphs: list[Data], cache: bool) -> list[Branch]:
    branches = []
    for layer in spectral_branches(model):
        shifts = [operator_of(graph, layer) for graph in graphs]
        polynomial = isinstance(layer.bands, PolynomialBands)
        shown = IndexBands(_LEADING) if polynomial else layer.bands
        if job.dataset.level == "graph":
            spectra = batched_eigh(shifts, bands=shown)
        else:
            spectra = [partial_eigh(shifts[0], bands=shown, cache=cache)]
        spectra = [spectrum.to(dtype=job.dtype) for spectrum in spectra]
        smooth = [
            Lens.of(shift, layer.bands, complement=layer.complement, dtype=job.dtype, cache=cache)
            for shift in shifts
            if polynomial
        ]
        branches.append(Branch(layer, spectra, smooth=smooth))
    if len({branch.title for branch in branches}) < len(branches):
        return [replace(b, mark=f", branch {i + 1}") for i, b in enumerate(branches)]
    return branches


def _plan(model: nn.Module, job: Job, branches: Sequence[Branch], cache: bool) -> Plan:
    """As in training, but for the short cuts that do not pass through the filters."""
    dataset = job.dataset
    if not branches:
        return plan_of(model, dataset, cache=cache, dtype=job.dtype)
    graph = spectrum_argument([branch.lens() for branch in branches])
    if dataset.signals is not None:
        return Signals(dataset.signals.to(job.dtype), graph)
    x = dataset.graphs[0].x
    return WholeGraph(
        x.to(job.dtype) if x.layout == torch.strided else maybe_sparse(x, job.dtype), graph
    )


@torch.no_grad()
def _apply(model: nn.Module, plan: Plan, rows: Tensor) -> tuple[Tensor, Observations]:
    size = len(rows) if plan.whole else _SIGNALS if plan.together else _TOGETHER
    outputs, seen = [], []
    for part in chain.from_iterable(map(plan.in_parts, rows.split(max(size, 1)))):
        with observe(model) as one:
            outputs.append(plan(model, part))
        seen.append(one)
    return torch.cat(outputs), Observations.joined(seen)
