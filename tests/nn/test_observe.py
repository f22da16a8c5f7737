import torch

from nlsf.nn import GraphNLSF, LaplacianAttention, NodeNLSF
from nlsf.nn.models import GraphClassifier, NodeClassifier
from nlsf.nn.observe import Observations, observe
from train.small import BANDS, node_data, random, signal_data


def node_model(**fields):
    torch.manual_seed(0)
    return NodeClassifier(
        in_channels=8, out_channels=3, hidden_channels=5, **BANDS, **fields
    ).eval()


@torch.no_grad()
def observed(model, *arguments):
    with observe(model) as seen:
        output = model(*arguments)
    return seen, output


def test_norms_and_gains_are_those_of_the_filters():
    graph = node_data().graphs[0]
    model = node_model()
    seen, _ = observed(model, graph.x, graph.edge_index)
    attention = model.filters.layers[0]
    assert [one.layer for one in seen.filters] == [attention.first, attention.second]
    for one in seen.filters:
        lens = one.layer.lens(seen.signal, graph.edge_index)
        norms = lens(seen.signal).norms()
        torch.testing.assert_close(one.norms, norms)
        torch.testing.assert_close(one.gains_before, one.layer.start.gains(lens.frequencies))
        torch.testing.assert_close(
            one.gains_after, one.layer.response(norms, one.gains_before).detach()
        )
    assert [float(alpha) for alpha in seen.alpha] == [0.5]


def test_before_training_gains_are_those_of_the_start():
    graph = node_data().graphs[0]
    seen, _ = observed(node_model(), graph.x, graph.edge_index)
    for one in seen.filters:
        torch.testing.assert_close(
            one.gains_after,
            one.gains_before.to(one.gains_after)[:, None].expand_as(one.gains_after),
        )


def test_the_signal_is_what_the_encoder_gives():
    graph = node_data().graphs[0]
    model = node_model(num_layers=3, place="hidden")
    seen, _ = observed(model, graph.x, graph.edge_index)
    torch.testing.assert_close(seen.signal, model.encoder(graph.x).detach())
    assert len(seen.filters) == 6
    assert len(seen.alpha) == 3


def test_a_full_response_has_no_gains_of_bands():
    graph = node_data().graphs[0]
    model = node_model(branches="value", response="full", place="hidden")
    seen, _ = observed(model, graph.x, graph.edge_index)
    assert seen.filters[0].gains_after is None
    assert seen.alpha == []


def test_a_graph_level_filter_shows_its_norms():
    data = signal_data()
    torch.manual_seed(0)
    model = GraphClassifier(in_channels=2, out_channels=2, **BANDS).eval()
    seen, _ = observed(model, data.signals, data.graphs[0].edge_index)
    assert isinstance(model.filter, LaplacianAttention)
    for one in seen.filters:
        assert isinstance(one.layer, GraphNLSF)
        mapped = one.layer.lin(data.signals).detach()
        lens = one.layer.lens(mapped, data.graphs[0].edge_index)
        torch.testing.assert_close(one.norms, lens(mapped).norms())
        assert one.gains_after is None


def test_observing_changes_nothing_and_leaves_nothing():
    graph = node_data().graphs[0]
    model = node_model()
    _, output = observed(model, graph.x, graph.edge_index)
    with torch.no_grad():
        assert torch.equal(model(graph.x, graph.edge_index), output)
    hooks = [len(p._forward_hooks) + len(p._forward_pre_hooks) for p in model.modules()]
    assert sum(hooks) == 0


def test_batches_are_joined_in_their_order():
    data = signal_data()
    torch.manual_seed(0)
    model = GraphClassifier(
        in_channels=2, out_channels=2, level="pooling", score="spectral", **BANDS
    ).eval()
    edges = data.graphs[0].edge_index
    whole, _ = observed(model, data.signals, edges)
    parts = [observed(model, some, edges)[0] for some in data.signals.split(11)]
    joined = Observations.joined(parts)
    assert isinstance(joined.filters[0].layer, NodeNLSF)
    for one, other in zip(joined.filters, whole.filters, strict=True):
        torch.testing.assert_close(one.norms, other.norms)
        torch.testing.assert_close(one.gains_after, other.gains_after)
        torch.testing.assert_close(one.gains_before, other.gains_before)
    assert joined.alpha[0].shape == (30,)
    torch.testing.assert_close(joined.alpha[0], whole.alpha[0])


def test_a_model_without_filters_shows_nothing():
    model = torch.nn.Linear(3, 2)
    seen, _ = observed(model, random(4, 3))
    assert seen.filters == []
    assert seen.signal is None
    assert Observations.joined([]).filters == []
