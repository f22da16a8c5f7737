"""What a run was made with, and whether that still holds.

`versions` names the software and `origin` the settings and data; `check_kept` refuses a run that is
not the one asked for.
"""

from __future__ import annotations

import platform
import re
from collections.abc import Mapping
from importlib import metadata
from pathlib import Path
from typing import Any

import torch

from nlsf.data.catalogue import find, knows
from nlsf.data.protocols import digest
from nlsf.errors import ConfigError, DataError
from nlsf.train.run.folder import RunFolder
from nlsf.train.run.job import Job
from nlsf.train.settings.config import user_path, without_place
from nlsf.train.settings.toml import Table, flat, parse_toml

_PACKAGES = ("nlsf", "torch", "torch_geometric", "numpy", "scipy")


def versions() -> dict[str, str]:
    """The versions of this package, of Python and of what computes, the platform and the threads.

    ``commit`` is that of the checkout which the package runs from, where there is one.
    """
    found = {"python": platform.python_version()}
    found |= {name: metadata.version(name) for name in _PACKAGES}
    found["platform"] = f"{platform.system()} {platform.machine()}"
    found["threads"] = str(torch.get_num_threads())
    # <checkout>/src/nlsf/train/run/provenance.py; an installed package has no folder src above it.
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
    if folder.has_model:
        _, meta = folder.load_model()
        if changed_data(meta, job):
            return True
    if not folder.finished:
        return False
    return [row.get("split") for row in folder.results()] != [digest(s) for s in job.splits]
