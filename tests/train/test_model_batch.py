import pytest
import torch

from nlsf.errors import ModelError
from nlsf.nn import GraphClassifier, NodeClassifier
from nlsf.nn.plans import plan_of
from nlsf.train.loop.model_batch import ModelBatch
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
