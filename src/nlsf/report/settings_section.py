"""What defines a run: its settings, versions and hashes."""

from __future__ import annotations

from typing import Any

from nlsf.report.charts import Chart, DataTable
from nlsf.report.record import RunRecord
from nlsf.train.settings.toml import flat

_LONG = 200
"""Characters of a value that are shown."""


def settings_charts(record: RunRecord) -> list[Chart]:
    """All settings, and what the numbers were computed with."""
    rows = [[key, setting(value)] for key, value in flat(record.table)]
    charts: list[Chart] = [
        DataTable(
            "Settings",
            "Everything that defines the run: config.toml in its folder holds the same.",
            ["key", "value"],
            rows,
        )
    ]
    if record.finished:
        row = record.result
        identity = [[key, str(value)] for key, value in row["versions"].items()]
        identity.append(["hash of the settings", str(row["spec"])])
        identity.append([f"hash of the split of seed {record.seed}", str(row["split"])])
        charts.append(
            DataTable(
                "Versions",
                "What the numbers were computed with. Runs with equal hashes of their splits were "
                "measured on the same examples.",
                ["what", "which"],
                identity,
            )
        )
    return charts


def setting(value: Any) -> str:
    """A value as in TOML, cut where it is long.

    Example:
        >>> setting(True), setting([1, 2]), setting("none")
        ('true', '[1, 2]', 'none')
    """
    text = str(value).lower() if isinstance(value, bool) else str(value)
    if len(text) <= _LONG:
        return text
    entries = f" ({len(value):,} entries)" if isinstance(value, list) else ""
    return f"{text[:_LONG]} ...{entries}"
