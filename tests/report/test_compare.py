"""Several runs side by side: numbers, pairs, and what is said where runs cannot be compared."""

import json
import math

import numpy as np
import pytest
import torch

from nlsf.data.metrics import interval
from nlsf.errors import ConfigError, FormatError
from nlsf.report.charts import BarChart, DataTable, LineChart
from nlsf.report.compare import comparison_page
from nlsf.report.run_page import common_parent
from nlsf.report.runs import RunRecord, paired
from nlsf.train import RunFolder, train
from train.small import NODE_MODEL, given, node_data, regression_data

SPLITS = given(60, (20, 20), (20, 20), (20, 20))


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    """Runs on the same splits (a, b), on others (c), with other seeds (d), of numbers (e)."""
    place = tmp_path_factory.mktemp("runs")

    def run(name, data, seeds, **training):
        table = {"model": NODE_MODEL, "seeds": seeds, "training": {"epochs": 4, **training}}
        return train(data, table, output=place / name, cache=False)

    return {
        "a": run("a", node_data(given=SPLITS), 3),
        "b": run("b", node_data(given=SPLITS), 3, lr=0.1, epochs=6),
        "c": run("c", node_data(given=given(60, (20, 20), (20, 20), seed=1)), 2),
        "d": run("d", node_data(), [7]),
        "e": run("e", regression_data(), 2),
    }


def page_of(runs, names):
    return comparison_page([runs[name].folder for name in names])


def charts(page, kind):
    return {c.title: c for _, _, some in page._sections for c in some if isinstance(c, kind)}


def record(runs, name):
    return RunRecord.read(runs[name].folder)


def test_the_table_says_what_the_runs_found(runs):
    table = charts(page_of(runs, "ab"), DataTable)["All runs"]
    for row, name in zip(table.rows, "ab", strict=True):
        shown = dict(zip(table.header, row, strict=True))
        mean, half = runs[name].summary()
        assert shown["run"] == name
        assert shown["model"] == "att-node"
        assert shown["seeds"] == "3"
        assert shown["test"] == f"{100 * mean:.2f} ± {100 * half:.2f} %".replace(" ", "\u00a0")


def test_the_first_sentences_are_the_result(runs):
    means = {name: runs[name].summary()[0] for name in "ab"}
    text = page_of(runs, "ab")._sections[0][1]
    best = max(means, key=means.get)
    assert text.startswith(f"{best} has the best test accuracy, {100 * means[best]:.2f} ±")
    unsure = paired("b", record(runs, "b"), record(runs, "a")).words()[2] not in ("better", "worse")
    assert ("may be chance for b." in text) == unsure
    assert page_of(runs, "ac")._sections[0][1] == "2 runs, all of them finished."


def test_bars_have_the_interval_as_whisker(runs):
    bars = charts(page_of(runs, "ab"), BarChart)["Test accuracy"]
    mean, half = runs["b"].summary()
    assert list(bars.categories) == ["a", "b"]
    assert bars.series[0][1][1] == pytest.approx(mean)
    assert bars.ranges[0][1] == pytest.approx((mean - half, mean + half))


def test_one_seed_has_no_whisker(runs):
    bars = charts(page_of(runs, "ad"), BarChart)["Test accuracy"]
    assert bars.ranges[0][1] is None


def test_pairs_are_differences_on_the_same_split(runs):
    pair = paired("b", record(runs, "b"), record(runs, "a"))
    differences = [
        b["test_accuracy"] - a["test_accuracy"]
        for a, b in zip(runs["a"].rows, runs["b"].rows, strict=True)
    ]
    assert pair.seeds == [0, 1, 2]
    assert pair.differences == pytest.approx(differences)
    bars = charts(page_of(runs, "ab"), BarChart)["Difference seed by seed"]
    assert list(bars.categories) == ["0", "1", "2"]
    assert bars.series == [("b", pytest.approx(differences))]
    mean, half = interval(differences)
    points = f"{100 * mean:+.2f} points"
    assert pair.words()[:2] == (
        points,
        f"{100 * (mean - half):+.2f} to {100 * (mean + half):+.2f} points",
    )


