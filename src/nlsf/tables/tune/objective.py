"""What a point is worth: `Objective`, the mean validation metric over the tuning splits."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import torch

from nlsf.data import features
from nlsf.data.dataset import Dataset, Split
from nlsf.data.metrics import measure
from nlsf.data.protocols import draw
from nlsf.errors import ConfigError, NLSFError
from nlsf.nn.plans import Plan, plan_key_of, plan_of
from nlsf.tables.tune.space import Choice, Point, Space, encode, read_choice
from nlsf.train.run.job import Job, data_of
from nlsf.train.settings.config import RunConfig, check_keys, resolve
from nlsf.train.settings.toml import Table, merged, to_table

TUNING_SEED = 1_000_000
"""The seed of the first tuning split: far from 0, 1, 2, ..., the seeds of reported splits."""

_KEPT = 4
"""Plans that are kept for later trials."""


class Objective:
    """Trains points of a space on the tuning splits and gives their validation metric.

    The data are loaded once, features are made once for each way to make them, and plans are kept
    for trials whose models can share them. Labels that are in no training or validation part of the
    tuning splits are wiped out before the first trial.

    Args:
        table: the fixed settings, as in a run's TOML; ``seeds`` is not looked at.
        space: the choices.
        splits: how many tuning splits.
        training: settings of the training that hold while tuning.
        cache: keep spectra on disk.

    Attributes:
        space: the choices, with the default of every key among them.
        default: the point of the defaults.
        metric: the metric that is maximised, or minimised.
    """

    def __init__(
        self,
        table: Mapping[str, Any],
        space: Space,
        *,
        splits: int,
        training: Mapping[str, Any],
        cache: bool = True,
    ) -> None:
        check_keys(table)
        self._seeds = [TUNING_SEED + number for number in range(splits)]
        fixed = {k: v for k, v in table.items() if k != "seeds"}
        self._table = merged(fixed, {"training": training, "seeds": self._seeds})
        self._cache = cache
        self._dataset, self._table, self._protocol, self._homophilous = data_of(self._table)
        config = self._resolve({})
        if space:
            space.check(config.model["name"])
        self.metric = config.metric
        self.epochs = config.training.epochs
        self._splits = [_split(self._dataset, config.protocol, seed) for seed in self._seeds]
        self._dataset = _only_seen(self._dataset, self._splits)
        self.space, self.default = self._with_defaults(space, config)
        self._made: dict[str, tuple[Any, Dataset]] = {}
        self._plans: OrderedDict[Hashable, Plan] = OrderedDict()

    def train(
        self, point: Point, tell: Callable[[str], None] = lambda text: None
    ) -> Iterator[tuple[int, float]]:
        """Trains the models of a point on all splits; after each epoch (epoch, metric so far).

        The metric is the mean over splits of that of the best epoch, NaN while one has none.

        Args:
            point: the point.
            tell: is told what is being computed.

        Raises:
            NLSFError: there is no such model, or its loss is not finite.
        """
        job = self._job(point)
        solved = self._solved(job)
        if solved is not None:
            yield 0, solved
            return
        plan = self._plan(job, tell)
        fits = [job.fit(plan, group) for group in job.trained_together()]
        while running := [fit for fit in fits if not fit.finished]:
            for fit in running:
                fit.checked_step()
            best = torch.cat([fit.best_metric for fit in fits])
            yield max(fit.epoch for fit in fits), float(best.mean())

    def _resolve(self, change: Table) -> RunConfig:
        table = merged(self._table, change)
        return resolve(table, self._dataset, self._protocol, self._homophilous)

    def _job(self, point: Point) -> Job:
        config = self._resolve(self.space.table(point))
        made = encode(to_table(config.features))
        if made not in self._made:
            fitted = features.fit(config.features, self._dataset)
            self._made[made] = fitted, features.with_features(self._dataset, fitted)
        fitted, dataset = self._made[made]
        return Job(replace(config, features=fitted), dataset, tuple(self._splits))

    def _plan(self, job: Job, tell: Callable[[str], None] = lambda text: None) -> Plan:
        """How a job's models are trained: the plan of an earlier trial, if it is good for them."""
        model = job.model(self._seeds[0])
        own = plan_key_of(model)
        if own is None:  # then all settings of the model count
            own = encode(dict(job.config.model))
        key = own, encode(to_table(job.config.features)), job.dtype
        if key not in self._plans:
            while len(self._plans) >= _KEPT:
                self._plans.popitem(last=False)
            rows = torch.cat([part for split in self._splits for part in (split.train, split.val)])
            self._plans[key] = plan_of(
                model, job.dataset, rows, cache=self._cache, dtype=job.dtype, progress=tell
            )
        self._plans.move_to_end(key)
        return self._plans[key]

    def _solved(self, job: Job) -> float | None:
        """The metric of a model without epochs."""
        values = []
        for number, split in enumerate(self._splits):
            output = job.solved(number)
            if output is None:
                return None
            values.append(measure(self.metric, output[split.val], job.lesson(split).val_y))
        return sum(values) / len(values)

    def _with_defaults(self, space: Space, config: RunConfig) -> tuple[Space, dict[str, Choice]]:
        """The space with the default of every key among its choices, and the defaults."""
        choices, point = dict(space.choices), {}
        for key, values in space.choices.items():
            default = _at(config, key)
            same = [value for value in values if self._means(space, key, value) == default]
            if not same:
                choices[key] = (*values, default)
            point[key] = same[0] if same else default
        return Space(choices), point

    def _means(self, space: Space, key: str, value: Choice) -> Any:
        """The setting that a choice leads to, with all its parts."""
        try:
            return _at(self._resolve(space.table({key: value})), key)
        except NLSFError:
            return None  # it fits only beside other choices, so it is not the default


def _split(dataset: Dataset, protocol: str, seed: int) -> Split:
    """A tuning split; where there is only a list of splits to choose from, one of these."""
    number = seed - TUNING_SEED
    given = len(dataset.given.get(protocol, ()))
    if given > 1:
        return draw(dataset, protocol, number % given)
    return draw(dataset, protocol, number if protocol.endswith(".json") else seed)


def _only_seen(dataset: Dataset, splits: Sequence[Split]) -> Dataset:
    """The data without the labels that no training and no validation part has."""
    y = torch.full_like(dataset.y, torch.nan if dataset.is_regression else -1)
    for split in splits:
        for part in (split.train, split.val):
            y[part] = dataset.y[part]
    return replace(dataset, y=y, given={})


def _at(config: RunConfig, key: str) -> Choice:
    """The setting at a dotted key."""
    inner: Any = config.to_table()
    for part in key.split("."):
        if not isinstance(inner, Mapping) or part not in inner:
            raise ConfigError(f"The space has choices for {key}, which is no setting here.")
        inner = inner[part]
    return read_choice(inner)
