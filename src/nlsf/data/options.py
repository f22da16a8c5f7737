"""Checks of the options that a data set is made with: `check_whole`, `check_number`."""

from __future__ import annotations

from nlsf.errors import ConfigError


def check_whole(name: str, value: int, low: int, high: int | None = None) -> None:
    """Refuses what is not a whole number from ``low`` to ``high``, both allowed."""
    if type(value) is not int:
        raise ConfigError(f"{name} must be a whole number, not {value!r}.")
    check_number(name, value, low, high)


def check_number(name: str, value: float, low: float, high: float | None = None) -> None:
    """Refuses what is not a finite number from ``low`` to ``high``, both allowed."""
    # So that two of them can be multiplied; Python's whole numbers have no end.
    if type(value) not in (int, float) or not abs(value) < 1e150:
        raise ConfigError(f"{name} must be a number, not {value!r}.")
    if value < low or (high is not None and value > high):
        limits = f"at least {low}" if high is None else f"from {low} to {high}"
        raise ConfigError(f"{name} must be {limits}, not {value!r}.")
