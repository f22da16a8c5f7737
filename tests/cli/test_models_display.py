"""Which of how many models trains: a bar above the training's own, or a line."""

import io
import re

import pytest
from rich.console import Console

from nlsf.cli.models_display import LiveModelDisplay, Progress, model_display
from nlsf.train.run.display import PlainDisplay, SilentDisplay

SUMMARY = {"train_loss": 0.5}


def terminal():
    environment = {"TERM": "xterm-256color", "COLUMNS": "100", "LINES": "30"}
    return Console(file=io.StringIO(), force_terminal=True, _environ=environment)


def drawn(console):
    return re.sub(r"\x1b\[[0-9;?]*[a-zA-Z]", "", console.file.getvalue())


def lines(display):
    """What is drawn now."""
    console = Console(file=io.StringIO(), width=100)
    console.print(display._render())
    return console.file.getvalue().splitlines()


def second_of_three():
    progress = Progress(3)
    progress.next("gcn")
    progress.next("mlp [b]")
    return progress


def test_time_is_minutes_and_seconds(monkeypatch):
    progress = Progress(2, began=100.0)
    monkeypatch.setattr("nlsf.cli.models_display.time.monotonic", lambda: 165.9)
    assert progress.elapsed == "1:05 elapsed"


def test_a_line_where_there_is_no_terminal():
    console = Console(file=io.StringIO(), width=80)
    assert isinstance(model_display(console, second_of_three(), quiet=False), PlainDisplay)
    assert console.file.getvalue() == "model 2 of 3: mlp [b], 0:00 elapsed\n"


def test_silence():
    console = terminal()
    assert isinstance(model_display(console, second_of_three(), quiet=True), SilentDisplay)
    assert console.file.getvalue() == ""


def test_the_bar_stands_above_that_of_the_epochs():
    console = terminal()
    with model_display(console, second_of_three(), quiet=False) as display:
        assert isinstance(display, LiveModelDisplay)
        assert "model 2 of 3: mlp [b]" in drawn(console)  # while the data are prepared
        with display:  # as a run does
            display.start(9, 1, "cora")
            display.epoch(1, SUMMARY, {})
            shown = lines(display)
            assert re.match(r"model 2 of 3: mlp \[b\] .* 0:0\d elapsed", shown[0])
            assert shown[1].startswith("cora ")
            assert "epoch 1/9" in shown[1]
    assert "model 2" not in "".join(lines(display))  # what stays is the training's
    assert "in all" in lines(display)[0]
    display.stop()


def test_the_terminal_is_given_back_when_a_model_fails():
    console = terminal()
    with pytest.raises(RuntimeError), model_display(console, second_of_three(), quiet=False):
        raise RuntimeError
    text = console.file.getvalue()
    assert text.rindex("\x1b[?25l") < text.rindex("\x1b[?25h")
