import pytest
import torch
from torch import nn

from nlsf.nn.grouped_mlp import GroupedMLP
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
