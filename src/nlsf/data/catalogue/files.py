"""Files of publishers: where they lie here, and how they come here.

`data_root` is the folder of all, `locate_all` finds a `RemoteFile` in it, and `download` fetches
what is missing: whole and the publisher's, or not there at all.
"""

from __future__ import annotations

import hashlib
import http.client
import os
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, BinaryIO

from nlsf.display.progress import Progress
from nlsf.display.sinks import active
from nlsf.errors import DataError, FormatError, NLSFError
from nlsf.store.files import DAY, remove_leftovers, whole_file


def data_root(root: str | os.PathLike[str] | None = None) -> Path:
    """The folder of raw files.

    Args:
        root: the folder; by default the environment variable ``NLSF_DATA``, then the user's data
            folder of this program. It need not exist.
    """
    chosen = root or os.environ.get("NLSF_DATA")
    if chosen:
        return Path(chosen).expanduser()
    import platformdirs

    return platformdirs.user_data_path("nlsf")


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


MAX_BYTES = 8 << 30
TIMEOUT = 30.0
_CHUNK = 1 << 18
_LOOPBACK = ("127.0.0.1", "localhost", "::1")


def download(
    file: RemoteFile, target: Path, *, progress: Progress | None = None, timeout: float = TIMEOUT
) -> None:
    """Fetches a file under a temporary name, verifies it, and renames it.

    Args:
        file: what to fetch; its ``url`` is https, or http on this machine.
        target: where it goes; its folder is made.
        progress: is told what has come; by default whoever draws at the moment.
        timeout: seconds that the host may be silent.

    Raises:
        DataError: the host does not answer or does not have the file, or it cannot be written.
        FormatError: what came is not what the catalogue knows: its size or checksum differs.
    """
    if file.url is None:
        raise DataError(f"{target} cannot be downloaded: fetch it from {file.page} by hand.")
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        remove_leftovers(target.parent, age=DAY)
        with whole_file(target) as stream:
            _fetch(file, file.url, target, stream, progress or active(), timeout)
    except NLSFError:
        raise
    except OSError as error:
        raise DataError(
            f"{target} cannot be written ({error.strerror}): make room there or choose another "
            "data root."
        ) from error


def _fetch(
    file: RemoteFile,
    url: str,
    target: Path,
    stream: BinaryIO,
    progress: Progress,
    timeout: float,
) -> None:
    limit = MAX_BYTES if file.size is None else file.size
    digest, size = hashlib.sha256(), 0
    name = f"Downloading {file.path}"
    with progress.phase(name, file.size, unit="byte", detail=f"from {url}") as phase:
        for chunk in _chunks(url, target, limit, timeout):
            stream.write(chunk)
            digest.update(chunk)
            size += len(chunk)
            phase.advance(size)
    if file.size is not None and size != file.size:
        raise FormatError(f"{url} gave {size:,} bytes, but {file.size:,} were expected.")
    if file.sha256 is not None and digest.hexdigest() != file.sha256:
        raise FormatError(
            f"{url} has the SHA-256 {digest.hexdigest()}, but {file.sha256} was expected: its "
            "publisher changed it, or it was damaged on the way."
        )


def _chunks(url: str, target: Path, limit: int, timeout: float) -> Iterator[bytes]:
    """The body of an answer; every failure of the network is a `DataError`."""
    _check_address(url)
    request = urllib.request.Request(url, headers={"User-Agent": "nlsf"})
    size = 0
    try:
        with urllib.request.build_opener(_Redirects).open(request, timeout=timeout) as response:
            declared: int | None = response.length
            while chunk := response.read(_CHUNK):
                size += len(chunk)
                if size > limit:
                    raise FormatError(f"{url} gives more than the {limit:,} bytes expected.")
                yield chunk
    except NLSFError:
        raise
    except urllib.error.HTTPError as error:
        error.close()
        raise DataError(
            f"{url} cannot be downloaded: its host answers {error.code} {_one_line(error.reason)}."
        ) from error
    except (OSError, http.client.HTTPException, ValueError) as error:
        reason = _one_line(getattr(error, "reason", error))
        raise DataError(
            f"{url} cannot be downloaded ({reason}): try again, or put the file at {target} "
            "by hand."
        ) from error
    if declared is not None and size != declared:
        raise DataError(f"{url} broke off after {size:,} of {declared:,} bytes: try again.")


class _Redirects(urllib.request.HTTPRedirectHandler):
    max_redirections = 5

    def redirect_request(
        self,
        req: urllib.request.Request,
        fp: IO[bytes],
        code: int,
        msg: str,
        headers: Any,
        newurl: str,
    ) -> urllib.request.Request | None:
        try:
            _check_address(newurl)
        except DataError:
            fp.close()
            raise
        return super().redirect_request(req, fp, code, msg, headers, newurl)


def _one_line(reason: object) -> str:
    return " ".join(str(reason).split())


def _check_address(url: str) -> None:
    parts = urllib.parse.urlsplit(url)
    if parts.scheme != "https" and (parts.scheme, parts.hostname in _LOOPBACK) != ("http", True):
        raise DataError(f"{url} is not fetched: only https addresses are.")
