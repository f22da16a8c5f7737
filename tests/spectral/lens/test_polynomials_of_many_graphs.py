import pytest
import torch

from cases import DTYPES, GRAPHS, OPERATORS
from nlsf.errors import BandError, SignalError
from nlsf.spectral import DyadicBands, Lens, PolynomialBands, UniformBands
from pairs import every_pair

SIZES = [g.num_nodes for g in GRAPHS.values()]
BANDS = {
    "dyadic": PolynomialBands(DyadicBands(S=4, K=2), 9),
    "uniform": PolynomialBands(UniformBands(3), 5),
}


def setting(operator="N", bands="dyadic", dtype="float64", complement=True):
    apart = [
        Lens.of(OPERATORS[operator](g), BANDS[bands], complement=complement)
        for g in GRAPHS.values()
    ]
    apart = [one.to(DTYPES[dtype]) for one in apart]
    together = Lens.of(apart, BANDS[bands], complement=complement)
    generator = torch.Generator().manual_seed(0)
    x = torch.randn(sum(SIZES), 3, dtype=together.dtype, generator=generator)
    return together, apart, x


@every_pair(
    operator=["L", "N", "magnetic L"],
    bands=list(BANDS),
    complement=[True, False],
    dtype=list(DTYPES),
)
def test_a_batch_equals_its_graphs_one_by_one(operator, bands, complement, dtype):
    together, apart, x = setting(operator, bands, dtype, complement)
    # Energies are differences of moments: what a band has next to nothing of is rounded.
    tol = {"atol": 5e-3, "rtol": 1e-4} if dtype == "float32" else {"atol": 1e-7, "rtol": 1e-9}
    signals = x.split(SIZES)
    pairs = list(zip(signals, apart, strict=True))
    for p, normalize in ((2.0, False), (2.0, True), (1.5, True)):
        norms = together(x).norms(p=p, normalize=normalize)
        one = [P(s).norms(p=p, normalize=normalize) for s, P in pairs]
        torch.testing.assert_close(norms, torch.stack(one), **tol)
    norms = together(x).norms()
    B = together.n_bands
    for form, r in {
        "diagonal": torch.cos(norms),
        "matrices": torch.cos(norms)[..., None].expand(-1, -1, -1, 4),
        "full": torch.cos(norms).reshape(-1, B * 3, 1).expand(-1, -1, B),
    }.items():
        found = together(x).synthesize(r, form=form, a=0.0)
        each = [P(s).synthesize(r[g], form=form, a=0.0) for g, (s, P) in enumerate(pairs)]
        torch.testing.assert_close(found, torch.cat(each), **tol)
    for name in ("dimension", "frequencies", "leakage"):
        assert torch.equal(getattr(together, name), torch.stack([getattr(P, name) for P in apart]))


@pytest.mark.parametrize("operator", ["L", "magnetic L"])
def test_parts_sum_to_the_signal_and_energies_to_its_own(operator):
    together, _, x = setting(operator)
    parts = together(x)
    total = sum(parts.part(j) for j in range(together.n_bands))
    torch.testing.assert_close(total, x)
    torch.testing.assert_close(together.pad(total), parts.signal)
    energies = torch.stack([s.abs().square().sum(0) for s in x.split(SIZES)])
    torch.testing.assert_close(parts.energies().sum(1), energies)


def test_gradients():
    together, _, x = setting()
    x = x[:, :1].requires_grad_()

    def layer(x):
        norms = together(x).norms()
        return together(x).synthesize(torch.cos(norms), eps=1e-2)

    assert torch.autograd.gradcheck(layer, (x,))


def test_another_precision():
    together, _, x = setting()
    single = together.to(torch.float32)
    assert single.dtype == torch.float32
    torch.testing.assert_close(
        single(x.float()).norms(), together(x).norms().float(), atol=5e-3, rtol=1e-4
    )


def test_no_graph():
    none = Lens.of([], BANDS["dyadic"], dtype=torch.float32)
    assert none.dtype == torch.float32
    x = torch.zeros(0, 2)
    norms = none(x).norms()
    assert norms.shape == (0, none.n_bands, 2)
    assert none(x).synthesize(norms).shape == (0, 2)
    assert none.frequencies.shape == (0, none.n_bands)


def test_what_does_not_fit_is_refused():
    together, apart, x = setting()
    with pytest.raises(SignalError, match=rf"\({sum(SIZES)}, channels\), not"):
        together(x[:-1])
    with pytest.raises(SignalError, match=r"lens.to\(x.dtype\)"):
        together(x.float())
    with pytest.raises(BandError, match="those of one batch must have"):
        Lens.of(apart, BANDS["uniform"])
    with pytest.raises(BandError, match="those of one batch must have"):
        Lens.of(apart, BANDS["dyadic"], complement=False)
    with pytest.raises(BandError, match=r"eigenpairs \(pairs=2\) are for one graph"):
        Lens.of([], PolynomialBands(DyadicBands(), pairs=2))
