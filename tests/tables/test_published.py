from pathlib import Path

import pytest

from nlsf.errors import ConfigError, DataError, FormatError
from nlsf.tables.fill.results import Published, PublishedValue
from nlsf.tables.spec.spec_file import read_experiment
from tables.spec_texts import DATA, GCN, experiment

FILE = Path(__file__).parents[2] / "experiments" / "published.csv"
HEAD = "table,method,dataset,value,spread,unit\n"


def read(tmp_path, text):
    path = tmp_path / "published.csv"
    path.write_text(text)
    return Published.read(path)


def test_numbers_of_the_paper():
    published = Published.read(FILE)
    assert len(published.values) == 919
    assert published.value("node-main", "GCN", "Cora") == PublishedValue(81.92, 0.9)
    both = "att(Theta_ind(L), Theta_val(L))"
    assert published.value("node-ablation", both, "Cora") == PublishedValue(82.46, 1.2)
    assert published.value("mnist-perturbed-grid", "NLSF", "MNIST") == PublishedValue(99.19, None)
    assert published.value("runtime", "GCN", "Cora", unit="total_s") == PublishedValue(2.1)
    assert published.value("runtime", "GCN", "Cora") is None
    assert [key[0] for key, value in published.values.items() if value is None]
    assert published.value("node-main", "GCN", "MUTAG") is None


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("", "line 1: expected table,method,"),
        ("method,table\n", "line 1: expected table,method,"),
        (HEAD + "t,m,d,1.0,0.1,u,x\n", "line 2: expected 6 fields, not 7"),
        (HEAD + "t,m,d,1.0,0.1,u\nt,m,d,many,0.1,u\n", "line 3: value must be a number"),
        (HEAD + "t,m,d,1.0,nan,u\n", "line 2: spread must be a number, not 'nan'"),
        (HEAD + "t,m,d,,0.1,u\n", "line 2: value must be a number, not ''"),
        (HEAD + "t,m,d,1.0,0.1,u\nt,m,d,2.0,,u\n", "line 3: t, m, d, u stands there twice"),
        (HEAD + 't,"m,d\n', "is not a CSV file"),
    ],
)
def test_a_wrong_file_is_refused_by_line(tmp_path, text, says):
    with pytest.raises(FormatError) as error:
        read(tmp_path, text)
    assert says in str(error.value)
    assert "published.csv" in str(error.value)


def test_a_missing_or_binary_or_huge_file_is_refused(tmp_path):
    with pytest.raises(DataError, match="There is no file"):
        Published.read(tmp_path / "published.csv")
    (tmp_path / "published.csv").write_bytes(HEAD.encode() + b"\xff\xfe\n")
    with pytest.raises(FormatError, match="is not a CSV file in UTF-8"):
        Published.read(tmp_path / "published.csv")
    (tmp_path / "published.csv").write_bytes(b"0" * (2**22 + 1))
    with pytest.raises(FormatError, match="larger than 4 MiB"):
        Published.read(tmp_path / "published.csv")


@pytest.mark.parametrize(
    ("paper", "row", "column", "says"),
    [
        ("node-mian", "GCN", "Cora", "no published table 'node-mian'. Did you mean 'node-main'"),
        ("node-main", "GCM", "Cora", "no method in the paper's node-main 'GCM'"),
        ("node-main", "GCN", "MUTAG", "no data set in the paper's node-main 'MUTAG'"),
    ],
)
def test_names_that_the_paper_does_not_have_are_refused(tmp_path, paper, row, column, says):
    path = tmp_path / "small.toml"
    data, method = DATA + f'paper = "{column}"\n', GCN + f'paper = "{row}"\n'
    path.write_text(experiment(data, method, top=f'title = "T"\npaper = "{paper}"'))
    with pytest.raises(ConfigError) as error:
        Published.read(FILE).check(read_experiment(path))
    assert says in str(error.value)


def test_names_that_the_paper_has_are_not(tmp_path):
    path = tmp_path / "small.toml"
    data, method = DATA + 'paper = "Cora"\n', GCN + 'paper = "GCN"\n'
    path.write_text(experiment(data, method, top='title = "T"\npaper = "node-main"'))
    Published.read(FILE).check(read_experiment(path))
    path.write_text(experiment(DATA, GCN))
    Published({}).check(read_experiment(path))
