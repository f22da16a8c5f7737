import numpy as np
import pytest
import torch

from nlsf.data.generators import block_model
from nlsf.peers import Neighbourhood
from nlsf.peers.rational import CayleyNet, CayleyNetConfig

N, F, C = 13, 4, 3
F64 = torch.float64


@pytest.fixture(scope="module")
def graph():
    edges = block_model(N, 3, 4.0, seed=2).edge_index
    return Neighbourhood(edges[:, (edges != N - 1).all(0)], N, dtype=F64)


@pytest.fixture(scope="module")
def x():
    return torch.randn(N, F, dtype=F64, generator=torch.Generator().manual_seed(0))


def spectrum(graph):
    """Of N = I - D^-1/2 A D^-1/2."""
    A = np.zeros((N, N))
    A[graph.edge_index[0], graph.edge_index[1]] = 1
    d = A.sum(1)
    root = np.where(d > 0, np.where(d > 0, d, 1) ** -0.5, 0)
    return np.linalg.eigh(np.eye(N) - root[:, None] * A * root)


def made(zoom, **fields):
    torch.manual_seed(1)
    model = CayleyNet(CayleyNetConfig(F, C, 5, num_layers=1, **fields)).to(F64).eval()
    with torch.no_grad():
        model.layers[0].coefficients.fill_(np.log(zoom))
    return model


def expected(model, graph, x, cayley):
    """The real part, with complex weights and complex matrices, of V c(lam)^k V^T X W_k."""
    layer = model.layers[0]
    values, vectors = spectrum(graph)
    y = layer.real(x).detach().numpy()
    for k, lin in enumerate(layer.powers, start=1):
        real, imaginary = np.split(lin.weight.detach().numpy().T, 2, axis=1)
        C_k = vectors * cayley(values) ** k @ vectors.T
        y = y + 2 * (C_k @ x.numpy() @ (real + 1j * imaginary)).real
    return torch.from_numpy(y)


@pytest.mark.parametrize("zoom", [0.3, 1.0, 2.5])
@pytest.mark.parametrize("K", [1, 3])
def test_many_steps_are_the_complex_rational_filter(graph, x, zoom, K):
    model = made(zoom, K=K, jacobi=500)
    exact = expected(model, graph, x, lambda lam: (zoom * lam - 1j) / (zoom * lam + 1j))
    torch.testing.assert_close(model(x, graph), exact, rtol=1e-10, atol=1e-10)


def test_few_steps_are_those_of_jacobi(graph, x):
    zoom, steps = 1.7, 5

    def cayley(lam):
        matrix, right = zoom * np.diag(lam) + 1j * np.eye(N), zoom * lam - 1j
        diagonal = zoom + 1j  # N has ones on its diagonal
        rest = matrix - diagonal * np.eye(N)
        y = right / diagonal
        for _ in range(steps):
            y = (right - rest @ y) / diagonal
        return y

    model = made(zoom, K=3, jacobi=steps)
    torch.testing.assert_close(
        model(x, graph), expected(model, graph, x, cayley), rtol=1e-10, atol=1e-10
    )


def test_the_error_shrinks_as_fast_as_it_says(graph, x):
    zoom = 1.0
    exact = made(zoom, jacobi=500)(x, graph)
    errors = [(made(zoom, jacobi=j)(x, graph) - exact).norm().item() for j in (2, 12)]
    assert 0 < errors[1] <= errors[0] * 1.01 * (zoom / np.hypot(zoom, 1)) ** 10


def test_layers_follow_each_other(graph, x):
    torch.manual_seed(1)
    model = CayleyNet(CayleyNetConfig(F, C, 5, K=2, num_layers=2)).to(F64).eval()
    first, last = model.layers
    torch.testing.assert_close(model(x, graph), last(first(x, graph).relu(), graph))
