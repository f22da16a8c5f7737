"""A table of times shows ratios to GCN, the paper's beside them, and what could not be measured."""

import csv
import io

import pytest
from rich.console import Console

from nlsf.display.text_table import Form
from nlsf.tables.fill.results import Published, PublishedValue
from nlsf.tables.fill.timing import Timings
from nlsf.tables.render.time_table import TimeTable, sheet, to_csv
from nlsf.tables.spec.spec_file import read_experiment
from tables.spec_texts import GCN, VALUE, experiment

TOP = 'title = "Times"\nmeasure = "time"\npaper = "runtime"\n'
DATA = "\n".join(
    f'[[data]]\nname = "csbm"\nlabel = "{name}"\npaper = "{name}"\noptions = {{num_nodes = {n}}}\n'
    for name, n in (("Cora", 50), ("Actor", 60))
)
MLP = '[[method]]\nlabel = "MLP_1"\nmodel = "mlp"\n'
PAPER = Published(
    {
        ("runtime", "GCN", "Cora", "epoch_ms"): PublishedValue(8.0),
        ("runtime", "GCN", "Cora", "total_s"): PublishedValue(2.0),
        ("runtime", "NLSF", "Cora", "epoch_ms"): PublishedValue(18.0),
        ("runtime", "NLSF", "Cora", "total_s"): PublishedValue(4.5),
        ("runtime", "NLSF", "Actor", "epoch_ms"): PublishedValue(18.0),
    }
)


def row(times, label, column, epoch, total, error=None):
    method = next(m for m in times.methods if m.label == label)
    found = {"method": label, "cell": times.cell(method, column).id, "error": error}
    if error is not None:
        return found
    for kind, factor in (("cpu_", 1), ("", 3)):  # the clock runs on while others compute
        found |= {f"epoch_{kind}seconds": factor * epoch, f"total_{kind}seconds": factor * total}
        found |= {f"prepare_{kind}seconds": 0.5, f"train_{kind}seconds": factor * total - 0.5}
    return {**found, "epochs": 7, "parameters": 123, "threads": 1, "rounds": 20}


def to_markdown(table):
    return sheet(table, Form.markdown).markdown()


@pytest.fixture
def times(tmp_path):
    path = tmp_path / "times.toml"
    methods = GCN + 'paper = "GCN"\n', VALUE + 'paper = "NLSF"\n', MLP
    path.write_text(experiment(DATA, *methods, top=TOP))
    return read_experiment(path)


@pytest.fixture
def timings(times, tmp_path):
    timings, cora = Timings(tmp_path / "rows"), times.columns[0]
    numbers = ("GCN", 0.01, 4.0), ("Value NLSF", 0.0231, 2.0)
    rows = [row(times, label, cora, *both) for label, *both in numbers]
    timings.write(times, cora, [*rows, row(times, "MLP_1", cora, 0, 0, error="It is too large.")])
    return timings


def test_ratios_are_to_gcn_in_processor_time(times, timings):
    table = TimeTable.of(times, timings, PAPER)
    assert table.ratio("Value NLSF", "Cora", "epoch") == pytest.approx(2.31)
    assert table.ratio("Value NLSF", "Cora", "total") == pytest.approx(0.5)
    assert table.ratio("GCN", "Cora", "epoch") == 1
    assert table.ratio("Value NLSF", "Actor", "epoch") is None
    assert table.published["Value NLSF", "Cora", "epoch"] == 2.25
    assert table.published["Value NLSF", "Cora", "total"] == 2.25
    # The paper has no time of GCN there to divide by.
    assert ("Value NLSF", "Actor", "epoch") not in table.published
    assert table.failures == [("MLP_1 on Cora", "It is too large.")]


def test_without_gcn_there_are_no_ratios(times, timings):
    cora = times.columns[0]
    rows = [row(times, "GCN", cora, 0, 0, error="No."), row(times, "Value NLSF", cora, 1.0, 2.0)]
    timings.write(times, cora, rows)
    table = TimeTable.of(times, timings, PAPER)
    assert table.ratio("Value NLSF", "Cora", "epoch") is None
    assert table.entries["Value NLSF", "Cora"].row["epoch_seconds"] == 3.0


def test_a_part_keeps_its_ratios(times, timings):
    part = times.select(["Value NLSF"], ["Cora"])
    table = TimeTable.of(times.select(None, ["Cora"]), timings, PAPER, part)
    assert set(table.entries) == {("Value NLSF", "Cora")}
    assert table.ratio("Value NLSF", "Cora", "epoch") == pytest.approx(2.31)
    assert "GCN |" not in to_markdown(table)


def test_markdown(times, timings):
    text = to_markdown(TimeTable.of(times, timings, PAPER))
    epoch, total = text.split("Total:")
    assert "| Method | Cora | Actor |\n| --- | ---: | ---: |\n" in epoch
    assert "| GCN | 1.00x (1.00x) |  |" in epoch
    assert "| Value NLSF | 2.31x (2.25x) |  |" in epoch
    assert "| Value NLSF | 0.50x (2.25x) |  |" in total
    assert "| MLP\\_1 |  |  |" in total
    assert "No number for MLP\\_1 on Cora: It is too large." in total
    assert "Threads: 1." in total
    assert "median of 20 rounds" in total


def test_latex(times, timings):
    text = sheet(TimeTable.of(times, timings, PAPER), Form.latex).latex()
    assert "Value NLSF & 2.31x (2.25x) &  \\\\" in text
    assert "MLP\\_1" in text
    assert text.count("\\begin{tabular}") == text.count("\\end{tabular}") == 2


def test_csv_has_all_that_was_measured(times, timings):
    lines = list(csv.DictReader(io.StringIO(to_csv(TimeTable.of(times, timings, PAPER)))))
    assert len(lines) == 6
    nlsf = lines[2]
    assert (nlsf["method"], nlsf["model"], nlsf["data"]) == ("Value NLSF", "value", "Cora")
    assert (nlsf["epoch_ratio"], nlsf["paper_epoch_ratio"]) == ("2.31", "2.25")
    assert (nlsf["epoch_cpu_seconds"], nlsf["epoch_seconds"]) == ("0.0231", "0.0693")
    assert (nlsf["epochs"], nlsf["parameters"], nlsf["error"]) == ("7", "123", "")
    assert lines[4]["error"] == "It is too large."
    assert lines[3]["epoch_seconds"] == ""


@pytest.mark.parametrize("width", [40, 120])
def test_terminal(times, timings, width):
    console = Console(width=width, record=True, file=io.StringIO(), force_terminal=True)
    sheet(TimeTable.of(times, timings, PAPER), Form.terminal).print(console)
    text = console.export_text()
    for shown in ("2.31x", "2.25x", "0.50x", "MLP_1"):
        assert shown in text
    assert max(map(len, text.splitlines())) <= width


def test_large_ratios_need_no_decimals(times, timings):
    cora = times.columns[0]
    rows = [row(times, "GCN", cora, 0.01, 1.0), row(times, "Value NLSF", cora, 2.005, 1.0)]
    timings.write(times, cora, rows)
    assert "| Value NLSF | 200x (2.25x) |" in to_markdown(TimeTable.of(times, timings, PAPER))
