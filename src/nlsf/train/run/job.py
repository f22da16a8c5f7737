"""What has to be done, worked out: `Job`, the data, splits and models of a configuration."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from nlsf.data import features
from nlsf.data.catalogue import find, load
from nlsf.data.catalogue.files import data_root
from nlsf.data.dataset import Dataset, Lesson, Split
from nlsf.data.own import open_dataset
from nlsf.data.protocols import digest, draw, label_digest
from nlsf.nn.plans import Plan, plan_of
from nlsf.store.files import text_checksum
from nlsf.train.loop.fit import Fit
from nlsf.train.loop.group import Group
from nlsf.train.settings.config import DataConfig, RunConfig, check_keys, resolve, user_path
from nlsf.train.settings.models import MODELS, build_model
from nlsf.train.settings.toml import Table, merged


@dataclass(frozen=True, eq=False)
class Job:
    """A configuration with its data loaded and its splits drawn.

    Attributes:
        config: all settings, resolved.
        dataset: the data, with features made.
        splits: one a seed.
    """

    config: RunConfig
    dataset: Dataset
    splits: tuple[Split, ...]

    @classmethod
    def of(cls, table: Mapping[str, Any], dataset: Dataset | None = None) -> Job:
        """Works out what the user's settings mean.

        Args:
            table: the settings, as in a run's TOML; what is left out gets a default that fits.
            dataset: the data; by default they are loaded by ``data.name``.
        """
        check_keys(table)
        if str(table.get("protocol", "")).endswith(".json"):
            table = {**table, "protocol": str(Path(table["protocol"]).resolve())}
        if dataset is None:
            dataset, table, protocol, homophilous = data_of(table)
        else:
            table = {**table, "data": {"name": dataset.name, **table.get("data", {})}}
            protocol, homophilous = _own_protocol(dataset), None
        config = resolve(table, dataset, protocol, homophilous)
        config = replace(config, features=features.fit(config.features, dataset))
        dataset = features.with_features(dataset, config.features)
        splits = tuple(draw(dataset, config.protocol, seed) for seed in config.seeds)
        return cls(config, dataset, splits)

    def model(self, seed: int) -> nn.Module:
        """The model of a seed, before training."""
        data = self.dataset
        sizes = data.num_features, data.num_outputs, data.level, data.graphs[0].num_nodes
        return build_model(self.config.model, *sizes, seed=seed).to(self.dtype)

    def lesson(self, split: Split) -> Lesson:
        """What the training of a split may see: its test labels are left behind."""
        y = self._targets
        return Lesson(split.train, y[split.train], split.val, y[split.val])

    def fit(self, plan: Plan, numbers: Sequence[int], processes: Group | None = None) -> Fit:
        """The training of some of the models, before its first epoch.

        Args:
            plan: of all models.
            numbers: of the models that train together; their splits have equal sizes.
            processes: those that share the work.
        """
        seeds = [self.config.seeds[number] for number in numbers]
        return Fit(
            [self.model(seed) for seed in seeds],
            plan,
            [self.lesson(self.splits[number]) for number in numbers],
            [self.config.training] * len(seeds),
            seeds,
            self.config.metric,  # type: ignore[arg-type]
            processes,
        )

    def solved(self, number: int) -> Tensor | None:
        """The outputs (n, C) of a model without epochs on one of the splits.

        Returns ``None`` for a model that has to be trained. Like a training, it sees its lesson,
        and no other label.
        """
        kind = MODELS[self.config.model["name"]]
        if kind.solve is None:
            return None
        seed = self.config.seeds[number]
        hidden = torch.full_like(self.dataset.y, torch.nan if self.dataset.is_regression else -1)
        data = replace(self.dataset, y=hidden, given={}, metric=self.config.metric)  # type: ignore[arg-type]
        lesson = self.lesson(self.splits[number])
        return kind.solve(data, lesson, self.model(seed).config, seed).to(self.dtype)

    def test_labels(self, split: Split) -> Tensor:
        """The labels that training has not seen; for after the selection."""
        return self._targets[split.test]

    def plan(
        self, *, cache: bool, progress: Callable[[str], None], memory: int | None = None
    ) -> Plan:
        """How all models are trained; options as in `plan_of`."""
        rows = torch.cat([part for split in self.splits for part in split.parts])
        model = self.model(self.config.seeds[0])
        return plan_of(
            model,
            self.dataset,
            rows,
            cache=cache,
            dtype=self.dtype,
            progress=progress,
            memory=memory,
        )

    def trained_together(self) -> list[list[int]]:
        """The numbers of the models that can train together: their splits have equal sizes."""
        by_sizes: dict[tuple[int, int], list[int]] = {}
        for number, split in enumerate(self.splits):
            by_sizes.setdefault((len(split.train), len(split.val)), []).append(number)
        return list(by_sizes.values())

    @cached_property
    def digests(self) -> dict[str, str]:
        """Hashes of graphs and features, of the labels, and of all splits.

        Three, so that what has changed has a name; and `fingerprint` alone must not see labels,
        because a model is applied to the same graph without them.
        """
        splits = "".join(digest(split) for split in self.splits)
        return {
            "fingerprint": fingerprint(self.dataset),
            "labels": label_digest(self.dataset),
            "splits": text_checksum(splits),
        }

    @property
    def dtype(self) -> torch.dtype:
        """Of parameters and features."""
        dtype: torch.dtype = getattr(torch, self.config.training.dtype)
        return dtype

    @property
    def _targets(self) -> Tensor:
        y = self.dataset.y
        return y.to(self.dtype) if self.dataset.is_regression else y


def load_data(config: DataConfig) -> Dataset:
    """The data that a ``[data]`` table names: a catalogue entry, or a path."""
    if user_path(config.name):
        return open_dataset(Path(config.name), **config.options)
    return load(config.name, config.root, offline=config.offline, **config.options)


def data_of(table: Mapping[str, Any]) -> tuple[Dataset, Table, str, bool | None]:
    """The data that settings name; and what `resolve` wants to know of them.

    Returns:
        The data; the settings, with whole paths, so that a run goes on from any folder; the usual
        protocol; and whether neighbours tend to be alike, where that is known.
    """
    data = DataConfig.from_table(table.get("data", {}))
    dataset, paths = load_data(data), {}
    if data.root:
        paths["root"] = data_root(data.root)
    if not user_path(data.name):
        entry = find(data.name)
        protocol, homophilous = entry.protocol, entry.homophilous
    else:  # whose only option is a path, too
        paths |= {key: Path(text) for key, text in {"name": data.name, **data.options}.items()}
        protocol, homophilous = _own_protocol(dataset), None
    whole = {key: str(path.resolve()) for key, path in paths.items()}
    return dataset, merged(table, {"data": whole}), protocol, homophilous


def fingerprint(dataset: Dataset, *, signals: bool = True) -> str:
    """A hash of graphs and features (not of labels): tells whether two data sets are the same.

    Args:
        dataset: the data.
        signals: whether the signals on the graph count, or the graph alone.
    """
    content = hashlib.sha256()
    for graph in dataset.graphs:
        content.update(repr((graph.num_nodes, graph.edge_index.shape)).encode())
        parts = [graph.edge_index]
        if graph.get("edge_weight") is not None:
            parts.append(graph.edge_weight)
        if graph.x is not None:
            x = graph.x
            dense = x.layout == torch.strided
            parts += [x] if dense else [x.crow_indices(), x.col_indices(), x.values()]
        for part in parts:
            content.update(part.contiguous().numpy().tobytes())
    if signals and dataset.signals is not None:
        content.update(dataset.signals.numpy().tobytes())
    return content.hexdigest()


def _own_protocol(dataset: Dataset) -> str:
    """For a user's own data: the splits that came with them, or a plain random one."""
    plain = "80-10-10" if dataset.level == "graph" else "60-20-20"
    return next(iter(dataset.given), plain)
