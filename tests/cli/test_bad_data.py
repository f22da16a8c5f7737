"""Wrong files of data: one sentence or two on stderr, and nothing half written."""

import pickle
import zipfile

import numpy as np
import pytest

from cli.bad_input import Cases

EDGES = np.array([[i, (i + 1) % 10] for i in range(10)])
X = np.ones((10, 2), dtype=np.float32)
Y = np.arange(10) % 2
CASES = Cases()


def npz(folder, **change):
    arrays = {"edges": EDGES, "node_features": X, "node_labels": Y, **change}
    np.savez(folder / "g.npz", **{k: v for k, v in arrays.items() if v is not None})
    return ["train", "g.npz"]


@CASES.case("not a whole .npz archive")
def npz_truncated(folder):
    words = npz(folder)
    (folder / "g.npz").write_bytes((folder / "g.npz").read_bytes()[:-100])
    return words


@CASES.case("expected (E, 2)")
def npz_edges_of_wrong_shape(folder):
    return npz(folder, edges=np.zeros((4, 3), dtype=int))


@CASES.case("has the shape (7,); expected (10,)")
def npz_labels_of_wrong_shape(folder):
    return npz(folder, node_labels=Y[:7])


@CASES.case("feature 1 of node 4 in 'node_features' is nan")
def npz_nan_features(folder):
    x = X.copy()
    x[4, 1] = np.nan
    return npz(folder, node_features=x)


@CASES.case("label 0 of 'node_labels' is -5")
def npz_labels_out_of_range(folder):
    return npz(folder, node_labels=Y - 5)


@CASES.case("numbered 0 to 9")
def npz_edges_out_of_range(folder):
    return npz(folder, edges=EDGES + 5)


@CASES.case("holds Python objects")
def npz_with_pickles(folder):
    return npz(folder, node_labels=np.array([Evil()], dtype=object))


@CASES.case("has a label: there is none to split")
def npz_without_labels(folder):
    return npz(folder, node_labels=None)


@CASES.case("nowhere.npz")
def file_missing(folder):
    return ["train", "nowhere.npz"]


@CASES.case("is not of a kind that can be read")
def folder_in_the_place_of_a_file(folder):
    (folder / "g.npz").mkdir()
    return ["train", "g.npz"]


@CASES.case("cannot be set for g.npz")
def option_of_a_file(folder):
    return [*npz(folder), "--set", "data.num_nodes=3"]


@CASES.case("line 3")
def csv_with_a_bad_line(folder):
    (folder / "edges.csv").write_text("a,b\nb,a\n")
    (folder / "features.csv").write_text("id,f,label\na,1,x\nb,one,y\n")
    return ["train", "edges.csv"]


@CASES.case("features.csv is missing")
def csv_without_features(folder):
    (folder / "edges.csv").write_text("a,b\n")
    return ["train", "edges.csv"]


class Evil:
    def __reduce__(self):
        return print, ("this must not run",)


@CASES.case("ind.cora.test.index is not the published file of Cora")
def planetoid_with_a_malicious_pickle(folder):
    root = folder / "root" / "planetoid"
    root.mkdir(parents=True)
    for end in ("x", "tx", "allx", "y", "ty", "ally", "graph"):
        (root / f"ind.cora.{end}").write_bytes(pickle.dumps(Evil()))
    (root / "ind.cora.test.index").write_text("0\n")
    return ["train", "cora", "--offline"]


def tu_zip(folder, members):
    with zipfile.ZipFile(folder / "T.zip", "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in members.items():
            archive.writestr(name, content)
    return ["train", "T.zip"]


@CASES.case("would lie outside its folder")
def zip_slip(folder):
    return tu_zip(folder, {"T/T_A.txt": "1, 2\n", "../../slipped.txt": "x"})


@CASES.case("30,000,000 bytes of content")
def zip_bomb(folder):
    return tu_zip(folder, {"T/T_A.txt": b"1" * 30_000_000})


@CASES.case("T.zip")
def zip_that_is_none(folder):
    (folder / "T.zip").write_text("PK")
    return ["train", "T.zip"]


@CASES.case("ind.cora.x")
def offline_with_missing_files(folder):
    return ["train", "cora", "--offline", "--data-root", folder / "root"]


@CASES.case("is not a folder")
def data_root_that_is_a_file(folder):
    (folder / "root").write_text("")
    return ["train", "cora", "--offline"]


@pytest.mark.parametrize(("build", "says", "code"), CASES)
def test_bad_input(assert_refused, here, build, says, code):
    assert_refused(build(here), says, code)


def test_the_cases_are_many():
    assert len(CASES) >= 19
