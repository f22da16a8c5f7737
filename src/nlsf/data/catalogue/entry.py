"""What the catalogue says of one data set: `Entry` and its `Statistics`.

Entries of one publisher share files, addresses, licence and reader; `CHECKSUMS` has the SHA-256,
size and path of every file.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal
from urllib.parse import quote

from nlsf.data.catalogue.files import RemoteFile

if TYPE_CHECKING:
    from nlsf.data.dataset import Level, Metric


@dataclass(frozen=True)
class Statistics:
    """Counts of a data set as its reader gives it by default; ``None`` where they do not apply.

    Attributes:
        nodes: of the one graph.
        edges: undirected, of all graphs together, without self loops and doubles.
        features: channels of the input; 0 where nodes have none.
        classes: how many there are.
        examples: nodes, graphs or signals, also those without a label.
        min_nodes: of the smallest graph.
        max_nodes: of the largest graph.
        average_nodes: over graphs, rounded to two digits.
    """

    nodes: int | None = None
    edges: int | None = None
    features: int | None = None
    classes: int | None = None
    examples: int | None = None
    min_nodes: int | None = None
    max_nodes: int | None = None
    average_nodes: float | None = None


@dataclass(frozen=True)
class Entry:
    """One data set of the catalogue.

    Attributes:
        name: as the paper writes it.
        level: what an example is: a node, a graph, or a signal on one graph.
        reader: ``"module:function"``; see `nlsf.data.catalogue.load`.
        statistics: its counts.
        protocol: how it is divided unless another protocol is asked for.
        source: who made it, and where it is published.
        licence: what is known of the terms of use.
        task: what is learned.
        files: what the reader needs, in its order; none for an embedded data set.
        directed: what it needs beside them for the option ``directed``.
        metric: what is reported first.
        homophilous: whether neighbours tend to be of one class; ``None`` where it depends.
        aliases: other names; case, spaces, ``-`` and ``_`` never matter.
        note: what a user may stumble over.
    """

    name: str
    level: Level
    reader: str
    statistics: Statistics
    protocol: str
    source: str
    licence: str
    task: Literal["classification", "regression"] = "classification"
    files: tuple[RemoteFile, ...] = ()
    directed: RemoteFile | None = None
    metric: Metric = "accuracy"
    homophilous: bool | None = None
    aliases: tuple[str, ...] = ()
    note: str = ""

    @property
    def all_files(self) -> tuple[RemoteFile, ...]:
        """Those that the reader may ask for with any options."""
        return self.files if self.directed is None else (*self.files, self.directed)


# ruff: noqa: E501 - a checksum and a path do not fit on a line.


_TABLE = """
d9ff76ae34e855cb77b0779a3a320f7f73f848901cb13352e2734c17804c4aec  3543757 fb100/Cornell5.mat
fc7243bf257155df03afbc397ab34b5f8eb8e75f40cd1603398e207a033ef50f   735150 fb100/Johns Hopkins55.mat
c350eef06b2c2a9bf8218be2b57cac6d4003d0922eb597a039e9123f75817816   252956 heterophilous/actor.npz
4c640bd2877fc4f9f101531e2f977bc16445a54e09a5cb01178df608e552f3fd   177840 heterophilous/chameleon.npz
34aea6b6888063544232100d53d4aa7e87e37953ec8dd3a7092afb25bb2f0328   191520 heterophilous/chameleon_directed.npz
bf46f07e1fb5249280447e5fe3100f3e82fc4b93ad1e13ffcfdec924b6ac0bb5    58924 heterophilous/chameleon_filtered.npz
5a2d40701407188f1661d37a326484b49cc15251e0dedaa7bd380873dac80f21    69275 heterophilous/chameleon_filtered_directed.npz
d436e3b42c0546b105241c0ab0766097074e68e55f67b133eeb9b0162e55cbd9   704277 heterophilous/squirrel.npz
3f0436486716cf77b651c372e54f6b4c2cc52262e7faeeab584a34b41bae2616   760119 heterophilous/squirrel_directed.npz
f06370ffb3116c5de8b7a600005400b2293c025e0ce2f6916d8201a825505ac7   208215 heterophilous/squirrel_filtered.npz
0526e53252f0b052124f7390829c32e923d432acaf64206191a1144a07b39620   249855 heterophilous/squirrel_filtered_directed.npz
1a1a05eab793c14bb050b398624a11b0ffd1a2953baed553b1b9bd079e2a20be  1616508 mnist/t10k-images-idx3-ubyte.gz
b91679a0acfe4ba0e50a2437a903084cba1f5f92592b016a25a7dfd00455798b     4517 mnist/t10k-labels-idx1-ubyte.gz
0b367032e93c5d0cea0925647cfdb18614af8ee15f83e6f2fc2ad904a6835971  9719438 mnist/train-images-idx3-ubyte.gz
1787548bbe0bff1ec2ecdc0ef292b02df999e2d1a6002d27500982c652b17203    28857 mnist/train-labels-idx1-ubyte.gz
2ac30345d95c9ec933a817ee0bdd6a5f077f8c184a20e696910192d534414668   595021 planetoid/ind.citeseer.allx
f704b2d986dde6c2669934de1f3ae5696a6cf9455c0f6b2646a2d135ea0a1c95    55623 planetoid/ind.citeseer.ally
d79a4ef9d3e7169aee8946145f6b7306e35bc79bffad26346cfb94e10e9912a7    61987 planetoid/ind.citeseer.graph
2af990671580b6b2df5d158d1038f8292e30c9cd821b5453f399659b25b723d4     5000 planetoid/ind.citeseer.test.index
539a8906a2da97628d212f2fdd668c109a8b3f0d36574b59e5d3fd5b5303da21   260321 planetoid/ind.citeseer.tx
55e5bd1ba1e733a04598753ad1a8d57957f4b8f89e74519f41f4f4938767e4ce    24135 planetoid/ind.citeseer.ty
d20de19150741e555de0ed037195630fc194114ebc7fd72ced62810148aa22f6    31087 planetoid/ind.citeseer.x
8ba87e515d8e3ee3cf52f6d2c5b86aa73f11ecad825a808455209ec26cd54924     3014 planetoid/ind.citeseer.y
9419ba2f26f5c35243db64aba110e0f35a04851609e0dc5433450676ca6b8543   257305 planetoid/ind.cora.allx
2b998f5cc7fedc86e7f97ca2498f47a1ffc1462c29e2d578b23bf3f62b6e7d71    47959 planetoid/ind.cora.ally
58f13302f39dde8852dad6fe6d15b89b077b6d7f837626bce671ef80344b383d    59847 planetoid/ind.cora.graph
297ce89af2b51a6a194181c7dbe1796c6a1cf9cd9349a88383b1b1e227867875     5000 planetoid/ind.cora.test.index
b9afbaa4a400df991f6f02ef677e1e44da55ffc04801fd02f9e673987829226a   148025 planetoid/ind.cora.tx
41f5ac76596a1699cc33f53084a2419e92961c42bb75f36fc38e616d348532ad    28135 planetoid/ind.cora.ty
23cfa55d91c6f624233f5eb7b6e3f141f1bd2b2ae39608a63cf5d084bb27baab    22119 planetoid/ind.cora.x
94465c14eb53e04ca262198dcbb2521ee8af60fb3f3d546cd6ca24a511b0e7d1     4054 planetoid/ind.cora.y
508e538e2abdccdd54c4d3e9f49d638b4af7107d85845f66ddea5a5152658b7e  7578385 planetoid/ind.pubmed.allx
0c37bbe3b5014ec365e9d393cf4791925e5ed94fb194305d74f064a8d7b50f0e   224739 planetoid/ind.pubmed.ally
5b89f0036ca22909471f1e6558eb42fa06e0c730a577bde5b058b40638f81dc9   471808 planetoid/ind.pubmed.graph
b101d421688bbaecbd82e8a18f1e282378d6830f3a37666f28ebc47f844341b5     6000 planetoid/ind.pubmed.test.index
4eb5f5d0f30f26497eb0ac6ac9719d09c67e284f1ed0385c93f3ef27a671da3d   405505 planetoid/ind.pubmed.tx
ee2e0d4819d9fbcc403689c3bf2e49face401b605932f093bc58ab6461130fdd    12135 planetoid/ind.pubmed.ty
fbe9cb5c47200d1b7769a26e579be3b7130b556831f9d850e77c4c74f2599b33    23172 planetoid/ind.pubmed.x
e6c807633307a07ed659249006536a147c7999c797f11a2560752990181b41b3      854 planetoid/ind.pubmed.y
5f4ca15665d5fa546be4ea9c2d22a27e64eaba204c4867fc55805c70cddb3a7c 59014130 tu/COLLAB.zip
41e78e4a2c16beb2ff1c349cdbb27057df8c05151afc9da48c72f264b232d48b   512167 tu/ENZYMES.zip
e6fa40ecec0efb37b5db5081a81ec5c06b75abc93509853b442305dba220097c   574339 tu/IMDB-BINARY.zip
1dae1b208117d8641f6135b7f793d32319a97a5a3c60ad3d2cc9e3fde109f17b   581146 tu/IMDB-MULTI.zip
125bac1b0fd5c954ac7bdf84808592a9aea99377721bb7e65cd8c3f8302c388b    24437 tu/MUTAG.zip
df02afbe0848648d731e1103f0740f85a9875469308176b61a2df94197e7aec8   801916 tu/NCI1.zip
830d8b4f9c1219e6a698b6a3c6a7dacece7942e1aa0d6b439f890238f4472748   454340 tu/PROTEINS.zip
030411d41f1d47b8788b1625a0051eff5c8cc19144369f37e14c9843bd3204e3  1443416 tu/PROTEINS_full.zip
ca49355ec207ae9c7466e76ba0226c37e9b29a2ed868856fe4f526f858dee03c    34194 tu/PTC_MR.zip
"""


def _parsed(line: str) -> tuple[str, tuple[int, str]]:
    sha256, size, path = line.split(maxsplit=2)
    return path, (int(size), sha256)


CHECKSUMS: Mapping[str, tuple[int, str]] = dict(map(_parsed, _TABLE.strip().splitlines()))
"""Size and SHA-256 by path."""


UNSTATED = "not stated by the publisher"


def file(path: str, folder: str | None, page: str) -> RemoteFile:
    """A file of the catalogue.

    Args:
        path: below the data root.
        folder: its publisher's folder, with a slash at the end; ``None`` where a person must go.
        page: its publisher's page.
    """
    size, sha256 = CHECKSUMS.get(path, (None, None))
    url = None if folder is None else folder + quote(path.rpartition("/")[2])
    return RemoteFile(path, sha256=sha256, url=url, size=size, page=page)


def planetoid(
    name: str, nodes: int, edges: int, features: int, classes: int, note: str = ""
) -> Entry:
    """A citation network of the Planetoid release, in eight files."""
    page = "https://github.com/kimiyoung/planetoid"
    parts = ("x", "tx", "allx", "y", "ty", "ally", "graph", "test.index")
    return Entry(
        name,
        "node",
        "nlsf.data.readers.planetoid:read",
        Statistics(nodes, edges, features, classes, nodes),
        protocol="random",
        source=f"Sen et al. 2008, in the form of Yang, Cohen and Salakhutdinov 2016; {page}",
        licence="MIT for the release; not stated for the texts behind it",
        files=tuple(
            file(f"planetoid/ind.{name.lower()}.{part}", f"{page}/raw/master/data/", page)
            for part in parts
        ),
        homophilous=True,
        note=note,
    )


def heterophilous(
    name: str,
    nodes: int,
    edges: int,
    features: int,
    *,
    protocol: str,
    directed: bool = True,
    aliases: tuple[str, ...] = (),
    note: str = "",
) -> Entry:
    """A network in one archive with ten dense splits, and a second one with directed links."""
    page = "https://github.com/yandex-research/heterophilous-graphs"
    folder, stem = f"{page}/raw/main/data/", name.lower().replace("-", "_")
    first = "Tang et al. 2009" if name == "Actor" else "Rozemberczki, Allen and Sarkar 2021"
    return Entry(
        name,
        "node",
        "nlsf.data.readers.heterophilous:read",
        Statistics(nodes, edges, features, 5, nodes),
        protocol=protocol,
        source=f"{first}, Pei et al. 2020, in the form of Platonov et al. 2023; {page}",
        licence="MIT",
        files=(file(f"heterophilous/{stem}.npz", folder, page),),
        directed=file(f"heterophilous/{stem}_directed.npz", folder, page) if directed else None,
        homophilous=False,
        aliases=aliases,
        note=note,
    )


def linkx(
    name: str,
    reader: str,
    statistics: Statistics,
    paths: tuple[str, ...],
    *,
    first: str,
    folder: str | None = None,
    metric: Metric = "accuracy",
    aliases: tuple[str, ...] = (),
    note: str = "",
) -> Entry:
    """A large network of the LINKX collection.

    Args:
        name: of the data set.
        reader: what its function reads, ``read_NAME`` in `nlsf.data.readers.heterophilous`.
        statistics: its counts.
        paths: its files, below the data root.
        first: who collected it.
        folder: below the publisher's data folder; ``None`` where the files lie on Google Drive.
        metric: what is reported first.
        aliases: other names.
        note: what a user may stumble over.
    """
    page = "https://github.com/CUAI/Non-Homophily-Large-Scale"
    address = None if folder is None else f"{page}/raw/master/data/{folder}"
    return Entry(
        name,
        "node",
        f"nlsf.data.readers.heterophilous:read_{reader}",
        statistics,
        protocol="50-25-25",
        source=f"{first}, in the form of Lim et al. 2021; {page}",
        licence=UNSTATED,
        files=tuple(file(path, address, page) for path in paths),
        metric=metric,
        homophilous=False,
        aliases=aliases,
        note=note,
    )


def facebook(name: str, nodes: int, edges: int, features: int) -> Entry:
    """A university's network of the Facebook-100 collection."""
    return linkx(
        name,
        "facebook",
        Statistics(nodes, edges, features, 2, nodes),
        (f"fb100/{name}.mat",),
        first="Traud, Mucha and Porter 2012",
        folder="facebook100/",
        note="The class is the gender that a user states; nodes without one have no label. "
        "Features are one-hot columns of the other five answers and the status.",
    )


def tu(
    name: str,
    graphs: int,
    edges: int,
    sizes: tuple[int, int, float],
    features: int,
    classes: int,
    *,
    first: str,
    aliases: tuple[str, ...] = (),
    note: str = "",
) -> Entry:
    """A set of graphs of the TU collection, in one archive.

    Args:
        name: of the data set and its archive.
        graphs: how many.
        edges: of all graphs together.
        sizes: nodes of the smallest graph, of the largest, and on average.
        features: channels by default.
        classes: how many.
        first: who collected it.
        aliases: other names.
        note: what a user may stumble over.
    """
    page = "https://chrsmrrs.github.io/datasets/"
    return Entry(
        name,
        "graph",
        "nlsf.data.readers.tu:read",
        Statistics(None, edges, features, classes, graphs, *sizes),
        protocol="80-10-10",
        source=f"{first}, in the collection of Morris et al. 2020; {page}",
        licence=UNSTATED,
        files=(file(f"tu/{name}.zip", "https://www.chrsmrrs.com/graphkerneldatasets/", page),),
        aliases=aliases,
        note=note,
    )
