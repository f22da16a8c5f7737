"""Time of a training epoch: ours against message passing, in ordinary and in strongest form.

    python benchmarks/train_epoch.py [DATA ...]     measure what has no rows yet, print the tables
    python benchmarks/train_epoch.py --table        print the tables of the rows at hand

An epoch is forward, backward, Adam's step, and the validation examples. Every candidate is a plain
loop over one model in one process on one thread. It has 64 hidden channels, but for "rows",
"leading" and "leading value", which filter one channel a class.

Candidates take turns of a few epochs, the table shows medians of processor time. The first epoch of
a turn finds the processor's caches full of another candidate's data. Training has many epochs, so a
turn has more than one. A table of its own has the medians of the first epochs.

- ours: attention between an index branch on L and a value branch on N. "MLP" and "polynomial"
  encode all nodes in every step, the latter with polynomial bands of order 16 everywhere. "rows"
  has a linear encoder: a step sees prepared rows of nodes with labels, and no graph. "leading" is
  the same with value bands that end at the frequency 0.1, so that eigenvectors are few. "leading
  value" is its value branch alone. "filter first" filters the features themselves with these bands,
  and a layer of 64 hidden channels follows: no step computes norms. Citeseer's 438 components have
  as many null vectors; there its bands end at 0.02. "filter first" has no dropout; "filter first,
  dropout" and all others with a hidden layer have it.
- PyG: layers of PyTorch Geometric on dense features, normalisation cached where a layer can.
- strong: the same with sparse features and one CSR matrix, built once (`nlsf.peers`).

The last table is the time until a model first has the validation accuracy that PyTorch
Geometric's GCN has at its best, with all preparation: normalisation there, eigendecompositions
here, computed and not read from a cache.
"""

import argparse
import json
import statistics
import time
from pathlib import Path

import torch
from torch import nn
from torch.nn.functional import cross_entropy, dropout, elu
from torch_geometric import nn as pyg

from nlsf.data import find
from nlsf.errors import ConfigError
from nlsf.nn import NodeClassifier
from nlsf.peers import PEERS, PeerModel
from nlsf.spectral import DyadicBands, IndexBands, IntervalBands, PolynomialBands, UniformBands
from nlsf.spectral.kernels.sparse_signal import SparseSignal
from nlsf.train.run.job import Job
from nlsf.train.run.run import versions

ROWS = Path(__file__).parent / "results" / "train_epoch.jsonl"
SETS = {
    "Cora": "random",
    "Citeseer": "random",
    "Pubmed": "random",
    "Chameleon": "sparse",
    "Squirrel": "sparse",
    "Actor": "sparse",
    "Cornell5": "50-25-25",
}
EPOCHS_ONLY = ("Cornell5",)  # 200 epochs of every ordinary form would take hours
WIDTH, ROUNDS, LIMIT = 64, 9, 200
LEADING = IntervalBands([(0, 0.025), (0.025, 0.05), (0.05, 0.1)])
LOWEST = IntervalBands([(0, 0.005), (0.005, 0.01), (0.01, 0.02)])
FIRST = ("filter first", "filter first, dropout")
OURS = ("MLP", "polynomial", "rows", "leading", "leading value", *FIRST)
MESSAGES = 8e9  # bytes from which on messages do not fit into the memory of a laptop
TURN = 5  # epochs, for candidates that fit them into a second
SLOW = 2.0  # seconds of an epoch from which on two rounds are enough
STRONG = ("gcn", "appnp", "gprgnn", "chebnetii", "jacobiconv", "specformer")


