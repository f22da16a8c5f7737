import dataclasses
import json
import os
import random as python_random
import signal
import subprocess
import sys
import time
import tomllib

import numpy as np
import pytest
import torch

from nlsf.data.protocols import draw
from nlsf.errors import ConfigError, DataError
from nlsf.train import Interrupted, resume, train
from nlsf.train.display import SilentDisplay
from nlsf.train.run_folder import RunFolder
from train.small import NODE_MODEL, given, graph_data, node_data, regression_data, signal_data

TRAINING = {"epochs": 8, "patience": 4, "lr": 0.05, "dtype": "float64"}
QUICK = {"model": NODE_MODEL, "training": TRAINING, "seeds": 3}
GROUPS = given(60, (20, 10), (30, 12), (20, 10), (25, 10))
TIMES = ("seconds", "cpu_seconds", "peak_memory", "prepare_seconds")


def untimed(rows):
    return [{k: v for k, v in row.items() if k not in TIMES} for row in rows]


def metrics(path):
    return (path / "metrics.jsonl").read_bytes()


def weights(path):
    return RunFolder(path).load_model()[0]


def assert_same(path, other):
    """Two runs that cannot be told apart but by the clock."""
    assert metrics(path) == metrics(other)
    assert untimed(RunFolder(path).results()) == untimed(RunFolder(other).results())
    assert (path / "config.toml").read_bytes() == (other / "config.toml").read_bytes()
    expected = weights(other)
    assert set(weights(path)) == set(expected)
    assert all(torch.equal(value, expected[name]) for name, value in weights(path).items())


def quick(dataset, path, settings=QUICK, **options):
    return train(dataset, settings, output=path, cache=False, **options)


def settings_for(dataset):
    if dataset.level == "node":
        return QUICK
    model = {"hidden_channels": 8, "head": [5]}
    return {"model": model, "training": {**TRAINING, "warmup": 0, "batch_size": 10}, "seeds": 3}


@pytest.mark.parametrize("data", [node_data, regression_data, graph_data, signal_data])
def test_the_same_run_twice(tmp_path, data):
    for name, torch_seed in (("a", 1), ("b", 2)):
        torch.manual_seed(torch_seed)
        np.random.seed(torch_seed)  # noqa: NPY002
        before = (
            torch.get_rng_state().tolist(),
            np.random.get_state()[1].tolist(),  # noqa: NPY002
            python_random.getstate(),
        )
        quick(data(), tmp_path / name, settings_for(data()))
        assert before == (
            torch.get_rng_state().tolist(),
            np.random.get_state()[1].tolist(),  # noqa: NPY002
            python_random.getstate(),
        )
    assert_same(tmp_path / "a", tmp_path / "b")


def test_another_seed_gives_other_numbers(tmp_path):
    first = quick(node_data(), tmp_path / "a", {**QUICK, "seeds": [0]})
    second = quick(node_data(), tmp_path / "b", {**QUICK, "seeds": [1]})
    assert first.rows[0]["test_loss"] != second.rows[0]["test_loss"]
    assert first.rows[0]["split"] != second.rows[0]["split"]
    # On one fixed split the start of the model still differs.
    dataset = node_data(given=given(60, (20, 20)))
    fixed = quick(dataset, tmp_path / "c", {**QUICK, "seeds": 2})
    assert fixed.rows[0]["split"] == fixed.rows[1]["split"]
    assert fixed.rows[0]["test_loss"] != fixed.rows[1]["test_loss"]


def test_seeds_do_not_depend_on_their_company(tmp_path):
    many = quick(node_data(), tmp_path / "many", {**QUICK, "seeds": [4, 1, 9]})
    alone = quick(node_data(), tmp_path / "alone", {**QUICK, "seeds": [9]})
    (row,), wanted = alone.rows, many.rows[2]
    assert row["seed"] == wanted["seed"] == 9
    assert row["best_epoch"] == wanted["best_epoch"]
    for name in ("train_loss", "val_loss", "test_loss"):
        assert row[name] == pytest.approx(wanted[name], rel=1e-8)


@pytest.mark.parametrize("data", [node_data, regression_data, graph_data, signal_data])
def test_test_labels_are_out_of_reach(tmp_path, data):
    dataset = data()
    settings = {**settings_for(dataset), "seeds": [2], "protocol": "60-20-20"}
    straight = quick(dataset, tmp_path / "a", settings)
    rows = draw(dataset, "60-20-20", 2).test
    y = dataset.y.clone()
    y[rows] = y[rows] + 100.0 if dataset.is_regression else (y[rows] + 1) % dataset.num_outputs
    spoiled = quick(dataclasses.replace(dataset, y=y), tmp_path / "b", settings)
    assert metrics(tmp_path / "a") == metrics(tmp_path / "b")
    expected = weights(tmp_path / "a")
    assert all(torch.equal(v, expected[name]) for name, v in weights(tmp_path / "b").items())
    (found,), (wanted,) = untimed(spoiled.rows), untimed(straight.rows)
    different = {name for name in wanted if found[name] != wanted[name]}
    assert f"test_{straight.metric}" in different
    assert all(name.startswith("test_") for name in different)


