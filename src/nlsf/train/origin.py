"""What the tensors of a run were made with, and whether it is still the same: `origin`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from nlsf.errors import ConfigError, DataError
from nlsf.train.job import Job
from nlsf.train.run_folder import RunFolder

_NAMES = {"fingerprint": "graphs or features", "labels": "labels", "splits": "splits"}


def origin(folder: RunFolder, job: Job) -> dict[str, Any]:
    """Hashes of settings and data, to be kept beside a checkpoint or model."""
    return {"spec": folder.spec, **job.digests}


def check_origin(meta: Mapping[str, Any], folder: RunFolder, job: Job) -> None:
    """Refuses to go on with a checkpoint or model that was made with other settings or data.

    Raises:
        ConfigError: the configuration has changed.
        DataError: the data have changed; names what of them.
    """
    check_spec(meta, folder)
    if changed := changed_data(meta, job):
        raise DataError(
            f"The {' and the '.join(changed)} of {job.dataset.name} are not those that "
            f"{folder.path} was started with: put the data back as they were, or start another "
            "run with --config."
        )


def check_spec(meta: Mapping[str, Any], folder: RunFolder) -> None:
    """Refuses a configuration that is not the one that a checkpoint or model was made with."""
    if meta["spec"] != folder.spec:
        raise ConfigError(
            f"{folder.path / 'config.toml'} has changed since the run was started: put it back, or "
            "start another run with --config."
        )


def changed_data(meta: Mapping[str, Any], job: Job) -> list[str]:
    """What of a job's data is not as it was; files from before a hash was kept tell nothing."""
    digests = job.digests
    return [name for key, name in _NAMES.items() if meta.get(key, digests[key]) != digests[key]]
