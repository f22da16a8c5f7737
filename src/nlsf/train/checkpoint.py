"""Tensors and the numbers beside them in one file: `save`, `load`."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save as serialize
from torch import Tensor

from nlsf.errors import DataError, FormatError
from nlsf.store.files import write_bytes

FORMAT = "nlsf-checkpoint 1"
_KEY = "nlsf"


def save(path: Path, tensors: Mapping[str, Tensor], meta: Mapping[str, Any]) -> None:
    """Writes a safetensors file: all of it or nothing.

    Its header holds one entry ``"nlsf"``, a JSON object with ``format``, ``meta``, ``complex`` (the
    names of tensors stored as pairs of real numbers) and ``sha256`` (of the rest). The same input
    gives the same bytes.

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