class PyG(nn.Module):
    """Two layers of PyTorch Geometric; or a network and a propagation of its scores."""

    def __init__(self, name, inputs, classes):
        super().__init__()
        d = WIDTH
        convs = {
            "GCN": lambda a, b: pyg.GCNConv(a, b, cached=True),
            "SAGE": pyg.SAGEConv,
            "ChebNet": lambda a, b: pyg.ChebConv(a, b, K=3),
            "ARMA": lambda a, b: pyg.ARMAConv(a, b, num_stacks=2, num_layers=1),
        }
        self.name = name
        if name == "GAT":
            self.first = pyg.GATConv(inputs, d // 8, heads=8)
            self.last = pyg.GATConv(d, classes)
        elif name == "APPNP":
            self.first, self.last = nn.Linear(inputs, d), nn.Linear(d, classes)
            self.spread = pyg.APPNP(K=10, alpha=0.1, cached=True)
        else:
            self.first, self.last = convs[name](inputs, d), convs[name](d, classes)

    def forward(self, x, edges):
        """Scores (N, classes)."""
        x = dropout(x, 0.5, self.training)
        if self.name == "APPNP":
            h = dropout(self.first(x).relu(), 0.5, self.training)
            return self.spread(self.last(h), edges)
        h = self.first(x, edges)
        h = elu(h) if self.name == "GAT" else h.relu()
        return self.last(dropout(h, 0.5, self.training), edges)


class Setting:
    """A data set with its first split."""

    def __init__(self, name):
        job = Job.of({"data": {"name": name}, "protocol": SETS[name], "seeds": 1})
        graph = job.dataset.graphs[0]
        self.name, self.edges = name, graph.edge_index
        self.x = graph.x if graph.x.layout == torch.strided else graph.x.to_dense()
        self.sparse = SparseSignal.of(self.x) if (self.x != 0).float().mean() < 0.25 else self.x
        self.classes = job.dataset.num_outputs
        self.lesson = job.lesson(job.splits[0])


class Loop:
    """Training of one model: ``outputs(rows)`` gives its scores at some nodes."""

    def __init__(self, setting, model, outputs, lr=0.01, weight_decay=5e-4):
        self.lesson, self.model, self.outputs = setting.lesson, model, outputs
        self.adam = torch.optim.Adam(
            model.parameters(), lr=lr, weight_decay=weight_decay, fused=True
        )

    def epoch(self):
        """One epoch; the accuracy on validation examples."""
        lesson = self.lesson
        self.model.train()
        self.adam.zero_grad()
        cross_entropy(self.outputs(lesson.train), lesson.train_y).backward()
        self.adam.step()
        self.model.eval()
        with torch.no_grad():
            found = self.outputs(lesson.val).argmax(1)
        return float((found == lesson.val_y).float().mean())


def ours(setting, kind):
    big, uniform = len(setting.x) > 8_000, SETS[setting.name] == "sparse"
    value = UniformBands(S=20) if uniform else DyadicBands(r=0.5, S=6)
    if big or setting.name == "Actor" or kind == "polynomial":
        value = PolynomialBands(UniformBands(S=8) if uniform else DyadicBands(r=0.5, S=5), 16)
    encodes = kind in ("MLP", "polynomial")
    if kind.startswith("leading") or kind in FIRST:
        value = LOWEST if kind in FIRST and setting.name == "Citeseer" else LEADING
    model = NodeClassifier(
        in_channels=setting.x.shape[1],
        out_channels=setting.classes,
        hidden_channels=WIDTH,
        index_bands=IndexBands(16),
        value_bands=value,
        branches="value" if kind in ("leading value", *FIRST) else "attention",
        self_loops=not uniform,
        encoder="mlp" if encodes else "none" if kind in FIRST else "linear",
        place="hidden" if kind in FIRST else "scores",
        input_dropout=0.5 if encodes else 0.0,
        dropout=0.0 if kind == "filter first" else 0.5,
    )
    x, graph = setting.sparse, setting.edges
    options = {"lr": 0.05, "weight_decay": 5e-3} if uniform else {}
    if encodes:
        lenses = tuple(branch.lens(setting.x, graph) for branch in model._branches())
        return Loop(setting, model, lambda rows: model(x, spectrum=lenses)[rows], **options)
    lesson = setting.lesson
    prepared = {rows: model.prepare(rows, x, graph) for rows in (lesson.train, lesson.val)}
    return Loop(setting, model, lambda rows: model.forward_rows(prepared[rows]), **options)


def ordinary(setting, name):
    # These send the features themselves along the edges, before their first product.
    messages = 4 * setting.edges.shape[1] * setting.x.shape[1]
    if name in ("SAGE", "ChebNet") and messages > MESSAGES:
        raise MemoryError(f"Messages of {messages / 1e9:.0f} GB")
    model = PyG(name, setting.x.shape[1], setting.classes)
    return Loop(setting, model, lambda rows: model(setting.x, setting.edges)[rows])


def strong(setting, name):
    peer = PEERS[name]
    config = peer.settings()(setting.x.shape[1], setting.classes, WIDTH)
    model = PeerModel(peer, config)
    return Loop(setting, model, lambda rows: model(setting.sparse, setting.edges)[rows])


CANDIDATES = {
    **{f"ours, {kind}": (lambda s, kind=kind: ours(s, kind)) for kind in OURS},
    **{
        f"PyG {name}": (lambda s, name=name: ordinary(s, name))
        for name in ("GCN", "GAT", "SAGE", "ChebNet", "APPNP", "ARMA")
    },
    **{f"strong {PEERS[name].title}": (lambda s, name=name: strong(s, name)) for name in STRONG},
}


def clear_memory_of_spectra():
    from nlsf.nn.layers.spectra import forget_spectra
    from nlsf.peers import matrices

    forget_spectra()
    matrices._graphs.clear()


def measure(name):
    """Rows of one data set."""
    setting = Setting(name)
    loops, rows, turns, alone = {}, {}, {}, {}
    for label, build in CANDIDATES.items():
        torch.manual_seed(0)
        try:
            loops[label] = build(setting)
            loops[label].epoch()  # some things are computed when first needed
            start = time.process_time()
            loops[label].epoch()
            alone[label] = time.process_time() - start
        except Exception as error:  # a method that refuses a graph of this size
            loops.pop(label, None)
            rows[label] = {"data": name, "candidate": label, "error": str(error)}
    for number in range(ROUNDS):
        for label, loop in loops.items():
            if number > 1 and alone[label] > SLOW:
                continue
            turns.setdefault(label, []).append([])
            for _ in range(TURN if TURN * alone[label] < 1 else 1):
                start = time.process_time()
                loop.epoch()
                turns[label][-1].append(time.process_time() - start)
    for label, taken in turns.items():
        rows[label] = {
            "data": name,
            "candidate": label,
            "epoch": statistics.median(seconds for turn in taken for seconds in turn),
            "first": statistics.median(turn[0] for turn in taken),
        }
    del loops
    if name not in EPOCHS_ONLY:
        goal = until(setting, "PyG GCN", None)
        rows["PyG GCN"] |= {"goal": goal[0], "until": goal[1], "epochs_until": goal[2]}
        for label in (f"ours, {kind}" for kind in OURS):
            best, seconds, epochs = until(setting, label, goal[0])
            rows[label] |= {"goal": best, "until": seconds, "epochs_until": epochs}
    return [
        {**row, "rounds": ROUNDS, "turn": TURN, "versions": versions()} for row in rows.values()
    ]


def until(setting, label, goal):
    """Accuracy, processor time and epochs of the first epoch at the goal, or of the best epoch."""
    clear_memory_of_spectra()
    torch.manual_seed(1)
    start = time.process_time()
    loop = CANDIDATES[label](setting)
    best = (-1.0, 0.0, 0)
    for epoch in range(1, LIMIT + 1):
        accuracy = loop.epoch()
        if accuracy > best[0]:
            best = (accuracy, time.process_time() - start, epoch)
        if goal is not None and accuracy >= goal:
            break
    return best


def stored():
    lines = ROWS.read_text().splitlines() if ROWS.exists() else []
    found = {}
    for row in map(json.loads, lines):
        found.setdefault(row["data"], {})[row["candidate"]] = row
    return found


def table():
    found = stored()
    sets = [name for name in SETS if name in found]
    for title, key in (("epoch, ms", "epoch"), ("first epoch of a turn, ms", "first")):
        print(f"| {title} | {' | '.join(sets)} |")
        print(f"|---|{'---:|' * len(sets)}")
        for label in CANDIDATES:
            cells = [found[name].get(label, {}).get(key) for name in sets]
            shown = " | ".join("" if c is None else f"{1e3 * c:.1f}" for c in cells)
            print(f"| {label} | {shown} |")
        print()
    sets = [name for name in sets if name not in EPOCHS_ONLY]
    print(f"| until GCN's best validation accuracy, s | {' | '.join(sets)} |")
    print(f"|---|{'---:|' * len(sets)}")
    for label in ("PyG GCN", *(f"ours, {kind}" for kind in OURS)):
        shown = []
        for name in sets:
            row, goal = found[name].get(label, {}), found[name]["PyG GCN"]["goal"]
            if "until" not in row:
                shown.append("")
            elif row["goal"] < goal:
                shown.append(f"not reached ({100 * row['goal']:.1f} of {100 * goal:.1f} %)")
            else:
                shown.append(f"{row['until']:.2f} ({row['epochs_until']})")
        print(f"| {label} | {' | '.join(shown)} |")


def data_set(name):
    """The name of a data set as the catalogue has it: case, spaces and dashes do not matter."""
    try:
        found = find(name).name
    except ConfigError as error:
        raise argparse.ArgumentTypeError(str(error)) from error
    if found not in SETS:
        raise argparse.ArgumentTypeError(f"{found} is not among {', '.join(SETS)}.")
    return found


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("data", nargs="*", type=data_set, default=list(SETS))
    parser.add_argument("--table", action="store_true")
    options = parser.parse_args()
    torch.set_num_threads(1)
    if not options.table:
        for name in options.data:
            if name not in stored():
                rows = measure(name)
                with ROWS.open("a") as file:
                    file.writelines(json.dumps(row) + "\n" for row in rows)
    table()


if __name__ == "__main__":
    main()
