"""What entries of one publisher share: files, addresses, licence and reader."""

from __future__ import annotations

from typing import TYPE_CHECKING
from urllib.parse import quote

from nlsf.data.checksums import CHECKSUMS
from nlsf.data.entry import Entry, Statistics
from nlsf.data.files import RemoteFile

if TYPE_CHECKING:
    from nlsf.data.dataset import Metric

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
        reader: its module in ``nlsf.data.readers``.
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
        f"nlsf.data.readers.{reader}:read",
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
