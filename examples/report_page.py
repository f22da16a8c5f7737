"""Pages from Python: what a run learned, two runs side by side, and a page of your own charts.

Each is one HTML file that needs nothing else.
"""

from pathlib import Path

import nlsf
from nlsf.data import load
from nlsf.report import BarChart, LineChart, Page, Series, Tiles
from nlsf.spectral import laplacian, partial_eigh
from nlsf.train import train

quick = {"seeds": 2, "data": {"num_nodes": 300}, "training": {"epochs": 20}}
filters = train("csbm", quick)
network = train("csbm", {**quick, "model": {"name": "gcn"}})
print(nlsf.report(filters))  # as nlsf train writes it
print(nlsf.report([filters.folder.path, network.folder.path], "both.html"))  # paired differences

graph = load("csbm", num_nodes=300).graphs[0]
spectra = [partial_eigh(laplacian(graph, normalization=kind)) for kind in (None, "sym")]
page = Page("A graph in three pictures")
page.section(
    "Eigenvalues",
    "How the two Laplacians spread their eigenvalues.",
    Tiles([("Nodes", "300", "of three classes"), ("Edges", f"{graph.num_edges // 2}", "no loops")]),
    LineChart(
        "Eigenvalues in order",
        "Relative to the largest one. A step would be an eigenvalue that repeats.",
        "number",
        "eigenvalue / largest",
        [Series(s.name, range(300), (s.values / s.lam_max).tolist()) for s in spectra],
    ),
)
page.section(
    "Accuracy",
    "Means over two splits.",
    BarChart(
        "Test accuracy",
        "Higher is better.",
        "model",
        "accuracy",
        ["NLSF", "GCN"],
        [("test", [run.summary()[0] for run in (filters, network)])],
        percent=True,
    ),
)
print(page.write(Path("graph.html")))
