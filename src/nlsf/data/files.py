"""Files of publishers, and where they lie here: `RemoteFile` and `locate_all`."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from nlsf.errors import DataError


@dataclass(frozen=True)
class RemoteFile:
    """A file as its publisher distributes it.

    Attributes:
        path: where it lies below the data root, ``"planetoid/ind.cora.x"`` for example.
        sha256: its checksum; ``None`` where we have never had the file.
        url: where it is downloaded from; ``None`` where that needs a person.
        size: its bytes; ``None`` where we have never had the file.
        page: the publisher's page about it, for a person.
    """

    path: str
    sha256: str | None = None
    url: str | None = None
    size: int | None = None
    page: str = ""

    def at(self, root: Path) -> Path:
        """Where it lies in a data root."""
        return root / self.path


def locate_all(files: Sequence[RemoteFile], root: Path, *, offline: bool = False) -> list[Path]:
    """The paths of files, in their order; what is missing is downloaded from its publisher.

    Args:
        files: what is needed.
        root: the data root.
        offline: download nothing.

    Raises:
        DataError: files are missing and cannot be downloaded, or cannot be read; names them and
            says where to put them.
        FormatError: a downloaded file is not the publisher's.
    """
    missing = [file for file in files if not is_present(file, root)]
    by_hand = [file for file in missing if offline or file.url is None]
    if by_hand:
        sources = dict.fromkeys(_source(file) for file in by_hand)
        paths = ", ".join(str(file.at(root)) for file in by_hand)
        verb, pronoun = ("is", "it") if len(by_hand) == 1 else ("are", "them")
        raise DataError(f"{paths} {verb} missing: put {pronoun} there from {', '.join(sources)}.")
    for file in missing:
        from nlsf.data.download import download

        download(file, file.at(root))
    return [file.at(root) for file in files]


def is_present(file: RemoteFile, root: Path) -> bool:
    """Whether a file lies in the data root.

    Raises:
        DataError: it cannot be read, or its folder cannot be looked into.
    """
    path = file.at(root)
    try:
        found = path.is_file()
        if not found and root.exists() and not root.is_dir():
            raise DataError(f"The data root {root} is not a folder: choose another.")
    except DataError:
        raise
    except OSError as error:
        raise DataError(
            f"{path.parent} cannot be read ({error.strerror}): mend its permissions or choose "
            "another data root."
        ) from error
    if found and not os.access(path, os.R_OK):
        raise DataError(f"{path} cannot be read: mend its permissions.")
    return found


def _source(file: RemoteFile) -> str:
    # Most sets have many files in one folder of the publisher: that folder is named once.
    return file.page or (file.url or "its publisher").rpartition("/")[0]
