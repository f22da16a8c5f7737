"""Tables for people keep every name and number, in a terminal of any width and in a pipe."""

import io

import pytest
from rich.console import Console

from nlsf.display.text_table import Head, Sheet, TextTable, csv_text

NAMES = ("gprgnn", "residual-attention", "a name of four words")
TABLE = TextTable(
    [Head("model"), Head("test\n(%)", number=True), Head("which is", least=10), Head("time")],
    [[name, "81.25 +- 0.40", "not clearly another", "12 s"] for name in NAMES],
)


def printed(table, width=80, terminal=True):
    console = Console(file=io.StringIO(), width=width, force_terminal=terminal, color_system=None)
    table.print(console)
    return console.file.getvalue()


@pytest.mark.parametrize("width", [30, 40, 50, 60, 80])
def test_a_narrow_terminal_cuts_no_name_and_no_number(width):
    text = printed(TABLE, width)
    for name in NAMES:
        assert name in text
    assert text.count("81.25 +- 0.40") == 3
    assert text.count("12 s") == 3
    assert max(map(len, text.splitlines())) <= max(width, 35)  # a name and a number


def test_texts_that_may_be_broken_give_way_first():
    assert printed(TABLE, 80).count("not clearly another") == 3
    lines = printed(TABLE, 55).splitlines()
    assert lines[1].split() == ["(%)"]
    assert lines[3].split()[-4:] == ["not", "clearly", "12", "s"]
    assert lines[4].split() == ["another"]


def test_what_is_no_terminal_gets_lines_of_any_length():
    assert printed(TABLE, 20, terminal=False) == printed(TABLE, 200)
    note = "word " * 60
    wide = printed(TextTable(TABLE.columns, TABLE.rows, notes=[note]), 20, terminal=False)
    assert note in wide


def test_cells_of_several_lines_stand_below_each_other():
    cell = [[("81.5", "best"), ("n = 2", "")], [("82.9", "dim"), ("-1.4", "red")]]
    table = TextTable(
        [Head("model"), Head("Cora", number=True)], [["gcn", cell], None, ["mlp", ""]]
    )
    lines = [line.split() for line in printed(table).splitlines()]
    assert lines[2:4] == [["gcn", "81.5", "n", "=", "2"], ["82.9", "-1.4"]]
    assert set(lines[4][0]) == {"─"}
    assert lines[5] == ["mlp"]
    sheet = Sheet("T", [table])
    assert "| gcn | **81.5** n = 2 82.9 -1.4 |\n| mlp |  |" in sheet.markdown()
    assert "gcn & \\textbf{81.5} n = 2 82.9 $-$1.4 \\\\\nmlp &  \\\\" in sheet.latex()


def test_short_heads_say_which_columns_are_numbers():
    table = TextTable.of("name", "count>", rows=[["a", "1"]])
    assert [head.number for head in table.columns] == [False, True]
    assert Sheet("", [table]).markdown().splitlines()[1] == "| --- | ---: |"


def test_what_is_unknown_is_empty_in_csv():
    rows = [{"a": 1, "b": None, "c": float("nan"), "other": 2}, {"a": 0.12345678, "c": "x,y"}]
    assert csv_text(("a", "b", "c"), rows) == 'a,b,c\n1,,\n0.123457,,"x,y"\n'
