"""A page that has every kind of chart, with data of the size and shape that runs have."""

from __future__ import annotations

import numpy as np

from nlsf.report.charts import (
    BarChart,
    DataTable,
    GraphDrawing,
    HeatMap,
    LineChart,
    Pictures,
    Region,
    Series,
    Tiles,
)
from nlsf.report.page import Page


def demo_page() -> Page:
    """Sections as a report has them."""
    page = Page(
        "NodeNLSF on Cora", "2,708 papers, 5,278 citations, 7 subjects; ten seeds, one graph."
    )
    page.section("Overview", "What came out, and how long it took.", _tiles(), _seeds(), _sizes())
    page.section(
        "Learning curves",
        "How the loss fell while the model learned, and where it was best.",
        _loss(),
        _scatter(),
    )
    page.section("Spectrum and bands", "The graph seen as frequencies.", _spectrum(), _density())
    page.section("The filter", "What the model does with each band.", _energy(), _gains())
    page.section("Mistakes", "", _confusion())
    page.section("The graph", "A part of the graph, drawn.", graph(120, 7))
    page.section("Pictures", "Signals on a grid.", pictures(), pictures(moving=True))
    page.section("Configuration", "What the run was told.", _table())
    return page


def graph(n: int, classes: int, *, edges: int = 3, seed: int = 0) -> GraphDrawing:
    """Nodes on noisy rings, each joined to nodes nearby."""
    random = np.random.default_rng(seed)
    group = np.arange(n) % classes
    angle = 2 * np.pi * (group + 0.7 * random.random(n)) / classes
    radius = 0.4 + 0.6 * random.random(n)
    places = np.stack([1.6 * radius * np.cos(angle), radius * np.sin(angle)], axis=1)
    near = np.linalg.norm(places[:, None] - places[None], axis=2).argsort(axis=1)[:, 1 : edges + 1]
    pairs = sorted({(min(i, int(j)), max(i, int(j))) for i in range(n) for j in near[i]})
    wrong = random.random(n) < 0.12
    return GraphDrawing(
        "Predictions on the graph",
        "Each mark is a paper, each line a citation. Colour and shape show the predicted subject; "
        "outlined papers are predicted wrongly. Mistakes tend to lie where colours meet.",
        [(float(x), float(y)) for x, y in places],
        pairs,
        [int(g) for g in group],
        SUBJECTS[:classes],
        [f"Paper {i}, predicted {SUBJECTS[group[i]]} (87 %)" for i in range(n)],
        [bool(w) for w in wrong],
    )


def pictures(*, moving: bool = False) -> Pictures:
    """A spot that moves over a grid, and its mirror image with the opposite sign."""
    times = [0, 2, 4, 6]
    spots = np.zeros((2, len(times), 12, 12))
    for j, t in enumerate(times):
        spots[0, j, t : t + 3, t : t + 3] = 1.0
        spots[1, j] = -spots[0, j, :, ::-1]
    return Pictures(
        "A spot on its way" if not moving else "A spot on its way, as a film",
        "Bright where the signal is large.",
        ["spot", "mirror image"],
        [f"t = {t}" for t in times],
        spots.tolist(),
        moving=moving,
    )


SUBJECTS = [
    "Case based",
    "Genetic algorithms",
    "Neural networks",
    "Probabilistic methods",
    "Reinforcement learning",
    "Rule learning",
    "Theory",
]


def _tiles() -> Tiles:
    return Tiles(
        [
            ("Test accuracy", "81.4 % ± 0.5", "mean of 10 seeds and its 95 % interval"),
            ("Validation accuracy", "80.2 %", "the number by which epochs were chosen"),
            ("Training", "12.4 s", "for each seed, 200 epochs"),
            ("Spectrum", "3.1 s", "computed once and kept"),
        ]
    )


def _seeds() -> BarChart:
    random = np.random.default_rng(1)
    values = 0.8 + 0.03 * random.random(10)
    return BarChart(
        "Test accuracy of each seed",
        "The same training with ten random starts. Bars of like height mean that the result does "
        "not hang on luck.",
        "Seed",
        "Test accuracy",
        [str(i) for i in range(10)],
        [("test", [float(v) for v in values])],
        percent=True,
        ranges=[[(float(v) - 0.02, float(v) + 0.02) for v in values]],
    )


def _sizes() -> BarChart:
    return BarChart(
        "Accuracy of each subject",
        "How many papers of each subject are found, before and after training.",
        "Subject",
        "Accuracy",
        SUBJECTS,
        [
            ("at the start", [0.14, 0.2, 0.1, 0.13, 0.2, None, 0.12]),
            ("trained", [0.74, 0.91, 0.8, 0.83, 0.88, 0.7, 0.66]),
            ("majority vote of neighbours", [0.7, 0.85, 0.79, 0.8, 0.84, 0.61, 0.6]),
        ],
        percent=True,
    )


