"""The page of a search: what it says must follow from the trials, however many there are."""

import random
from dataclasses import dataclass, field, replace
from statistics import median
from typing import Any

import pytest

from nlsf.report.charts import BarChart, DataTable, LineChart, Tiles
from nlsf.report.tuning_page import by_choice, choice_text, tuning_page
from report.browser import HOSTILE, assert_sound, marks, shown

BANDS = {"kind": "uniform", "S": 20}
SPACE = {
    "training.lr": (0.1, 0.05, 0.01),
    "training.weight_decay": (0.0, 0.0005),
    "model.hidden_channels": (32, 64, 128),
    "model.value_bands": (BANDS, {"kind": "dyadic", "r": 0.5, "S": 3}, None),
    "features.row_normalize": (True, False),
}


@dataclass(frozen=True)
class Trial:
    number: int
    point: dict[str, Any] = field(default_factory=dict)
    value: float | None = None
    state: str = "complete"
    seconds: float | None = 3.0
    epochs: int | None = 200
    error: str | None = None
    worker: str | None = "host:1"


def search(count, seed=0):
    """Trials in which the learning rate decides; every seventh is pruned, every ninth fails."""
    draw = random.Random(seed)
    trials = []
    for number in range(count):
        point = {name: draw.choice(choices) for name, choices in SPACE.items()}
        value = 0.8 + 0.3 * (0.1 - point["training.lr"]) + draw.uniform(0, 0.01)
        trial = Trial(number, point, value, worker=f"host:{number % 2}")
        if number % 7 == 6:
            trial = replace(trial, state="pruned", value=value - 0.05, epochs=40)
        if number % 9 == 8:
            reason = "The training loss of seed 0 is nan in epoch 3: lower training.lr."
            trial = replace(trial, state="failed", value=None, epochs=None, error=reason)
        trials.append(trial)
    return trials


def page_of(trials, importances=None, metric="accuracy", title="Cora, att-node"):
    return tuning_page(title, metric, trials, importances or {})


def charts(page, kind):
    return {c.title: c for _, _, some in page._sections for c in some if isinstance(c, kind)}


def text(page, heading):
    return next((text for name, text, _ in page._sections if name == heading), None)


def tiles(page):
    (found,) = [c for _, _, some in page._sections for c in some if isinstance(c, Tiles)]
    return {label: (value, small) for label, value, small in found.items}


def complete(trials):
    return [trial for trial in trials if trial.state == "complete"]


def test_the_tiles_say_what_was_found():
    trials = search(40)
    best = max(complete(trials), key=lambda trial: trial.value)
    found = tiles(page_of(trials[::-1]))
    value, where = found["Best validation accuracy"]
    assert value == f"{100 * best.value:.2f} %"
    assert where.startswith(f"found in trial {best.number};")
    assert found["Defaults"][0] == f"{100 * trials[0].value:.2f} %"
    assert found["Trials"] == ("40", "31 complete, 5 pruned, 4 failed")
    assert found["Time"] == (
        "2 min 0 s",
        "of all trials together, 2 workers; 3.00 s for one, in the median",
    )


def test_the_gain_over_the_defaults_is_said():
    page = page_of([Trial(0, value=0.80), Trial(1, {"a": 1}, 0.8125)])
    assert "That is 1.25 points better than the defaults." in text(page, "Overview")
    page = page_of([Trial(0, value=0.80), Trial(1, {"a": 1}, 0.79)])
    assert "No trial was better than the defaults." in text(page, "Overview")


def test_less_is_better_for_errors():
    trials = [Trial(0, {"a": 1}, 0.5), Trial(1, {"a": 2}, 0.25), Trial(2, {"a": 2}, 0.75)]
    page = page_of(trials, metric="rmse")
    assert tiles(page)["Best validation root mean square error"][0] == "0.25"
    assert "That is 0.25 better than the defaults." in text(page, "Overview")
    (table,) = (t for name, t in charts(page, DataTable).items() if name.startswith("The 3 best"))
    assert [row[0] for row in table.rows] == ["1", "0", "2"]
    (history,) = charts(page, LineChart).values()
    assert list(history.series[1].y) == [0.5, 0.25, 0.25]
    bars = charts(page, BarChart)["a"]
    assert bars.series[0] == ("best", [0.0, -0.25])


