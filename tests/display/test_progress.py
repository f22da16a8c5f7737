import io
import os
import pty
import re
import signal
import sys
import threading
import time
from contextlib import contextmanager, nullcontext, suppress
from types import ModuleType

import pytest
from rich.console import Console

from nlsf.display.progress import Progress
from nlsf.display.sinks import Bars, Lines, Notebook, active, progress_for

NUMBERS = {"train_loss": 0.5, "val_loss": 0.75, "best_val_accuracy": 0.8125}


def training(progress, title="cora", total=1000, **known):
    return progress.phase(title, total, unit="epoch", at_most=True, **known)


@pytest.fixture
def printed(tmp_path):
    """A console that writes to a file, and what it wrote."""
    with (tmp_path / "out").open("w+", encoding="utf-8") as file:
        console = Console(file=file, width=60)

        def read():
            file.flush()
            return (tmp_path / "out").read_text(encoding="utf-8").splitlines()

        yield console, read


def test_the_console_decides():
    terminal = Console(force_terminal=True, _environ={"TERM": "xterm"})
    dumb = Console(force_terminal=True, _environ={"TERM": "dumb"})
    assert type(progress_for(terminal)) is Bars
    assert type(progress_for(dumb)) is Lines
    assert type(progress_for(Console(force_terminal=False))) is Lines
    assert type(progress_for(Console(force_jupyter=True))) is Notebook
    assert type(progress_for(terminal, quiet=True)) is Progress


def test_silence(capfd):
    with Progress() as progress, training(progress) as epochs:
        epochs.advance(1, NUMBERS, "2 of 3 models training")
        progress.say("hello")
    assert capfd.readouterr() == ("", "")


def test_who_draws_at_the_moment():
    assert type(active()) is Lines
    outer, inner = Lines(Console()), Lines(Console())
    with outer:
        assert active() is outer
        with inner:
            assert active() is inner
        with outer:
            assert active() is outer
        assert active() is outer
    assert active() is not outer
    with Progress() as silent:
        assert active() is not silent


def test_lines_are_whole_and_not_marked_up(printed):
    console, read = printed
    progress = Lines(console, every=0)
    with training(progress, "my [bold]graph[/bold]", 40, detail="3 models") as epochs:
        epochs.advance(1, NUMBERS, "3 of 3 models training")
        epochs.advance(2, NUMBERS, "2 of 3 models training")
        progress.say("saved [red]")
    title, first, second, message = read()
    assert title == "my [bold]graph[/bold]: 3 models, at most 40 epochs"
    numbers = "train loss 0.5000  val loss 0.7500  best val accuracy 0.8125"
    pace = r"[\d.e+-]+ ms/epoch  at most 0:\d\d left"
    assert re.fullmatch(f"epoch 1/40  {numbers}  3 of 3 models training  {pace}", first)
    assert re.fullmatch(f"epoch 2/40  {numbers}  2 of 3 models training  {pace}", second)
    assert message == "saved [red]"


def test_lines_are_few_and_the_last_epoch_is_among_them(printed):
    console, read = printed
    with training(Lines(console, every=1000)) as epochs:
        for epoch in range(1, 501):
            epochs.advance(epoch, NUMBERS, "1 of 2 models training")
    lines = read()
    assert [line.split("  ")[0] for line in lines[1:]] == ["epoch 1/1000", "epoch 500/1000"]
    assert lines[0] == "cora: at most 1,000 epochs"
    assert lines[-1].endswith("in all")
    assert "left" not in lines[-1]
    assert "models training" not in lines[-1]


def test_every_trial_has_a_line(printed):
    console, read = printed
    with Lines(console).phase("tune", 3, unit="trial", done=1, every=0.0) as trials:
        trials.tell("trial 1: epoch 20, 0.5000")  # too often for a line
        trials.advance(2, {"best val accuracy (trial 1)": 0.5}, "trial 1 complete")
        trials.advance(3)
    title, second, third = read()
    assert title == "tune: 3 trials, 1 of them done"
    assert second.startswith("trial 2/3  best val accuracy (trial 1) 0.5000  trial 1 complete  ")
    assert third.startswith("trial 3/3  best val accuracy (trial 1) 0.5000  ")


def test_one_thing_after_another_has_a_line_each(printed):
    console, read = printed
    progress = Lines(console, every=0)
    with progress.phase(total=3, unit="model", limit=7200.0) as models:
        models.next("gcn")
        with training(progress, total=2) as epochs:
            epochs.advance(2)
        models.next("mlp [b]")
        models.next("link", 1)
    gcn, opened, epoch, mlp, link = read()
    assert re.fullmatch(r"model 1 of 3: gcn, 0:0\d elapsed of 2:00:00", gcn)
    assert mlp.startswith("model 2 of 3: mlp [b], 0:0")
    assert link.startswith("model 1 of 3: link, ")
    assert opened == "cora: at most 2 epochs"
    assert epoch.startswith("epoch 2/2")


