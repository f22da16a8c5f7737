"""Small experiments with results that are written by hand."""

from nlsf.tables.fill.results import Published, PublishedValue, Store
from nlsf.tables.render.result_table import ResultTable
from nlsf.tables.spec.experiment import Column, Experiment, Method
from nlsf.tables.tune.trials import Trial, Tuning

PAPER = Published(
    {
        ("node", "NLSF", "Cora", "accuracy_pct"): PublishedValue(82.94, 1.0),
        ("node", "NLSF", "Citeseer", "accuracy_pct"): PublishedValue(72.13),
        ("node", "GCN", "Cora", "accuracy_pct"): PublishedValue(81.5, 0.9),
    }
)
METHODS = (
    Method("GCN", "gcn", "GCN", tuned=False),
    Method("NLSF", "att-node", "NLSF", ours=True, tuned=False),
    Method("MLP", "mlp", tuned=False),
)


def experiment(**changes):
    columns = tuple(
        Column(name, {"name": name}, "random", paper=name) for name in ("Cora", "Citeseer")
    )
    values = {
        "name": "small",
        "title": "A small table",
        "paper": "node",
        "metric": "accuracy",
        "spread": "interval",
        "seeds": 3,
        "tuning": Tuning(4),
        "columns": columns,
        "methods": METHODS,
        **changes,
    }
    return Experiment(**values)


def write(folder, spec, method, column, values, *, size=1000, split="s", trials=0):
    """Rows of seeds 0, 1, ... with these test values, on splits that are named after the seed."""
    (cell,) = (c for m, k, c in spec.cells() if (m.label, k.label) == (method, column))
    sizes = size if isinstance(size, list) else [size] * len(values)
    rows = [
        {
            "seed": seed,
            f"test_{spec.metric}": value,
            "sizes": [140, 500, sizes[seed]],
            "split": f"{split}{seed}",
            "point": {},
        }
        for seed, value in enumerate(values)
    ]
    tried = [Trial(i, {}, 0.5, "complete") for i in range(trials)]
    Store(folder).write(cell, 'protocol = "random"\n', tried, rows)


def table_of(folder, spec, published=PAPER, against=None):
    return ResultTable.of(spec, Store(folder), published, against)


def filled(folder, **changes):
    """NLSF and GCN on Cora, GCN on two splits of Citeseer, nothing else."""
    spec = experiment(**changes)
    write(folder, spec, "NLSF", "Cora", [0.82, 0.84, 0.83], trials=4)
    write(folder, spec, "GCN", "Cora", [0.81, 0.815, 0.82], trials=4)
    write(folder, spec, "GCN", "Citeseer", [0.7, 0.71])
    return table_of(folder, spec)