def test_the_defaults_are_known_also_where_their_first_trial_was_lost():
    lost = Trial(0, {"a": 1}, state="failed", error="The worker died.")
    again = [lost, Trial(1, {"a": 2}, 0.7), Trial(2, {"a": 1}, 0.6)]
    assert tiles(page_of(again))["Defaults"][0] == "60.00 %"
    page = page_of(again[:2])
    assert tiles(page)["Defaults"][0] == "unknown"
    assert "The defaults have no value to compare it with." in text(page, "Overview")


def test_the_best_so_far_never_falls_and_counts_complete_trials_only():
    trials = search(60)
    (history,) = charts(page_of(trials), LineChart).values()
    points, best, pruned = history.series
    done = complete(trials)
    assert list(points.x) == [trial.number for trial in done]
    assert list(points.y) == pytest.approx([100 * trial.value for trial in done])
    assert list(best.y) == pytest.approx(
        [100 * max(t.value for t in done[: i + 1]) for i in range(len(done))]
    )
    assert list(pruned.x) == [t.number for t in trials if t.state == "pruned"]


def test_a_pruned_trial_is_never_the_best():
    page = page_of([Trial(0, value=0.5), Trial(1, {"a": 1}, 0.9, "pruned")])
    assert "found in trial 0;" in tiles(page)["Best validation accuracy"][1]


def test_importance_is_shown_from_the_largest_on():
    page = page_of(search(20), {"model.a": 0.1, "training.lr": 0.6, "b": 0.2, "c.a": 0.1})
    bars = charts(page, BarChart)["Share of each setting"]
    assert list(bars.categories) == ["lr", "b", "model.a", "c.a"]
    assert bars.series[0][1] == [0.6, 0.2, 0.1, 0.1]


@pytest.mark.parametrize(
    ("count", "says"),
    [
        (1, "from 4 complete trials on; there is 1."),
        (3, "from 4 complete trials on; there are 3."),
        (5, "do not differ enough"),
    ],
)
def test_it_is_said_why_there_is_no_importance(count, says):
    page = page_of([Trial(i, {"a": 1}, 0.5) for i in range(count)])
    assert says in text(page, "Importance")
    assert "Share of each setting" not in charts(page, BarChart)
    assert text(page, "Choices") == "The complete trials do not differ in any setting."


def test_every_choice_has_its_best_and_median():
    trials = search(80)
    page = page_of(trials, {"model.hidden_channels": 0.9})
    rows = charts(page, DataTable)["Every choice"].rows
    assert {row[0] for row in rows} == set(SPACE)
    assert rows[0][0] == "model.hidden_channels"
    for name, choices in SPACE.items():
        for choice in choices:
            mine = [t for t in trials if t.point[name] == choice]
            values = [t.value for t in complete(mine)]
            stopped = [t for t in mine if t.state != "complete"]
            assert [
                name,
                choice_text(choice),
                str(len(values)),
                str(len(stopped)),
                f"{100 * max(values):.2f}\u00a0%",
                f"{100 * median(values):.2f}\u00a0%",
            ] in rows


def test_bars_are_differences_to_the_median_of_all():
    trials = [Trial(i, {"lr": lr}, v) for i, (lr, v) in enumerate([(1, 0.5), (2, 0.6), (2, 0.9)])]
    bars = charts(page_of(trials), BarChart)["lr"]
    assert list(bars.categories) == ["1 (1)", "2 (2)"]
    assert [name for name, _ in bars.series] == ["best", "median"]
    assert list(bars.series[0][1]) == pytest.approx([-10, 30])
    assert list(bars.series[1][1]) == pytest.approx([-10, 15])


def test_numbers_are_in_their_order_and_texts_as_they_came():
    def found(choices):
        return list(by_choice("a", [(Trial(i, {"a": c}), 0.5) for i, c in enumerate(choices)]))

    assert found([10, 9.5, 100]) == ["9.5", "10", "100"]
    assert found(["z", "b"]) == ["z", "b"]
    assert found([True, None, False]) == ["true", "none", "false"]
    assert found([BANDS, None]) == ["uniform, S=20", "none"]
    assert found([{"name": "ppr", "t": 9.0}]) == ["ppr, t=9.0"]


