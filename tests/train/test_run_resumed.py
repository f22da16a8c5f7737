"""Runs that stopped in the middle: in this process, or killed on the command line."""

import dataclasses
import os
import signal

import pytest
from torch_geometric.data import Data

from nlsf.errors import DataError
from nlsf.train import Interrupted, resume
from nlsf.train.run.folder import RunFolder
from processes import Process, nlsf
from train.runs import GROUPS, QUICK, Stop, assert_same, quick
from train.small import given, node_data


def test_splits_of_unequal_sizes(tmp_path):
    dataset, display = node_data(given=GROUPS), Stop()
    result = quick(dataset, tmp_path / "run", {**QUICK, "seeds": 4}, display=display)
    assert display.models == [2, 1, 1]
    assert [row["seed"] for row in result.rows] == [0, 1, 2, 3]
    assert [row["together"] for row in result.rows] == [2, 1, 2, 1]
    assert [row["sizes"][:2] for row in result.rows] == [[20, 10], [30, 12], [20, 10], [25, 10]]
    # A seed has the same numbers in whichever group.
    alone = quick(dataset, tmp_path / "alone", {**QUICK, "seeds": [2]})
    assert alone.rows[0]["val_loss"] == pytest.approx(result.rows[2]["val_loss"], rel=1e-8)


@pytest.mark.parametrize(
    ("group", "epoch", "seconds"),
    [(1, 3, 0.0), (2, 1, 0.0), (2, 1, 1000.0), (2, 3, 0.0), (3, 3, 1000.0)],
)
def test_groups_are_gone_on_with(tmp_path, straight, group, epoch, seconds):
    dataset, options = node_data(given=GROUPS), {"checkpoint_seconds": seconds}
    path, display = tmp_path / "run", Stop(group, epoch)
    with pytest.raises(RuntimeError, match="stop"):
        quick(dataset, path, {**QUICK, "seeds": 4}, display=display, **options)
    assert not RunFolder(path).finished
    display = Stop()
    resume(path, dataset=dataset, display=display, cache=False, **options)
    # Groups that were finished are not trained again.
    assert len(display.models) == 3 - (group - 1)
    resumed = seconds == 0 and epoch > 1
    assert (f"Going on after epoch {epoch - 1}" in display.messages) is resumed
    assert_same(path, straight)


@pytest.fixture(scope="module")
def straight(tmp_path_factory):
    """The run with four groups that nothing disturbs."""
    path = tmp_path_factory.mktemp("runs") / "straight"
    quick(node_data(given=GROUPS), path, {**QUICK, "seeds": 4})
    return path


def test_what_every_run_has_spent_is_added_up(tmp_path):
    dataset, path = node_data(), tmp_path / "run"
    with pytest.raises(Interrupted):
        quick(dataset, path, display=Stop(1, 3, KeyboardInterrupt), checkpoint_seconds=0)
    folder = RunFolder(path)
    tensors, meta = folder.load_checkpoint()
    assert meta["cpu_seconds"] > 0
    assert meta["peak_memory"] > 2**20
    spent = {"seconds": 1000.0, "cpu_seconds": 2000.0, "peak_memory": 2**60}
    folder.save_checkpoint(tensors, {**meta, **spent})
    for row in resume(path, dataset=dataset, cache=False).rows:
        assert 1000 < row["seconds"] < 2000
        assert 2000 < row["cpu_seconds"] < 4000
        assert row["peak_memory"] == 2**60


def test_a_checkpoint_from_before_costs_were_kept_is_gone_on_with(tmp_path):
    dataset, path = node_data(), tmp_path / "run"
    with pytest.raises(Interrupted):
        quick(dataset, path, display=Stop(1, 3, KeyboardInterrupt), checkpoint_seconds=0)
    folder = RunFolder(path)
    tensors, meta = folder.load_checkpoint()
    del meta["cpu_seconds"], meta["peak_memory"]
    folder.save_checkpoint(tensors, meta)
    rows = resume(path, dataset=dataset, cache=False).rows
    assert {row["cpu_seconds"] for row in rows} == {None}
    assert all(row["peak_memory"] > 2**20 for row in rows)
    quick(dataset, tmp_path / "straight")
    assert_same(path, tmp_path / "straight")


def with_other_features(dataset):
    graph = dataset.graphs[0]
    other = Data(x=graph.x.flip(0), edge_index=graph.edge_index, num_nodes=graph.num_nodes)
    return dataclasses.replace(dataset, graphs=(other,))


def with_other_labels(dataset):
    return dataclasses.replace(dataset, y=dataset.y.roll(1))


def with_other_splits(dataset):
    swapped = [
        dataclasses.replace(split, train=split.test, test=split.train)
        for split in dataset.given["given"]
    ]
    return dataclasses.replace(dataset, given={"given": tuple(swapped)})


CHANGES = [
    (with_other_features, "The graphs or features of small"),
    (with_other_labels, "The labels of small"),
    (with_other_splits, "The splits of small"),
    (lambda data: with_other_splits(with_other_labels(data)), "The labels and the splits of"),
]
TWO_GROUPS = given(60, (20, 20), (24, 12))


