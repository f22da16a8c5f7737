import pytest
import torch
from torch.func import grad, vmap

from nlsf.spectral.kernels import dense as products
from nlsf.spectral.kernels.dense import shared_product

F64 = torch.float64


@pytest.fixture(params=[1, 1000], autouse=True)
def _both_ways(request, monkeypatch):
    """Matrices of these tests count as large, and as small."""
    monkeypatch.setattr(products, "_LARGE", request.param)


def random(*shape, dtype=F64, seed=0):
    return torch.randn(*shape, dtype=dtype, generator=torch.Generator().manual_seed(seed))


# Each pair of values stands in some case.
@pytest.mark.parametrize(
    ("leading", "dtype", "stored"),
    [
        (leading, (F64, torch.complex128)[(i + j) % 2], stored)
        for i, leading in enumerate([(), (3,), (2, 3), (1, 2, 1), (0,), (2, 0)])
        for j, stored in enumerate(["by rows", "by columns", "conjugate"])
    ],
)
def test_it_is_the_product(leading, dtype, stored):
    matrix = random(3, 4, dtype=dtype) if stored == "by rows" else random(4, 3, dtype=dtype)
    matrix = {"by rows": matrix, "by columns": matrix.mT, "conjugate": matrix.mH}[stored]
    x = random(*leading, 4, 2, dtype=dtype, seed=1).requires_grad_()
    found = shared_product(matrix, x)
    assert found.shape == (*leading, 3, 2)
    torch.testing.assert_close(found, matrix @ x)
    check = {"check_forward_ad": True, "check_batched_grad": True}
    assert torch.autograd.gradcheck(lambda x: shared_product(matrix, x), (x,), **check)
    assert torch.autograd.gradgradcheck(lambda x: shared_product(matrix, x), (x,))


@pytest.mark.parametrize("dim", [0, 1, 2])
@pytest.mark.parametrize("dtype", [F64, torch.complex128])
def test_many_signals_at_once(dim, dtype):
    matrix = random(5, 7, dtype=dtype)
    x = random(3, 7, 2, dtype=dtype, seed=1).requires_grad_()

    def together(x):
        return vmap(lambda s: shared_product(matrix, s), in_dims=dim)(x.movedim(0, dim))

    torch.testing.assert_close(together(x), matrix @ x)
    assert torch.autograd.gradcheck(together, (x,))


def test_signals_of_signals_at_once():
    matrix, x = random(5, 7), random(2, 3, 4, 7, 2, seed=1)
    inner = vmap(lambda s: shared_product(matrix, s))
    torch.testing.assert_close(inner(x), matrix @ x)
    torch.testing.assert_close(vmap(inner, in_dims=1, out_dims=1)(x), matrix @ x)


def test_matrices_of_each_member_its_own():
    matrix, x = random(3, 5, 7), random(3, 7, 2, seed=1)
    torch.testing.assert_close(shared_product(matrix, x), matrix @ x)
    torch.testing.assert_close(vmap(shared_product)(matrix, x), matrix @ x)
    one = vmap(shared_product, in_dims=(0, None))(matrix, x[0])
    torch.testing.assert_close(one, matrix @ x[0])


def test_gradients_of_each_member_its_own():
    matrix, x = random(5, 7), random(3, 7, 2, seed=1)

    def value(signal):
        return shared_product(matrix, signal).sin().sum()

    expected = torch.stack([matrix.T @ (matrix @ s).cos() for s in x])
    torch.testing.assert_close(grad(value)(x), expected)
    torch.testing.assert_close(vmap(grad(value))(x), expected)
    torch.testing.assert_close(grad(lambda x: vmap(value)(x).sum())(x), expected)
