import pytest
import torch
from torch import nn

from nlsf.errors import ModelError
from nlsf.nn import GraphClassifier, NodeClassifier
from nlsf.nn.dropout import Dropout
from nlsf.nn.plans import plan_of
from nlsf.peers.solvers import KnownOutputs
from nlsf.train.loop.model_batch import BatchAdam, ModelBatch, WeightAverage
from train.small import BANDS, graph_data, node_data, signal_data

F64 = torch.float64
ROWS = torch.tensor([[0, 1, 7, 2], [7, 3, 4, 1], [5, 2, 6, 0]])


def models_of(kind, dataset, count=3, **fields):
    sizes = {"in_channels": dataset.num_features, "out_channels": dataset.num_outputs}
    made = []
    for seed in range(count):
        torch.manual_seed(seed)
        made.append(kind(**sizes, hidden_channels=6, **BANDS, **fields).to(F64))
    return made


def batch_of(kind, dataset, **fields):
    made = models_of(kind, dataset, **fields)
    inputs = plan_of(made[0], dataset, cache=False, dtype=F64)
    return ModelBatch(made, inputs, [10, 11, 12])


@pytest.fixture
def nodes():
    return batch_of(NodeClassifier, node_data())


@pytest.fixture(params=["graph", "pooling"])
def graphs(request):
    return batch_of(GraphClassifier, graph_data(), level=request.param, dropout=0.4, head=(5,))


def test_the_outputs_are_those_of_each_model(nodes, graphs):
    for batch in (nodes, graphs):
        out = batch.outputs(ROWS, training=False)
        for m, model in enumerate(batch.models):
            expected = batch.plan(model.eval(), ROWS[m])
            torch.testing.assert_close(out[m], expected, rtol=1e-10, atol=1e-10)


@pytest.mark.parametrize(("operators", "complement"), [("LL", True), ("NN", False), ("NL", True)])
@pytest.mark.parametrize("response", ["diagonal", "bandwise", "full"])
def test_together_as_one_by_one_on_every_operator(operators, complement, response):
    index, value = operators
    fields = {"index_operator": index, "value_operator": value, "complement": complement}
    fields["response"] = response
    made = [
        batch_of(NodeClassifier, node_data(), **fields),
        batch_of(NodeClassifier, node_data(), encoder="linear", input_dropout=0.0, **fields),
        batch_of(GraphClassifier, graph_data(), level="graph", head=(5,), **fields),
        batch_of(GraphClassifier, graph_data(), level="pooling", head=(5,), **fields),
        batch_of(GraphClassifier, signal_data(), level="pooling", head=(5,), **fields),
    ]
    for batch in made:
        out = batch.outputs(ROWS, training=False)
        for m, model in enumerate(batch.models):
            expected = batch.plan(model.eval(), ROWS[m])
            torch.testing.assert_close(out[m], expected, rtol=1e-10, atol=1e-10)


def test_each_model_draws_its_own_dropout(nodes, graphs):
    for batch in (nodes, graphs):
        first, second = (batch.outputs(ROWS, training=True) for _ in range(2))
        assert not torch.equal(first, second)
        still = [batch.outputs(ROWS, training=False) for _ in range(2)]
        assert torch.equal(still[0], still[1])


def test_dropout_is_repeated_from_a_generator_state(nodes, graphs):
    torch.manual_seed(0)
    for batch in (nodes, graphs):
        states = batch.generator_states()
        before = torch.get_rng_state()
        first = batch.outputs(ROWS, training=True)
        order = batch.permutations(9)
        batch.load_generator_states(states)
        assert torch.equal(batch.outputs(ROWS, training=True), first)
        assert torch.equal(batch.permutations(9), order)
        assert torch.equal(torch.get_rng_state(), before)
    assert torch.equal(order.sort(1).values, torch.arange(9).expand(3, 9))
    assert len({tuple(one) for one in order.tolist()}) == 3