@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("c", "their splits differ"),
        ("d", "they have no seed in common"),
        ("e", "one reports rmse, the other accuracy"),
    ],
)
def test_what_cannot_be_compared_is_said(runs, name, says):
    table = charts(page_of(runs, ["a", name]), DataTable)["Difference to a"]
    assert table.rows == [[name, "0", "-", "-", f"not comparable: {says}"]]
    assert "Difference seed by seed" not in charts(page_of(runs, ["a", name]), BarChart)


def test_equal_splits_of_other_data_are_not_paired(runs, tmp_path):
    folder = RunFolder.create_at(tmp_path / "rougher")
    text = runs["a"].folder.read_config()
    folder.write_config(text.replace("[data]\n", "[data]\nhomophily = 0.1\n"))
    folder.write_results(runs["a"].rows)
    table = charts(comparison_page([runs["a"].folder, folder]), DataTable)["Difference to a"]
    assert table.rows[0][-1] == "not comparable: the data differ"


@pytest.mark.parametrize(
    ("metric", "differences", "says"),
    [
        ("accuracy", [0.1, 0.11, 0.12], "better"),
        ("rmse", [0.1, 0.11, 0.12], "worse"),
        ("accuracy", [0.1, -0.11, 0.02], "no clear difference"),
        ("accuracy", [0.0, 0.0], "the same on every seed"),
        ("accuracy", [0.1], "one common seed does not tell chance from skill"),
    ],
)
def test_what_a_difference_means(runs, metric, differences, says):
    pair = paired("b", record(runs, "b"), record(runs, "a"))
    pair = type(pair)("b", metric, list(range(len(differences))), differences)
    assert pair.words()[2] == says


def test_curves_are_means_in_which_stopped_seeds_stay(tmp_path, runs):
    rows = [(0, 1, 4.0), (1, 1, 2.0), (0, 2, 3.0), (0, 3, 2.0), (0, 4, None)]
    folder = RunFolder.create_at(tmp_path / "cut")
    folder.write_config(runs["a"].folder.read_config())
    same = {"train_loss": math.nan, "val_accuracy": 0.5, "best": False}
    folder.append_metrics([{"seed": s, "epoch": e, "val_loss": v, **same} for s, e, v in rows])
    page = comparison_page([folder, runs["a"].folder])
    curve = charts(page, LineChart)["Validation loss"].series[0]
    assert list(curve.x) == [1, 2, 3, 4]
    assert list(curve.y) == [3.0, 2.5, 2.0, 2.0]
    assert all(y is None for y in charts(page, LineChart)["Training loss"].series[0].y)


def test_metrics_do_not_share_an_axis(runs):
    page = page_of(runs, "aeb")
    titles = list(charts(page, BarChart))
    assert titles[:2] == ["Test accuracy", "Test root mean square error"]
    losses = [title for title in charts(page, LineChart) if title.startswith("Training loss")]
    assert losses == [
        "Training loss of runs that report accuracy",
        "Training loss of runs that report root mean square error",
    ]
    shown = charts(page, BarChart)["Test accuracy"].categories
    assert list(shown) == ["a", "b"]


def test_only_what_differs_is_listed(runs):
    table = charts(page_of(runs, "ab"), DataTable)["Each setting, run by run"]
    assert {row[0]: row[1:] for row in table.rows} == {
        "training.lr": ["0.01", "0.1"],
        "training.epochs": ["4", "6"],
    }
    texts = [text for _, text, _ in page_of(runs, "ab")._sections]
    assert "All finished runs used the same versions." in texts


def test_other_versions_are_listed(runs, tmp_path):
    folder = RunFolder.create_at(tmp_path / "old")
    folder.write_config(runs["a"].folder.read_config())
    rows = json.loads(json.dumps(runs["a"].rows))
    for row in rows:
        row["versions"]["torch"] = "1.0"
    folder.write_results(rows)
    table = charts(comparison_page([folder, runs["a"].folder]), DataTable)[
        "Each version, run by run"
    ]
    assert [row[:2] for row in table.rows] == [["torch", "1.0"]]


