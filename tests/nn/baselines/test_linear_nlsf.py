import numpy as np
import pytest
import torch

from nlsf.data.generators import block_model
from nlsf.nn import NodeNLSF, Start
from nlsf.nn.baselines import Neighbourhood
from nlsf.nn.baselines.linear_nlsf import LinearNLSF, LinearNLSFConfig
from nlsf.spectral import DyadicBands, IndexBands, UniformBands

N, F64 = 13, torch.float64


@pytest.fixture(scope="module")
def graph():
    edges = block_model(N, 3, 4.0, seed=2).edge_index
    return Neighbourhood(edges[:, (edges != N - 1).all(0)], N, dtype=F64)


@pytest.fixture(scope="module")
def x():
    return torch.randn(N, 4, dtype=F64, generator=torch.Generator().manual_seed(0))


def made(**fields):
    torch.manual_seed(1)
    return LinearNLSF(LinearNLSFConfig(4, 2, 5, **fields)).to(F64).eval()


def test_it_is_a_filter_that_is_constant_on_every_band(graph, x):
    bands = UniformBands(S=4)
    model = made(bands=bands, start=Start("all-pass"))
    torch.nn.init.normal_(model.coefficients)
    A = graph.matrix("adjacency").dense().numpy() + np.eye(N)
    root = A.sum(1) ** -0.5
    values, vectors = np.linalg.eigh(np.eye(N) - root[:, None] * A * root)
    band = np.clip(np.ceil(values / values.max() * 4 - 1e-9) - 1, 0, 3).astype(int)
    gains = 1 + model.coefficients.detach().numpy()[band]
    expected = torch.from_numpy(vectors) @ (
        torch.from_numpy(gains) * (torch.from_numpy(vectors.T) @ model.scores(x))
    )
    torch.testing.assert_close(model(x, graph), expected)


@pytest.mark.parametrize("bands", [DyadicBands(), DyadicBands(K=3), IndexBands(4)])
def test_it_starts_as_the_nlsf_that_it_is_the_control_of(graph, x, bands):
    model = made(bands=bands)
    options = {"a": 0.0, "eps": 1e-12, "self_loops": True, "start": Start("ppr")}
    nonlinear = NodeNLSF(2, 2, bands, "sym", **options).to(F64)
    expected = nonlinear(model.scores(x), graph.edge_index)
    # With a = 0 the NLSF divides by 1 + eps, and its 0^0 is 1.
    torch.testing.assert_close(model(x, graph), expected)


def test_its_filter_is_linear_and_does_not_look_at_the_signal(graph, x):
    model = made()
    torch.nn.init.normal_(model.coefficients)
    model.scores = torch.nn.Identity()
    h = x[:, :2]
    twice = model(h + 3 * x[:, 2:], graph)
    torch.testing.assert_close(twice, model(h, graph) + 3 * model(x[:, 2:], graph))
