"""NumPy archives that are wrong, damaged or malicious."""

import struct
import zipfile

import numpy as np
import pytest

from data.bad_files import Cases, Evil
from nlsf.data.catalogue import find
from nlsf.data.own import open_dataset
from nlsf.data.readers import heterophilous
from nlsf.errors import ConfigError, FormatError

EDGES = np.array([[0, 1], [1, 2], [2, 3]])
X = np.ones((4, 2))
Y = np.array([0, 1, 0, 1])
ONE = np.eye(4, dtype=bool)
MASKS = {f"{part}_masks": ONE[k : k + 1] for k, part in enumerate(("train", "val", "test"))}
CASES = Cases()


def npz(folder, **change):
    arrays = {"edges": EDGES, "node_features": X, "node_labels": Y, **MASKS, **change}
    path = folder / "graph.npz"
    np.savez(path, **{name: array for name, array in arrays.items() if array is not None})
    return lambda: open_dataset(path)


@CASES.case(FormatError, "not a whole .npz archive")
def npz_cut_short(folder):
    npz(folder)
    path = folder / "graph.npz"
    path.write_bytes(path.read_bytes()[:-200])
    return lambda: open_dataset(path)


@CASES.case(FormatError, "not a whole .npz archive (reading 'node_features')")
def npz_with_a_flipped_byte(folder):
    run = npz(folder)
    path = folder / "graph.npz"
    content = bytearray(path.read_bytes())
    with zipfile.ZipFile(path) as archive:
        member = archive.getinfo("node_features.npy")
    content[member.header_offset + 200] ^= 255
    path.write_bytes(content)
    return run


@CASES.case(FormatError, "not a whole .npz archive")
def npz_that_is_text(folder):
    (folder / "graph.npz").write_text("edges")
    return lambda: open_dataset(folder / "graph.npz")


def changed_member(folder, old, new):
    """The archive with other bytes in the header of its edges, and a checksum that is right."""
    run = npz(folder)
    path = folder / "graph.npz"
    with zipfile.ZipFile(path) as archive:
        members = {name: archive.read(name) for name in archive.namelist()}
    assert len(old) == len(new)
    assert members["edges.npy"].count(old) == 1
    members["edges.npy"] = members["edges.npy"].replace(old, new)
    with zipfile.ZipFile(path, "w") as archive:
        for name, content in members.items():
            archive.writestr(name, content)
    return run


@CASES.case(FormatError, "not a whole .npz archive (reading 'edges')")
def npz_header_that_never_ends(folder):
    return changed_member(folder, b"}", b"{")


@CASES.case(FormatError, "not a whole .npz archive (reading 'edges')")
def npz_shape_beyond_64_bits(folder):
    return changed_member(folder, b"(3, 2), }" + b" " * 20, b"(" + b"9" * 24 + b",)} ")


@CASES.case(FormatError, "'edges' holds Python objects")
def npz_of_objects(folder):
    return npz(folder, edges=np.array([Evil()], dtype=object))


@CASES.case(FormatError, "bytes of arrays; at most 8 GiB are read")
def npz_bomb(folder):
    path = folder / "graph.npz"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("edges.npy", b"\x93NUMPY")
    content = path.read_bytes()
    entry_at, end_at = content.index(b"PK\x01\x02"), content.index(b"PK\x05\x06")
    entry, end = bytearray(content[entry_at:end_at]), bytearray(content[end_at:])
    # The directory of the archive has three entries, each of which declares 4 GiB.
    entry[24:28] = struct.pack("<I", 2**32 - 2)
    end[8:16] = struct.pack("<HHI", 3, 3, 3 * len(entry))
    path.write_bytes(content[:entry_at] + 3 * entry + end)
    return lambda: open_dataset(path)


@CASES.case(FormatError, "has no 'edges'")
def npz_without_edges(folder):
    return npz(folder, edges=None)


@CASES.case(FormatError, "has both 'node_features' and 'x'")
def npz_with_two_features(folder):
    return npz(folder, x=X)


@CASES.case(FormatError, "'edges' has the shape (3, 3); expected (E, 2)")
def npz_edges_of_wrong_shape(folder):
    return npz(folder, edges=np.zeros((3, 3), dtype=int))


@CASES.case(FormatError, "edge 1 of 'edges' joins 1 and 4, but nodes are numbered 0 to 3")
def npz_edge_out_of_range(folder):
    return npz(folder, edges=np.array([[0, 1], [1, 4]]))


