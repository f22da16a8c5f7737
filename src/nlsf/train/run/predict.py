"""Trained models on data that they know, and on data that they do not: `predict`."""

from __future__ import annotations

import csv
import io
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from nlsf.data.dataset import Dataset
from nlsf.data.metrics import default_metrics, measure
from nlsf.data.protocols import digest, draw
from nlsf.errors import NLSFError
from nlsf.nn.plans import plan_of
from nlsf.store.files import write_text
from nlsf.train.loop.fit import evaluate
from nlsf.train.run.folder import RunFolder
from nlsf.train.run.run import Run


@dataclass(frozen=True, eq=False)
class Prediction:
    """What a model says of every example.

    Attributes:
        output: (n, C), probabilities of the classes, or predicted targets.
        classes: the names of the classes; none for a regression.
        seed: which of the run's models spoke.
        metrics: how good that is, where labels are known.
        measured: on how many examples.
        measured_on: which they are.
    """

    output: Tensor
    classes: tuple[str, ...]
    seed: int
    metrics: dict[str, float]
    measured: int
    measured_on: str

    def write_csv(self, path: Path) -> None:
        """One line an example: its number, the label, and the probability of every class."""
        text = io.StringIO()
        writer = csv.writer(text, lineterminator="\n")
        if self.classes:
            writer.writerow(["example", "label", *(f"p({name})" for name in self.classes)])
            labels = [self.classes[i] for i in self.output.argmax(-1).tolist()]
        else:
            writer.writerow(["example", *(f"target {j}" for j in range(self.output.shape[1]))])
        for i, row in enumerate(self.output.tolist()):
            numbers = [f"{value:.6g}" for value in row]
            writer.writerow([i, labels[i], *numbers] if self.classes else [i, *numbers])
        path.parent.mkdir(parents=True, exist_ok=True)
        write_text(path, text.getvalue())


def predict(
    run: str | Path, dataset: Dataset, *, seed: int | None = None, cache: bool = True
) -> Prediction:
    """Applies a model of a finished run.

    A filter does not belong to its graph: it is applied to any graph with the same features. Models
    with parameters for every node (`LINK` and its kin) and models without epochs are applied to the
    data of their training only.

    Args:
        run: the run's folder.
        dataset: the data, before features are made; labels may be missing.
        seed: which of the run's models; by default the one that did best on validation.
        cache: keep spectra on disk.

    Raises:
        ConfigError: the run has no such seed.
        DataError: the run is not finished, or its model does not fit the data.
    """
    found = Run(RunFolder.open(Path(run)), trained=True)
    row = found.row(seed)
    dataset = found.with_features(dataset)
    same = found.is_of(dataset)
    if not same:
        found.check_free(dataset)
    model = found.model(row["seed"], dataset.graphs[0].num_nodes)
    plan = plan_of(model, dataset, cache=cache, dtype=found.dtype)
    output = evaluate(model, plan, torch.arange(dataset.num_examples))

    classes = tuple(found.made_with["classes"])
    known, y = _labels(dataset, classes, output.shape[1])
    place = "examples with a known label"
    if same and len(known):
        test = _test_examples(dataset, found.settings["protocol"], row)
        if test is None:
            place += ", some of them trained on"
        else:
            known, place = known[torch.isin(known, test)], "test examples of the training data"
    names = dict.fromkeys((found.metric, *default_metrics(not classes)))
    metrics = {n: measure(n, output[known], y[known]) for n in names} if len(known) else {}
    shown = output.softmax(-1) if classes else output
    return Prediction(shown, classes, row["seed"], metrics, len(known), place)


def _test_examples(dataset: Dataset, protocol: str, row: dict[str, Any]) -> Tensor | None:
    """The test examples of a row of results; ``None`` if other labels give another split."""
    try:
        split = draw(dataset, protocol, row["seed"])
    except NLSFError:
        return None
    return split.test if digest(split) == row["split"] else None


def _labels(dataset: Dataset, classes: tuple[str, ...], outputs: int) -> tuple[Tensor, Tensor]:
    """The examples whose label the model can know, and all labels, in the model's numbering."""
    other_targets = dataset.is_regression and dataset.num_outputs != outputs
    if bool(classes) == dataset.is_regression or other_targets:
        return torch.zeros(0, dtype=torch.int64), dataset.y
    if dataset.is_regression:
        return dataset.labelled, dataset.y
    number = {name: i for i, name in enumerate(classes)}
    renamed = torch.tensor([number.get(name, -1) for name in dataset.classes] or [-1])
    y = torch.where(dataset.y >= 0, renamed[dataset.y.clamp(min=0)], -1)
    return (y >= 0).nonzero().squeeze(-1), y
