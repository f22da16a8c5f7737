"""Whether a run that lies there is the one that is asked for now: `check_kept`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from nlsf.data.catalogue import find, knows
from nlsf.data.split_file import digest
from nlsf.errors import ConfigError
from nlsf.train.config import user_path, without_place
from nlsf.train.job import Job
from nlsf.train.origin import changed_data
from nlsf.train.run_folder import RunFolder
from nlsf.train.tables import Table, flat, parse_toml


def check_kept(folder: RunFolder, job: Job) -> None:
    """Refuses a run that was started with other settings, data or splits than a job has.

    Args:
        folder: the run, finished or not.
        job: what is asked for now.

    Raises:
        ConfigError: a difference; the message names the first one.
    """
    path = folder.path / "config.toml"
    kept = _settings(parse_toml(folder.read_config(), path))
    asked = _settings(parse_toml(job.config.to_toml(), path))
    different = [k for k in {**asked, **kept} if kept.get(k) != asked.get(k)]
    if different:
        key, *others = different
        more = f" (and so on, {len(others)} more)" if others else ""
        raise ConfigError(
            f"{folder.path} was started with {key} = {_shown(kept, key)}, but now "
            f"{_shown(asked, key)} is asked for{more}: ask for the same again, or choose another "
            "--output."
        )
    if _other_data(folder, job):
        raise ConfigError(
            f"{folder.path} was trained on {job.dataset.name} before its graph, features, labels "
            "or splits changed: choose another --output, so that all models see the same data."
        )


def _settings(table: Table) -> dict[str, Any]:
    """All settings by their dotted keys, those of the data first, as they mostly decide others."""
    data = without_place(table.get("data", {}))
    name = data.get("name")
    if isinstance(name, str) and knows(name) and not user_path(name):
        data["name"] = find(name).name  # which may be written in several ways
    others = {k: v for k, v in table.items() if k != "data"}
    return dict(flat({"data": data, **others}))


def _shown(settings: Mapping[str, Any], key: str) -> str:
    return repr(settings[key]) if key in settings else "its default"


def _other_data(folder: RunFolder, job: Job) -> bool:
    """Whether what the run has written down of its data and splits differs from the job's."""
    if (folder.path / "model.safetensors").exists():
        _, meta = folder.load_model()
        if changed_data(meta, job):
            return True
    if not folder.finished:
        return False
    return [row.get("split") for row in folder.results()] != [digest(s) for s in job.splits]
