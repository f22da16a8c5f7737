import dataclasses

import pytest
import torch
from torch import nn
from torch_geometric.data import Data

from nlsf.data.dataset import Dataset
from nlsf.data.generators import contextual_block_model
from nlsf.errors import ConfigError, DataError
from nlsf.report.charts import BarChart, GraphDrawing, HeatMap, LineChart, Tiles
from nlsf.report.run_page import run_page
from nlsf.train import train
from nlsf.train.settings.models import MODELS, ModelKind
from report.small_runs import page_of, sections, texts, trained_folder, without
from train.small import given, graph_data, node_data, regression_data, signal_data


@pytest.fixture(scope="module")
def data():
    return node_data()


@pytest.fixture(scope="module")
def folder(data, tmp_path_factory):
    """A finished run of three seeds."""
    return trained_folder(data, tmp_path_factory.mktemp("runs") / "run", seeds=3)


@pytest.fixture(scope="module")
def page(folder, data):
    return run_page(folder, dataset=data, cache=False)


@dataclasses.dataclass(frozen=True)
class PlainConfig:
    in_channels: int
    out_channels: int
    width: int = 4


class Plain(nn.Module):
    """A model that does not look at the graph."""

    def __init__(self, config):
        super().__init__()
        self.first = nn.Linear(config.in_channels, config.width)
        self.last = nn.Linear(config.width, config.out_channels)

    def forward(self, x, edge_index=None, batch=None):
        return self.last(self.first(x).relu())


@pytest.fixture
def plain(monkeypatch):
    kind = ModelKind("plain", "no graph", ("node",), Plain, PlainConfig)
    monkeypatch.setitem(MODELS, "plain", kind)
    return {"model": {"name": "plain"}, "training": {"epochs": 4}}


def test_every_section_is_there(page):
    assert list(sections(page)) == [
        "Overview",
        "Learning curves",
        "Predictions",
        "The graph",
        "Spectrum: index filter on L",
        "Spectrum: value filter on N+loops",
        "What the filters learned",
        "Symmetry",
        "Time",
        "Settings and versions",
    ]
    assert all(sections(page).values())


def test_the_title_names_data_and_model(page):
    assert page.title == "small"
    assert page.subtitle == "model att-node, protocol 60-20-20, 3 seeds"


def test_the_same_run_gives_the_same_page(page, folder, data):
    again = run_page(folder, dataset=data, cache=False)
    assert again.html() == page.html()


def test_the_page_is_small(page):
    assert len(page.html()) < 500_000


def test_predictions_agree_with_the_measured_accuracy(page, folder):
    confusion = next(c for c in sections(page)["Predictions"] if isinstance(c, HeatMap))
    count = [int(row.rsplit("(", 1)[1].rstrip(")")) for row in confusion.rows]
    right = sum(n * row[i] for i, (n, row) in enumerate(zip(count, confusion.values, strict=True)))
    best = max(folder.results(), key=lambda row: row["val_accuracy"])
    assert right / sum(count) == pytest.approx(best["test_accuracy"])
    assert sum(count) == best["sizes"][2]


def test_another_seed_can_be_shown(folder, data):
    page = run_page(folder, seed=2, dataset=data, cache=False)
    assert "seed 2" in texts(page)["Predictions"]


def test_an_unknown_seed_is_refused(folder, data):
    with pytest.raises(ConfigError, match="has no seed 7: it has 0, 1, 2"):
        run_page(folder, seed=7, dataset=data)


def test_other_data_are_refused(folder):
    with pytest.raises(DataError, match="is not what"):
        run_page(folder, dataset=node_data(61), cache=False)


def test_without_its_data_the_page_says_what_is_left_out(folder):
    page = run_page(folder, cache=False)
    assert list(sections(page))[:3] == ["Overview", "Learning curves", "The model"]
    assert "left out. There is no data set 'small'" in texts(page)["The model"]
    assert "Predictions" not in sections(page)


@pytest.mark.parametrize("name", ["model.safetensors", "config"])
def test_a_changed_run_is_said_to_be_changed(folder, data, tmp_path, name):
    if name == "config":
        copy = without(folder, tmp_path / "copy")
        text = copy.read_config().replace("lr = 0.05", "lr = 0.06")
        (copy.path / "config.toml").write_text(text)
        error, message = ConfigError, "has changed since the run was started"
    else:
        copy = without(folder, tmp_path / "copy", name)
        error, message = DataError, "holds no trained model"
    with pytest.raises(error, match=message):
        run_page(copy, dataset=data, cache=False)


def test_an_interrupted_run_shows_what_there_is(folder, tmp_path):
    copy = without(folder, tmp_path / "copy", "results.jsonl", "model.safetensors")
    page = run_page(copy)
    assert list(sections(page)) == ["Unfinished", "Learning curves", "Settings and versions"]
    assert f"nlsf train --resume {copy.path}" in texts(page)["Unfinished"]
    assert "3 seeds of 3" in texts(page)["Unfinished"]
    assert all(isinstance(chart, LineChart) for chart in sections(page)["Learning curves"])
    assert len(sections(page)["Learning curves"]) == 2
    assert page.subtitle.endswith("unfinished")


def test_a_run_that_has_just_begun_has_a_page(folder, tmp_path):
    names = ("results.jsonl", "model.safetensors", "metrics.jsonl")
    page = run_page(without(folder, tmp_path / "copy", *names))
    assert "No epoch is finished yet" in texts(page)["Unfinished"]
    assert sections(page)["Learning curves"] == ()
    assert page.html()


