"""The forms of a table: all show the same numbers, and no name breaks one of them."""

import csv
import io
import re

import pytest
from rich.console import Console

from nlsf.display.text_table import Form
from nlsf.tables.render.document import result_csv, result_sheet
from nlsf.tables.spec.experiment import Column, Method
from tables.hand_written import METHODS, experiment, filled, table_of, write

NASTY = r"a|b_c*d & 50% $x$ #1 {y} ~ ^ \z <script>"


def to_markdown(table):
    return result_sheet(table, Form.markdown).markdown()


def to_latex(table):
    return result_sheet(table, Form.latex).latex()


def printed(table, width=100, color=False):
    console = Console(
        width=width,
        file=io.StringIO(),
        force_terminal=True,
        color_system="standard" if color else None,
    )
    result_sheet(table, Form.terminal).print(console)
    return console.file.getvalue()


def markdown_rows(text):
    """The cells of each line of a table; a backslash protects what follows."""
    lines = [line for line in text.splitlines() if line.startswith("|")]
    return [[cell.strip() for cell in re.split(r"(?<!\\)\|", line.strip("|\n"))] for line in lines]


def csv_rows(table):
    return list(csv.DictReader(io.StringIO(result_csv(table))))


def test_markdown(tmp_path):
    first, second = to_markdown(filled(tmp_path)).split("\n\n")[::2]
    assert first.splitlines() == [
        "| Method | Cora | Citeseer |",
        "| --- | ---: | ---: |",
        "| GCN | 81.50 +- 1.24 (paper 81.50) | **70.50 +- 6.35** n = 2 |",
        "| NLSF | **83.00 +- 2.48** (paper 82.94) | (paper 72.13) |",
        "| MLP |  |  |",
        "| Floor | 2.95 | 12.96 |",
    ]
    assert second.splitlines() == [
        "| Minus NLSF | Cora | Citeseer |",
        "| --- | ---: | ---: |",
        "| GCN | -1.50 +- 2.15 |  |",
    ]


def test_the_lines_below_say_what_is_shown(tmp_path):
    text = to_markdown(filled(tmp_path, note="Our own splits."))
    for words in (
        "Test accuracy in percent: mean over 3 splits",
        "half the width of the 95 % interval",
        "Tuned with 0 to 4 trials a cell, on validation data of tuning splits",
        "In parentheses: the paper's value.",
        "Floor:",
        "Empty: not run.",
        "Our own splits.",
        "Every method minus NLSF on the same splits in points",
        "n = 3 where no other n is given",
    ):
        assert words in text
    other = to_markdown(filled(tmp_path / "other", spread="deviation"))
    assert "+- the standard deviation over splits" in other


@pytest.mark.parametrize(
    ("trials", "says"),
    [((0, 0), "Nothing was tuned."), ((4, 4), "with 4 trials a cell"), ((1, 1), "with 1 trial a")],
)
def test_the_trials_are_said(tmp_path, trials, says):
    spec = experiment()
    for method, count in zip(("GCN", "NLSF"), trials, strict=True):
        write(tmp_path, spec, method, "Cora", [0.5, 0.6, 0.7], trials=count)
    assert says in to_markdown(table_of(tmp_path, spec))


def test_a_clear_difference_is_bold(tmp_path):
    spec = experiment()
    write(tmp_path, spec, "NLSF", "Cora", [0.80, 0.82, 0.84])
    write(tmp_path, spec, "GCN", "Cora", [0.70, 0.72, 0.741])
    write(tmp_path, spec, "MLP", "Cora", [0.10])
    text = to_markdown(table_of(tmp_path, spec))
    assert "| GCN | **-9.97 +- 0.14** |" in text
    assert "| MLP | -70.00 n = 1 |" in text  # one split has no interval


def test_equal_means_are_both_the_best(tmp_path):
    spec = experiment()
    for method in ("GCN", "NLSF"):
        write(tmp_path, spec, method, "Cora", [0.5, 0.6, 0.7])
    assert to_markdown(table_of(tmp_path, spec)).count("**60.00 +- 24.84**") == 2