def test_results_are_those_of_the_selected_epoch(tmp_path):
    result = quick(node_data(), tmp_path / "run")
    logged = RunFolder(tmp_path / "run").metrics()
    assert [row["seed"] for row in result.rows] == [0, 1, 2]
    for row in result.rows:
        own = [line for line in logged if line["seed"] == row["seed"]]
        best = max(own, key=lambda line: (line["val_accuracy"], -line["val_loss"]))
        assert (row["best_epoch"], row["epochs"]) == (best["epoch"], own[-1]["epoch"])
        assert row["val_accuracy"] == best["val_accuracy"]
        assert row["val_loss"] == pytest.approx(best["val_loss"], rel=1e-8)
        assert row["sizes"] == [36, 12, 12]
        assert row["together"] == 3
        assert 0 <= row["test_accuracy"] <= 1
    mean, half = result.summary()
    assert mean == pytest.approx(np.mean([row["test_accuracy"] for row in result.rows]))
    assert half >= 0
    assert result.summary("val", "macro_f1")[0] == pytest.approx(
        np.mean([row["val_macro_f1"] for row in result.rows])
    )


def test_the_configuration_of_a_run_repeats_it(tmp_path):
    quick(node_data(), tmp_path / "a", {**QUICK, "seeds": 2})
    table = tomllib.loads((tmp_path / "a" / "config.toml").read_text())
    quick(node_data(), tmp_path / "b", table)
    assert_same(tmp_path / "a", tmp_path / "b")


def test_a_finished_run_is_not_trained_again(tmp_path):
    result = quick(node_data(), tmp_path / "run")
    before = {p.name: p.stat().st_mtime_ns for p in (tmp_path / "run").iterdir()}
    again = resume(tmp_path / "run", dataset=node_data(), cache=False)
    assert again.rows == RunFolder(tmp_path / "run").results()
    assert untimed(again.rows) == untimed(json.loads(json.dumps(result.rows)))
    assert again.metric == result.metric
    assert {p.name: p.stat().st_mtime_ns for p in (tmp_path / "run").iterdir()} == before


def test_a_folder_is_not_overwritten(tmp_path):
    quick(node_data(), tmp_path / "run")
    with pytest.raises(ConfigError, match="holds a run already"):
        quick(node_data(), tmp_path / "run")
    with pytest.raises(DataError, match="no run folder"):
        resume(tmp_path / "none")


class Stop(SilentDisplay):
    """Fails in an epoch of the n-th group, counted from 1; keeps what it was told."""

    def __init__(self, group=0, epoch=0, error=RuntimeError):
        self.wanted, self.error = (group, epoch), error
        self.group, self.messages, self.models = 0, [], []

    def start(self, total_epochs, models, title):
        self.group += 1
        self.models.append(models)

    def epoch(self, epoch, summary, best):
        if (self.group, epoch) == self.wanted:
            raise self.error("stop")

    def message(self, text):
        self.messages.append(text)


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
        assert 1000 < row["seconds"] < 1100
        assert 2000 < row["cpu_seconds"] < 2100
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


OPERATORS = [
    {"index_operator": "N", "value_operator": "L", "complement": False},
    {"index_operator": "N", "value_operator": "N", "complement": True},
]


@pytest.mark.parametrize("data", [node_data, graph_data, signal_data])
@pytest.mark.parametrize("operators", OPERATORS, ids=lambda o: "-".join(map(str, o.values())))
def test_operators_and_complement_are_settings_of_a_run(tmp_path, data, operators):
    base = settings_for(data())
    settings = {**base, "model": {**base["model"], **operators}, "seeds": 2}
    result = quick(data(), tmp_path / "run", settings)
    written = tomllib.loads((tmp_path / "run" / "config.toml").read_text())["model"]
    assert {key: written[key] for key in operators} == operators
    assert all(0 <= row["test_accuracy"] <= 1 for row in result.rows)
    # Trained together or alone, a seed has the same numbers.
    alone = quick(data(), tmp_path / "alone", {**settings, "seeds": [1]})
    for name in ("train_loss", "val_loss", "test_loss"):
        assert alone.rows[0][name] == pytest.approx(result.rows[1][name], rel=1e-8)


def test_an_unknown_operator_is_named(tmp_path):
    settings = {**QUICK, "model": {**NODE_MODEL, "value_operator": "A"}}
    with pytest.raises(ConfigError, match=r"model\.value_operator must be one of L, N, not 'A'"):
        quick(node_data(), tmp_path / "run", settings)


def test_a_run_that_fails_while_it_measures(tmp_path, straight, monkeypatch):
    dataset = node_data(given=GROUPS)

    def fail(*arguments):
        raise RuntimeError("no power")

    monkeypatch.setattr("nlsf.train.run._measure", fail)
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


