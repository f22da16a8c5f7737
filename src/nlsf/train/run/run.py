"""A run as it lies on disk: its settings, and the models that it has selected (`Run`)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor, nn

from nlsf.data import features
from nlsf.data.dataset import Dataset
from nlsf.data.features import FeatureConfig
from nlsf.data.metrics import best_seed
from nlsf.errors import ConfigError, DataError
from nlsf.train.run.folder import RunFolder
from nlsf.train.run.job import Job, fingerprint
from nlsf.train.run.provenance import check_spec, origin
from nlsf.train.settings.models import MODELS, build_model
from nlsf.train.settings.toml import from_table, parse_toml


class Run:
    """The settings of a run, and the models that it has selected until now.

    Whoever goes on with a run, measures it, shows it or applies its models reads it here.

    Args:
        folder: of the run; its settings are written.
        trained: refuse a run without models, and not only without some of them.

    Attributes:
        settings: the tables of its TOML.
        weights: of every selected model, by its number among the seeds.
        facts: how long each was trained, and what that cost.
        made_with: what stands beside the weights: hashes of settings and data, names of classes,
            and sizes.
        metrics_size: bytes of the metrics when the models were written.

    Raises:
        ConfigError: the settings have changed since the models were trained.
        DataError: there are no models, but must be.
    """

    def __init__(self, folder: RunFolder, *, trained: bool = False) -> None:
        self.folder = folder
        self.settings = parse_toml(folder.read_config(), folder.path / "config.toml")
        self.weights: dict[int, dict[str, Tensor]] = {}
        self.facts: dict[int, dict[str, Any]] = {}
        self.made_with: dict[str, Any] = {}
        self.metrics_size = 0
        if not trained and not folder.has_model:
            return
        tensors, self.made_with = folder.load_model()
        check_spec(self.made_with, folder)
        for key, value in tensors.items():
            number, name = key.split(".", 1)
            self.weights.setdefault(int(number), {})[name] = value
        self.facts = {int(n): facts for n, facts in self.made_with["facts"].items()}
        self.metrics_size = self.made_with["metrics_size"]

    @property
    def metric(self) -> str:
        """What is reported first."""
        return str(self.settings["metric"])

    def row(self, seed: int | None = None) -> dict[str, Any]:
        """The results of a seed; by default of the one that did best on validation."""
        rows = self.folder.results()
        if seed is None:
            seed = best_seed(rows, self.metric)
        found = [row for row in rows if row["seed"] == seed]
        if not found:
            known = ", ".join(str(row["seed"]) for row in rows)
            raise ConfigError(f"{self.folder.path} has no seed {seed}: it has {known}.")
        return found[0]

    def model(self, seed: int, num_nodes: int = 0) -> nn.Module:
        """The selected model of a seed.

        Args:
            seed: which.
            num_nodes: nodes of the graph, for models that belong to one.
        """
        sizes = *self.made_with["channels"], self.made_with["level"], num_nodes
        model = build_model(self.settings["model"], *sizes, seed=seed).to(self.dtype)
        model.load_state_dict(self.weights[self.settings["seeds"].index(seed)])
        return model.eval()

    @property
    def dtype(self) -> torch.dtype:
        """Of parameters and features."""
        dtype: torch.dtype = getattr(torch, self.settings["training"]["dtype"])
        return dtype

    def with_features(self, dataset: Dataset) -> Dataset:
        """Other data, with features made as for the training.

        Raises:
            DataError: they are of another level, or have other features.
        """
        place, level = self.folder.path, self.made_with["level"]
        if dataset.level != level:
            raise DataError(
                f"{place} was trained on examples that are {level}s, but those of "
                f"{dataset.name} are {dataset.level}s."
            )
        config = from_table(FeatureConfig, self.settings["features"], "features")
        dataset = features.with_features(dataset, config)
        wanted = self.made_with["channels"][0]
        if dataset.num_features != wanted:
            raise DataError(
                f"{place} was trained on {wanted} features, but {dataset.name} has "
                f"{dataset.num_features}."
            )
        return dataset

    def check_free(self, dataset: Dataset) -> None:
        """Refuses other data if the run's models belong to those that they were made with."""
        kind, place = MODELS[self.settings["model"]["name"]], self.folder.path
        if kind.of_one_graph and fingerprint(dataset, signals=False) != self.made_with.get("graph"):
            raise DataError(
                f"The model {kind.name!r} of {place} has parameters for every node of the graph "
                f"that it was trained on, and {dataset.name} here is another graph, or has other "
                f"features: train {kind.name!r} on it, or choose a model without such parameters, "
                "as 'gcn'."
            )
        if kind.solve is not None:
            raise DataError(
                f"The model {kind.name!r} of {place} knows the examples that it was made with, "
                f"and no others: train it on {dataset.name}, or choose another model."
            )

    def is_of(self, dataset: Dataset) -> bool:
        """Whether these are the data of the training, features made."""
        return bool(fingerprint(dataset) == self.made_with["fingerprint"])

    def holds(self, group: list[int]) -> bool:
        """Whether these models are trained already."""
        return all(number in self.weights for number in group)

    def add(
        self, group: list[int], weights: Mapping[str, Tensor], facts: list[dict[str, Any]]
    ) -> None:
        """Takes in the models of a group, stacked."""
        for i, number in enumerate(group):
            self.weights[number] = {name: value[i] for name, value in weights.items()}
            self.facts[number] = facts[i]

    def write(self, job: Job) -> None:
        """Writes ``model.safetensors``."""
        tensors = {f"{n}.{k}": v for n, one in self.weights.items() for k, v in one.items()}
        self.metrics_size = self.folder.metrics_size()
        self.made_with = {
            "facts": {str(number): facts for number, facts in self.facts.items()},
            "metrics_size": self.metrics_size,
            "graph": fingerprint(job.dataset, signals=False),
            "classes": list(job.dataset.classes),
            "channels": [job.dataset.num_features, job.dataset.num_outputs],
            "level": job.dataset.level,
            **origin(self.folder, job),
        }
        self.folder.save_model(tensors, self.made_with)
