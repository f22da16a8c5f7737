import pytest
import torch

from cases import BANDS, DTYPES, GRAPHS, OPERATORS, spectrum
from nlsf.errors import BandError, SignalError
from nlsf.spectral import Lens, PolynomialBands, UniformBands
from pairs import every_pair

SIZES = [g.num_nodes for g in GRAPHS.values()]


def setting(operator, bands, dtype, complement):
    spectra = [spectrum(operator, graph, bands).to(DTYPES[dtype]) for graph in GRAPHS]
    together = Lens.of(spectra, BANDS[bands], complement=complement)
    apart = [Lens.of(s, BANDS[bands], complement=complement) for s in spectra]
    generator = torch.Generator().manual_seed(0)
    x = torch.randn(sum(SIZES), 3, dtype=together.dtype, generator=generator)
    return together, apart, x


@every_pair(
    bands=list(BANDS),
    operator=["N", "magnetic L"],
    complement=[True, False],
    dtype=list(DTYPES),
)
def test_a_batch_equals_its_graphs_one_by_one(operator, bands, dtype, complement):
    together, apart, x = setting(operator, bands, dtype, complement)
    tol = {"atol": 1e-4, "rtol": 1e-4} if dtype == "float32" else {"atol": 1e-11, "rtol": 1e-11}
    signals = x.split(SIZES)
    for p, normalize in ((2.0, False), (2.0, True), (1.5, True)):
        norms = together(x).norms(p=p, normalize=normalize)
        one = [P(s).norms(p=p, normalize=normalize) for s, P in zip(signals, apart, strict=True)]
        torch.testing.assert_close(norms, torch.stack(one), **tol)
    norms = together(x).norms()
    assert (norms[together.dimension == 0] == 0).all()
    B = together.n_bands
    for form, r in {
        "diagonal": torch.cos(norms),
        "matrices": torch.cos(norms)[..., None].expand(-1, -1, -1, 4),
        "full": torch.cos(norms).reshape(-1, B * 3, 1).expand(-1, -1, B),
    }.items():
        found = together(x).synthesize(r, form=form, eps=1e-2)
        each = [
            P(s).synthesize(r[g], form=form, eps=1e-2)
            for g, (s, P) in enumerate(zip(signals, apart, strict=True))
        ]
        torch.testing.assert_close(found, torch.cat(each), **tol)


def test_gradients():
    together, _, x = setting("N", "dyadic, K < S", "float64", True)
    x = x[:, :1].requires_grad_()

    def layer(x):
        norms = together(x).norms()
        return together(x).synthesize(torch.sin(norms), eps=0.1)

    (found,) = torch.autograd.grad(layer(x).square().sum(), x)
    step = 1e-6
    for i in (0, 7, 20):
        direction = torch.zeros_like(x)
        direction[i] = step
        with torch.no_grad():
            ahead, behind = (layer(x + s * direction).square().sum() for s in (1, -1))
        assert found[i].item() == pytest.approx(((ahead - behind) / (2 * step)).item(), rel=1e-4)


def test_shapes_are_checked_and_an_empty_batch_works():
    together, _, x = setting("N", "dyadic", "float64", True)
    with pytest.raises(SignalError, match=f"{len(SIZES)} graphs must have the shape"):
        together(x[1:])
    with pytest.raises(SignalError, match="float32"):
        together(x.float())
    assert together.to(torch.float32).dtype == torch.float32
    none = Lens.of([], BANDS["dyadic"])
    empty = torch.zeros(0, 3)
    assert none(empty).norms().shape == (0, 7, 3)
    assert none(empty).synthesize(torch.zeros(0, 7, 3)).shape == (0, 3)


@every_pair(bands=list(BANDS), operator=["N", "magnetic L"], complement=[True, False])
def test_lenses_on_one_graph_each_are_put_together(operator, bands, complement):
    """Also where the largest band of each was implicit, which may be another in each."""
    together, apart, x = setting(operator, bands, "float64", complement)
    again = Lens.of(apart, BANDS[bands], complement=complement)
    torch.testing.assert_close(again(x).norms(), together(x).norms(), atol=1e-10, rtol=1e-10)
    with pytest.raises(BandError, match="those of one batch must have"):
        Lens.of(apart, BANDS[bands], complement=not complement)


@every_pair(bands=list(BANDS), operator=["N", "magnetic L"], complement=[True, False])
def test_each_lens_of_many_is_one_by_itself(operator, bands, complement):
    spectra = [spectrum(operator, graph, bands) for graph in GRAPHS]
    _, apart, x = setting(operator, bands, "float64", complement)
    every = Lens.each(spectra, BANDS[bands], complement=complement)
    for one, alone, signal in zip(every, apart, x.split(SIZES), strict=True):
        norms = alone(signal).norms()
        torch.testing.assert_close(one(signal).norms(), norms, atol=1e-10, rtol=1e-10)
        found, expected = one(signal).synthesize(norms), alone(signal).synthesize(norms)
        torch.testing.assert_close(found, expected, atol=1e-10, rtol=1e-10)


def test_real_and_complex_operators_in_one_batch():
    bands = BANDS["dyadic"]
    one, other = (spectrum(operator, "weighted", "dyadic") for operator in ("N", "magnetic L"))
    n = one.num_nodes
    x = torch.randn(2 * n, 3, dtype=torch.complex128, generator=torch.Generator().manual_seed(0))
    for pair in ([one, other], [other, one]):
        apart = [Lens.of(s.to(torch.complex128), bands) for s in pair]
        norms = torch.stack([P(s).norms() for P, s in zip(apart, x.split(n), strict=True)])
        torch.testing.assert_close(Lens.of(pair, bands)(x).norms(), norms)


@pytest.mark.parametrize("bands", [BANDS["dyadic"], PolynomialBands(UniformBands(3), 8)])
def test_what_cannot_be_put_together(bands):
    """Nothing of it may be left out in silence."""
    shift = OPERATORS["N"](GRAPHS["weighted"])
    mixed = [shift, spectrum("N", "weighted", "dyadic")]
    for graphs in (mixed, mixed[::-1]):
        with pytest.raises(BandError, match=r"one kind at a time|give the ShiftOperator"):
            Lens.of(graphs, bands)
    many = Lens.of([shift, shift], bands)
    with pytest.raises(BandError, match="one here sees 2 graphs"):
        Lens.of([many], bands)
