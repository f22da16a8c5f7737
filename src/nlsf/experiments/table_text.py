"""The numbers and sentences that all forms of a result table share."""

from __future__ import annotations

import math

from nlsf.experiments.result_table import Difference, Entry, ResultTable


def number(table: ResultTable, value: float | None, decimals: int = 2) -> str:
    """Decimals of a percentage, or four digits of an error; empty where there is no number."""
    if value is None or not math.isfinite(value):
        return ""
    return f"{value:.{decimals}f}" if table.is_share else f"{value:.4g}"


def signed(table: ResultTable, value: float | None, decimals: int = 2) -> str:
    """A difference, with its sign; one that is shown as zero has none."""
    text = number(table, value, decimals)
    if not text:
        return ""
    return text.lstrip("-") if float(text) == 0 else f"{'' if text[0] == '-' else '+'}{text}"


def ours(table: ResultTable, entry: Entry, plus_minus: str = " +- ", decimals: int = 2) -> str:
    """Our mean and its spread, if it has one."""
    spread = number(table, entry.spread, decimals)
    return number(table, entry.mean, decimals) + (plus_minus + spread if spread else "")


def difference(
    table: ResultTable, pair: Difference, plus_minus: str = " +- ", decimals: int = 2
) -> str:
    """A paired difference and half its interval, if it has one."""
    half = number(table, pair.half, decimals)
    return signed(table, pair.mean, decimals) + (plus_minus + half if half else "")


def is_clear(pair: Difference) -> bool:
    """Whether the interval of a difference leaves out 0; never for one split."""
    return abs(pair.mean) > pair.half


def other_n(table: ResultTable, n: int) -> str:
    """How many splits, where they are not as many as the experiment asks for."""
    return "" if n == table.experiment.seeds else f"n = {n}"


def pair_of(table: ResultTable, method: str, column: str) -> Difference | None:
    """A method against the reference; the reference has no difference to itself."""
    reference = table.reference
    if reference is None or method == reference:
        return None
    return table.paired(method, reference, column)


def legend(table: ResultTable, paper: str = "In parentheses: the paper's value.") -> str:
    """What the numbers of the table are.

    Args:
        table: the table.
        paper: says where the published values stand.
    """
    experiment = table.experiment
    spread = {
        "interval": "half the width of the 95 % interval of the mean",
        "deviation": "the standard deviation over splits",
    }[experiment.spread]
    unit = " in percent" if table.is_share else ""
    splits = "1 split" if experiment.seeds == 1 else f"{experiment.seeds} splits"
    floors = any(table.floor(column.label) is not None for column in experiment.columns)
    sentences = [
        f"Test {experiment.metric.replace('_', ' ')}{unit}: mean over {splits} (or n, where it is "
        f"given) +- {spread}.",
        _trials(table),
        paper if table.published else "",
        "Bold: the best of our means in a column.",
        "Floor: what the size of the test sets alone adds to the spread of the best method."
        if floors
        else "",
        "Empty: not run.",
        experiment.note.strip(),
    ]
    return " ".join(sentence for sentence in sentences if sentence)


def paired_legend(table: ResultTable) -> str:
    """What the numbers of the second table are."""
    unit = " in points" if table.is_share else ""
    return (
        f"Every method minus {table.reference} on the same splits{unit}: mean +- half the width of "
        f"its 95 % interval, n = {table.experiment.seeds} where no other n is given. Bold: the "
        "interval leaves out 0."
    )


def _trials(table: ResultTable) -> str:
    counts = {entry.trials for entry in table.entries.values() if entry is not None}
    if not counts:
        return ""
    if counts == {0}:
        return "Nothing was tuned."
    low, high = min(counts), max(counts)
    count = f"{high}" if low == high else f"{low} to {high}"
    trials = f"{count} {'trial' if high == 1 else 'trials'} a cell"
    return (
        f"Tuned with {trials}, on validation data of tuning splits: other splits of the same "
        "examples, or the given ones where there are no others."
    )