@CASES.case(FormatError, "edge 0 of 'edges' joins -1 and 1")
def npz_negative_node(folder):
    return npz(folder, edges=np.array([[-1, 1], [1, 2]]))


@CASES.case(FormatError, "'edges' holds float64 values; expected whole numbers")
def npz_edges_of_floats(folder):
    return npz(folder, edges=EDGES + 0.5)


@CASES.case(FormatError, "feature 1 of node 2 in 'node_features' is nan")
def npz_nan_feature(folder):
    x = X.copy()
    x[2, 1] = np.nan
    return npz(folder, node_features=x)


@CASES.case(FormatError, "feature 0 of node 3 in 'node_features' is 1e+300")
def npz_feature_beyond_float32(folder):
    x = X.copy()
    x[3, 0] = 1e300
    return npz(folder, node_features=x)


@CASES.case(FormatError, "'node_features' holds <U1 values; expected numbers")
def npz_features_of_text(folder):
    return npz(folder, node_features=np.full((4, 2), "a"))


@CASES.case(FormatError, "'node_features' has the shape (4, 2, 1); expected (nodes, F)")
def npz_features_of_three_dimensions(folder):
    return npz(folder, node_features=X[..., None])


@CASES.case(FormatError, "'node_labels' has the shape (3,); expected (4,)")
def npz_too_few_labels(folder):
    return npz(folder, node_labels=Y[:3])


@CASES.case(FormatError, "label 1 of 'node_labels' is -3")
def npz_negative_label(folder):
    return npz(folder, node_labels=np.array([0, -3, 0, 1]))


@CASES.case(FormatError, "label 2 of 'node_labels' is 100000")
def npz_label_beyond_the_nodes(folder):
    return npz(folder, node_labels=np.array([0, 1, 100_000, 1]))


@CASES.case(FormatError, "are -1 and 1, but -1 is for labels that are not known")
def npz_labels_plus_and_minus(folder):
    return npz(folder, node_labels=np.array([-1, 1, -1, 1]))


@CASES.case(FormatError, "the masks of split 0 overlap: node 0 is in two of them")
def npz_masks_that_overlap(folder):
    return npz(folder, val_masks=ONE[0:1])


@CASES.case(FormatError, "'train_masks' of split 0 is empty")
def npz_empty_training_mask(folder):
    return npz(folder, train_masks=np.zeros((1, 4), dtype=bool))


@CASES.case(FormatError, "'val_masks' has the shape (5, 1); expected (splits, 4)")
def npz_mask_of_wrong_shape(folder):
    return npz(folder, val_masks=np.zeros((1, 5), dtype=bool))


@CASES.case(FormatError, "'train_masks' of split 0 has node 0, whose label is not known")
def npz_training_without_label(folder):
    return npz(folder, node_labels=np.array([-1, 1, 0, 1]))


@CASES.case(FormatError, "the weight of edge 2 is nan; weights must be positive")
def npz_nan_weight(folder):
    return npz(folder, edge_weight=np.array([1, 1, np.nan]))


@CASES.case(FormatError, "the weight of edge 1 is 1e+300; weights must be positive and finite")
def npz_weight_that_does_not_fit_32_bits(folder):
    return npz(folder, edge_weight=np.array([1, 1e300, 1]))


@CASES.case(FormatError, "the weight of edge 0 is 1e-300; weights must be positive")
def npz_weight_that_vanishes_in_32_bits(folder):
    return npz(folder, edge_weight=np.array([1e-300, 1, 1]))


@CASES.case(FormatError, "has the weights 1 and 2; an undirected edge has one")
def npz_weights_that_disagree(folder):
    edges = np.array([[0, 1], [1, 0]])
    return npz(folder, edges=edges, edge_weight=np.array([1.0, 2.0]))


@CASES.case(FormatError, "has no 'train_masks'")
def published_npz_without_masks(folder):
    npz(folder, train_masks=None)
    return lambda: heterophilous.read(find("Actor"), [folder / "graph.npz"])


@CASES.case(ConfigError, "Actor has no file with directed links", names="Actor")
def directed_links_that_are_not_there(folder):
    npz(folder)
    return lambda: heterophilous.read(find("Actor"), [folder / "graph.npz"], directed=True)


def test_there_are_enough():
    assert len(CASES) >= 27


@pytest.mark.parametrize(("build", "kind", "message", "names"), CASES)
def test_bad_file(assert_refused, build, kind, message, names):
    assert_refused(build, kind, message, names)
