"""A whole run, from settings to measured models: `train` and `resume`."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from nlsf.data.dataset import Dataset
from nlsf.data.metrics import interval
from nlsf.display.progress import Progress
from nlsf.nn.plans import sees_whole_graph
from nlsf.train.loop.group import Group
from nlsf.train.run.folder import RunFolder
from nlsf.train.run.job import Job
from nlsf.train.run.training import Training, check_shareable
from nlsf.train.settings.toml import merged, parse_toml


class Interrupted(KeyboardInterrupt):
    """The user stopped a run; its last checkpoint is whole.

    Attributes:
        folder: the run, to go on with.
    """

    def __init__(self, folder: RunFolder) -> None:
        super().__init__(f"Stopped: go on with {folder.path}.")
        self.folder = folder


@dataclass(frozen=True)
class RunResult:
    """What a run found.

    Attributes:
        folder: where everything lies.
        metric: what is reported first.
        rows: one a seed, with all metrics, versions, times and memory.
    """

    folder: RunFolder
    metric: str
    rows: list[dict[str, Any]]

    def summary(self, part: str = "test", metric: str | None = None) -> tuple[float, float]:
        """The mean over seeds, and half the width of its 95 % interval (NaN for one seed)."""
        return interval([row[f"{part}_{metric or self.metric}"] for row in self.rows])


def train(
    data: str | Dataset,
    settings: Mapping[str, Any] | None = None,
    *,
    output: str | Path | None = None,
    runs: str | Path = "runs",
    display: Progress | None = None,
    cache: bool = True,
    checkpoint_seconds: float = 10.0,
    tensorboard: bool = False,
    memory: int | None = None,
    group: Group | None = None,
) -> RunResult:
    """Trains a model on every seed of a data set and measures it on the test examples.

    Args:
        data: a name of the catalogue, the path of a file, or a `Dataset`.
        settings: tables as in a run's TOML: ``{"model": {"name": "value"}, "seeds": 10}``.
        output: the run's folder; by default a new one below ``runs``.
        runs: where new folders are made.
        display: shows the progress; silent by default.
        cache: keep spectra on disk for the next time.
        checkpoint_seconds: time between checkpoints.
        tensorboard: also write scalars for TensorBoard.
        memory: bytes that preparing a large graph may take beside the graph and its features.
        group: processes that share the training, each of which makes this call; the first one
            writes the folder, and all get the result.

    Example:
        >>> import tempfile
        >>> quick = {"training": {"epochs": 3}, "seeds": 2}
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     result = train("digits", quick, runs=folder, cache=False)
        >>> [row["seed"] for row in result.rows]
        [0, 1]
    """
    name = data if isinstance(data, str) else data.name
    table = merged(settings or {}, {"data": {"name": name}})
    group = group or Group()
    job = _shared(lambda: Job.of(table, None if isinstance(data, str) else data), group)

    def new() -> RunFolder:
        if output is not None:
            return RunFolder.create_at(Path(output))
        stem = f"{Path(name).stem}-{job.config.model['name']}".lower()
        return RunFolder.create(Path(runs), stem)

    def begin() -> None:
        locked.enter_context(folder.lock())
        folder.write_config(job.config.to_toml())

    folder = group.once(new)
    with ExitStack() as locked:
        group.once(begin)
        return _trained(
            job,
            folder,
            display=display,
            cache=cache,
            checkpoint_seconds=checkpoint_seconds,
            tensorboard=tensorboard,
            memory=memory,
            group=group,
        )


def resume(
    path: str | Path,
    *,
    dataset: Dataset | None = None,
    display: Progress | None = None,
    cache: bool = True,
    checkpoint_seconds: float = 10.0,
    tensorboard: bool = False,
    memory: int | None = None,
    group: Group | None = None,
) -> RunResult:
    """Goes on with a run that was interrupted; the result is as if it had not been.

    Args:
        path: the run's folder.
        dataset: the data, where the run was started with a `Dataset` rather than a name.
        display: as in `train`.
        cache: as in `train`.
        checkpoint_seconds: as in `train`.
        tensorboard: as in `train`.
        memory: as in `train`.
        group: as in `train`; it need not be as large as the one before.

    Raises:
        ConfigError: the run's configuration has changed since.
        DataError: its data, labels or splits have changed since.
    """
    group = group or Group()
    folder = group.once(lambda: RunFolder.open(Path(path)))
    text = group.once(folder.read_config)
    job = _shared(lambda: Job.of(parse_toml(text, folder.path / "config.toml"), dataset), group)

    def begin() -> list[dict[str, Any]] | None:
        locked.enter_context(folder.lock())
        return folder.results() if folder.finished else None

    with ExitStack() as locked:
        rows = group.once(begin)
        if rows is not None:
            return RunResult(folder, job.config.metric, rows)
        return _trained(
            job,
            folder,
            display=display,
            cache=cache,
            checkpoint_seconds=checkpoint_seconds,
            tensorboard=tensorboard,
            memory=memory,
            group=group,
        )


def _shared(make: Callable[[], Job], group: Group) -> Job:
    """The job of all processes; refuses what cannot be trained before a folder is made."""
    job = group.each(make)
    model = job.model(job.config.seeds[0])
    if group.size == 1:
        return job
    check_shareable(job, group, whole=sees_whole_graph(model, job.dataset))
    settings = {k: v for k, v in job.config.to_table().items() if k != "data"}
    group.check_same("settings", settings)
    group.check_same("data", job.digests)
    return job


def _trained(job: Job, folder: RunFolder, **how: Any) -> RunResult:
    """What the training of a job finds; ``how`` are the options of `Training`."""
    try:
        return RunResult(folder, job.config.metric, Training(job, folder, **how).run())
    except KeyboardInterrupt as error:
        # In the middle of an epoch: what counts is the last checkpoint, which is whole.
        raise Interrupted(folder) from error