def test_an_interrupted_run_is_listed_as_unfinished(runs, tmp_path):
    folder = RunFolder.create_at(tmp_path / "stopped")
    folder.write_config(runs["a"].folder.read_config())
    page = comparison_page([runs["a"].folder, folder])
    assert page._sections[0][1].startswith("Unfinished, and so without results: stopped.")
    table = charts(page, DataTable)["All runs"]
    assert "unfinished" in table.rows[1]
    assert "Differences need two finished runs." in [text for _, text, _ in page._sections]


def test_runs_of_one_name_are_told_apart(runs, tmp_path):
    folder = RunFolder.create_at(tmp_path / "a")
    folder.write_config(runs["a"].folder.read_config())
    table = charts(comparison_page([runs["a"].folder, folder]), DataTable)["All runs"]
    assert [row[0] for row in table.rows] == [str(runs["a"].folder.path), str(folder.path)]


def test_a_name_is_shown_not_run(runs, tmp_path):
    folder = RunFolder.create_at(tmp_path / "<script>alert(1)<")
    folder.write_config(runs["a"].folder.read_config())
    html = comparison_page([runs["a"].folder, folder]).html()
    assert "<script>alert(1)" not in html
    assert "&lt;script&gt;alert(1)" in html


def test_models_without_a_result_are_listed_with_their_reason(runs):
    failed = {"gat": "The loss is nan.", "<b>": "Nothing <i>fits</i>."}
    page = comparison_page([runs["a"].folder, runs["b"].folder], failed)
    headings = [heading for heading, _, _ in page._sections]
    assert headings[:2] == ["Overview", "Failed"]
    table = charts(page, DataTable)["Models without a result"]
    assert table.rows == [["gat", "The loss is nan."], ["<b>", "Nothing <i>fits</i>."]]
    assert [row[0] for row in charts(page, DataTable)["All runs"].rows] == ["a", "b"]
    assert "<i>fits" not in page.html()
    assert "Failed" not in [heading for heading, _, _ in page_of(runs, "ab")._sections]


def test_one_run_and_a_failure_are_a_page_and_failures_alone_are_one(runs):
    one = comparison_page([runs["a"].folder], {"gat": "It fell."})
    assert "Differences need two finished runs." in [text for _, text, _ in one._sections]
    none = comparison_page([], {"gat": "It fell.", "gcn": "It fell too."})
    assert [heading for heading, _, _ in none._sections] == ["Failed"]
    assert "It fell too." in none.html()


def test_two_runs_are_needed(runs):
    with pytest.raises(ConfigError, match="at least two runs"):
        page_of(runs, "aa")


def test_results_without_a_number_are_refused(runs, tmp_path):
    folder = RunFolder.create_at(tmp_path / "odd")
    folder.write_config(runs["a"].folder.read_config())
    row = {k: v for k, v in runs["a"].rows[0].items() if k != "test_accuracy"}
    folder.write_results([row])
    with pytest.raises(FormatError, match=r"line 1: 'test_accuracy' is missing"):
        comparison_page([runs["a"].folder, folder])


def test_a_result_that_is_not_a_number(runs, tmp_path):
    folder = RunFolder.create_at(tmp_path / "null")
    folder.write_config(runs["a"].folder.read_config())
    folder.write_results([{**row, "test_accuracy": math.nan} for row in runs["a"].rows])
    page = comparison_page([runs["a"].folder, folder])
    assert "unknown" in charts(page, DataTable)["All runs"].rows[1]
    assert charts(page, DataTable)["Difference to a"].rows[0][1] == "0"


def test_the_folder_that_holds_them_all(tmp_path):
    assert common_parent([tmp_path / "x", tmp_path / "y"]) == tmp_path
    assert common_parent([tmp_path / "x", tmp_path / "z" / "y"]) == tmp_path
    assert common_parent([tmp_path / "z" / "x", tmp_path / "y"]) == tmp_path


def test_the_page_is_deterministic_and_small(runs):
    html = page_of(runs, "abcde").html()
    torch.manual_seed(1)
    np.random.default_rng(1)
    assert html == page_of(runs, "abcde").html()
    assert len(html) < 300_000
