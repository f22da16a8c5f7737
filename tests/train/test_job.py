import dataclasses

import pytest
import torch
from torch_geometric.data import Data

from nlsf.data.dataset import Dataset
from nlsf.data.protocols import write_split
from nlsf.errors import ConfigError
from nlsf.nn.plans import WholeGraph
from nlsf.train.run.job import Job, fingerprint, load_data
from nlsf.train.settings.config import DataConfig
from train.small import NODE_MODEL, given, graph_data, node_data, regression_data, signal_data


def job_of(dataset, **table):
    return Job.of({"model": NODE_MODEL, **table}, dataset)


def test_a_job_from_the_catalogue():
    job = Job.of({"data": {"name": "csbm", "num_nodes": 90}, "seeds": [4, 7]})
    assert job.dataset.num_examples == 90
    assert job.config.protocol == "60-20-20"
    assert [len(part) for split in job.splits for part in split.parts] == [54, 18, 18] * 2
    assert [split.seed for split in job.splits] == [4, 7]
    assert not torch.equal(job.splits[0].train, job.splits[1].train)


@pytest.mark.parametrize(
    ("dataset", "protocol"),
    [
        (node_data(), "60-20-20"),
        (graph_data(), "80-10-10"),
        (signal_data(), "60-20-20"),
        (node_data(given=given(60, (20, 20))), "given"),
    ],
)
def test_own_data_have_a_protocol(dataset, protocol):
    job = Job.of({}, dataset)
    assert job.config.protocol == protocol
    assert job.config.data.name == dataset.name


def test_own_data_keep_the_name_that_the_settings_give():
    job = Job.of({"data": {"name": "mine"}}, node_data())
    assert job.config.data.name == "mine"


def test_a_seed_is_a_model():
    job = job_of(node_data())
    torch.manual_seed(3)
    before = torch.get_rng_state()
    first, again, other = job.model(5), job.model(5), job.model(6)
    assert torch.equal(torch.get_rng_state(), before)
    for name, value in first.state_dict().items():
        assert torch.equal(value, again.state_dict()[name])
    weights = first.encoder[0].weight
    assert not torch.equal(weights, other.encoder[0].weight)


def test_precision_is_a_setting():
    job = job_of(regression_data(), training={"dtype": "float64"})
    assert {p.dtype for p in job.model(0).parameters()} == {torch.float64}
    lesson = job.lesson(job.splits[0])
    assert lesson.train_y.dtype == job.test_labels(job.splits[0]).dtype == torch.float64
    plan = job.plan(cache=False, progress=lambda text: None)
    assert isinstance(plan, WholeGraph)
    assert plan.x.dtype == torch.float64
    assert job_of(node_data()).lesson(job.splits[0]).train_y.dtype == torch.int64


def test_a_lesson_is_the_split_without_its_test_part():
    job = job_of(node_data(), seeds=2)
    for split in job.splits:
        lesson = job.lesson(split)
        assert torch.equal(lesson.train, split.train)
        assert torch.equal(lesson.val_y, job.dataset.y[split.val])
        assert torch.equal(job.test_labels(split), job.dataset.y[split.test])
        seen = torch.cat([lesson.train, lesson.val])
        assert not torch.isin(split.test, seen).any()


def test_models_with_splits_of_equal_sizes_train_together():
    splits = given(60, (20, 10), (30, 10), (20, 10), (20, 12), (30, 10))
    job = job_of(node_data(given=splits), seeds=5)
    assert job.trained_together() == [[0, 2], [1, 4], [3]]
    assert job_of(node_data(), seeds=3).trained_together() == [[0, 1, 2]]


def test_features_are_made_once_and_written_down():
    bare = graph_data()
    graphs = tuple(Data(edge_index=g.edge_index, num_nodes=g.num_nodes) for g in bare.graphs)
    job = Job.of({}, dataclasses.replace(bare, graphs=graphs))
    assert job.config.features.degree == "binned"
    assert job.config.features.max_degree == 2
    assert job.dataset.num_features == 4
    # The configuration says all: the same features for other graphs.
    again = Job.of(job.config.to_table(), dataclasses.replace(bare, graphs=graphs[:12:2] * 2))
    assert again.dataset.num_features == 4


def test_a_resolved_job_resolves_to_itself():
    job = job_of(node_data(), seeds=3, training={"lr": 0.5})
    again = Job.of(job.config.to_table(), node_data())
    assert again.config.to_toml() == job.config.to_toml()


