"""Where raw files lie: `data_root`."""

from __future__ import annotations

import os
from pathlib import Path


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