def test_what_has_no_end_in_sight_leaves_no_line(printed):
    console, read = printed
    with Lines(console).phase("Loading"):
        pass
    assert read() == []


def test_a_continued_training_counts_its_own_epochs(printed, monkeypatch):
    console, read = printed
    clock = iter(range(1000))
    monkeypatch.setattr("nlsf.display.progress.time.monotonic", lambda: next(clock) / 2)
    with training(Lines(console, every=0), total=4600, done=900) as epochs:
        for epoch in (901, 902):
            epochs.advance(epoch)
        # The clock is read thrice an epoch: one second for each of two, and 3698 are left.
        assert read()[-1].endswith("1 s/epoch  at most 1:01:38 left")


@contextmanager
def terminal():
    """A console on a terminal of 80 columns, and the parts of text that the terminal received."""
    ours, theirs = pty.openpty()
    received = []

    def receive():
        # Linux reports the end of a pseudo-terminal as an error.
        with suppress(OSError):
            while part := os.read(ours, 4096):
                received.append(part)

    reader = threading.Thread(target=receive)
    reader.start()
    try:
        with open(theirs, "w", encoding="utf-8") as file:
            environment = {"TERM": "xterm-256color", "COLUMNS": "80", "LINES": "24"}
            yield Console(file=file, _environ=environment), received
    finally:
        reader.join()
        os.close(ours)


def train(console, end):
    progress = progress_for(console)
    with progress, progress.phase(total=2, unit="model") as models:
        models.next("gcn")
        with progress.phase("Loading [data]"):
            time.sleep(0.2)
        with training(progress, "cora [1]") as epochs:
            progress.say("hello [red]")
            for epoch in range(1, 101):
                epochs.advance(epoch, NUMBERS, "7 of 10 models training")
                time.sleep(0.005)
            end()


def fail():
    raise RuntimeError("broken")


@pytest.mark.parametrize(
    ("end", "expected"),
    [
        (lambda: None, nullcontext()),
        (fail, pytest.raises(RuntimeError)),
        (lambda: signal.raise_signal(signal.SIGINT), pytest.raises(KeyboardInterrupt)),
    ],
    ids=["end", "error", "interrupt"],
)
def test_a_terminal_is_given_back(end, expected):
    with terminal() as (console, received):
        with expected:
            train(console, end)
        console.print("afterwards")
    text = b"".join(received).decode()
    hidden, shown = text.rindex("\x1b[?25l"), text.rindex("\x1b[?25h")
    assert hidden < shown < text.rindex("afterwards")
    drawn = re.sub(r"\x1b\[[0-9;?]*[a-zA-Z]", "", text)
    assert "Loading [data] ..." in drawn
    assert "hello [red]" in drawn
    assert re.search(r"model 1 of 2: gcn .* 0:0\d elapsed", drawn)
    assert re.search(r"epoch \d+/1000  [\d.]+ ms/epoch  at most 0:\d\d left", drawn)
    assert "best val accuracy 0.8125" in drawn
    assert "7 of 10 models training" in drawn
    # The drawing that stays does not promise more.
    last = re.findall(r"cora \[1\] .*in all", drawn)[-1]
    assert "epoch 100/1000" in last
    assert "left" not in last


@pytest.mark.parametrize("title", ["a" * 20, "a" * 60])
def test_a_title_is_never_cut(title):
    console = Console(file=io.StringIO(), force_terminal=True, width=80, _environ={"TERM": "xterm"})
    with training(progress_for(console), title) as epochs:
        epochs.advance(999, NUMBERS)
    assert title in console.file.getvalue()


def test_a_notebook_has_one_output_that_is_written_anew(monkeypatch, capsys):
    shown = []

    class Output:
        def update(self, data, raw):
            shown[-1] = data["text/plain"]

    def display(data, raw, display_id):
        shown.append(data["text/plain"])
        return Output()

    monkeypatch.setitem(sys.modules, "IPython", ModuleType("IPython"))
    module = ModuleType("IPython.display")
    module.display = display
    monkeypatch.setitem(sys.modules, "IPython.display", module)
    progress = Notebook()
    for title in ("first", "second"):
        with training(progress, title) as epochs:
            for epoch in (1, 2, 3):
                epochs.advance(epoch, NUMBERS)
            epochs.tell("now")
            progress.say("hello")
    assert [text.split("  ")[:3] for text in shown] == [
        [title, "epoch 3/1000", "train loss 0.5000"] for title in ("first", "second")
    ]
    assert capsys.readouterr().out == "hello\nhello\n"
