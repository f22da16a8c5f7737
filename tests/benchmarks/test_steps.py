"""The benchmark of steps: whose turn it is, what its ratio is, and that its layers run."""

import itertools

import pytest

import steps
import steps_work

CASES = steps_work.cases(share=5)


class FakeSide:
    """A checkout whose steps take a known time."""

    def __init__(self, name, seconds, asked):
        self.name, self.seconds, self.asked = name, itertools.cycle(seconds), asked

    def measure(self, case, count):
        self.asked.append(self.name)
        return [next(self.seconds) for _ in range(count)]


def sides(there=(1.0,), here=(1.0,)):
    asked = []
    return FakeSide("there", there, asked), FakeSide("here", here, asked), asked


def test_both_take_turns_so_that_a_drift_favours_neither():
    there, here, asked = sides()
    steps.compare(there, here, "layer", 2)
    assert asked[2:] == 2 * ["there", "here", "here", "there"]


@pytest.mark.parametrize("factor", [0.5, 1.0, 1.25])
def test_the_ratio_is_above_one_where_this_checkout_is_slower(factor):
    row = steps.compare(*sides((0.5,), (0.5 * factor,))[:2], "layer", 3)
    assert row["ratio"] == pytest.approx(factor)
    assert row["error"] == pytest.approx(0)
    assert f"{factor:.2f} +- 0.00" in steps.line(row)


def test_turns_that_differ_show_in_the_error():
    row = steps.compare(*sides((1.0, 3.0, 2.0), (1.0,))[:2], "layer", 3)
    assert row["error"] > 0.05


def test_a_case_that_fails_is_a_row():
    there, here, _ = sides()

    def fails(name, count):
        raise RuntimeError("there is no such thing")

    here.measure = fails
    row = steps.compare(there, here, "layer", 1)
    assert "there is no such thing" in steps.line(row)


@pytest.mark.parametrize("name", [name for name in CASES if name.startswith("layer")])
def test_every_layer_takes_its_step(name):
    assert all(seconds > 0 for seconds in steps_work.timed(CASES[name](), 1))


def test_an_epoch_is_a_part_of_its_run():
    step = CASES["train, value, filter first, words"]()
    assert 0 < step() < 5
