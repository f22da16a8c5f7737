import pytest
import torch
from torch_geometric.nn import MLP

from nlsf.nn.models import Head


@pytest.mark.parametrize("standardize", [True, False])
@pytest.mark.parametrize("sizes", [[4, 8, 6, 3], [4, 3]])
def test_it_is_the_network_of_pytorch_geometric(standardize, sizes):
    torch.manual_seed(0)
    made = Head(sizes, standardize=standardize)
    other = MLP(sizes, norm="batch_norm" if standardize else None)
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


def test_dropout_acts_in_training_only():
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