def test_the_ten_best_in_order_with_what_differs():
    trials = [replace(t, point={**t.point, "fixed": "x"}) for t in search(60)]
    page = page_of(trials)
    (table,) = (t for name, t in charts(page, DataTable).items() if name.startswith("The 10 best"))
    best = sorted(complete(trials), key=lambda trial: -trial.value)[:10]
    assert [row[0] for row in table.rows] == [str(trial.number) for trial in best]
    assert list(table.header) == ["trial", "value", "epochs", "time", *SPACE]


def test_a_setting_that_a_trial_does_not_have():
    page = page_of([Trial(0, {}, 0.5), Trial(1, {"a": 1}, 0.6), Trial(2, {"a": 2}, 0.7)])
    (table,) = (t for name, t in charts(page, DataTable).items() if name.startswith("The 3 best"))
    assert [row[-1] for row in table.rows] == ["2", "1", "-"]


def test_one_trial_shows_all_of_its_settings():
    table = charts(page_of(search(1)), DataTable)["The trial"]
    assert list(table.header[4:]) == list(SPACE)


def test_failed_trials_have_their_reason():
    trials = search(40)
    rows = charts(page_of(trials), DataTable)["Reasons"].rows
    assert [row[0] for row in rows] == [str(t.number) for t in trials if t.state == "failed"]
    assert all("lower training.lr" in row[1] for row in rows)
    assert "training.lr: " in rows[0][2]


def test_many_failures_are_cut():
    page = page_of([Trial(i, state="failed") for i in range(60)])
    table = charts(page, DataTable)["Reasons"]
    assert len(table.rows) == 50
    assert table.caption == "The first 50 of 60."
    assert table.rows[0][1] == "unknown"


def test_all_failed():
    page = page_of([Trial(i, state="failed", error="No.", seconds=None) for i in range(3)])
    assert [name for name, _, _ in page._sections] == ["Overview", "Failed trials"]
    assert text(page, "Overview").startswith("No trial is complete")
    assert tiles(page)["Best validation accuracy"][0] == "none"
    assert tiles(page)["Time"][0] == "unknown"


def test_one_trial_that_runs_and_none_at_all():
    assert tiles(page_of([Trial(0, state="running")]))["Trials"] == ("1", "1 running")
    assert tiles(page_of([]))["Trials"] == ("0", "")


def test_a_value_that_is_not_finite_is_not_the_best():
    page = page_of([Trial(0, {"a": 1}, float("nan")), Trial(1, {"a": 2}, 0.5)])
    assert "found in trial 1;" in tiles(page)["Best validation accuracy"][1]


def test_names_are_shown_not_run():
    trials = [Trial(i, {HOSTILE: f"{HOSTILE} {i}"}, i / 5, worker=HOSTILE) for i in range(5)]
    trials.append(Trial(5, {HOSTILE: 1}, None, "failed", error=HOSTILE))
    html = page_of(trials, {HOSTILE: 1.0}, title=HOSTILE).html()
    assert HOSTILE not in html
    assert "&lt;script&gt;alert(1)" in html


LONG = "model." + "a_setting_with_a_very_long_name" * 4
PAGES = {
    "whole": lambda: page_of(
        search(60), {name: 2.0 ** -(i + 1) for i, name in enumerate(SPACE)}, title="Cora, att-node"
    ),
    "one trial": lambda: page_of(search(1)),
    "all failed": lambda: page_of([Trial(0, {"a": 1}, None, "failed", error="No " * 200)]),
    "long names": lambda: page_of(
        [Trial(i, {LONG: "choice" * 20 + str(i)}, 0.5 + i / 50) for i in range(5)],
        {LONG: 1.0},
        title="x" * 200,
    ),
    "hostile names": lambda: page_of(
        [Trial(i, {HOSTILE: f"{HOSTILE} {i}"}, i / 5) for i in range(5)],
        {HOSTILE: 1.0},
        title=HOSTILE,
    ),
}


@pytest.mark.parametrize("name", PAGES)
def test_the_page_is_sound_at_every_width(browser, tmp_path, name):
    path = PAGES[name]().write(tmp_path / "page.html")
    assert path.stat().st_size < 300_000
    for width, scheme in ((390, "dark"), (1440, "light")):
        with shown(browser, path, width, color_scheme=scheme) as page:
            assert_sound(page)
            assert all(count > 0 for count in marks(page))
            assert bool(marks(page)) == (name != "all failed")
            assert page.locator("[role=img]:not([aria-label])").count() == 0
            if name == "hostile names":
                assert page.locator("h1").inner_text() == HOSTILE