def test_a_model_without_filters_has_no_spectral_sections(plain, data, tmp_path):
    folder = train(data, plain, output=tmp_path / "run", cache=False).folder
    page = run_page(folder, dataset=data, cache=False)
    assert list(sections(page)) == [
        "Overview",
        "Learning curves",
        "Predictions",
        "The graph",
        "Spectrum and filters",
        "Time",
        "Settings and versions",
    ]
    assert "plain has no spectral filters" in texts(page)["Spectrum and filters"]
    assert page.html()


@pytest.mark.parametrize("name", ["signal", "linear-signal"])
def test_filters_that_are_not_shown_are_not_denied(tmp_path, name):
    settings = {"model": {"name": name}, "training": {"epochs": 1}}
    folder = train(signal_data(), settings, output=tmp_path / "run", cache=False).folder
    text = texts(run_page(folder, dataset=signal_data(), cache=False))["Spectrum and filters"]
    assert text.startswith(f"The model {name} has spectral filters")
    assert "cannot show" in text


def test_a_regression_shows_numbers(tmp_path):
    page = page_of(regression_data(), tmp_path / "run")
    charts = sections(page)["Predictions"]
    assert [type(chart) for chart in charts] == [LineChart, BarChart] * 2
    assert "root mean square error" in sections(page)["Overview"][0].items[0][0]
    assert page.html()


@pytest.mark.parametrize("bands", ["dyadic", "polynomial"])
@pytest.mark.parametrize("model", ["graph", "pooling"])
def test_graphs_have_a_page(tmp_path, model, bands):
    page = page_of(
        graph_data(), tmp_path / "run", model={"name": model, "value_bands": {"kind": bands}}
    )
    drawing = sections(page)["The graph"][0]
    assert isinstance(drawing, GraphDrawing)
    titles = [chart.title for chart in sections(page)["What the filters learned"]]
    assert "Energy by class: index filter on L" in titles
    assert ("Learned gains: index filter on L" in titles) == (model == "pooling")
    assert page.html()


@pytest.mark.parametrize("model", ["graph", "pooling"])
def test_signals_have_a_page(tmp_path, model):
    page = page_of(signal_data(), tmp_path / "run", model={"name": model})
    assert "test signals" in texts(page)["Predictions"]
    assert len(sections(page)["The graph"]) == 1
    assert page.html()


def test_splits_that_came_with_the_data(tmp_path):
    splits = given(60, (20, 10), (30, 12))
    page = page_of(node_data(given=splits), tmp_path / "run", seeds=2)
    assert "protocol given" in page.subtitle
    tiles = sections(page)["Overview"][0]
    assert isinstance(tiles, Tiles)
    assert {label: value for label, value, _ in tiles.items}["Seeds"] == "2"


def test_names_from_data_are_text(tmp_path):
    evil = dataclasses.replace(
        node_data(), name="<script>", classes=("<script>alert(1)</script>", "</script>", "&c")
    )
    text = page_of(evil, tmp_path / "run").html()
    assert "<h1>&lt;script&gt;</h1>" in text
    assert "<script>alert(1)" not in text
    assert text.count("</script>") == text.count("<script")


@pytest.mark.parametrize(
    "model",
    [
        {"place": "hidden", "num_layers": 3, "residual": True},
        {"name": "value", "response": "full", "hidden_channels": 2, "place": "hidden"},
        {"name": "index", "a": 1.0, "start": {"name": "random"}},
        {"encoder": "linear", "input_dropout": 0.0, "score": "spectral"},
        {"value_bands": {"kind": "uniform", "S": 4}, "sharing": "mixing", "mode": "additive"},
        {"value_bands": {"kind": "polynomial", "base": {"kind": "uniform", "S": 3}, "order": 8}},
        {"value_bands": {"kind": "polynomial", "base": {"kind": "uniform", "S": 3}, "pairs": 4}},
    ],
    ids=["deep", "full", "random", "linear", "additive", "smooth", "smooth, exact end"],
)
def test_every_kind_of_filter_has_a_page(data, tmp_path, model):
    page = page_of(data, tmp_path / "run", model=model)
    assert sections(page)["What the filters learned"]
    assert sections(page)["Symmetry"]
    assert page.html()


def test_a_sparse_data_set_has_the_same_sections(tmp_path, page):
    assert list(sections(page_of(node_data(sparse=True), tmp_path / "run"))) == list(sections(page))


def test_a_large_graph_gives_a_small_page(plain, tmp_path):
    made = contextual_block_model(100_000, 3, 8, 6.0, seed=0)
    graph = Data(x=made.x, edge_index=made.edge_index, num_nodes=100_000)
    large = Dataset("large", "node", (graph,), made.y, classes=("a", "b", "c"))
    plain["training"] = {"epochs": 1, "warmup": 0}
    folder = train(large, plain, output=tmp_path / "run", cache=False).folder
    page = run_page(folder, dataset=large, cache=False)
    drawing = sections(page)["The graph"][0]
    assert len(drawing.positions) == 600
    assert "600 of 100,000 nodes" in drawing.caption
    assert len(page.html()) < 1_000_000


@pytest.mark.data
def test_a_page_of_real_molecules(root, tmp_path):
    data = {"name": "mutag", "root": str(root), "offline": True}
    quick = {"data": data, "training": {"epochs": 2, "warmup": 0}, "seeds": 2}
    folder = train("mutag", quick, output=tmp_path / "run", cache=False).folder
    page = run_page(folder, cache=False)
    assert len(sections(page)) == 10
    assert "test graphs of 20" in sections(page)["The graph"][0].caption
    assert torch.tensor(sections(page)["Symmetry"][0].series[0][1]).max() < 1e-4
