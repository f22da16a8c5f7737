"""What short trainings compute is what they computed when this was recorded.

`benchmarks/golden.py --against` compares two checkouts to the last digit on one machine. This test
must hold on other machines, whose sums are added in another order.
"""

import json
import math
import re

import pytest

import golden
import golden_layers
import golden_runs

RECORDED = json.loads(golden.RECORD.read_text())

# Single precision has seven digits. Three epochs of Adam, which divides a gradient by its size,
# cost some of them (DiffPool loses 1e-3 between two processors); the epochs after these cost more.
LOSSES, SELECTED = 5e-3, 1e-2
# Of the two dozen test examples two may get another label.
METRICS = 0.1
# Layers compute in double precision, but for those that are told not to.
DOUBLE, SINGLE = 1e-6, 1e-3


def check(run, place, old, new):
    """One number, or text."""
    if not isinstance(old, float):
        assert new == old, place
    elif math.isnan(old):
        assert math.isnan(new), place
    elif place.startswith("epochs"):
        assert new == pytest.approx(old, rel=LOSSES), place
    elif place.startswith("outputs"):
        precision = SINGLE if run == "layers on signals" else DOUBLE
        assert new == pytest.approx(old, rel=precision, abs=precision), place
    elif "loss" in place or place.startswith(("weights", "predicted")):
        assert new == pytest.approx(old, rel=SELECTED, abs=SELECTED), place
    else:
        assert abs(new - old) <= METRICS * max(1.0, abs(old)), place


def same_selection(old, new):
    """Whether the same epoch and the same settings were selected.

    A tie of two accuracies can fall otherwise on another processor, and then all that comes after
    the selection is another model's.
    """
    keys = ("best_epoch", "epochs", "point")
    rows = zip(old.get("seeds", []), new.get("seeds", []), strict=True)
    return all(a.get(key) == b.get(key) for a, b in rows for key in keys)


@pytest.mark.parametrize("name", golden_runs.RUNS)
def test_the_numbers_are_those_that_were_recorded(name):
    if name == "block rows":
        pytest.importorskip("distributed", reason="needs Dask: nlsf[cluster]")
    old, new = RECORDED[name], golden_runs.numbers(name)
    kept = set(old) if same_selection(old, new) else {"epochs", "outputs", "texts"}
    found = dict(golden.flat(new))
    compared = [item for item in golden.flat(old) if re.match(r"[^.[]*", item[0])[0] in kept]
    assert compared
    for place, value in compared:
        assert place in found, place
        check(name, place, value, found[place])


def test_every_run_is_recorded():
    assert set(RECORDED) == set(golden_runs.RUNS)
    assert {"layers on one graph", "spectra"} <= set(golden_layers.RUNS)


OLD = {"epochs": {"val_loss": [0.5, math.nan]}, "digest": "a"}


class TestComparison:
    """`benchmarks/golden.py --against` sees the last digit, and does not take an error for one."""

    def test_equal(self):
        assert golden.difference(OLD, json.loads(json.dumps(OLD))) == ""

    @pytest.mark.parametrize(
        "new",
        [
            {"epochs": {"val_loss": [math.nextafter(0.5, 1), math.nan]}, "digest": "a"},
            {"epochs": {"val_loss": [0.5, 0.5]}, "digest": "a"},
            {"epochs": {"val_loss": [0.5]}, "digest": "a"},
            {"epochs": {"val_loss": [0.5, math.nan, 0.1]}, "digest": "a"},
            {"epochs": {"val_loss": [0.5, math.nan]}, "digest": "b"},
            {},
        ],
    )
    def test_the_last_digit(self, new):
        assert golden.difference(OLD, new)

    def test_a_number_is_named_before_a_hash(self):
        new = {"epochs": {"val_loss": [0.25, math.nan]}, "digest": "b"}
        assert golden.difference(OLD, new).startswith("epochs.val_loss[0]: 0.5 there, 0.25")

    def test_a_run_that_failed_on_both_sides_is_not_equal(self):
        assert "no" in golden.difference({"error": "no"}, {"error": "no"})
