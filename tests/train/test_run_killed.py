"""Runs of the command line that are killed, held or run side by side."""

import os
import signal

import pytest

from nlsf.train.run.folder import RunFolder
from processes import Process, nlsf
from train.runs import assert_same

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
