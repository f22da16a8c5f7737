"""Two runs compared seed by seed: `paired`."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from nlsf.data.metrics import higher_is_better, interval
from nlsf.report.record import RunRecord
from nlsf.report.wording import is_share


@dataclass(frozen=True)
class Paired:
    """The differences of one run to another, on the splits that both were measured on.

    Attributes:
        name: of the run.
        metric: what is compared.
        seeds: those that both have with the same split.
        differences: test metric of the run minus that of the other, one a seed.
        obstacle: why the runs cannot be compared; empty if they can.
    """

    name: str
    metric: str
    seeds: list[int]
    differences: list[float]
    obstacle: str = ""

    def words(self) -> tuple[str, str, str]:
        """The mean difference, its 95 % interval, and what that means."""
        if self.obstacle:
            return "-", "-", f"not comparable: {self.obstacle}"
        mean, half = interval(self.differences)
        if math.isnan(half):
            return self._number(mean), "-", "one common seed does not tell chance from skill"
        ends = f"{self._number(mean - half)} to {self._number(mean + half)}"
        if half == 0 and mean == 0:
            return self._number(mean), ends, "the same on every seed"
        if abs(mean) <= half:
            return self._number(mean), ends, "no clear difference"
        better = (mean > 0) == higher_is_better(self.metric)
        return self._number(mean), ends, "better" if better else "worse"

    def _number(self, value: float) -> str:
        return f"{100 * value:+.2f} points" if is_share(self.metric) else f"{value:+.4g}"


def paired(name: str, run: RunRecord, base: RunRecord) -> Paired:
    """Compares a finished run with another.

    Args:
        name: what the page calls the run.
        run: the run.
        base: the run that it is compared with.
    """
    if run.metric != base.metric:
        obstacle = f"one reports {run.metric}, the other {base.metric}"
        return Paired(name, base.metric, [], [], obstacle)
    if _data(run) != _data(base):
        return Paired(name, base.metric, [], [], "the data differ")
    key = f"test_{base.metric}"
    other = {row["seed"]: row for row in base.results}
    common = [(row, other[row["seed"]]) for row in run.results if row["seed"] in other]
    if not common:
        return Paired(name, base.metric, [], [], "they have no seed in common")
    same = [
        (row["seed"], row[key] - its[key])
        for row, its in common
        if row["split"] == its["split"] and row[key] is not None and its[key] is not None
    ]
    if not same:
        return Paired(name, base.metric, [], [], "their splits differ")
    return Paired(name, base.metric, [s for s, _ in same], [d for _, d in same])


def _data(run: RunRecord) -> tuple[str, dict[str, Any]]:
    """What the data are, wherever they lie: equal splits of other graphs are not the same."""
    places = ("name", "root", "offline")
    return run.name, {k: v for k, v in run.table["data"].items() if k not in places}