def test_unknown_keys_are_named_before_data_are_loaded():
    with pytest.raises(ConfigError, match="'learning_rate'"):
        Job.of({"data": {"name": "cora"}, "training": {"learning_rate": 1}})


def changed(dataset, **fields):
    graph = dataset.graphs[0]
    new = {"x": graph.x, "edge_index": graph.edge_index, "num_nodes": graph.num_nodes, **fields}
    return dataclasses.replace(dataset, graphs=(Data(**new),))


def test_a_fingerprint_is_of_graphs_and_features():
    dataset = node_data()
    same = fingerprint(dataset)
    assert fingerprint(node_data()) == same
    assert fingerprint(dataclasses.replace(dataset, y=dataset.y.flip(0), name="other")) == same
    graph = dataset.graphs[0]
    others = [
        changed(dataset, x=graph.x.flip(0)),
        changed(dataset, edge_index=graph.edge_index[:, 2:]),
        changed(dataset, num_nodes=61, x=torch.cat([graph.x, graph.x[:1]])),
        changed(dataset, edge_weight=torch.ones(graph.num_edges) * 2),
    ]
    assert len({same, *map(fingerprint, others)}) == 5


def test_a_fingerprint_sees_where_sparse_features_are():
    dataset = node_data(sparse=True)
    x = dataset.graphs[0].x
    moved = torch.sparse_csr_tensor(
        x.crow_indices(), (x.col_indices() + 1) % 40, x.values(), x.shape, check_invariants=True
    )
    assert fingerprint(changed(dataset, x=moved)) != fingerprint(dataset)
    assert fingerprint(changed(dataset, x=x.clone())) == fingerprint(dataset)


def test_a_fingerprint_sees_signals():
    dataset = signal_data()
    other = dataclasses.replace(dataset, signals=dataset.signals * 2)
    assert fingerprint(other) != fingerprint(dataset)


def test_a_run_goes_on_from_any_folder(tmp_path, monkeypatch):
    here, there = tmp_path / "here", tmp_path / "there"
    for folder in (here / "tables", here / "splits", there):
        folder.mkdir(parents=True)
    data, names = node_data(), "abc"
    edges = data.graphs[0].edge_index.T.tolist()
    (here / "links.csv").write_text("".join(f"{a},{b}\n" for a, b in edges))
    rows = [f"{i},{i % 7},{names[y]}\n" for i, y in enumerate(data.y.tolist())]
    (here / "tables" / "nodes.csv").write_text("id,x,label\n" + "".join(rows))
    monkeypatch.chdir(here)
    table = {"data": {"name": "links.csv", "features": "tables/nodes.csv"}, "seeds": 2}
    drawn = Job.of(table)
    for split in drawn.splits:
        write_split(f"splits/{split.seed}.json", split, drawn.dataset)
    job = Job.of({**table, "protocol": "splits/{seed}.json"})
    monkeypatch.chdir(there)
    again = Job.of(job.config.to_table())
    assert again.digests == job.digests == drawn.digests
    assert again.config.to_toml() == job.config.to_toml()


def test_a_data_root_and_a_split_file_are_found_from_any_folder(tmp_path, monkeypatch):
    (tmp_path / "there").mkdir()
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    job = Job.of({"data": {"name": "csbm", "num_nodes": 60, "root": "raw"}})
    assert job.config.data.root == str(tmp_path / "raw")
    home = Job.of({"data": {"name": "csbm", "num_nodes": 60, "root": "~/raw"}})
    assert home.config.data.root == str(tmp_path / "home" / "raw")
    write_split("split.json", job.splits[0], job.dataset)
    own = Job.of({"protocol": "split.json"}, job.dataset)
    monkeypatch.chdir("there")
    again = Job.of(own.config.to_table(), job.dataset)
    assert again.digests == own.digests


def test_data_by_path_and_by_name(tmp_path):
    edges = tmp_path / "edges.csv"
    edges.write_text("0,1\n1,2\n2,0\n")
    (tmp_path / "features.csv").write_text("id,x,label\n0,1.5,a\n1,0.5,b\n2,2.5,a\n")
    found = load_data(DataConfig(str(edges)))
    assert isinstance(found, Dataset)
    assert found.num_examples == 3
    named = load_data(DataConfig("csbm", options={"num_nodes": 30}))
    assert named.num_examples == 30
