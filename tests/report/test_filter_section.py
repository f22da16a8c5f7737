"""What the filters have learned, and whether they keep the graph's symmetries."""

import pytest
import torch

from nlsf.nn import NodeNLSF
from nlsf.nn.observe import Observation
from nlsf.report.charts import HeatMap
from nlsf.report.filter_section import (
    attention_chart,
    by_class,
    energy_shares,
    filter_charts,
    response_factor,
    shift_errors,
    symmetry_charts,
)
from nlsf.spectral import DyadicBands
from report.small_runs import trained_run
from train.small import graph_data, node_data, random, signal_data


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    return trained_run(node_data(), tmp_path_factory.mktemp("runs") / "run")


def chart(charts, title):
    return next(c for c in charts if c.title == title)


def test_shares_of_a_channel_sum_to_one():
    norms = random(5, 4, 3).abs()
    torch.testing.assert_close(energy_shares(norms).sum(-2), torch.ones(5, 3).double())
    assert torch.equal(energy_shares(torch.zeros(4, 1)), torch.zeros(4, 1).double())


def test_classes_are_averaged_apart():
    norms = torch.zeros(3, 2, 1)
    norms[0, 0] = norms[1, 1] = norms[2, 1] = 7.0
    table = by_class(norms, torch.tensor([0, 1, 0]), 3)
    assert table[:, 0].tolist() == [0.5, 0.5]
    assert table[:, 1].tolist() == [0.0, 1.0]
    assert table[:, 2].isnan().all()


def test_the_start_is_drawn_from_the_gains_of_the_start(run):
    for branch, seen in zip(run.branches, run.seen.filters, strict=True):
        gains = chart(filter_charts(run), f"Learned gains: {branch.title}")
        expected = seen.layer.start.gains(branch.lens().frequencies)
        assert gains.series[0].name == "before training"
        assert gains.series[0].y == pytest.approx(expected[: len(gains.series[0].y)].tolist())
        mean, low, high = (torch.tensor(series.y) for series in gains.series[1:])
        assert bool(((low <= mean) & (mean <= high)).all())


def test_training_has_moved_the_response(run):
    response = chart(filter_charts(run), f"Learned response: {run.branches[0].title}")
    assert response.kind == "gain"
    assert response.columns == ["a", "b", "c"]
    assert torch.tensor(response.values).sub(1).abs().max() > 1e-3


def test_an_untrained_response_is_one_everywhere():
    layer = NodeNLSF(3, 3, DyadicBands(0.5, 3, 2), start="ppr")
    start = torch.tensor([1.0, 0.5, 0.2])
    norms = random(3, 3).abs()
    seen = Observation(layer, norms, start, layer.response(norms, start).detach())
    torch.testing.assert_close(response_factor(seen), torch.ones(3, 3).double())


def test_columns_of_the_coefficients_sum_to_one(run):
    heat = chart(filter_charts(run), f"Analysis coefficients: {run.branches[1].title}")
    assert isinstance(heat, HeatMap)
    sums = torch.tensor(heat.values).sum(0)
    torch.testing.assert_close(sums, torch.ones(3), rtol=1e-5, atol=1e-5)


def test_the_weights_of_the_branches_sum_to_one(run):
    bars = attention_chart(run)
    first, second = (values[0] for _, values in bars.series)
    assert first + second == pytest.approx(1)
    assert first != 0.5
    assert first == pytest.approx(float(run.seen.alpha[0]))
    assert bars.ranges == ()


def test_weights_of_graphs_have_a_range(tmp_path):
    run = trained_run(graph_data(), tmp_path / "run", model={"score": "spectral"})
    bars = attention_chart(run)
    for (_, (mean,)), ((low, high),) in zip(bars.series, bars.ranges, strict=True):
        assert low <= mean <= high


def test_a_complement_that_is_empty_is_left_out(tmp_path):
    bands = {"kind": "uniform", "S": 4}
    run = trained_run(node_data(), tmp_path / "run", model={"value_bands": bands})
    heat = chart(filter_charts(run), f"Analysis coefficients: {run.branches[1].title}")
    assert heat.rows == ["band 1", "band 2", "band 3", "band 4"]
    index = chart(filter_charts(run), f"Analysis coefficients: {run.branches[0].title}")
    assert index.rows[-1] == "the rest"


def test_of_many_layers_the_first_and_the_last_are_shown(tmp_path):
    run = trained_run(node_data(), tmp_path / "run", model={"num_layers": 3, "place": "hidden"})
    titles = [c.title for c in filter_charts(run) if c.title.startswith("Learned gains")]
    assert [title.rsplit(", ", 1)[1] for title in titles] == ["layer 1"] * 2 + ["layer 3"] * 2


def test_wide_filters_show_their_first_channels(tmp_path):
    model = {"hidden_channels": 40, "place": "hidden"}
    run = trained_run(node_data(), tmp_path / "run", model=model)
    heat = chart(filter_charts(run), f"Analysis coefficients: {run.branches[0].title}")
    assert len(heat.columns) == 32
    assert "The first 32 of 40 channels" in heat.caption


def test_a_random_start_has_no_line(tmp_path):
    run = trained_run(node_data(), tmp_path / "run", model={"start": {"name": "random"}})
    gains = chart(filter_charts(run), f"Learned gains: {run.branches[0].title}")
    assert [series.name.split(",")[0] for series in gains.series] == ["after training"] * 3
    assert "random network" in gains.caption


SMOOTH = {"kind": "polynomial", "base": {"kind": "uniform", "S": 3}, "order": 8}


@pytest.mark.parametrize(
    ("data", "model"),
    [
        (node_data(), {}),
        (node_data(), {"num_layers": 2, "place": "hidden"}),
        (node_data(), {"value_bands": SMOOTH}),
        (graph_data(), {"name": "graph"}),
        (graph_data(), {"name": "pooling"}),
        (signal_data(), {"name": "graph"}),
        (signal_data(), {"name": "pooling"}),
    ],
    ids=["nodes", "deep", "smooth bands", "graphs", "pooling", "signals", "pooled signals"],
)
def test_trained_filters_keep_what_a_relu_breaks(tmp_path, data, model):
    (bars,) = symmetry_charts(trained_run(data, tmp_path / "run", model=model))
    *own, (name, relu) = bars.series
    assert len(own) == 2
    assert len(bars.categories) == 5
    for _, errors in own:
        assert max(error for error in errors if error is not None) < 1e-4
    assert "ReLU" in name
    assert max(relu) > 0.01
    assert f"has up to {max(relu):.2g}" in bars.caption


def test_a_filter_with_another_norm_is_said_to_be_inexact(tmp_path):
    run = trained_run(graph_data(), tmp_path / "run", model={"name": "pooling", "norm": 1.0})
    (bars,) = symmetry_charts(run)
    assert "only permutations" in bars.caption
    assert max(bars.series[0][1]) > 1e-4


def test_large_bands_are_turned_less_often(tmp_path, monkeypatch):
    run = trained_run(node_data(), tmp_path / "run")
    monkeypatch.setattr("nlsf.report.filter_section._LARGE_BAND", 2)
    own, relu = shift_errors(run.branches[1], [run.seen.signal])
    assert len(own) == len(relu) == 2
