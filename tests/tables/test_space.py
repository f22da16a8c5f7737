import json
import tomllib

import networkx as nx
import pytest
import torch
from torch_geometric.utils import from_networkx

from nlsf.errors import ConfigError
from nlsf.tables.tune.space import Space, choices_of, decode, encode, space_of
from nlsf.tables.tune.trials import Grid, key
from nlsf.train.settings.models import MODELS

SPACE = Space(
    {
        "training.lr": (0.1, 0.01),
        "training.psi_lr": (None, 0.5),
        "model.start": ({"name": "ppr", "t": 3.0}, {"name": "all-pass"}),
        "model.self_loops": (True, False),
        "model.num_layers": (1, 2, 3),
    }
)


@pytest.mark.parametrize(
    ("name", "level"), [(name, level) for name, kind in MODELS.items() for level in kind.levels]
)
def test_every_model_has_choices_that_it_understands(name, level):
    space = space_of(name, level)
    space.check(name)
    assert bool(space) == (MODELS[name].solve is None)
    assert Space.from_table(space.to_table()) == space


def test_the_papers_choices_are_among_those_of_our_models():
    choices = space_of("att-node", "node").choices
    assert set(choices["training.lr"]) == {0.1, 0.05, 0.01, 0.005, 0.001}
    assert len(choices["training.weight_decay"]) == 10
    rates = {bands["r"] for bands in choices["model.value_bands"] if bands["kind"] == "dyadic"}
    assert rates == {1 / 4, 1 / 3, 1 / 2, 2 / 3, 3 / 4}
    assert "model.index_bands" not in space_of("value", "node").choices
    assert not {"model.value_bands", "model.self_loops"} & {*space_of("index", "node").choices}
    large = space_of("att-node", "node", large=True).choices["model.value_bands"]
    assert {bands["kind"] for bands in large} == {"index", "polynomial"}


def test_a_space_goes_through_toml():
    text = """
        "training.lr" = [0.1, 0.01]
        "training.psi_lr" = ["none", 0.5]
        "model.start" = [{name = "ppr", t = 3.0}, {name = "all-pass"}]
        "model.self_loops" = [true, false]
        "model.num_layers" = [1, 2, 3]
    """
    assert Space.from_table(tomllib.loads(text)) == SPACE
    assert tomllib.loads(text) == SPACE.to_table()


def test_merged_replaces_and_removes():
    merged = SPACE.merged({"training.lr": [0.5], "model.start": [], "features.constant": [True]})
    assert merged.choices["training.lr"] == (0.5,)
    assert "model.start" not in merged.choices
    assert merged.choices["features.constant"] == (True,)
    assert merged.size == 1 * 2 * 2 * 3 * 1


def test_what_settings_fix_is_no_choice():
    settings = {"training": {"lr": 0.3}, "model": {"start": {"t": 2.0}}}
    assert set(SPACE.without(settings).choices) == set(SPACE.choices) - {
        "training.lr",
        "model.start",
    }


def test_a_point_becomes_tables():
    point = {"training.lr": 0.1, "model.start": {"name": "ppr", "t": 3.0}}
    expected = {"training": {"lr": 0.1}, "model": {"start": {"name": "ppr", "t": 3.0}}}
    assert SPACE.table(point) == expected
    with pytest.raises(ConfigError, match=r"no key in the space 'training\.rl'.*'training\.lr'"):
        SPACE.table({"training.rl": 0.1})


@pytest.mark.parametrize("choice", [True, 1, 0.1, "a", None, {"b": {"c": (1, None)}}, (1, 2)])
def test_choices_are_encoded_and_decoded(choice):
    text = encode(choice)
    assert encode(decode(text)) == text
    json.loads(text)


def test_equal_tables_have_one_text():
    assert encode({"a": 1, "b": 2}) == encode({"b": 2, "a": 1})


@pytest.mark.parametrize(
    ("table", "said"),
    [
        ({"lr": [0.1]}, "begins with training"),
        ({"data.name": ["cora"]}, "begins with training"),
        ({"model.name": ["gcn"]}, "belongs to one model"),
        ({"training.lr": []}, "1 to 1000 choices"),
        ({"training.lr": 0.1}, "must be a list of choices"),
        ({"training": {"lr": [0.1]}}, "in quotes"),
        ({"training.lr": [0.1, 0.1]}, "same choice twice"),
        ({"training.lr": [float("nan")]}, "cannot have the choice nan"),
        ({"model.start": [{"name": "ppr"}], "model.start.t": [1.0]}, "a part of it"),
    ],
)
def test_malformed_spaces_are_refused(table, said):
    with pytest.raises(ConfigError, match=said):
        Space.from_table(table)