def test_running_statistics_are_each_model_s_own(graphs):
    before = graphs.weights()
    graphs.outputs(ROWS, training=True)
    after = graphs.weights()
    (name,) = (n for n in before if n.endswith("norms.0.running_mean"))
    assert (before[name] != after[name]).any(1).all()
    assert len({tuple(one) for one in after[name].tolist()}) == 3
    counted = after[name.replace("running_mean", "num_batches_tracked")]
    assert counted.tolist() == [1, 1, 1]
    graphs.outputs(ROWS, training=False)
    assert torch.equal(graphs.weights()[name], after[name])


def test_weights_are_a_copy_and_come_back(graphs):
    weights = graphs.weights()
    assert set(weights) == set(graphs.models[0].state_dict())
    out = graphs.outputs(ROWS, training=False)
    with torch.no_grad():
        for p in graphs.params.values():
            p += 1
    assert not torch.allclose(graphs.outputs(ROWS, training=False), out)
    graphs.load_weights(weights)
    assert torch.equal(graphs.outputs(ROWS, training=False), out)
    graphs.models[1].load_state_dict({name: value[1] for name, value in weights.items()})
    alone = graphs.plan(graphs.models[1].eval(), ROWS[1])
    torch.testing.assert_close(out[1], alone, rtol=1e-10, atol=1e-10)


@pytest.mark.parametrize("rows", [ROWS[:, :4], ROWS[:, :3]], ids=["seen", "new"])
def test_what_is_left_behaves_as_before(nodes, graphs, rows):
    index = torch.tensor([2, 1])
    for batch in (nodes, graphs):
        batch.outputs(ROWS, training=True)
        states, weights = batch.generator_states(), batch.weights()
        expected = batch.outputs(rows, training=True)
        batch.load_generator_states(states)
        batch.load_weights(weights)
        batch.keep(index)
        assert len(batch) == 2
        found = batch.outputs(rows[index], training=True)
        torch.testing.assert_close(found, expected[index], rtol=1e-10, atol=1e-10)


def test_a_batch_can_lose_its_first_model_before_it_is_ever_applied(nodes, graphs):
    # As when a run goes on from a checkpoint.
    for batch, again in ((nodes, nodes.models), (graphs, graphs.models)):
        other = ModelBatch(again, batch.plan, [10, 11, 12])
        other.keep(torch.tensor([1, 2]))
        expected = batch.outputs(ROWS, training=True)[1:]
        found = other.outputs(ROWS[1:], training=True)
        torch.testing.assert_close(found, expected, rtol=1e-10, atol=1e-10)


def test_gradients_reach_the_models_that_are_kept(nodes):
    nodes.keep(torch.tensor([1]))
    nodes.outputs(ROWS[1:2], training=True).sum().backward()
    assert all(p.is_leaf and p.shape[0] == 1 for p in nodes.params.values())
    assert any(p.grad is not None and bool(p.grad.any()) for p in nodes.params.values())


def test_models_of_other_shapes_are_refused():
    dataset = node_data()
    (narrow,) = models_of(NodeClassifier, dataset, 1)
    (other,) = models_of(NodeClassifier, dataset, 1, branches="value")
    inputs = plan_of(narrow, dataset, cache=False, dtype=F64)
    with pytest.raises(ModelError, match="same parameters and shapes"):
        ModelBatch([narrow, other], inputs, [0, 1])


@pytest.mark.parametrize("rates", [(0.0, 0.5), (0.5, 0.0)])
@pytest.mark.parametrize("place", ["input_dropout", "dropout"])
def test_no_model_loses_its_dropout_in_silence(rates, place):
    dataset = node_data()
    made = [models_of(NodeClassifier, dataset, 1, **{place: rate})[0] for rate in rates]
    inputs = plan_of(made[0], dataset, cache=False, dtype=F64)
    with pytest.raises(ModelError, match="dropout in the same places"):
        ModelBatch(made, inputs, [0, 1])