def test_an_empty_table(tmp_path):
    table = table_of(tmp_path, experiment())
    first, *rest = to_markdown(table).split("\n\n")
    assert first.splitlines()[2:] == [
        "| GCN | (paper 81.50) |  |",
        "| NLSF | (paper 82.94) | (paper 72.13) |",
        "| MLP |  |  |",
    ]
    assert len(rest) == 1  # no differences
    assert "Floor" not in to_markdown(table)
    assert "82.9" in printed(table)
    assert "Minus" not in printed(table)
    assert [row["n"] for row in csv_rows(table)] == ["0"] * 6
    assert to_latex(table).count(r"\begin{tabular}") == 1


def test_a_table_without_methods_of_ours_has_no_differences(tmp_path):
    methods = (METHODS[0], METHODS[2])
    spec = experiment(methods=methods, paper=None)
    for method in methods:
        write(tmp_path, spec, method.label, "Cora", [0.5, 0.6, 0.7])
    table = table_of(tmp_path, spec)
    for text in (to_markdown(table), to_latex(table), printed(table)):
        assert "inus " not in text
        assert "paper" not in text
    assert all(row["paired_to"] == "" for row in csv_rows(table))


def test_errors_have_four_digits(tmp_path):
    spec = experiment(metric="rmse")
    write(tmp_path, spec, "GCN", "Cora", [0.0123456, 0.0123456, 0.0123456])
    write(tmp_path, spec, "NLSF", "Cora", [0.02, 0.02, 0.02])
    text = to_markdown(table_of(tmp_path, spec))
    assert "**0.01235 +- 0**" in text
    assert "Test rmse: mean" in text
    assert "points" not in text
    assert "percent" not in text


def test_csv_has_every_number(tmp_path):
    rows = {(row["method"], row["data"]): row for row in csv_rows(filled(tmp_path))}
    cell = next(c for m, k, c in experiment().cells() if (m.label, k.label) == ("GCN", "Cora"))
    assert rows["GCN", "Cora"] == {
        "method": "GCN",
        "model": "gcn",
        "data": "Cora",
        "protocol": "random",
        "n": "3",
        "mean": "81.50",
        "spread_kind": "interval",
        "spread": "1.24",
        "floor": "3.05",
        "paper": "81.50",
        "paper_spread": "0.90",
        "difference": "0.00",
        "paired_to": "NLSF",
        "paired_n": "3",
        "paired_mean": "-1.50",
        "paired_half": "2.15",
        "trials": "4",
        "cell": cell.id,
    }
    assert rows["NLSF", "Cora"]["difference"] == "+0.06"
    assert rows["NLSF", "Cora"]["paired_to"] == ""
    empty = rows["NLSF", "Citeseer"]
    assert (empty["n"], empty["mean"], empty["paper"], empty["trials"]) == ("0", "", "72.13", "")


def test_latex(tmp_path):
    text = to_latex(filled(tmp_path))
    assert r"NLSF & \textbf{83.00 $\pm$ 2.48} (82.94) & (72.13) \\" in text
    assert r"GCN & $-$1.50 $\pm$ 2.15 &  \\" in text
    assert r"95 \% interval" in text
    assert "+-" not in text
    for rule in ("toprule", "midrule", "bottomrule"):
        assert text.count(f"\\{rule}") == 2
    begun = re.findall(r"\\begin\{(\w+)\}", text)
    assert sorted(begun) == sorted(re.findall(r"\\end\{(\w+)\}", text))
    rows = [line for line in text.splitlines() if line.endswith(r"\\")]
    assert {row.count("&") for row in rows} == {2}


@pytest.fixture
def nasty(tmp_path):
    columns = (Column(NASTY, {"name": "Cora"}, "random"),)
    methods = (
        Method(NASTY, "gcn", ours=True, tuned=False),
        Method("[red]x[/red]", "mlp", tuned=False),
    )
    spec = experiment(columns=columns, methods=methods, note=NASTY, title=NASTY)
    for method in methods:
        write(tmp_path, spec, method.label, NASTY, [0.5, 0.6, 0.7])
    return table_of(tmp_path, spec)


