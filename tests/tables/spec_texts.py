"""Small experiments for tests, as TOML."""

DATA = """
[[data]]
name = "csbm"
options = {num_nodes = 100}
"""

GCN = """
[[method]]
label = "GCN"
model = "gcn"
"""

VALUE = """
[[method]]
label = "Value NLSF"
model = "value"
ours = true
"""

TUNING = """
[tuning]
trials = 2
splits = 2
training = {epochs = 3}
"""


RATES = '"training.lr" = [0.02]'


def experiment(*parts, top='title = "A small table"\nseeds = 2'):
    """The text of an experiment's file."""
    return "\n".join([top, *parts])


def quick(*, seeds=2, epochs=4, tuned=("gcn", "value")):
    """Two methods on two small graphs.

    A tuned one has two points, the default learning rate and another, and a trial for each: what it
    chooses does not depend on how it samples.
    """
    methods = []
    for label, model, ours in (("GCN", "gcn", "false"), ("Value NLSF", "value", "true")):
        keys = f'label = "{label}"\nmodel = "{model}"\nours = {ours}\n'
        keys += _only_lr(model) if model in tuned else "tuned = false\n"
        methods.append(f"[[method]]\n{keys}")
    data = [
        f'[[data]]\nname = "csbm"\nlabel = "{label}"\n'
        f"options = {{num_nodes = {nodes}}}\ntraining = {{epochs = {epochs}}}\n"
        for label, nodes in (("large", 160), ("small", 90))
    ]
    return experiment(TUNING, *data, *methods, top=f'title = "A small table"\nseeds = {seeds}')


def _only_lr(model):
    """A space of the learning rate alone: all else is taken out."""
    from nlsf.tables.tune.space import space_of

    removed = [f'"{key}" = []' for key in space_of(model, "node").choices if key != "training.lr"]
    return f"space = {{{', '.join([*removed, RATES])}}}\n"