@pytest.mark.parametrize(
    ("table", "said"),
    [
        ({"training.lrr": [0.1]}, r"'training\.lrr'. Did you mean 'training\.lr'"),
        ({"model.hidden": [1]}, r"no key of gcn in the space 'model\.hidden'"),
        ({"features.row_normal": [True]}, r"Did you mean 'features\.row_normalize'"),
        ({"training.lr": ["fast"]}, r"training\.lr must be a number"),
        ({"training.lr": [-1.0]}, r"training\.lr must be a number from 0"),
        ({"model.num_layers": [0]}, r"model\.num_layers must be at least 1"),
        ({"model.out_channels": [1]}, r"model\.out_channels"),
    ],
)
def test_choices_that_a_model_cannot_have_are_refused(table, said):
    with pytest.raises(ConfigError, match=said):
        Space.from_table(table).check("gcn")


def test_a_grid_gives_points_back():
    grid = Grid(SPACE)
    seen = set()
    while (point := grid.untried(seen, seed=len(seen))) is not None:
        assert grid.point(grid.params(point)) == point
        seen.add(key(point))
    assert len(seen) == SPACE.size == 48


def test_neighbours_are_new_and_keys_take_turns():
    grid, start = Grid(SPACE), _first()
    names = [name for name, values in SPACE.choices.items() if len(values) > 1]
    tried = {key(start)}
    for turn in range(20):
        point = grid.neighbour(start, tried, seed=turn, turn=turn)
        assert point == grid.neighbour(start, tried, seed=turn, turn=turn)
        assert key(point) not in tried
        changed = [name for name in start if encode(point[name]) != encode(start[name])]
        assert names[turn % len(names)] in changed
        assert len(changed) == 1 if turn < len(names) else len(changed) in (1, 2)
        tried.add(key(point))
    alone = Grid(Space({"training.lr": (0.1,)}))
    assert alone.neighbour({"training.lr": 0.1}, set(), seed=0) is None


def test_the_sampler_sees_numbers_in_order():
    params = [
        Grid(SPACE).params({**_first(), "training.lr": lr})["training.lr"] for lr in (0.01, 0.1)
    ]
    assert params == [0, 1]


def _first():
    return {name: values[0] for name, values in SPACE.choices.items()}


EDGES = from_networkx(nx.lollipop_graph(6, 7)).edge_index
NODES = 13
X = torch.randn(NODES, 5, generator=torch.manual_seed(1)).relu()

EXCEPTIONS = {
    ("graph", "model.a"),  # without effect, but cells with rows have it in their spaces
    ("diffpool", "model.side_losses"),  # of the loss, not of the outputs
}


def output(name, level, settings):
    """What a model in training gives, with parameters far from a start where much is zero."""
    torch.manual_seed(0)
    model = MODELS[name].build(settings, X.shape[1], 3, level, num_nodes=NODES).train()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(0.3 * torch.randn_like(parameter))
    torch.manual_seed(0)
    if level == "node":
        return model(X, EDGES)
    x, edges = torch.cat([X, X.flip(0)]), torch.cat([EDGES, EDGES + NODES], dim=1)
    return model(x, edges, None, torch.arange(2).repeat_interleave(NODES))


CASES = [
    (name, level, key)
    for name, kind in MODELS.items()
    for level in kind.levels
    if level != "signal"
    for key, values in choices_of(name, level).items()
    if key.startswith("model.") and len(values) > 1 and (name, key) not in EXCEPTIONS
]


@pytest.mark.parametrize("name", sorted({name for name, _, _ in CASES}))
def test_a_choice_changes_the_model(name):
    for _, level, choice in [one for one in CASES if one[0] == name]:
        values = choices_of(name, level)[choice]
        first, last = (
            output(name, level, {choice.removeprefix("model."): value})
            for value in (values[0], values[-1])
        )
        assert not torch.equal(first, last), (level, choice)


@pytest.mark.parametrize(
    ("name", "level"), [(name, level) for name, kind in MODELS.items() for level in kind.levels]
)
def test_what_the_name_decides_is_no_choice(name, level):
    assert not {f"model.{key}" for key in MODELS[name].fixed} & set(choices_of(name, level))


@pytest.mark.parametrize(("name", "level"), [("linear-node", "node"), ("linear-signal", "signal")])
def test_filters_of_the_linear_controls_are_linear_wherever_they_are_tuned(name, level):
    """All choices at their last values, but for one layer: two have a normalisation between."""
    choices = choices_of(name, level)
    point = {
        key.removeprefix("model."): values[-1]
        for key, values in choices.items()
        if key.startswith("model.")
    }
    point |= {"num_layers": 1} if level == "node" else {}
    torch.manual_seed(0)
    model = MODELS[name].build(point, X.shape[1], 3, level, num_nodes=NODES).double()
    layer = model.filters if level == "node" else model.filters[0]
    with torch.no_grad():
        for parameter in layer.parameters():
            parameter.add_(torch.randn_like(parameter))
    width = point["hidden_channels"] if level == "node" else X.shape[1]
    x, y = torch.randn(2, NODES, width, dtype=torch.float64)
    expected = 3 * layer(x, EDGES) - layer(y, EDGES)
    torch.testing.assert_close(layer(3 * x - y, EDGES), expected)
    assert expected.norm() > 0.1
