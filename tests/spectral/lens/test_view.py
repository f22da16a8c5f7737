import math

import numpy as np
import pytest
import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

from cases import GRAPHS, OPERATORS, lens, signal
from nlsf.data import random_geometric
from nlsf.errors import SignalError
from nlsf.spectral import DyadicBands, IndexBands, Lens, partial_eigh
from pairs import every_pair


def dense_projections(shift, edges):
    """Spectral projections on (edges[j], edges[j+1]] by NumPy, and the complement, straight."""
    values, vectors = np.linalg.eigh(shift.to_dense().numpy())
    parts = []
    for j in range(len(edges) - 1):
        low = -math.inf if j == 0 else edges[j] + 1e-9
        columns = vectors[:, (values > low) & (values <= edges[j + 1] + 1e-9)]
        parts.append(columns @ columns.conj().T)
    return [*parts, np.eye(len(values)) - sum(parts)]


@every_pair(
    operator=["L", "N", "magnetic L"],
    complement=[True, False],
    normalize=[True, False],
    exponents=[(1.0, 2.0), (0.5, 2.0), (0.0, 2.0), (1.0, 1.0), (0.7, 3.5)],
)
def test_equals_the_equations_written_out(operator, complement, normalize, exponents):
    """Eq. 2 and 3 and App. C by dense projections, without any of our code but the operator."""
    a, p = exponents
    shift = OPERATORS[operator](GRAPHS["torus"])
    lam = float(np.linalg.eigvalsh(shift.to_dense().numpy())[-1])
    bands = DyadicBands(r=0.6, S=4, K=3)
    parts = dense_projections(shift, [0.0, *(lam * 0.6**k for k in (3, 2, 1))])
    parts = parts if complement else parts[:-1]
    P = Lens.of(partial_eigh(shift), bands, complement=complement)
    x = signal(P)
    n, d, eps = 16, 3, 1e-2

    scale = n ** (1 / p) if normalize else 1.0
    norms = np.stack([np.linalg.norm(Q @ x.numpy(), ord=p, axis=0) / scale for Q in parts])
    np.testing.assert_allclose(P(x).norms(p=p, normalize=normalize), norms, atol=1e-12)

    basis = [Q @ x.numpy() / (c**a + eps) for Q, c in zip(parts, norms, strict=True)]
    rng = np.random.default_rng(0)
    B = len(parts)
    r = rng.standard_normal((B, d))
    R = rng.standard_normal((B, d, 5))
    full = rng.standard_normal((B * d, B * 2))
    options = {"a": a, "eps": eps, "p": p, "normalize": normalize}
    for form, coefficients, expected in (
        ("diagonal", r, sum(r[j] * basis[j] for j in range(B))),
        ("matrices", R, sum(basis[j] @ R[j] for j in range(B))),
        ("full", full, np.concatenate(basis, axis=1) @ full),
    ):
        found = P(x).synthesize(torch.from_numpy(coefficients), form=form, **options)
        np.testing.assert_allclose(found, expected, atol=1e-10, err_msg=form)


@pytest.mark.parametrize("operator", ["N", "magnetic N"])
@pytest.mark.parametrize("form", ["diagonal", "matrices", "full"])
@pytest.mark.parametrize(("a", "p"), [(0.0, 2.0), (0.5, 2.0), (1.0, 2.0), (1.0, 3.0), (1.0, 1.0)])
def test_gradients(operator, form, a, p):
    P = lens(operator, "dyadic, K < S", "float64", "weighted")
    shape = {"diagonal": (4, 2), "matrices": (4, 2, 3), "full": (8, 4)}[form]
    r = torch.rand(shape, dtype=torch.float64, requires_grad=True)
    x = signal(P, channels=2).requires_grad_()

    def layer(r, x):
        return P(x).synthesize(r, form=form, a=a, p=p, eps=0.1)

    assert torch.autograd.gradcheck(layer, (r, x))
    if form == "diagonal" and a == 1:  # the norms depend on neither
        assert torch.autograd.gradcheck(lambda x: P(x).norms(p=p), (x,))


@pytest.mark.parametrize("p", [1.0, 1.5, 2.0, 3.0, math.inf])
@pytest.mark.parametrize("a", [0.0, 0.5, 1.0])
def test_gradients_at_zero_are_finite(p, a):
    P = lens("L", "dyadic", "float64", "torus")
    x = torch.zeros(16, 2, dtype=torch.float64, requires_grad=True)
    norms = P(x).norms(p=p)
    y = P(x).synthesize(torch.ones_like(norms), a=a, p=p, eps=0.5)
    (norms.sum() + y.sum()).backward()
    assert not norms.any()
    assert torch.isfinite(x.grad).all()
    (zero,) = torch.autograd.grad(P(x).norms(p=p).sum(), x)
    if p != math.inf:
        assert not zero.any(), "the gradient of a zero norm is 0"