@pytest.mark.parametrize("group", [1, 2], ids=["from a checkpoint", "from a model"])
def test_other_data_are_refused_and_change_nothing(tmp_path, group):
    dataset, path = node_data(given=TWO_GROUPS), tmp_path / "run"
    seconds = 0 if group == 1 else 1000
    with pytest.raises(Interrupted):
        quick(
            dataset,
            path,
            {**QUICK, "seeds": 2},
            display=Stop(group, 3, KeyboardInterrupt),
            checkpoint_seconds=seconds,
        )
    for change, said in CHANGES:
        with pytest.raises(DataError, match=f"{said}.* put the data back"):
            resume(path, dataset=change(dataset), cache=False)
    resume(path, dataset=dataset, cache=False)
    quick(dataset, tmp_path / "straight", {**QUICK, "seeds": 2})
    assert_same(path, tmp_path / "straight")


def test_a_checkpoint_from_before_data_were_hashed_is_gone_on_with(tmp_path):
    dataset, path = node_data(), tmp_path / "run"
    with pytest.raises(Interrupted):
        quick(dataset, path, display=Stop(1, 3, KeyboardInterrupt), checkpoint_seconds=0)
    folder = RunFolder(path)
    tensors, meta = folder.load_checkpoint()
    del meta["fingerprint"], meta["labels"], meta["splits"]
    folder.save_checkpoint(tensors, meta)
    display = Stop()
    resume(path, dataset=dataset, display=display, cache=False)
    assert "Going on after epoch 2" in display.messages


def test_a_run_that_fails_while_it_measures(tmp_path, straight, monkeypatch):
    dataset = node_data(given=GROUPS)

    def fail(*arguments):
        raise RuntimeError("no power")

    monkeypatch.setattr("nlsf.train.run.training.Training._measure", fail)
    with pytest.raises(RuntimeError, match="no power"):
        quick(dataset, tmp_path / "run", {**QUICK, "seeds": 4})
    monkeypatch.undo()
    display = Stop()
    resume(tmp_path / "run", dataset=dataset, display=display, cache=False)
    assert display.models == []
    assert_same(tmp_path / "run", straight)


def test_an_interrupt_says_where_to_go_on(tmp_path):
    with pytest.raises(Interrupted) as caught:
        quick(node_data(), tmp_path / "run", display=Stop(1, 3, KeyboardInterrupt))
    assert caught.value.folder.path == tmp_path / "run"
    assert str(tmp_path / "run") in str(caught.value)
    resume(tmp_path / "run", dataset=node_data(), cache=False)
    quick(node_data(), tmp_path / "straight")
    assert_same(tmp_path / "run", tmp_path / "straight")


QUIET = ["--no-cache", "--no-report", "--checkpoint-seconds", "0", "-q"]
COMMAND = "train csbm --seeds 3 --set data.num_nodes=300"
SMALL = (
    "--set epochs=60 --set patience=8 --set hidden_channels=16 --set lr=0.02 --set dtype=float64"
)
TRAIN = [*COMMAND.split(), *SMALL.split(), *QUIET]


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory):
    folder = tmp_path_factory.mktemp("shell")
    status, printed = trained(folder, *TRAIN, "--output", "run")
    assert status == 0, printed
    assert "Test accuracy" in printed
    # One model leaves before the 48th line, two before the 72nd, and the third stays much longer.
    first, second, third = sorted(row["epochs"] for row in RunFolder(folder / "run").results())
    assert 3 * first < 48
    assert first + 2 * second < 72
    assert third == 60
    return folder / "run"


def trained(folder, *words, name="process"):
    """The exit code of the program, and what it printed."""
    process = Process(folder, nlsf, *words, name=name)
    return process.end(), process.said


def wait_for_lines(process, path, lines):
    assert process.wait_for(lambda: path.exists() and path.read_bytes().count(b"\n") >= lines), (
        process.said
    )


@pytest.mark.parametrize("moments", [(48,), (1, 30, 72)], ids=str)
def test_killed_and_resumed(undisturbed, tmp_path, moments):
    run = tmp_path / "run"
    arguments = [*TRAIN, "--output", run]
    for lines in moments:
        process = Process(tmp_path, nlsf, *arguments)
        wait_for_lines(process, run / "metrics.jsonl", lines)
        assert process.signal(signal.SIGKILL) == -signal.SIGKILL
        assert not RunFolder(run).finished
        arguments = ["train", "--resume", run, *QUIET]
    status, printed = trained(tmp_path, *arguments)
    assert status == 0, printed
    assert_same(run, undisturbed)
    # Once more, it only shows what it found.
    status, again = trained(tmp_path, *arguments)
    assert (status, again) == (0, printed)


def test_a_run_that_is_training_is_not_resumed(tmp_path):
    run = tmp_path / "run"
    process = Process(tmp_path, nlsf, *TRAIN, "--output", run)
    wait_for_lines(process, run / "metrics.jsonl", 1)
    os.kill(process.pid, signal.SIGSTOP)
    try:
        status, printed = trained(tmp_path, "train", "--resume", run, "-q", name="other")
        assert status == 1
        assert printed.startswith("nlsf: Another process is training in")
        assert printed.count("\n") == 1
    finally:
        process.signal(signal.SIGKILL)


def test_two_runs_at_once_do_not_disturb_each_other(undisturbed, tmp_path):
    arguments = [a for a in TRAIN if a != "--no-cache"]
    pair = [Process(tmp_path, nlsf, *arguments, name=name) for name in "ab"]
    assert [process.end() for process in pair] == [0, 0], pair[0].said
    folders = sorted((tmp_path / "runs").iterdir())
    assert [folder.name for folder in folders] == ["csbm-att-node-001", "csbm-att-node-002"]
    for folder in folders:
        assert_same(folder, undisturbed)
