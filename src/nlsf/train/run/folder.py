"""The folder of a run, with files that are never half written: `RunFolder`.

Tensors lie there in checkpoints, with the numbers beside them in the same file: `save`, `load`.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save as serialize
from torch import Tensor

from nlsf.errors import ConfigError, DataError, FormatError
from nlsf.store import json_lines
from nlsf.store.files import (
    TEMPORARY,
    naming,
    read_text,
    remove_leftovers,
    text_checksum,
    write_bytes,
    write_text,
)
from nlsf.store.locks import FileLock

FORMAT = "nlsf-checkpoint 1"
_KEY = "nlsf"


def save(path: Path, tensors: Mapping[str, Tensor], meta: Mapping[str, Any]) -> None:
    """Writes a safetensors file: all of it or nothing.

    Its header holds one entry ``"nlsf"``, a JSON object. Its keys are ``format``, ``meta``,
    ``complex`` (the names of tensors that are stored as pairs of real numbers) and ``sha256``, that
    of the rest. The same input gives the same bytes.

    Args:
        path: the file; its folder exists.
        tensors: of any dtype and on any device; they may share memory.
        meta: anything that JSON can hold; NaN and infinities come back as they are.
    """
    # safetensors knows no complex128: the two parts are stored, as a last dimension.
    complex_names = sorted(name for name, tensor in tensors.items() if tensor.is_complex())
    # Clones, because safetensors refuses tensors that share memory.
    stored = {
        name: _as_real(tensor.detach()).cpu().clone(memory_format=torch.contiguous_format)
        for name, tensor in tensors.items()
    }
    text = json.dumps(meta)
    header = {
        "format": FORMAT,
        "complex": complex_names,
        "sha256": _digest(stored, text),
        "meta": text,
    }
    # One entry only: safetensors writes several in an order that changes from call to call.
    write_bytes(path, serialize(stored, metadata={_KEY: json.dumps(header)}))


def load(path: Path) -> tuple[dict[str, Tensor], dict[str, Any]]:
    """Reads what `save` wrote: the tensors, on the CPU, and ``meta``.

    Raises:
        DataError: there is no such file.
        FormatError: it is damaged, of another kind, or of another version.
    """
    if not path.is_file():
        raise DataError(f"There is no checkpoint {path}.")
    try:
        return _read(path)
    except FormatError:
        raise
    except (SafetensorError, ValueError, KeyError, TypeError, RecursionError) as error:
        reason = " ".join(str(error).split())
        raise FormatError(
            f"{path} is damaged or not a checkpoint ({reason}): take another one or train again."
        ) from error


def _read(path: Path) -> tuple[dict[str, Tensor], dict[str, Any]]:
    with safe_open(path, framework="pt") as file:
        header = _header(path, file.metadata() or {})
        # Copies: what get_tensor gives is mapped from the file, and dies with it.
        tensors = {name: file.get_tensor(name).clone() for name in file.keys()}  # noqa: SIM118
    if header["sha256"] != _digest(tensors, header["meta"]):
        raise ValueError("its checksum is wrong")
    for name in header["complex"]:
        tensors[name] = torch.view_as_complex(tensors[name])
    meta: dict[str, Any] = json.loads(header["meta"])
    return tensors, meta


def _header(path: Path, metadata: Mapping[str, str]) -> dict[str, Any]:
    if _KEY not in metadata:
        raise FormatError(f"{path} is a safetensors file, but not a checkpoint of nlsf.")
    header: dict[str, Any] = json.loads(metadata[_KEY])
    if header["format"] != FORMAT:
        raise FormatError(
            f"{path} has the format {header['format']!r}, but this version of nlsf reads "
            f"{FORMAT!r}: use the version that wrote it, or train again."
        )
    return header


def _as_real(tensor: Tensor) -> Tensor:
    return torch.view_as_real(tensor.resolve_conj()) if tensor.is_complex() else tensor


def _digest(tensors: Mapping[str, Tensor], text: str) -> str:
    digest = hashlib.sha256(text.encode())
    for name in sorted(tensors):
        tensor = tensors[name]
        digest.update(f"{name} {tensor.dtype} {tuple(tensor.shape)}".encode())
        digest.update(tensor.reshape(-1).view(torch.uint8).numpy().data)
    return digest.hexdigest()


_CONFIG_LIMIT = 2**20


@dataclass(frozen=True)
class RunFolder:
    """What a run leaves behind.

    ``config.toml`` (every setting), ``metrics.jsonl`` (one row a model and epoch),
    ``checkpoint.safetensors`` (to continue from), ``model.safetensors`` (the selected weights),
    ``results.jsonl`` (one row a model, written last) and ``log.txt``.

    Attributes:
        path: the folder; it exists.
    """

    path: Path

    @classmethod
    def create(cls, parent: Path, name: str) -> RunFolder:
        """Makes ``parent/name-001``, or the number after the highest one there.

        Processes that do this at the same time get folders of their own. What cannot stand in a
        file name becomes a hyphen.
        """
        parent.mkdir(parents=True, exist_ok=True)
        stem = re.sub(r"[^\w.-]+", "-", name).strip("-.") or "run"
        pattern = re.compile(re.escape(stem) + r"-(\d{3,9})")
        taken = [int(m[1]) for entry in parent.iterdir() if (m := pattern.fullmatch(entry.name))]
        number = max(taken, default=0) + 1
        while True:
            path = parent / f"{stem}-{number:03d}"
            try:
                path.mkdir()
            except FileExistsError:
                number += 1
            else:
                return cls(path)

    @classmethod
    def create_at(cls, path: Path) -> RunFolder:
        """Makes exactly this folder; it may exist if it is empty."""
        try:
            path.mkdir(parents=True, exist_ok=True)
        except (FileExistsError, NotADirectoryError) as error:
            raise ConfigError(
                f"{path} cannot be a folder, because a file is in its place: choose another "
                "--output."
            ) from error
        folder = cls(path)
        if folder._config.exists():
            raise ConfigError(
                f"{path} holds a run already: continue it with --resume {path}, or choose another "
                "--output."
            )
        # A run that ended before it wrote anything leaves its lock, or half of its settings under
        # a temporary name, which is no reason to refuse.
        begun = (entry.name == ".lock" or entry.match(TEMPORARY) for entry in path.iterdir())
        if not all(begun):
            raise ConfigError(f"{path} is not empty: choose another --output.")
        return folder

    @classmethod
    def open(cls, path: Path) -> RunFolder:
        """The folder of a run that was started before."""
        if not path.is_dir():
            raise DataError(f"There is no run folder {path}.")
        folder = cls(path)
        if not folder._config.is_file():
            raise FormatError(f"{path} is not a run folder: it has no config.toml.")
        return folder

    @property
    def _config(self) -> Path:
        return self.path / "config.toml"

    @property
    def _metrics(self) -> Path:
        return self.path / "metrics.jsonl"

    @property
    def _results(self) -> Path:
        return self.path / "results.jsonl"

    @property
    def _checkpoint(self) -> Path:
        return self.path / "checkpoint.safetensors"

    @property
    def _model(self) -> Path:
        return self.path / "model.safetensors"

    @contextmanager
    def lock(self) -> Iterator[None]:
        """Holds the folder: a second process that asks for it is refused.

        It is free when the process ends, however it ends; see `FileLock`.
        """
        lock = FileLock(self.path / ".lock")
        if not lock.acquire(wait=False):
            raise ConfigError(
                f"Another process is training in {self.path}: wait for it, or choose another "
                "--output."
            )
        try:
            # A process that was killed while it wrote could not remove its temporary file.
            remove_leftovers(self.path)
            yield
        finally:
            lock.release()

    def write_config(self, text: str) -> None:
        """Writes ``config.toml``."""
        write_text(self._config, text)

    def read_config(self) -> str:
        """The text of ``config.toml``."""
        return read_text(self._config, limit=_CONFIG_LIMIT)

    @property
    def spec(self) -> str:
        """A hash of ``config.toml``: it names what a number was measured with."""
        return text_checksum(self.read_config())

    def save_checkpoint(self, tensors: Mapping[str, Tensor], meta: Mapping[str, Any]) -> None:
        """Writes ``checkpoint.safetensors``, after the metrics that it may count on are on disk."""
        json_lines.sync(self._metrics)
        save(self._checkpoint, tensors, meta)

    def load_checkpoint(self) -> tuple[dict[str, Tensor], dict[str, Any]] | None:
        """What `save_checkpoint` wrote last; ``None`` if the run was stopped before."""
        return load(self._checkpoint) if self._checkpoint.exists() else None

    def save_model(self, tensors: Mapping[str, Tensor], meta: Mapping[str, Any]) -> None:
        """Writes ``model.safetensors``, as `save_checkpoint` writes its file."""
        json_lines.sync(self._metrics)
        save(self._model, tensors, meta)

    @property
    def has_model(self) -> bool:
        """Whether some models are trained."""
        return self._model.exists()

    def load_model(self) -> tuple[dict[str, Tensor], dict[str, Any]]:
        """What `save_model` wrote."""
        if not self.has_model:
            raise DataError(
                f"{self.path} holds no trained model yet: finish it with --resume {self.path}."
            )
        return load(self._model)

    def append_metrics(self, rows: Sequence[Mapping[str, Any]]) -> None:
        """Appends rows to ``metrics.jsonl``: all of them or, if the disk is full, none."""
        json_lines.append(self._metrics, rows)

    def metrics_size(self) -> int:
        """Bytes in ``metrics.jsonl``, for a checkpoint to remember."""
        return self._metrics.stat().st_size if self._metrics.exists() else 0

    def rewind_metrics(self, size: int) -> None:
        """Cuts ``metrics.jsonl`` to the size that a checkpoint remembers.

        A run that continues then writes the same file as one that was never stopped.
        """
        there = self.metrics_size()
        if there < size:
            raise FormatError(
                f"{self._metrics} has {there} bytes, but the checkpoint was saved with {size}: "
                "put the file back as it was, or train again."
            )
        if there > size:
            os.truncate(self._metrics, size)

    def metrics(self) -> list[dict[str, Any]]:
        """The rows of ``metrics.jsonl``, without a last line that was cut off."""
        return json_lines.read(self._metrics, torn=True) if self._metrics.exists() else []

    def write_results(self, rows: Sequence[Mapping[str, Any]]) -> None:
        """Writes ``results.jsonl``: with it, the run is finished."""
        json_lines.write(self._results, rows)

    def results(self) -> list[dict[str, Any]]:
        """The rows of ``results.jsonl``."""
        if not self._results.exists():
            raise DataError(
                f"{self.path} holds no results yet: finish it with --resume {self.path}."
            )
        return json_lines.read(self._results)

    @property
    def finished(self) -> bool:
        """Whether the results are there, and whole."""
        try:
            return bool(self.results())
        except (DataError, FormatError):
            return False

    def log(self, line: str) -> None:
        """Appends one line to ``log.txt``, after the time of day."""
        path = self.path / "log.txt"
        stamp = datetime.now().astimezone().isoformat(timespec="seconds")
        try:
            with path.open("a", encoding="utf-8") as file:
                file.write(f"{stamp} {' '.join(line.splitlines())}\n")
        except OSError as error:
            raise naming(error, path) from error
