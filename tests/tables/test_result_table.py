"""The numbers of a table against their formulas, by simulation where there is one to check."""

import math

import numpy as np
import pytest
from scipy import stats

from nlsf.display.text_table import Form
from nlsf.errors import ConfigError, FormatError
from nlsf.tables.fill.results import Store
from nlsf.tables.render.document import result_sheet
from tables.hand_written import METHODS, experiment, filled, table_of, write


def test_means_spreads_and_differences(tmp_path):
    entry = filled(tmp_path).entries["NLSF", "Cora"]
    assert entry.n == 3
    assert entry.mean == pytest.approx(83)
    low, high = stats.t.interval(0.95, 2, 83, stats.sem([82, 84, 83]))
    assert entry.spread == pytest.approx((high - low) / 2)
    assert (entry.paper, entry.paper_spread) == (82.94, 1.0)
    assert entry.difference == pytest.approx(0.06)
    assert entry.values == pytest.approx({0: 82, 1: 84, 2: 83})
    assert entry.splits == {0: "s0", 1: "s1", 2: "s2"}
    assert entry.trials == 4


def test_the_spread_that_the_paper_prints(tmp_path):
    entry = filled(tmp_path, spread="deviation").entries["NLSF", "Cora"]
    assert entry.spread == pytest.approx(1)
    assert entry.floor == pytest.approx(100 * math.sqrt(0.83 * 0.17 / 1000))


def test_what_was_not_run_is_none_and_the_paper_stays(tmp_path):
    table = filled(tmp_path)
    assert table.entries["NLSF", "Citeseer"] is None
    assert table.published["NLSF", "Citeseer"].value == 72.13
    assert table.entries["MLP", "Cora"] is None
    assert ("MLP", "Cora") not in table.published
    assert set(table.entries) == {(m.label, c) for m in METHODS for c in ("Cora", "Citeseer")}


@pytest.mark.parametrize("spread", ["interval", "deviation"])
def test_the_floor_is_what_a_coin_would_spread(tmp_path, spread):
    """Classifiers that are right with probability 0.7, on test sets of 100: only chance spreads."""
    spec = experiment(seeds=2000, spread=spread)
    values = np.random.default_rng(0).binomial(100, 0.7, 2000) / 100
    write(tmp_path, spec, "GCN", "Cora", values.tolist(), size=100)
    entry = table_of(tmp_path, spec).entries["GCN", "Cora"]
    assert entry.floor == pytest.approx(entry.spread, rel=0.06)
    assert entry.floor > 0


def test_the_floor_of_test_sets_of_several_sizes(tmp_path):
    spec = experiment(spread="deviation")
    write(tmp_path, spec, "GCN", "Cora", [0.5, 0.5, 0.5], size=[100, 100, 400])
    entry = table_of(tmp_path, spec).entries["GCN", "Cora"]
    assert entry.floor == pytest.approx(100 * math.sqrt(0.25 * (0.01 + 0.01 + 0.0025) / 3))


@pytest.mark.parametrize(("spread", "floor"), [("interval", None), ("deviation", 1.5811388)])
def test_one_split_has_no_spread(tmp_path, spread, floor):
    spec = experiment(spread=spread)
    write(tmp_path, spec, "GCN", "Cora", [0.5])
    table = table_of(tmp_path, spec)
    entry = table.entries["GCN", "Cora"]
    assert (entry.n, entry.mean) == (1, 50)
    assert math.isnan(entry.spread)
    assert table.floor("Cora") == (None if floor is None else pytest.approx(floor))


def test_the_best_of_a_column_and_its_floor(tmp_path):
    table = filled(tmp_path)
    assert table.best("Cora") == pytest.approx(83)
    assert table.floor("Cora") == table.entries["NLSF", "Cora"].floor
    assert table.best("Citeseer") == pytest.approx(70.5)


def test_a_column_without_runs(tmp_path):
    table = table_of(tmp_path, experiment())
    assert table.best("Cora") is None
    assert table.floor("Cora") is None
    assert table.paired("GCN", "NLSF", "Cora") is None


def test_errors_are_not_percentages_and_less_is_better(tmp_path):
    spec = experiment(metric="rmse")
    write(tmp_path, spec, "GCN", "Cora", [0.5, 0.7, 0.6])
    write(tmp_path, spec, "NLSF", "Cora", [0.4, 0.4, 0.4])
    table = table_of(tmp_path, spec)
    assert not table.is_share
    assert table.best("Cora") == pytest.approx(0.4)
    entry = table.entries["GCN", "Cora"]
    assert entry.mean == pytest.approx(0.6)
    assert math.isnan(entry.floor)
    assert table.floor("Cora") is None
    assert (entry.paper, entry.difference) == (None, None)  # the paper's are accuracies