def test_zero_to_the_zero_is_one():
    P = lens("L", "dyadic", "float64", "torus")
    r = torch.ones(P.n_bands, 1, dtype=torch.float64)
    zero = torch.zeros(16, 1, dtype=torch.float64)
    assert not P(zero).synthesize(r, a=0.0, eps=1e-6).any()
    x = signal(P, channels=1)
    torch.testing.assert_close(P(x).synthesize(r, a=0.0, eps=1.0), x / 2)


def test_large_p_does_not_overflow():
    P = lens("L", "dyadic", "float32", "torus")
    x = 1e3 * signal(P)
    sup = P(x).norms(p=math.inf)
    high = P(x).norms(p=60.0)
    assert torch.isfinite(high).all()
    assert (high <= sup * 16 ** (1 / 60) * 1.001).all()
    assert (high >= sup * 0.999).all()


def test_other_norms_are_not_invariant_to_shifts():
    """Why docstrings promise permutations only for p != 2."""
    from nlsf.testing import assert_shift_invariant

    P = lens("L", "dyadic", "float64", "torus")
    with pytest.raises(AssertionError, match="not invariant"):
        assert_shift_invariant(lambda x: P(x).norms(p=1.0), P)


class LargestArray(TorchDispatchMode):
    """Remembers the largest array that any operation produced."""

    largest = 0

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        out = func(*args, **(kwargs or {}))
        for leaf in tree_leaves(out):
            if isinstance(leaf, torch.Tensor):
                self.largest = max(self.largest, leaf.numel())
        return out


def test_nothing_of_the_size_of_all_projections_is_built():
    n, d, J = 400, 8, 30
    bands = IndexBands(J)
    shift = OPERATORS["N"](random_geometric(n, 12.0))
    P = Lens.of(partial_eigh(shift, bands=bands), bands)
    _ = P.vectors
    x = signal(P, channels=d).requires_grad_()
    with LargestArray() as seen:
        norms = P(x).norms()
        y = P(x).synthesize(torch.ones_like(norms))
        y = y + P(x).synthesize(torch.ones(J + 1, d, d, dtype=x.dtype), form="matrices")
        y.square().sum().backward()
    assert seen.largest <= max(n * d, n * P.vectors.shape[1])
    assert seen.largest < n * (J + 1) * d / 4


@pytest.mark.parametrize(
    ("call", "says"),
    [
        (lambda P, x: P(x).norms(p=0.5), "at least 1"),
        (lambda P, x: P(x).synthesize(torch.ones(7, 3), a=1.5), "between 0 and 1"),
        (lambda P, x: P(x).synthesize(torch.ones(7, 3), eps=0.0), "positive"),
        (lambda P, x: P(x).synthesize(torch.ones(6, 3)), r"\(\.\.\., 7, 3\), not \(6, 3\)"),
        (lambda P, x: P(x).synthesize(torch.ones(3)), r"\(\.\.\., 7, 3\), not \(3,\)"),
        (lambda P, x: P(x).synthesize(torch.ones(7, 3), form="matrices"), r"7, 3, d'\)"),
        (lambda P, x: P(x).synthesize(torch.ones(20, 3), form="full"), r"\(\.\.\., 21, d'\)"),
        (lambda P, x: P(x).synthesize(torch.ones(7, 3), form="other"), "'diagonal'"),
    ],
)
def test_arguments_that_do_not_fit_are_refused(call, says):
    P = lens("L", "dyadic", "float64", "torus")
    with pytest.raises(SignalError, match=says):
        call(P, signal(P))


def test_sharing_a_decomposition_changes_nothing():
    P = lens("N", "uniform", "float64", "star")
    x = signal(P)
    parts = P(x)
    norms = parts.norms()
    torch.testing.assert_close(norms, P(x).norms())
    shared = parts.synthesize(norms, norms=norms)
    torch.testing.assert_close(shared, P(x).synthesize(norms))


def test_a_small_remainder_keeps_its_digits():
    """Pythagoras would lose them: see docs/decisions.md."""
    P = lens("L", "index", "float64", "path")
    inside = P.vectors[:, :1] * 1e3
    outside = P(signal(P, channels=1)).part(P.rest)
    outside = outside / outside.norm() * 1e-6
    norm = P(inside + outside).norms()[P.rest]
    assert norm.item() == pytest.approx(1e-6, rel=1e-4)
