import pytest

from nlsf.report.symmetry_section import shift_errors, symmetry_charts
from report.small_runs import trained_run
from train.small import graph_data, node_data, signal_data

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
    monkeypatch.setattr("nlsf.report.symmetry_section._LARGE_BAND", 2)
    own, relu = shift_errors(run.branches[1], [run.seen.signal])
    assert len(own) == len(relu) == 2