def test_rates_may_differ():
    dataset = node_data()
    made = [models_of(NodeClassifier, dataset, 1, input_dropout=p)[0] for p in (0.01, 0.9)]
    batch = ModelBatch(made, plan_of(made[0], dataset, cache=False, dtype=F64), [3, 3])
    rows = torch.arange(60).expand(2, 60)
    spread = [batch.outputs(rows, training=True).detach() for _ in range(20)]
    low, high = torch.stack(spread).std(0).mean((1, 2))
    assert high > 1.2 * low


# BatchAdam

SHAPES = {"weight": (3, 4), "bias": (4,), "scale": ()}
LR = [0.05, 0.001, 0.3]
DECAY = {"weight": [0.0, 0.1, 0.01], "bias": [0.0, 0.0, 0.0], "scale": [0.2, 0.0, 1.0]}


def start(models):
    generator = torch.Generator().manual_seed(0)
    every = {n: torch.randn(3, *s, generator=generator, dtype=F64) for n, s in SHAPES.items()}
    return {name: value[models].requires_grad_() for name, value in every.items()}


def objective(params, models):
    """The losses (M,) of bowls that are narrow in some directions and differ between models."""
    total = 0
    for name, p in params.items():
        flat = p.reshape(len(models), -1)
        width = torch.arange(1, flat.shape[1] + 1, dtype=F64) ** 2
        target = torch.tensor(models, dtype=F64)[:, None] - len(name)
        total = total + (width * (flat - target).square()).sum(1) + flat.sin().sum(1)
    return total


def optimiser(params, models):
    lr = {name: [LR[m] for m in models] for name in SHAPES}
    decay = {name: [DECAY[name][m] for m in models] for name in SHAPES}
    return BatchAdam(params, lr, decay)


def steps(adam, models, count):
    for _ in range(count):
        objective(adam.params, models).sum().backward()
        adam.step()


def values(params):
    return {name: value.detach().clone() for name, value in params.items()}


def assert_equal(found, expected):
    assert set(found) == set(expected)
    for name, value in expected.items():
        assert torch.equal(found[name], value), name


@pytest.mark.parametrize("model", [0, 1, 2])
def test_one_model_is_the_adam_of_torch(model):
    ours, theirs = start([model]), start([model])
    groups = [
        {"params": [theirs[n]], "lr": LR[model], "weight_decay": DECAY[n][model]} for n in SHAPES
    ]
    reference = torch.optim.Adam(groups)
    adam = optimiser(ours, [model])
    for _ in range(20):
        steps(adam, [model], 1)
        reference.zero_grad()
        objective(theirs, [model]).sum().backward()
        reference.step()
        for name in SHAPES:
            torch.testing.assert_close(ours[name], theirs[name], rtol=1e-13, atol=1e-13)
    assert not torch.allclose(ours["weight"], start([model])["weight"])


def test_models_do_not_feel_each_other():
    together = start([0, 1, 2])
    steps(optimiser(together, [0, 1, 2]), [0, 1, 2], 20)
    for m in range(3):
        alone = start([m])
        steps(optimiser(alone, [m]), [m], 20)
        assert_equal({n: p[m : m + 1] for n, p in values(together).items()}, values(alone))


def test_some_models_go_on_as_if_nothing_had_happened():
    params = start([0, 1, 2])
    adam = optimiser(params, [0, 1, 2])
    steps(adam, [0, 1, 2], 7)
    index = torch.tensor([2, 0])
    adam.keep({n: p.detach()[index].requires_grad_() for n, p in params.items()}, index)
    steps(adam, [2, 0], 9)
    straight = start([0, 1, 2])
    steps(optimiser(straight, [0, 1, 2]), [0, 1, 2], 16)
    assert_equal(values(adam.params), {n: p[index] for n, p in values(straight).items()})


def test_a_state_that_is_handed_on():
    straight, first = start([0, 1, 2]), start([0, 1, 2])
    steps(optimiser(straight, [0, 1, 2]), [0, 1, 2], 16)
    old = optimiser(first, [0, 1, 2])
    steps(old, [0, 1, 2], 7)
    second = {n: p.requires_grad_() for n, p in values(first).items()}
    new = optimiser(second, [0, 1, 2])
    new.load_state(old.state(), old.steps)
    # Each has its own moments from here on.
    steps(old, [0, 1, 2], 3)
    steps(new, [0, 1, 2], 9)
    assert_equal(values(second), values(straight))


