import pytest
import torch
from torch import nn
from torch_geometric.nn import MLP
from torch_geometric.nn.resolver import activation_resolver

from nlsf.errors import ModelError
from nlsf.nn.dropout import Dropout
from nlsf.nn.models import Head
from nlsf.nn.networks import _CLASSES, FeatureLinear, GroupedMLP, activation_of, dropped
from nlsf.spectral.kernels.sparse_signal import SparseSignal
from nn.layers import F64, randomised, signal


def separate(network, group, activation, dropout=0.0):
    """The same network as an ordinary PyTorch one."""
    parts = []
    for weight, bias in zip(network.weights, network.biases, strict=True):
        linear = nn.Linear(*weight.shape[1:], dtype=F64)
        with torch.no_grad():
            linear.weight.copy_(weight[group].T)
            linear.bias.copy_(bias[group])
        parts += [linear, activation(), nn.Dropout(dropout)]
    return nn.Sequential(*parts[:-2])


@pytest.mark.parametrize("groups", [1, 2, 5])
@pytest.mark.parametrize("depth", [1, 2, 4])
@pytest.mark.parametrize(("name", "module"), [("relu", nn.ReLU), ("tanh", nn.Tanh)])
def test_each_group_is_an_mlp_of_its_own(groups, depth, name, module):
    network = randomised(GroupedMLP(groups, 3, 2, hidden=6, depth=depth, activation=name))
    for leading in ((), (4,), (2, 4)):
        x = signal(*leading, groups, 3)
        y = network(x)
        assert y.shape == (*leading, groups, 2)
        for g in range(groups):
            expected = separate(network, g, module)(x[..., g, :])
            torch.testing.assert_close(y[..., g, :], expected)


@pytest.mark.parametrize(("groups", "depth", "hidden"), [(1, 1, 8), (3, 2, 8), (2, 5, 7)])
def test_the_count_is_the_number_of_parameters(groups, depth, hidden):
    network = GroupedMLP(groups, 4, 5, hidden=hidden, depth=depth)
    total = sum(p.numel() for p in network.parameters())
    assert GroupedMLP.count(groups, 4, 5, hidden, depth) == total


def test_parameters_are_drawn_as_those_of_a_linear_layer():
    torch.manual_seed(0)
    network = GroupedMLP(50, 100, 40, hidden=100)
    for parameter in (*network.weights, *network.biases):
        assert 0.09 < parameter.abs().max() <= 0.1
        assert abs(parameter.mean()) < 0.01
    before = network.weights[0].clone()
    network.reset_parameters()
    assert not torch.equal(before, network.weights[0])


def test_a_network_that_starts_at_zero_can_leave_it():
    network = GroupedMLP(3, 4, 2, zero=True)
    y = network(torch.randn(5, 3, 4))
    assert not y.any()
    y.sum().backward()
    assert network.weights[-1].grad.any()
    assert not GroupedMLP(3, 4, 2, zero=True).weights[-1].any()
    assert GroupedMLP(3, 4, 2, zero=True).weights[0].any()


def test_dropout_acts_in_training_only():
    network = GroupedMLP(2, 4, 2, hidden=64, dropout=0.5)
    x = torch.randn(2, 4)
    assert not torch.equal(network(x), network(x))
    network.eval()
    assert torch.equal(network(x), network(x))


def test_repr():
    assert repr(GroupedMLP(3, 4, 2, hidden=8)) == "GroupedMLP(3 x [4, 8, 2])"


@pytest.mark.parametrize("name", [*_CLASSES, "leaky_relu", "Leaky ReLU", "hard-tanh", "Tanh"])
def test_names_mean_what_they_mean_in_pytorch_geometric(name):
    ours, theirs = activation_of(name), activation_resolver(name)
    for module in (ours, theirs):
        if isinstance(module, nn.Module):
            module.eval()  # one of them draws numbers while it trains
    x = torch.linspace(-3, 3, 12).reshape(2, 6)
    torch.testing.assert_close(ours(x), theirs(x))


def test_a_callable_is_taken_as_it_is():
    assert activation_of(torch.sin) is torch.sin


def test_an_unknown_name_is_named_with_the_nearest():
    with pytest.raises(ModelError, match=r"no activation 'rellu'. Did you mean 'relu'"):
        activation_of("rellu")


def test_sparse_features_give_what_dense_ones_give():
    torch.manual_seed(0)
    x = torch.randn(6, 4) * (torch.rand(6, 4) < 0.5)
    for bias in (True, False):
        layer = FeatureLinear(4, 3, bias=bias)
        torch.testing.assert_close(layer(SparseSignal.of(x)), layer(x))


def test_dropout_acts_on_the_entries():
    x = torch.eye(50)
    drop = Dropout(0.5).train()
    drop.generator = torch.Generator().manual_seed(0)
    sparse = dropped(SparseSignal.of(x), drop)
    assert set(sparse.values.tolist()) == {0.0, 2.0}
    assert set(dropped(x, drop).unique().tolist()) == {0.0, 2.0}
    assert torch.equal(dropped(x, drop.eval()), x)


@pytest.mark.parametrize("batch_norm", [True, False])
@pytest.mark.parametrize("sizes", [[4, 8, 6, 3], [4, 3]])
def test_it_is_the_network_of_pytorch_geometric(batch_norm, sizes):
    torch.manual_seed(0)
    made = Head(sizes, batch_norm=batch_norm)
    other = MLP(sizes, norm="batch_norm" if batch_norm else None)
    theirs, ours = list(other.parameters()), list(made.parameters())
    assert sorted(p.shape for p in theirs) == sorted(p.shape for p in ours)
    with torch.no_grad():
        for a, b in zip(made.lins, other.lins, strict=True):
            b.weight.copy_(a.weight)
            b.bias.copy_(a.bias)
    x = torch.randn(10, 4)
    for mode in (True, False):
        torch.testing.assert_close(made.train(mode)(x), other.train(mode)(x))


def test_leading_dimensions_are_one_batch():
    made = Head([4, 8, 3])
    x = torch.randn(2, 5, 4)
    torch.testing.assert_close(made(x).flatten(0, 1), made(x.flatten(0, 1)))
    assert made(x).shape == (2, 5, 3)


def test_head_dropout_acts_in_training_only():
    made = Head([4, 64, 3], dropout=0.5)
    x = torch.randn(5, 4)
    assert not torch.equal(made(x), made(x))
    made.eval()
    assert torch.equal(made(x), made(x))
    assert repr(made) == "Head([4, 64, 3])"


def test_reset_draws_anew_and_forgets():
    made = Head([4, 8, 3])
    before = [lin.weight.clone() for lin in made.lins]
    made(5 + torch.randn(10, 4))
    assert made.norms[0].running_mean.any()
    made.reset_parameters()
    assert not made.norms[0].running_mean.any()
    for lin, old in zip(made.lins, before, strict=True):
        assert not torch.equal(lin.weight, old)
