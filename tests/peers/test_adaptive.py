import numpy as np
import pytest
import torch

from nlsf.data.generators import block_model
from nlsf.errors import ModelError
from nlsf.peers import PEERS, Neighbourhood
from nlsf.peers.adaptive import (
    EigenvalueTransformer,
    OptBasisGNN,
    OptBasisGNNConfig,
    Specformer,
    SpecformerConfig,
    orthonormal_basis,
    spectrum_of,
)
from nlsf.testing.graphs import complete, torus

N, F64 = 13, torch.float64


def graph():
    edges = block_model(N, 3, 4.0, seed=2).edge_index
    return Neighbourhood(edges[:, (edges != N - 1).all(0)], N, dtype=F64)


def made(**fields):
    torch.manual_seed(1)
    model = Specformer(SpecformerConfig(4, 3, 8, **fields)).to(F64).eval()
    with torch.no_grad():
        for weight in model.weights:
            weight += 0.3 * torch.randn(weight.shape, dtype=F64)
    return model


def transcribed(part, values):
    """The paper's formulas on all eigenvalues, repeated ones one by one, head by head."""
    d = part.encode.out_features
    angles = 100 * values[:, None] / 10_000 ** (torch.arange(0, d, 2, dtype=F64) / d)
    z = part.encode(torch.cat([values[:, None], angles.sin(), angles.cos()], dim=1))
    n = part.norms[0](z)
    size = d // part.num_heads
    heads = []
    for m in range(part.num_heads):
        s = slice(m * size, (m + 1) * size)
        q, k, v = part.query(n)[:, s], part.key(n)[:, s], part.value(n)[:, s]
        heads.append(torch.softmax(q @ k.T / size**0.5, dim=1) @ v)
    z = z + part.mix(torch.cat(heads, dim=1))
    return part.decode(z + part.feed(part.norms[1](z))).T


def normalised_laplacian(g):
    A = g.matrix("adjacency").dense().numpy()
    d = A.sum(1)
    root = np.where(d > 0, np.maximum(d, 1) ** -0.5, 0)
    return np.diag((d > 0).astype(float)) - root[:, None] * A * root


@pytest.mark.parametrize("layers", [1, 2])
def test_it_filters_with_the_learned_eigenvalues(layers):
    g, model = graph(), made(num_heads=2, num_layers=layers)
    x = torch.randn(N, 4, dtype=F64)
    values, vectors = map(torch.from_numpy, np.linalg.eigh(normalised_laplacian(g)))
    new = transcribed(model.coefficients, values)
    h = model.scores(x)
    for weight in model.weights:
        terms = [h] + [vectors @ torch.diag(e) @ vectors.T @ h for e in new]
        h = sum(w * term for w, term in zip(weight, terms, strict=True))
    torch.testing.assert_close(model(x, g), h, rtol=1e-7, atol=1e-9)


def test_multiplicities_stand_for_repeated_eigenvalues():
    part = EigenvalueTransformer(SpecformerConfig(4, 3, 8)).to(F64).eval()
    values, times = torch.tensor([0.0, 0.5, 1.3], dtype=F64), torch.tensor([1, 4, 2])
    repeated = transcribed(part, values.repeat_interleave(times))
    distinct = part(values, times.to(F64)).repeat_interleave(times, dim=1)
    torch.testing.assert_close(distinct, repeated)


def test_equal_eigenvalues_keep_equal_gains_in_training():
    model = made(transformer_dropout=0.5, filter_dropout=0.0, dropout=0.0, input_dropout=0.0)
    g = torus(4, 4)
    graph = Neighbourhood(g.edge_index, 16, dtype=F64)
    model.train()
    x = torch.randn(16, 4, dtype=F64)
    torch.manual_seed(5)
    out = model(x, graph)
    order = torch.arange(16).reshape(4, 4).T.flatten()  # a symmetry of the torus
    torch.manual_seed(5)
    torch.testing.assert_close(model(x[order], graph), out[order])


def test_spectra_are_remembered_and_large_graphs_refused():
    g = graph()
    assert spectrum_of(g) is spectrum_of(Neighbourhood(g.edge_index, N, dtype=F64))
    with pytest.raises(ModelError, match="at most 6,000 nodes, not 6,001"):
        spectrum_of(Neighbourhood(g.edge_index, 6001))


def test_heads_divide_the_width():
    with pytest.raises(ModelError, match="3 does not divide 8"):
        SpecformerConfig(4, 3, 8, num_heads=3)


def signal(channels=3):
    return torch.randn(N, channels, dtype=F64, generator=torch.Generator().manual_seed(0))


def test_the_basis_of_every_channel_is_orthonormal_and_spans_the_krylov_space():
    P, h, K = graph().matrix("sym"), signal(), 5
    V = torch.stack(orthonormal_basis(P, h, K), dim=1)  # (N, K + 1, d)
    for c in range(3):
        torch.testing.assert_close(V[..., c].T @ V[..., c], torch.eye(K + 1, dtype=F64))
        powers = [np.linalg.matrix_power(P.dense().numpy(), k) @ h[:, c].numpy() for k in range(6)]
        # Gram-Schmidt on the powers gives the same vectors, up to their signs.
        Q, R = np.linalg.qr(np.stack(powers, axis=1))
        np.testing.assert_allclose(Q * np.sign(np.diag(R)), V[..., c].numpy(), atol=1e-9)


def test_a_layer_is_a_filter_of_the_normalised_adjacency():
    torch.manual_seed(0)
    model = OptBasisGNN(OptBasisGNNConfig(3, 2, 4, K=3)).to(F64).eval()
    torch.nn.init.normal_(model.coefficients)
    g, x = graph(), signal()
    h = model.first(x).relu()
    values, vectors = np.linalg.eigh(g.matrix("sym").dense().numpy())
    filtered = []
    for c in range(4):
        spectrum = vectors.T @ h[:, c].detach().numpy()
        # The polynomials that are orthonormal for the measure spectrum^2 on the eigenvalues.
        Q, R = np.linalg.qr(spectrum[:, None] * values[:, None] ** np.arange(4))
        filtered.append(vectors @ (Q * np.sign(np.diag(R))) @ model.coefficients[:, c].tolist())
    y = torch.from_numpy(np.stack(filtered, axis=1))
    torch.testing.assert_close(model(x, g), model.last(y))


def test_an_exhausted_basis_goes_on_with_zeros():
    P = Neighbourhood(complete(6).edge_index, 6).matrix("sym")
    h = torch.tensor([[1.0, 0.0], *[[0.0, 0.0]] * 5])  # the second channel has no direction at all
    h.requires_grad_()
    vectors = orthonormal_basis(P, h, 4)
    lengths = torch.stack([v.norm(dim=0) for v in vectors])
    torch.testing.assert_close(lengths[:, 0], torch.tensor([1.0, 1.0, 0.0, 0.0, 0.0]))
    assert not lengths[:, 1].any()
    sum((k + 1) * v.sum() for k, v in enumerate(vectors)).backward()
    assert h.grad.isfinite().all()


def test_it_is_for_one_graph():
    assert PEERS["optbasisgnn"].for_levels == ("node",)