def test_gradients_are_forgotten_and_what_has_none_stays():
    params = start([0, 1])
    before = values(params)
    adam = optimiser(params, [0, 1])
    params["weight"].square().sum().backward()
    adam.step()
    assert params["weight"].grad is None
    assert not torch.equal(params["weight"], before["weight"])
    assert torch.equal(params["bias"], before["bias"])


# WeightAverage


class Small(nn.Module):
    def __init__(self):
        super().__init__()
        self.lin = nn.Linear(2, 3)
        self.norm = nn.BatchNorm1d(3)
        self.dropout = Dropout(0.5)


def small_batch(models=2):
    return ModelBatch([Small() for _ in range(models)], KnownOutputs(), list(range(models)))


def moved(batch, value):
    """All weights at one number a model: value, value + 1, ..."""
    with torch.no_grad():
        for part in (batch.params, batch.buffers):
            for weights in part.values():
                own = value + torch.arange(len(batch)).reshape(-1, *[1] * (weights.ndim - 1))
                weights.copy_(own.expand_as(weights))


def test_a_share_of_one_is_the_mean_of_all_steps():
    batch = small_batch()
    average = WeightAverage(batch, 1.0)
    for step, value in enumerate((4.0, 8.0, 0.0), start=1):
        moved(batch, value)
        average.update(step)
    for name, weights in average.state().items():
        mean = 0.0 if name.endswith("num_batches_tracked") else 4.0
        torch.testing.assert_close(weights[0], torch.full_like(weights[0], mean))
        torch.testing.assert_close(weights[1], torch.full_like(weights[1], mean + 1))


@pytest.mark.parametrize("share", [0.05, 0.1, 0.5])
def test_what_counts_is_about_the_last_share(share):
    batch, steps = small_batch(1), 2000
    average = WeightAverage(batch, share)
    for step in range(1, steps + 1):
        moved(batch, float(step))
        average.update(step)
    # The mean of the last s t numbers is t (1 - s / 2), and of the faded ones t / (1 + s).
    found = float(average.state()["lin.bias"].mean()) / steps
    assert found == pytest.approx(1 / (1 + share), rel=2e-2)


def test_the_first_step_forgets_the_start():
    batch = small_batch()
    average = WeightAverage(batch, 0.1)
    moved(batch, 7.0)
    average.update(1)
    assert all(float(weights[0].double().mean()) == 7 for weights in average.state().values())


def test_the_mean_is_there_inside_and_the_weights_come_back():
    batch = small_batch()
    average = WeightAverage(batch, 1.0)
    for step, value in enumerate((2.0, 4.0), start=1):
        moved(batch, value)
        average.update(step)
    params = batch.params
    with average.applied():
        assert float(batch.weights()["norm.running_mean"][0, 0]) == 3
        assert float(batch.params["lin.bias"][1, 0]) == 4
    assert batch.params is params
    assert float(batch.weights()["lin.bias"][0, 0]) == 4


def test_without_a_share_nothing_is_kept():
    batch = small_batch()
    average = WeightAverage(batch, 0.0)
    moved(batch, 1.0)
    average.update(1)
    assert average.state() == {}
    with average.applied():
        assert float(batch.weights()["lin.bias"][0, 0]) == 1


def test_it_goes_on_with_some_and_from_a_state():
    batch = small_batch(3)
    average = WeightAverage(batch, 1.0)
    moved(batch, 1.0)
    average.update(1)
    saved = {name: value.clone() for name, value in average.state().items()}
    other = WeightAverage(small_batch(3), 1.0)
    other.load_state(saved)
    for one in (average, other):
        one.keep(torch.tensor([2]))
        assert {float(v.double().mean()) for v in one.state().values()} == {3.0}
