"""Spectra on disk, found by the content of what they were computed from: `SpectrumCache`."""

from __future__ import annotations

import hashlib
import json
import os
import warnings
from collections.abc import Callable
from contextlib import suppress
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
from nlsf.store.files import DAY, TEMPORARY, remove_leftovers, whole_file_at

_TENSORS = ("values", "vectors", "residuals")
_FIELDS = ("far", "reach", "gap_tol", "trace", "nullity", "name", "order", "solver")
# Temporary files: ours, those of safetensors, and those of version 0.1.
_LEFTOVERS = (TEMPORARY, ".tmp??????", ".????????????????-*")


class SpectrumCache:
    """A folder of spectra, one safetensors file each.

    Several processes, and several users, may use one folder: files appear whole, with the
    permissions of any new file in it. A file carries a checksum of its tensors: a truncated or
    altered one is removed, and computed again with a `CacheWarning`. What cannot be read or
    written, because it is another user's, costs a warning and stays as it is; never the result.

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
        self._unreadable: set[str] = set()

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
            if key not in self._unreadable:  # a file that is there, whoever can read it
                self._keep(key, spectrum)
        return spectrum

    def _keep(self, key: str, spectrum: Spectrum) -> None:
        try:
            self.save(key, spectrum)
        except (OSError, SafetensorError) as error:
            # No name of a file: Python shows equal warnings once, and there may be many graphs.
            reason = getattr(error, "strerror", None) or error
            warnings.warn(
                f"The spectrum could not be kept in {self.root} ({reason}): make room or mend the "
                "folder's permissions, or set NLSF_CACHE to a folder that can be written.",
                CacheWarning,
                stacklevel=3,
            )

    def load(self, key: str) -> Spectrum | None:
        """The spectrum under this key, or ``None``.

        A damaged file is removed with a warning. One that cannot be read stays, with another.
        """
        path = self.path(key)
        try:
            # Of any file that it cannot open, safetensors says that it is not there.
            path.open("rb").close()
            return _read(path, key)
        except (FileNotFoundError, NotADirectoryError):
            return None
        except OSError as error:
            self._unreadable.add(key)
            closed = path.parent if not os.access(path.parent, os.X_OK) else path
            warnings.warn(
                f"The cached spectrum is computed again, because {closed} cannot be read "
                f"({error.strerror or error}): ask its owner for permission (chmod a+rX {closed}), "
                "or set NLSF_CACHE to another folder.",
                CacheWarning,
                stacklevel=2,
            )
            return None
        except (SafetensorError, ValueError, KeyError, TypeError) as error:
            warnings.warn(
                f"The cached spectrum {path} is damaged ({error}), so it is computed again.",
                CacheWarning,
                stacklevel=2,
            )
            with suppress(OSError):  # another user's folder, or another process was faster
                path.unlink()
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
        remove_leftovers(self.root, age=DAY, patterns=_LEFTOVERS)
        # To wait for the disk would double the time of a small graph, and gain nothing: what a
        # power cut tears is found by its checksum.
        with whole_file_at(self.path(key), sync=False) as temporary:
            save_file(tensors, temporary, metadata=metadata)
        return self.path(key)


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