def _loss() -> LineChart:
    epochs = list(range(200))
    random = np.random.default_rng(2)

    def fall(level: float, rate: float) -> list[float | None]:
        noise = 0.02 * random.random(200)
        return [float(level + 1.9 * np.exp(-e / rate) + noise[e]) for e in epochs]

    return LineChart(
        "Loss over the epochs",
        "Lower is better. Training loss goes on falling; once validation loss turns upwards, the "
        "model learns by heart.",
        "Epoch",
        "Loss (cross entropy)",
        [
            Series("training", epochs, fall(0.1, 30)),
            Series("validation", epochs, fall(0.7, 25)),
            *(
                Series(f"validation, seed {s}", epochs, fall(0.72, 22 + s), faint=True)
                for s in range(1, 4)
            ),
        ],
        marks=[(130, "best epoch")],
    )


def _scatter() -> LineChart:
    random = np.random.default_rng(3)
    true = random.normal(size=(2, 150))
    guess = true + 0.3 * random.normal(size=true.shape)
    return LineChart(
        "Predicted against true",
        "On the diagonal a prediction is right; far from it, it is wrong.",
        "True value",
        "Predicted value",
        [
            Series("validation", true[0].tolist(), guess[0].tolist(), points=True),
            Series("test", true[1].tolist(), guess[1].tolist(), points=True),
            Series("diagonal", [-3.0, 3.0], [-3.0, 3.0]),
        ],
    )


def _spectrum() -> LineChart:
    x = list(range(0, 2708, 4))
    y = [float(2 * (i / 2708) ** 0.6) for i in x]
    return LineChart(
        "Eigenvalues in order",
        "Each frequency of the graph, from smooth to rough. Shaded stretches are the bands.",
        "Number of the eigenvalue",
        "Eigenvalue",
        [Series("eigenvalues", x, y)],
        regions=[
            Region(0, 200, "band 1"),
            Region(200, 700, "band 2"),
            Region(700, 1600, "band 3"),
            Region(1600, 2707, "band 4"),
        ],
    )


def _density() -> BarChart:
    random = np.random.default_rng(4)
    counts, ends = np.histogram(1 + 0.3 * random.normal(size=2708), bins=50, range=(0, 2))
    return BarChart(
        "How many eigenvalues lie where",
        "A tall bar is a frequency that the graph has many times over.",
        "Eigenvalue",
        "Eigenvalues (log scale)",
        [f"{end:.2f}" for end in ends[:-1]],
        [("eigenvalues", [float(c) for c in counts])],
        log_y=True,
    )


def _energy() -> LineChart:
    return LineChart(
        "Gain of each band",
        "Above 1 a band is made stronger, below 1 weaker.",
        "Band",
        "Gain",
        [
            Series("start", list(range(1, 9)), [1.0] * 8),
            Series("trained", list(range(1, 9)), [1.7, 1.5, 1.2, None, 0.9, 0.7, 0.5, 0.4]),
        ],
        log_y=True,
    )


def _gains() -> HeatMap:
    random = np.random.default_rng(5)
    values = np.exp(0.5 * random.normal(size=(6, 32))) * np.linspace(1.6, 0.5, 6)[:, None]
    return HeatMap(
        "Gain of each band and channel",
        "One colour strengthens, the other weakens; pale cells leave the channel as it is.",
        "Channel",
        "Band",
        [str(i) for i in range(32)],
        [f"band {i + 1}" for i in range(6)],
        values.tolist(),
        kind="gain",
    )


def _confusion() -> HeatMap:
    random = np.random.default_rng(6)
    counts = random.random((7, 7)) * 0.1 + np.eye(7)
    shares = counts / counts.sum(axis=1, keepdims=True)
    return HeatMap(
        "Which subject is taken for which",
        "Each row is a true subject and sums to 100 %; the diagonal is right.",
        "Predicted subject",
        "True subject",
        SUBJECTS,
        SUBJECTS,
        shares.tolist(),
        kind="share",
    )


def _table() -> DataTable:
    return DataTable(
        "Settings",
        "The configuration file, key by key.",
        ["Key", "Value", "Default", "Number"],
        [
            ["model.name", "node-nlsf", "node-nlsf", "1"],
            ["model.hidden", "64", "64", "2.5"],
            ["optim.lr", "0.01", "0.005", "-3"],
            [
                "spec",
                "sha256-0d1f2e3c4b5a69788796a5b4c3d2e1f00f1e2d3c4b5a69788796a5b4c3d2e1f0",
                "",
                "",
            ],
        ],
    )
