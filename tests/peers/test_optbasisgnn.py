import numpy as np
import torch

from nlsf.data.generators import block_model
from nlsf.peers import PEERS, Neighbourhood
from nlsf.peers.adaptive import OptBasisGNN, OptBasisGNNConfig, orthonormal_basis
from nlsf.testing.graphs import complete

N, F64 = 13, torch.float64


def graph():
    edges = block_model(N, 3, 4.0, seed=2).edge_index
    return Neighbourhood(edges[:, (edges != N - 1).all(0)], N, dtype=F64)


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