# Imports once; every command then runs in a process of its own, several at a time.
SERVER = """
import json, os, sys, traceback
import torch
import nlsf.cli, nlsf.train, nlsf.data.embedded, nlsf.train.display

torch.set_num_threads(1)
for line in sys.stdin:
    request = json.loads(line)
    if isinstance(request, int):
        print(os.waitstatus_to_exitcode(os.waitpid(request, 0)[1]), flush=True)
        continue
    folder, *arguments = request
    child = os.fork()
    if child == 0:
        status = 1
        try:
            os.chdir(folder)
            printed = os.open(f"printed-{os.getpid()}", os.O_WRONLY | os.O_CREAT)
            os.dup2(printed, 1)
            os.dup2(printed, 2)
            sys.argv = ["nlsf", *arguments]
            nlsf.cli.main()
            status = 0
        except SystemExit as end:
            status = end.code or 0
        except BaseException:
            traceback.print_exc()
        finally:
            sys.stdout.flush()
            sys.stderr.flush()
            os._exit(status)
    print(child, flush=True)
"""


class Shell:
    """The command line, in processes of its own."""

    def __init__(self, server):
        self.server = server

    def start(self, folder, *arguments):
        return self._ask([str(folder), *map(str, arguments)])

    def end(self, pid):
        return self._ask(pid)

    def run(self, folder, *arguments):
        """The exit code, and what was printed."""
        pid = self.start(folder, *arguments)
        return self.end(pid), (folder / f"printed-{pid}").read_text()

    def _ask(self, request):
        self.server.stdin.write(json.dumps(request) + "\n")
        self.server.stdin.flush()
        return int(self.server.stdout.readline())


@pytest.fixture(scope="module")
def shell():
    with subprocess.Popen(
        [sys.executable, "-c", SERVER], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as server:
        yield Shell(server)
        server.stdin.close()


QUIET = ["--no-cache", "--no-report", "--checkpoint-seconds", "0", "-q"]
COMMAND = "train csbm --seeds 3 --set data.num_nodes=300"
SMALL = (
    "--set epochs=60 --set patience=8 --set hidden_channels=16 --set lr=0.02 --set dtype=float64"
)
TRAIN = [*COMMAND.split(), *SMALL.split(), *QUIET]


@pytest.fixture(scope="module")
def undisturbed(shell, tmp_path_factory):
    folder = tmp_path_factory.mktemp("shell")
    status, printed = shell.run(folder, *TRAIN, "--output", "run")
    assert status == 0, printed
    assert "Test accuracy" in printed
    # One model leaves before the 48th line, two before the 72nd, and the third stays much longer.
    first, second, third = sorted(row["epochs"] for row in RunFolder(folder / "run").results())
    assert 3 * first < 48
    assert first + 2 * second < 72
    assert third == 60
    return folder / "run"


def wait_for(path, lines):
    """Until the file has so many lines."""
    end = time.monotonic() + 60
    while not path.exists() or path.read_bytes().count(b"\n") < lines:
        assert time.monotonic() < end, f"{path} does not grow"
        time.sleep(0.001)


@pytest.mark.parametrize("moments", [(48,), (1, 30, 72)], ids=str)
def test_killed_and_resumed(shell, undisturbed, tmp_path, moments):
    run = tmp_path / "run"
    arguments = [*TRAIN, "--output", run]
    for lines in moments:
        pid = shell.start(tmp_path, *arguments)
        wait_for(run / "metrics.jsonl", lines)
        os.kill(pid, signal.SIGKILL)
        assert shell.end(pid) == -signal.SIGKILL
        assert not RunFolder(run).finished
        arguments = ["train", "--resume", run, *QUIET]
    status, printed = shell.run(tmp_path, *arguments)
    assert status == 0, printed
    assert_same(run, undisturbed)
    # Once more, it only shows what it found.
    status, again = shell.run(tmp_path, *arguments)
    assert (status, again) == (0, printed)


def test_a_run_that_is_training_is_not_resumed(shell, tmp_path):
    run = tmp_path / "run"
    pid = shell.start(tmp_path, *TRAIN, "--output", run)
    wait_for(run / "metrics.jsonl", 1)
    os.kill(pid, signal.SIGSTOP)
    try:
        status, printed = shell.run(tmp_path, "train", "--resume", run, "-q")
        assert status == 1
        assert printed.startswith("nlsf: Another process is training in")
        assert printed.count("\n") == 1
    finally:
        os.kill(pid, signal.SIGKILL)
        shell.end(pid)


def test_two_runs_at_once_do_not_disturb_each_other(shell, undisturbed, tmp_path):
    arguments = [a for a in TRAIN if a != "--no-cache"]
    pids = [shell.start(tmp_path, *arguments) for _ in range(2)]
    assert [shell.end(pid) for pid in pids] == [0, 0]
    folders = sorted((tmp_path / "runs").iterdir())
    assert [folder.name for folder in folders] == ["csbm-att-node-001", "csbm-att-node-002"]
    for folder in folders:
        assert_same(folder, undisturbed)
