"""Collections of graphs that are wrong, damaged or malicious."""

import stat
import zipfile

import pytest

from data.bad_files import Cases
from nlsf.data.own import open_dataset
from nlsf.data.readers import tu
from nlsf.errors import ConfigError, FormatError

CASES = Cases()
TOY = {
    "A": "1, 2\n2, 1\n3, 4\n",
    "graph_indicator": "1\n1\n2\n2\n",
    "graph_labels": "0\n1\n",
    "node_attributes": "0.5\n1\n2\n3\n",
}


def collection(folder, **change):
    for kind, text in {**TOY, **change}.items():
        if text is not None:
            (folder / f"TOY_{kind}.txt").write_text(text)
    return lambda: open_dataset(folder)


@CASES.case(FormatError, "TOY_A.txt, line 3 names node 4, but graph_indicator has nodes 1 to 3")
def tu_indicator_too_short(folder):
    return collection(folder, graph_indicator="1\n1\n2\n", node_attributes=None)


@CASES.case(FormatError, "TOY_A.txt, line 2 names node 0")
def tu_edge_out_of_range(folder):
    return collection(folder, A="1, 2\n0, 1\n")


@CASES.case(FormatError, "TOY_A.txt, line 2 joins nodes 2 and 3 of two different graphs")
def tu_edge_between_graphs(folder):
    return collection(folder, A="1, 2\n2, 3\n")


@CASES.case(FormatError, "TOY_A.txt, line 2: 'two' is not a whole number")
def tu_edge_of_text(folder):
    return collection(folder, A="1, 2\n2, two\n")


@CASES.case(
    FormatError, "TOY_graph_indicator.txt, line 3: graphs must be numbered from 1, in order"
)
def tu_graphs_out_of_order(folder):
    return collection(folder, graph_indicator="1\n1\n3\n2\n")


@CASES.case(FormatError, "TOY_graph_labels.txt has 3 lines, but there are 2 graphs")
def tu_too_many_labels(folder):
    return collection(folder, graph_labels="0\n1\n1\n")


@CASES.case(FormatError, "has no TOY_graph_labels.txt")
def tu_without_labels(folder):
    return collection(folder, graph_labels=None)


@CASES.case(FormatError, "TOY_node_attributes.txt: feature 0 of node 1 in 'node_attributes' is nan")
def tu_nan_attribute(folder):
    return collection(folder, node_attributes="0.5\nnan\n2\n3\n")


@CASES.case(ConfigError, "TOY has no node labels", names="TOY")
def tu_features_that_are_not_there(folder):
    collection(folder)
    return lambda: tu.read_collection(folder, nodes="labels")


@CASES.case(
    ConfigError, "There is no choice of node features 'label'. Did you mean 'labels'?", names=""
)
def tu_unknown_choice(folder):
    collection(folder)
    return lambda: tu.read_collection(folder, nodes="label")


# Archives.


def archive(folder, *extra, content=b"1"):
    path = folder / "TOY.zip"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as file:
        for kind, text in TOY.items():
            file.writestr(f"TOY/TOY_{kind}.txt", text)
        for name in extra:
            file.writestr(name, content)
    return lambda: open_dataset(path)


@CASES.case(FormatError, "would lie outside its folder")
def zip_slip(folder):
    return archive(folder, "../../evil.txt")


@CASES.case(FormatError, "would lie outside its folder")
def zip_with_an_absolute_name(folder):
    return archive(folder, "/tmp/evil.txt")


@CASES.case(FormatError, "bytes of content")
def zip_bomb(folder):
    return archive(folder, "TOY/TOY_node_labels.txt", content=bytes(32 << 20))


@CASES.case(FormatError, "is a link or a device")
def zip_with_a_symlink(folder):
    link = zipfile.ZipInfo("TOY/TOY_node_labels.txt")
    link.external_attr = (stat.S_IFLNK | 0o777) << 16
    return archive(folder, link, content=b"/etc/passwd")


@CASES.case(FormatError, "is encrypted")
def zip_encrypted(folder):
    run = archive(folder)
    path = folder / "TOY.zip"
    content = bytearray(path.read_bytes())
    content[content.index(b"PK\x01\x02") + 8] |= 1
    path.write_bytes(content)
    return run


@CASES.case(FormatError, "not a whole zip archive")
def zip_cut_short(folder):
    run = archive(folder)
    path = folder / "TOY.zip"
    path.write_bytes(path.read_bytes()[:-30])
    return run


@CASES.case(FormatError, "has no NAME_A.txt")
def zip_of_something_else(folder):
    with zipfile.ZipFile(folder / "TOY.zip", "w") as file:
        file.writestr("readme.txt", "hello")
    return lambda: open_dataset(folder / "TOY.zip")


def test_there_are_enough():
    assert len(CASES) >= 17


@pytest.mark.parametrize(("build", "kind", "message", "names"), CASES)
def test_bad_file(assert_refused, build, kind, message, names):
    assert_refused(build, kind, message, names)
