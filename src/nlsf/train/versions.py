"""What a result was computed with: `versions`."""

from __future__ import annotations

import platform
import re
from importlib import metadata
from pathlib import Path

import torch

_PACKAGES = ("nlsf", "torch", "torch_geometric", "numpy", "scipy")


def versions() -> dict[str, str]:
    """The versions of this package, of Python and of what computes, the platform and the threads.

    ``commit`` is that of the checkout which the package runs from, where there is one.
    """
    found = {"python": platform.python_version()}
    found |= {name: metadata.version(name) for name in _PACKAGES}
    found["platform"] = f"{platform.system()} {platform.machine()}"
    found["threads"] = str(torch.get_num_threads())
    # <checkout>/src/nlsf/train/versions.py; an installed package has no folder src above it.
    source = Path(__file__).resolve().parents[2]
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
