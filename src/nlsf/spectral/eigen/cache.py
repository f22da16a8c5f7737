"""Spectra on disk, found by the content of what they were computed from: `SpectrumCache`."""

from __future__ import annotations

import hashlib
import json
import os
import tempfile
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeAlias, Union

import numpy as np
import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file
from torch import Tensor

from nlsf.errors import CacheWarning
from nlsf.spectral.eigen.spectrum import Spectrum
from nlsf.spectral.operators.shift import ShiftOperator

_TENSORS = ("values", "vectors", "residuals")
_FIELDS = ("far", "reach", "gap_tol", "trace", "nullity", "name", "order", "solver")
_TEMPORARY = ".????????????????-*"
# No file takes a day to write, so its process is no more.
_ABANDONED_SECONDS = 86_400.0


class SpectrumCache:
    """A folder of spectra, one safetensors file each.

    A file is written under a temporary name and renamed, so several processes may use one folder.
    It carries a checksum of its tensors: a truncated or altered file is removed and computed again
    with a `CacheWarning`. A folder that cannot be written costs a warning, never the result.

    Args:
        root: the folder; by default the environment variable ``NLSF_CACHE``, then the user's cache
            folder.
    """

    def __init__(self, root: str | os.PathLike[str] | None = None) -> None:
        if root is None:
            root = os.environ.get("NLSF_CACHE") or None
        if root is None:
            import platformdirs

            root = Path(platformdirs.user_cache_dir("nlsf")) / "spectra"
        self.root = Path(root).expanduser()

    @classmethod
    def of(cls, cache: CacheArgument) -> SpectrumCache | None:
        """Reads the ``cache`` argument of `partial_eigh`."""
        if cache is None or cache is False:
            return None
        if isinstance(cache, SpectrumCache):
            return cache
        return cls() if cache is True else cls(cache)

    @staticmethod
    def key(shift: ShiftOperator, *, request: str) -> str:
        """The name under which a spectrum is kept: a hash of the operator and of the request."""
        matrix = shift.matrix
        digest = hashlib.sha256()
        header = (shift.name, shift.order, shift.bounds, matrix.shape, str(matrix.dtype), request)
        digest.update(repr(header).encode())
        for array in (matrix.indptr.astype(np.int64), matrix.indices.astype(np.int64), matrix.data):
            digest.update(np.ascontiguousarray(array).data)
        return digest.hexdigest()

    def path(self, key: str) -> Path:
        """The file of a key."""
        return self.root / f"{key}.safetensors"

    def load_or_compute(self, key: str, compute: Callable[[], Spectrum]) -> Spectrum:
        """The spectrum under this key, from disk if it is there and whole."""
        spectrum = self.load(key)
        if spectrum is None:
            spectrum = compute()
            try:
                self.save(key, spectrum)
            except (OSError, SafetensorError) as error:
                warnings.warn(
                    f"The spectrum could not be kept in {self.root}: {error}. Set NLSF_CACHE to a "
                    "folder that can be written.",
                    CacheWarning,
                    stacklevel=2,
                )
        return spectrum

    def load(self, key: str) -> Spectrum | None:
        """The spectrum under this key, or ``None``. A damaged file is removed, with a warning."""
        path = self.path(key)
        if not path.is_file():
            return None
        try:
            return _read(path, key)
        except (SafetensorError, OSError, ValueError, KeyError, TypeError) as error:
            warnings.warn(
                f"The cached spectrum {path} is damaged ({error}): removed, to be computed again.",
                CacheWarning,
                stacklevel=2,
            )
            path.unlink(missing_ok=True)
            return None

    def save(self, key: str, spectrum: Spectrum) -> Path:
        """Writes a spectrum: all of it or nothing."""
        # safetensors knows no complex numbers: their two parts are stored, as a last dimension.
        tensors = {
            name: _as_real(getattr(spectrum, name)).detach().cpu().contiguous() for name in _TENSORS
        }
        fields = {name: getattr(spectrum, name) for name in _FIELDS}
        metadata = {
            "key": key,
            "fields": json.dumps(fields),
            "complex": json.dumps(spectrum.vectors.is_complex()),
            "sha256": _digest(tensors, json.dumps(fields)),
        }
        self.root.mkdir(parents=True, exist_ok=True)
        self._remove_abandoned()
        handle, temporary = tempfile.mkstemp(dir=self.root, prefix=f".{key[:16]}-")
        os.close(handle)
        try:
            save_file(tensors, temporary, metadata=metadata)
            os.replace(temporary, self.path(key))
        finally:
            Path(temporary).unlink(missing_ok=True)
        return self.path(key)

    def _remove_abandoned(self) -> None:
        """Removes what processes that were killed while they wrote have left."""
        oldest = time.time() - _ABANDONED_SECONDS
        for path in self.root.glob(_TEMPORARY):
            try:
                if path.stat().st_mtime < oldest:
                    path.unlink()
            except FileNotFoundError:  # another process was faster
                continue


CacheArgument: TypeAlias = Union[bool, str, "os.PathLike[str]", SpectrumCache, None]


def _read(path: Path, key: str) -> Spectrum:
    with safe_open(path, framework="pt") as file:
        metadata = file.metadata() or {}
        # A copy: what get_tensor gives is mapped from the file, and dies with it.
        tensors = {name: file.get_tensor(name).clone() for name in _TENSORS}
    if metadata["key"] != key:
        raise ValueError("it holds another spectrum")
    if metadata["sha256"] != _digest(tensors, metadata["fields"]):
        raise ValueError("its checksum is wrong")
    fields: dict[str, Any] = json.loads(metadata["fields"])
    if json.loads(metadata["complex"]):
        tensors["vectors"] = torch.view_as_complex(tensors["vectors"])
    return Spectrum(**tensors, **fields)


def _as_real(tensor: Tensor) -> Tensor:
    return torch.view_as_real(tensor) if tensor.is_complex() else tensor


def _digest(tensors: dict[str, Tensor], fields: str) -> str:
    digest = hashlib.sha256(fields.encode())
    for name in _TENSORS:
        digest.update(f"{name} {tuple(tensors[name].shape)}".encode())
        digest.update(np.ascontiguousarray(tensors[name].numpy()).data)
    return digest.hexdigest()
