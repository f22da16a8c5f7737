import pytest
import torch

from nlsf.nn.baselines import Neighbourhood
from nlsf.nn.baselines.fsgnn import FSGNN, FSGNNConfig


def small_graph(num_nodes=12):
    A = (torch.rand(num_nodes, num_nodes) < 0.3).double().triu(1)
    A[:, -1] = 0  # the last node is isolated
    A = A + A.T
    return Neighbourhood(A.nonzero().T, num_nodes, dtype=torch.float64), A


def normalised(A):
    degree = A.sum(1)
    root = torch.where(degree > 0, degree, torch.inf).rsqrt()
    return root[:, None] * A * root


@pytest.mark.parametrize("normalize", [False, True])
def test_the_scores_are_their_formula(normalize):
    torch.manual_seed(0)
    graph, A = small_graph()
    x = torch.randn(12, 4, dtype=torch.float64)
    model = FSGNN(FSGNNConfig(4, 3, 6, hops=2, normalize=normalize)).double().eval()
    with torch.no_grad():
        model.coefficients.normal_()
        model.biases.normal_()
    P, looped = normalised(A), normalised(A + torch.eye(12))
    hops = [x, P @ x, P @ P @ x, looped @ x, looped @ looped @ x]
    weights = model.coefficients.exp() / model.coefficients.exp().sum()
    parts = []
    for hop, lin, bias, weight in zip(hops, model.lins, model.biases, weights, strict=True):
        part = hop @ lin.weight.T + bias
        if normalize:
            part = part / part.square().sum(1, keepdim=True).sqrt()
        parts.append(weight * part)
    expected = model.last(torch.cat(parts, dim=1).clamp(min=0))
    torch.testing.assert_close(model(x, graph), expected)
