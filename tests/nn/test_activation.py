import pytest
import torch
from torch import nn
from torch_geometric.nn.resolver import activation_resolver

from nlsf.errors import ModelError
from nlsf.nn.activation import _CLASSES, activation_of


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
