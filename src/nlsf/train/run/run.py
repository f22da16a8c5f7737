"""A run as it lies on disk: what it was made with, and the models that it has selected (`Run`).

`versions` names the software, and `hashes_of` the settings and data.
"""

from __future__ import annotations

import platform
import re
from collections.abc import Mapping
from importlib import metadata
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from nlsf.data import features
from nlsf.data.catalogue import find, knows
from nlsf.data.dataset import Dataset
from nlsf.data.features import FeatureConfig
from nlsf.data.metrics import best_seed
from nlsf.data.protocols import digest
from nlsf.errors import ConfigError, DataError
from nlsf.train.run.folder import RunFolder
from nlsf.train.run.job import Job, fingerprint
from nlsf.train.settings.config import user_path, without_place
from nlsf.train.settings.models import MODELS, build_model
from nlsf.train.settings.toml import Table, flat, from_table, parse_toml

_PACKAGES = ("nlsf", "torch", "torch_geometric", "numpy", "scipy")


def versions() -> dict[str, str]:
    """The versions of this package, of Python and of what computes, the platform and the threads.

    ``commit`` is that of the checkout which the package runs from, where there is one.
    """
    found = {"python": platform.python_version()}
    found |= {name: metadata.version(name) for name in _PACKAGES}
    found["platform"] = f"{platform.system()} {platform.machine()}"
    found["threads"] = str(torch.get_num_threads())
    # <checkout>/src/nlsf/train/run/run.py; an installed package has no folder src above it.
    source = Path(__file__).resolve().parents[3]
    commit = head_commit(source.parent) if source.name == "src" else None
    return found if commit is None else {**found, "commit": commit}


def head_commit(checkout: Path) -> str | None:
    """The commit that a Git checkout stands on, read from its files; ``None`` if there is none."""
    try:
        git = checkout / ".git"
        if git.is_file():
            git = checkout / git.read_text().removeprefix("gitdir:").strip()
        head = (git / "HEAD").read_text().strip()
        if head.startswith("ref:"):
            head = _resolve(git, head.removeprefix("ref:").strip())
    except (OSError, UnicodeDecodeError):
        return None
    return head if re.fullmatch(r"[0-9a-f]{40}|[0-9a-f]{64}", head) else None


def _resolve(git: Path, reference: str) -> str:
    """The commit of a branch; empty if it has none."""
    # A linked work tree has its own HEAD, but shares the branches of the main one.
    shared = git / "commondir"
    common = git / shared.read_text().strip() if shared.is_file() else git
    if (common / reference).is_file():
        return (common / reference).read_text().strip()
    packed = common / "packed-refs"
    for line in packed.read_text().splitlines() if packed.is_file() else []:
        commit, _, name = line.partition(" ")
        if name == reference:
            return commit
    return ""


_NAMES = {"fingerprint": "graphs or features", "labels": "labels", "splits": "splits"}


def hashes_of(folder: RunFolder, job: Job) -> dict[str, Any]:
    """Hashes of settings and data, to be kept beside a checkpoint or model."""
    return {"spec": folder.spec, **job.digests}


def check_hashes(meta: Mapping[str, Any], folder: RunFolder, job: Job) -> None:
    """Refuses to go on with a checkpoint or model that was made with other settings or data.

    Raises:
        ConfigError: the configuration has changed.
        DataError: the data have changed; names what of them.
    """
    _check_spec(meta, folder)
    if changed := _changed_data(meta, job):
        raise DataError(
            f"The {' and the '.join(changed)} of {job.dataset.name} are not those that "
            f"{folder.path} was started with: put the data back as they were, or start another "
            "run with --config."
        )


def _check_spec(meta: Mapping[str, Any], folder: RunFolder) -> None:
    """Refuses a configuration that is not the one that a checkpoint or model was made with."""
    if meta["spec"] != folder.spec:
        raise ConfigError(
            f"{folder.path / 'config.toml'} has changed since the run was started: put it back, or "
            "start another run with --config."
        )


def _changed_data(meta: Mapping[str, Any], job: Job) -> list[str]:
    """What of a job's data is not as it was; files from before a hash was kept tell nothing."""
    digests = job.digests
    return [name for key, name in _NAMES.items() if meta.get(key, digests[key]) != digests[key]]


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
        _check_spec(self.made_with, folder)
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

    def check_asked(self, job: Job) -> None:
        """Refuses a job with other settings, data or splits than the run was started with.

        Raises:
            ConfigError: a difference; the message names the first one.
        """
        path = self.folder.path
        kept = _settings(self.settings)
        asked = _settings(parse_toml(job.config.to_toml(), path / "config.toml"))
        different = [k for k in {**asked, **kept} if kept.get(k) != asked.get(k)]
        if different:
            key, *others = different
            before, now = (repr(s[key]) if key in s else "its default" for s in (kept, asked))
            more = f" (and so on, {len(others)} more)" if others else ""
            raise ConfigError(
                f"{path} was started with {key} = {before}, but now {now} is asked for{more}: ask "
                "for the same again, or choose another --output."
            )
        other_splits = self.folder.finished and [
            row.get("split") for row in self.folder.results()
        ] != [digest(split) for split in job.splits]
        if other_splits or (self.made_with and _changed_data(self.made_with, job)):
            raise ConfigError(
                f"{path} was trained on {job.dataset.name} before its graph, features, labels or "
                "splits changed: choose another --output, so that all models see the same data."
            )

    def is_of(self, dataset: Dataset) -> bool:
        """Whether these are the data of the training, features made."""
        return bool(fingerprint(dataset) == self.made_with["fingerprint"])

    def add(
        self, numbers: list[int], weights: Mapping[str, Tensor], facts: list[dict[str, Any]]
    ) -> None:
        """Takes in some models: their weights, stacked, and the facts of each."""
        for i, number in enumerate(numbers):
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
            **hashes_of(self.folder, job),
        }
        self.folder.save_model(tensors, self.made_with)


def _settings(table: Table) -> dict[str, Any]:
    """All settings by their dotted keys, those of the data first, as they mostly decide others."""
    data = without_place(table.get("data", {}))
    name = data.get("name")
    if isinstance(name, str) and knows(name) and not user_path(name):
        data["name"] = find(name).name  # which may be written in several ways
    others = {k: v for k, v in table.items() if k != "data"}
    return dict(flat({"data": data, **others}))
