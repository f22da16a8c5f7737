"""From run folders to pages on disk: `report`."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TypeAlias

from nlsf.data.dataset import Dataset
from nlsf.errors import ConfigError
from nlsf.report.compare import comparison_page
from nlsf.report.page import check_name, write_page
from nlsf.train.run.folder import RunFolder
from nlsf.train.run.train import RunResult

Run: TypeAlias = str | Path | RunFolder | RunResult
"""A run: its folder, or what `nlsf.train.train` returned."""


def report(
    run: Run | Sequence[Run],
    output: str | Path | None = None,
    *,
    seed: int | None = None,
    dataset: Dataset | None = None,
    cache: bool = True,
    open: bool = False,
) -> Path:
    """Writes the page of a run, or one that compares several runs.

    Args:
        run: a run, finished or not; or a list of two or more.
        output: the file to write; by default ``report.html`` in the run's folder, or
            ``comparison.html`` in the folder that all runs lie in.
        seed: which model of a run to show; by default the one that did best on validation.
        dataset: the data, where the run was started with a `Dataset` rather than a name.
        cache: keep spectra on disk for the next time.
        open: show the page in the browser.

    Returns:
        The file.
    """
    runs = [run] if isinstance(run, str | Path | RunFolder | RunResult) else run
    folders = [_folder(one) for one in runs]
    if output is not None:
        check_name(Path(output))  # before the work
    if not folders:
        raise ConfigError("Which run? Name at least one run folder.")
    if len(folders) == 1:
        from nlsf.report.run_page import run_page  # a comparison needs no models

        page = run_page(folders[0], seed=seed, dataset=dataset, cache=cache)
        path = folders[0].path / "report.html"
    elif seed is not None or dataset is not None:
        raise ConfigError("seed and dataset belong to the page of one run, not to a comparison.")
    else:
        page = comparison_page(folders)
        path = common_parent([folder.path for folder in folders]) / "comparison.html"
    return write_page(page, Path(output) if output is not None else path, open=open)


def common_parent(paths: Sequence[Path]) -> Path:
    """The innermost folder that all of these folders lie in."""
    if len({path.parent for path in paths}) == 1:
        return paths[0].parent  # as the user wrote it
    parents = [path.resolve().parent for path in paths]
    candidates = [parents[0], *parents[0].parents]
    return next(p for p in candidates if all(q.is_relative_to(p) for q in parents))


def _folder(run: Run) -> RunFolder:
    if isinstance(run, RunResult):
        return run.folder
    return run if isinstance(run, RunFolder) else RunFolder.open(Path(run))
