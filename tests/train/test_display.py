import os
import pty
import re
import signal
import threading
import time
from contextlib import contextmanager, nullcontext, suppress

import pytest
from rich.console import Console

from nlsf.train.run.display import LiveDisplay, PlainDisplay, SilentDisplay, display_for

SUMMARY = {"train_loss": 0.5, "val_loss": 0.75, "val_accuracy": 0.8}


def best(running):
    return {"val_accuracy": 0.8125, "running": running}


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
    assert isinstance(display_for(terminal), LiveDisplay)
    assert isinstance(display_for(dumb), PlainDisplay)
    assert isinstance(display_for(Console(force_terminal=False)), PlainDisplay)
    assert isinstance(display_for(terminal, quiet=True), SilentDisplay)


def test_silence(capfd):
    with SilentDisplay() as display:
        display.start(3, 1, "cora")
        display.epoch(1, SUMMARY, best(1))
        display.message("hello")
    assert capfd.readouterr() == ("", "")


def test_plain_lines_are_whole_and_not_marked_up(printed):
    console, read = printed
    with PlainDisplay(console, seconds=0) as display:
        display.start(40, 3, "my [bold]graph[/bold]")
        display.epoch(1, SUMMARY, best(3))
        display.epoch(2, SUMMARY, best(2))
        display.message("saved [red]")
    title, first, second, message = read()
    assert title == "my [bold]graph[/bold]: 3 models, at most 40 epochs"
    numbers = "train loss 0.5000  val loss 0.7500  val accuracy 0.8000  best val accuracy 0.8125"
    assert first == f"epoch 1/40  {numbers}  3 of 3 models training"
    pace = r"[\d.e+-]+ ms/epoch  at most 0:\d\d left"
    assert re.fullmatch(f"epoch 2/40  {numbers}  2 of 3 models training  {pace}", second)
    assert message == "saved [red]"


def test_plain_lines_are_few_and_the_last_epoch_is_among_them(printed):
    console, read = printed
    with PlainDisplay(console, seconds=1000) as display:
        display.start(1000, 1, "cora")
        for epoch in range(1, 501):
            display.epoch(epoch, SUMMARY, best(1))
        display.stop()
    lines = read()
    assert [line.split("  ")[0] for line in lines[1:]] == ["epoch 1/1000", "epoch 500/1000"]
    assert lines[0] == "cora: 1 model, at most 1000 epochs"
    assert lines[-1].endswith("in all")
    assert "left" not in lines[-1]
    assert "models training" not in "".join(lines)


def test_a_continued_training_counts_its_own_epochs(printed, monkeypatch):
    console, read = printed
    clock = iter(range(1000))
    monkeypatch.setattr("nlsf.train.run.display.time.monotonic", lambda: next(clock) / 2)
    display = PlainDisplay(console, seconds=0)
    display.start(4600, 1, "cora")
    for epoch in (901, 902):
        display.epoch(epoch, SUMMARY, {})
    # The clock is read twice an epoch, half a second each: one second an epoch, 3698 are left.
    assert read()[-1].endswith("1e+03 ms/epoch  at most 1:01:38 left")


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
    with display_for(console) as display:
        display.start(1000, 10, "cora [1]")
        display.message("hello [red]")
        for epoch in range(1, 101):
            display.epoch(epoch, SUMMARY, best(7))
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
    assert "hello [red]" in drawn
    assert "cora [1]" in drawn
    assert re.search(r"epoch \d+/1000  [\d.]+ ms/epoch  at most 0:\d\d left", drawn)
    assert "best val accuracy 0.8125" in drawn
    assert "7 of 10 models training" in drawn
    # The drawing that stays does not promise more.
    last = re.split(r"(?=epoch \d)", drawn)[-1]
    assert "in all" in last
    assert "left" not in last
    assert last.startswith("epoch 100/1000")


def test_a_second_training_begins_anew(printed):
    console, read = printed
    with PlainDisplay(console, seconds=1000) as display:
        for title in ("first", "second"):
            display.start(9, 1, title)
            for epoch in (1, 2, 3):
                display.epoch(epoch, SUMMARY, {})
    starts = [re.split("  |:", line)[0] for line in read()]
    assert starts == ["first", "epoch 1/9", "epoch 3/9", "second", "epoch 1/9", "epoch 3/9"]
