"""MATLAB files and comma-separated tables that are wrong or damaged."""

import struct

import numpy as np
import pytest
from scipy import sparse
from scipy.io import savemat

from data.bad_files import Cases
from nlsf.data.catalogue import find
from nlsf.data.own import open_dataset
from nlsf.data.readers import heterophilous
from nlsf.errors import DataError, FormatError

X = np.ones((4, 2))
Y = np.array([0, 1, 0, 1])
CASES = Cases()


# MATLAB files.


def mat(folder, **variables):
    savemat(folder / "graph.mat", variables)
    return lambda: open_dataset(folder / "graph.mat")


@CASES.case(FormatError, "has no 'A'")
def mat_without_a(folder):
    return mat(folder, X=X)


@CASES.case(FormatError, "'A' has the shape (3, 4); expected a square matrix")
def mat_not_square(folder):
    return mat(folder, A=sparse.csc_matrix(np.ones((3, 4))))


@CASES.case(FormatError, "'X' has 3 rows; expected one for each of the 4 nodes")
def mat_with_too_few_features(folder):
    return mat(folder, A=np.ones((4, 4)), X=X[:3])


@CASES.case(FormatError, "not a whole MATLAB file")
def mat_cut_short(folder):
    run = mat(folder, A=np.ones((40, 40)))
    path = folder / "graph.mat"
    path.write_bytes(path.read_bytes()[:-100])
    return run


@CASES.case(FormatError, "(variable 'A': a row index lies outside its 99 rows)")
def mat_with_indices_beyond_its_shape(folder):
    run = mat(folder, A=sparse.csc_matrix((np.ones(2), ([77, 78], [0, 1])), shape=(99, 99)))
    path = folder / "graph.mat"
    row = struct.pack("<ii", 77, 78)
    content = path.read_bytes()
    assert content.count(row) == 1
    path.write_bytes(content.replace(row, struct.pack("<ii", 77, 2**30)))
    return run


@CASES.case(FormatError, "(variable 'A': its values have the type 65289)")
def mat_with_a_type_that_does_not_exist(folder):
    run = mat(folder, A=np.ones((40, 40)))
    path = folder / "graph.mat"
    tag = struct.pack("<II", 9, 8 * 1600)
    content = path.read_bytes()
    assert content.count(tag) == 1
    path.write_bytes(content.replace(tag, struct.pack("<II", 0xFF09, 8 * 1600)))
    return run


@CASES.case(FormatError, "is a MATLAB 7.3 file")
def mat_of_a_newer_version(folder):
    header = b"MATLAB 7.3 MAT-file".ljust(124, b" ") + b"\x00\x02IM"
    (folder / "graph.mat").write_bytes(header + bytes(512))
    return lambda: open_dataset(folder / "graph.mat")


@CASES.case(FormatError, "'local_info' has the shape (3, 7); expected (4, 7)")
def facebook_with_too_few_rows(folder):
    mat(folder, A=np.ones((4, 4)), local_info=np.ones((3, 7)))
    return lambda: heterophilous.read_facebook(find("Penn94"), [folder / "graph.mat"])


@CASES.case(FormatError, "the gender of node 1 in 'local_info' is 5")
def facebook_with_a_strange_gender(folder):
    info = np.ones((4, 7))
    info[1, 1] = 5
    return mat(folder, A=np.ones((4, 4)), local_info=info)


@CASES.case(FormatError, "edge 0 of 'edge_index' joins 0 and 9")
def genius_edge_out_of_range(folder):
    mat(folder, edge_index=[[0], [9]], node_feat=X, label=Y)
    return lambda: heterophilous.read_edge_list(find("Genius"), [folder / "graph.mat"])


# Tables.


def tables(folder, features="id,age,label\na,1,x\nb,2,y\n", edges="a,b\n"):
    for name, text in (("features.csv", features), ("edges.csv", edges)):
        (folder / name).write_bytes(text if isinstance(text, bytes) else text.encode())
    return lambda: open_dataset(folder / "edges.csv")


@CASES.case(FormatError, "features.csv, line 3, column 'age': 'abc' is not a number")
def csv_text_in_a_numeric_column(folder):
    return tables(folder, "id,age,label\na,1,x\nb,abc,y\n")


@CASES.case(FormatError, "features.csv, line 3, column 'age': 'inf' is not a number")
def csv_infinite_number(folder):
    return tables(folder, "id,age,label\na,1,x\nb,inf,y\n")


@CASES.case(FormatError, "features.csv, line 2, column 'age': '' is not a number")
def csv_empty_cell(folder):
    return tables(folder, "id,age,label\na,,x\nb,1,y\n")


@CASES.case(FormatError, "features.csv, line 3 has 2 cells; expected 3")
def csv_short_line(folder):
    return tables(folder, "id,age,label\na,1,x\nb,2\n")


@CASES.case(FormatError, "features.csv, line 3: the node 'a' is there twice")
def csv_node_twice(folder):
    return tables(folder, "id,age,label\na,1,x\na,2,y\n")


@CASES.case(FormatError, "features.csv, line 1 must name the columns")
def csv_without_header(folder):
    return tables(folder, "0,1,2\n1,3,4\n", "0,1\n")


@CASES.case(FormatError, "features.csv, line 3, column 'split': 'dev' is not train, val, test")
def csv_unknown_part(folder):
    return tables(folder, "id,label,split\na,x,train\nb,y,dev\n")


@CASES.case(FormatError, "features.csv, line 3, column 'label': '-4' is not the number of a class")
def csv_negative_label(folder):
    return tables(folder, "id,label\na,0\nb,-4\n")


@CASES.case(FormatError, "features.csv, line 3, column 'target': 'high' is not a number")
def csv_text_as_target(folder):
    return tables(folder, "id,target\na,0\nb,high\n")


@CASES.case(FormatError, "edges.csv, line 3: the node 'zed' is not in")
def csv_unknown_id(folder):
    return tables(folder, edges="from,to\na,b\na,zed\n")


@CASES.case(FormatError, "edges.csv, line 1 has 4 cells; expected 2 or 3")
def csv_edges_with_four_columns(folder):
    return tables(folder, edges="a,b,1,2\n")


@CASES.case(FormatError, "edges.csv, line 1: the weight -2 is not positive")
def csv_negative_weight(folder):
    return tables(folder, edges="a,b,-2\n")


@CASES.case(FormatError, "features.csv is not a comma-separated table in UTF-8")
def csv_of_another_encoding(folder):
    return tables(folder, b"id,label\n\xff\xfe,1\n")


@CASES.case(DataError, "features.csv is missing")
def csv_without_features(folder):
    (folder / "edges.csv").write_text("a,b\n")
    return lambda: open_dataset(folder / "edges.csv")


def test_there_are_enough():
    assert len(CASES) >= 24


@pytest.mark.parametrize(("build", "kind", "message", "names"), CASES)
def test_bad_file(assert_refused, build, kind, message, names):
    assert_refused(build, kind, message, names)