def test_pairs_are_differences_on_the_same_splits(tmp_path):
    table = filled(tmp_path)
    pair = table.paired("GCN", "NLSF", "Cora")
    differences = [-1, -2.5, -1]
    assert pair.n == 3
    assert pair.mean == pytest.approx(np.mean(differences))
    low, high = stats.t.interval(0.95, 2, 0, stats.sem(differences))
    assert pair.half == pytest.approx((high - low) / 2)
    back = table.paired("NLSF", "GCN", "Cora")
    assert (back.mean, back.half) == pytest.approx((-pair.mean, pair.half))
    assert table.paired("NLSF", "NLSF", "Cora").mean == 0


def test_other_splits_are_not_paired(tmp_path):
    spec = experiment()
    write(tmp_path, spec, "NLSF", "Cora", [0.8, 0.8, 0.8])
    write(tmp_path, spec, "GCN", "Cora", [0.7, 0.7, 0.7], split="other")
    write(tmp_path, spec, "MLP", "Cora", [0.6])
    table = table_of(tmp_path, spec)
    assert table.paired("GCN", "NLSF", "Cora") is None
    one = table.paired("MLP", "NLSF", "Cora")
    assert (one.n, one.mean) == (1, pytest.approx(-20))
    assert math.isnan(one.half)


def test_a_gap_that_every_split_has_is_clear_although_means_overlap(tmp_path):
    spec = experiment()
    write(tmp_path, spec, "NLSF", "Cora", [0.70, 0.80, 0.90])
    write(tmp_path, spec, "GCN", "Cora", [0.69, 0.791, 0.889])
    table = table_of(tmp_path, spec)
    pair = table.paired("GCN", "NLSF", "Cora")
    assert abs(pair.mean) > pair.half
    assert table.entries["NLSF", "Cora"].spread > 10


def test_seeds_that_are_not_asked_for_do_not_count(tmp_path):
    spec = experiment()
    write(tmp_path, spec, "GCN", "Cora", [0.5, 0.5, 0.5, 1.0, 1.0])
    entry = table_of(tmp_path, spec).entries["GCN", "Cora"]
    assert (entry.n, entry.mean) == (3, 50)


def test_a_metric_that_is_not_finite_does_not_count(tmp_path):
    spec = experiment()
    write(tmp_path, spec, "GCN", "Cora", [math.nan, 0.5, 0.7])
    write(tmp_path, spec, "NLSF", "Cora", [0.5, 0.5, 0.5])
    write(tmp_path, spec, "MLP", "Cora", [math.nan])
    table = table_of(tmp_path, spec)
    assert table.entries["GCN", "Cora"].values == pytest.approx({1: 50, 2: 70})
    assert table.paired("GCN", "NLSF", "Cora").n == 2
    assert table.entries["MLP", "Cora"] is None


def test_the_reference_is_the_first_method_of_ours(tmp_path):
    assert filled(tmp_path).reference == "NLSF"
    assert table_of(tmp_path, experiment(methods=METHODS[:1])).reference is None


def test_another_reference_can_be_chosen_by_label_or_model(tmp_path):
    filled(tmp_path)
    for name in ("GCN", "gcn"):
        table = table_of(tmp_path, experiment(), against=name)
        assert table.reference == "GCN"
        assert "| Minus GCN |" in result_sheet(table, Form.markdown).markdown()
    with pytest.raises(ConfigError, match=r"'gnc'\. Did you mean 'gcn'"):
        table_of(tmp_path, experiment(), against="gnc")


@pytest.mark.parametrize("key", ["sizes", "split"])
def test_rows_that_lack_something_are_refused(tmp_path, key):
    spec = experiment()
    _, _, cell = next(spec.cells())
    row = {"seed": 0, "test_accuracy": 0.5, "sizes": [1, 1, 1], "split": "s"}
    del row[key]
    Store(tmp_path).write(cell, 'protocol = "random"\n', [], [row])
    with pytest.raises(FormatError, match=rf"cora-random-gcn-.*GCN, Cora.*'{key}'"):
        table_of(tmp_path, spec)


@pytest.mark.parametrize("sizes", [[1, 1], [1, 1, 0], [1, 1, "x"], 7])
def test_sizes_that_are_none_are_refused(tmp_path, sizes):
    spec = experiment()
    _, _, cell = next(spec.cells())
    row = {"seed": 0, "test_accuracy": 0.5, "sizes": sizes, "split": "s"}
    Store(tmp_path).write(cell, 'protocol = "random"\n', [], [row])
    with pytest.raises(FormatError, match="not one of a run"):
        table_of(tmp_path, spec)