def test_no_name_breaks_markdown(nasty):
    text = to_markdown(nasty)
    assert {len(row) for row in markdown_rows(text)} == {2}
    assert not re.search(r"(?<!\\)<script", text)
    plain = re.sub(r"\\([^\w\s]|_)", r"\1", markdown_rows(text)[2][0])
    assert plain == NASTY


def test_no_name_breaks_latex(nasty):
    text = to_latex(nasty)
    rows = [line for line in text.splitlines() if line.endswith(r"\\")]
    assert {len(re.findall(r"(?<!\\)&", row)) for row in rows} == {1}
    bare = re.sub(r"\\[&%$#_{}]", "", text.replace(r"$\pm$", "").replace("$-$", ""))
    assert not re.search(r"[$#_~^%<>|]", bare)
    assert bare.count("{") == bare.count("}")


def test_no_name_breaks_csv_or_the_terminal(nasty):
    rows = csv_rows(nasty)
    assert [row["method"] for row in rows] == [NASTY, "[red]x[/red]"]
    assert "[red]x[/red]" in printed(nasty, 200)


def test_the_terminal_shows_ours_above_the_papers(tmp_path):
    lines = printed(filled(tmp_path)).splitlines()
    (at,) = (i for i, line in enumerate(lines) if line.startswith("NLSF"))
    assert lines[at].split() == ["NLSF", "83.0", "+-", "2.5"]
    assert lines[at + 1].split() == ["82.9", "+0.1", "72.1"]
    assert any(line.split() == ["GCN", "-1.5", "+-", "2.2"] for line in lines)
    assert any(line.split() == ["Floor", "3.0", "13.0"] for line in lines)


def test_worse_and_better_than_the_paper_differ_in_colour(tmp_path):
    spec = experiment()
    write(tmp_path, spec, "GCN", "Cora", [0.9, 0.9, 0.9])
    write(tmp_path, spec, "NLSF", "Cora", [0.8, 0.8, 0.8])
    text = printed(table_of(tmp_path, spec), color=True)
    assert re.search(r"\x1b\[32m ?\+8\.5", text)
    assert re.search(r"\x1b\[31m ?-2\.9", text)


def test_no_width_cuts_a_number(tmp_path):
    columns = tuple(
        Column(f"Cora {i}", {"name": "Cora"}, f"{60 + i}-20-20", paper="Cora") for i in range(8)
    )
    spec = experiment(columns=columns)
    for i, column in enumerate(columns):
        for method in ("GCN", "NLSF"):
            values = [0.7 + i / 100, 0.7 + i / 100, 0.73 + i / 100]
            write(tmp_path, spec, method, column.label, values)
    table = table_of(tmp_path, spec)
    for width in (30, 60, 80, 100, 160):
        text = printed(table, width)
        assert max(map(len, text.splitlines())) <= width
        assert "…" not in text
        for i in range(8):
            assert text.count(f"Cora {i}") == 2
            assert text.count(f"{71 + i}.0 +- 4.3") == 2


def test_six_data_sets_fit_into_100_columns(tmp_path):
    names = ("Cora", "Citeseer", "Pubmed", "Chameleon", "Squirrel", "Film")
    columns = tuple(Column(name, {"name": name}, "random") for name in names)
    spec = experiment(columns=columns, methods=(*METHODS, Method("A method with a name", "appnp")))
    for column in columns:
        for method in ("GCN", "NLSF"):
            write(tmp_path, spec, method, column.label, [0.7, 0.72, 0.74])
    heads = [line for line in printed(table_of(tmp_path, spec)).splitlines() if "Cora" in line]
    assert len(heads) == 2
    assert all("Film" in line for line in heads)


def test_all_forms_show_the_same_numbers(tmp_path):
    table = filled(tmp_path)
    markdown, latex = to_markdown(table), to_latex(table)
    for row in csv_rows(table):
        for key in ("mean", "spread", "paper", "paired_half"):
            assert row[key] in markdown
            assert row[key] in latex
