"""The catalogue: a table of every data set that can be asked for by name."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from nlsf.data.catalogue.entry import (
    UNSTATED,
    Entry,
    Statistics,
    facebook,
    file,
    heterophilous,
    linkx,
    planetoid,
    tu,
)

_DIGITS = "Alpaydin and Kaynak 1998, as scikit-learn includes it; https://scikit-learn.org"
_DIGITS_LICENCE = "CC BY 4.0 (UCI Machine Learning Repository)"
_GENERATED = "generated on this machine"
_DIRECTED_LINKS = "Links are directed in the files; the graph joins both ends of each once."
_DUPLICATES = (
    "Many nodes are duplicates that fall into both training and test: what a dense split measures "
    "is decided by them. The filtered version is without."
)

_ENTRIES = (
    planetoid("Cora", 2708, 5278, 1433, 7),
    planetoid(
        "Citeseer",
        3327,
        4552,
        3703,
        6,
        note="The index of test nodes skips 15 nodes: they have zero features and no label.",
    ),
    planetoid(
        "Pubmed",
        19717,
        44324,
        500,
        3,
        note="The paper's Tab. 5 prints 5 classes; the files have 3. Three self loops are dropped.",
    ),
    heterophilous("Chameleon", 2277, 31371, 2325, protocol="sparse", note=_DUPLICATES),
    heterophilous("Squirrel", 5201, 198353, 2089, protocol="sparse", note=_DUPLICATES),
    heterophilous("Actor", 7600, 26659, 932, protocol="sparse", directed=False, aliases=("film",)),
    heterophilous("Chameleon-filtered", 890, 8854, 2325, protocol="dense"),
    heterophilous("Squirrel-filtered", 2223, 46998, 2089, protocol="dense"),
    facebook("Penn94", 41554, 1362229, 4814),
    linkx(
        "Pokec",
        "edge_list",
        Statistics(1632803, None, 65, 2, 1632803),
        ("linkx/pokec.mat",),
        first="Takac and Zabovsky 2012",
        note=f"The publisher counts 30,622,564 directed links. {_DIRECTED_LINKS}",
    ),
    linkx(
        "Genius",
        "edge_list",
        Statistics(421961, None, 12, 2, 421961),
        ("linkx/genius.mat",),
        first="Lim and Benson 2021",
        folder="",
        metric="roc_auc",
        note=f"The publisher counts 984,979 directed links. {_DIRECTED_LINKS}",
    ),
    linkx(
        "Twitch-Gamers",
        "twitch",
        Statistics(168114, 6797557, 7, 2, 168114),
        ("linkx/twitch-gamer_feat.csv", "linkx/twitch-gamer_edges.csv"),
        first="Rozemberczki and Sarkar 2021",
        aliases=("twitch-gamer", "twitch"),
        note="The class says whether a channel has mature content.",
    ),
    linkx(
        "Wiki",
        "wiki",
        Statistics(1925342, None, 600, 5, 1925342),
        ("linkx/wiki_features2M.pt", "linkx/wiki_edges2M.pt", "linkx/wiki_views2M.pt"),
        first="Wikipedia",
        note=f"The publisher counts 303,434,860 directed links: edges and features take more "
        f"than 14 GB of memory. {_DIRECTED_LINKS}",
    ),
    facebook("Cornell5", 18660, 790777, 4735),
    facebook("Johns Hopkins55", 5180, 186586, 2406),
    tu("MUTAG", 188, 3721, (10, 28, 17.93), 7, 2, first="Debnath et al. 1991"),
    tu(
        "PTC_MR",
        344,
        5054,
        (2, 64, 14.29),
        18,
        2,
        first="Helma et al. 2001",
        aliases=("ptc",),
        note="The paper calls it PTC.",
    ),
    tu(
        "ENZYMES",
        600,
        37282,
        (2, 126, 32.63),
        18,
        6,
        first="Borgwardt et al. 2005",
        note="Features are the 18 attributes that the paper counts; with nodes='both' the 3 node "
        "labels follow. One graph has 2 nodes.",
    ),
    tu(
        "PROTEINS",
        1113,
        81044,
        (4, 620, 39.06),
        4,
        2,
        first="Borgwardt et al. 2005",
        note="Features are 1 attribute and 3 node labels. The 29 features in the paper's Tab. 6 "
        "are those of PROTEINS_full.",
    ),
    tu(
        "PROTEINS_full",
        1113,
        81044,
        (4, 620, 39.06),
        29,
        2,
        first="Borgwardt et al. 2005",
        note="What the paper's Tab. 6 calls PROTEINS.",
    ),
    tu("NCI1", 4110, 132753, (3, 111, 29.87), 37, 2, first="Wale, Watson and Karypis 2008"),
    tu(
        "IMDB-BINARY",
        1000,
        96531,
        (12, 136, 19.77),
        0,
        2,
        first="Yanardag and Vishwanathan 2015",
        aliases=("imdb-b",),
        note="Nodes have no features: ask for degrees. The file lists every edge twice.",
    ),
    tu(
        "IMDB-MULTI",
        1500,
        98903,
        (7, 89, 13.0),
        0,
        3,
        first="Yanardag and Vishwanathan 2015",
        aliases=("imdb-m",),
        note="Nodes have no features: ask for degrees. The file lists every edge twice.",
    ),
    tu(
        "COLLAB",
        5000,
        12286079,
        (32, 492, 74.49),
        0,
        3,
        first="Yanardag and Vishwanathan 2015",
        note="Nodes have no features: ask for degrees. 2,837 self loops are dropped. Graphs have "
        "74.4948 nodes on average; the paper's Tab. 6 prints 74.50.",
    ),
    Entry(
        "MNIST",
        "signal",
        "nlsf.data.readers.images:read_mnist",
        Statistics(784, 1512, 1, 10, 70000),
        protocol="public",
        source="LeCun, Cortes and Burges 1998; https://yann.lecun.com/exdb/mnist",
        licence=f"{UNSTATED}; often given as CC BY-SA 3.0",
        files=tuple(
            file(
                f"mnist/{part}-ubyte.gz",
                "https://ossci-datasets.s3.amazonaws.com/mnist/",
                "https://yann.lecun.com/exdb/mnist",
            )
            for part in (
                "train-images-idx3",
                "train-labels-idx1",
                "t10k-images-idx3",
                "t10k-labels-idx1",
            )
        ),
        note="Pixels are the nodes of a 28 x 28 grid, images the signals on it.",
    ),
    Entry(
        "digits",
        "node",
        "nlsf.data.readers.images:read_digits",
        Statistics(1797, 12339, 64, 10, 1797),
        protocol="random",
        source=_DIGITS,
        licence=_DIGITS_LICENCE,
        homophilous=True,
        note="Images are nodes, each joined to the 10 most alike.",
    ),
    Entry(
        "digits-grid",
        "signal",
        "nlsf.data.readers.images:read_digits_grid",
        Statistics(64, 112, 1, 10, 1797),
        protocol="80-10-10",
        source=_DIGITS,
        licence=_DIGITS_LICENCE,
        note="Pixels are the nodes of an 8 x 8 grid, images the signals on it.",
    ),
    Entry(
        "digits-graphs",
        "graph",
        "nlsf.data.readers.images:read_digits_graphs",
        Statistics(None, 105953, 3, 10, 1797, 16, 34, 25.12),
        protocol="80-10-10",
        source=_DIGITS,
        licence=_DIGITS_LICENCE,
        note="Each image is a graph of its bright pixels.",
    ),
    Entry(
        "csbm",
        "node",
        "nlsf.data.generators:read_csbm",
        Statistics(1000, 4948, 16, 3, 1000),
        protocol="60-20-20",
        source=f"{_GENERATED}: contextual stochastic block model, Deshpande et al. 2018",
        licence="none needed",
        note="Size, homophily and all else are options; the counts are those of the defaults.",
    ),
    Entry(
        "geometric",
        "node",
        "nlsf.data.generators:read_geometric",
        Statistics(1000, 3730, 8, None, 1000),
        protocol="60-20-20",
        source=f"{_GENERATED}: random geometric graph in the unit square",
        licence="none needed",
        task="regression",
        metric="rmse",
        aliases=("random-geometric",),
        note="Size and all else are options; the counts are those of the defaults.",
    ),
    Entry(
        "torus",
        "node",
        "nlsf.data.generators:read_torus",
        Statistics(1024, 2048, 1, None, 1024),
        protocol="60-20-20",
        source=f"{_GENERATED}: grid that wraps around in both directions",
        licence="none needed",
        task="regression",
        metric="rmse",
        note="Size and all else are options; the counts are those of the defaults.",
    ),
)

CATALOGUE: Mapping[str, Entry] = MappingProxyType({entry.name: entry for entry in _ENTRIES})
"""Every data set by its name, in the order of the documentation."""
