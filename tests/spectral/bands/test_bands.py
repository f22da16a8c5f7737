import math

import pytest
import torch

from cases import BANDS, GRAPHS, OPERATORS, spectrum
from nlsf.errors import BandError, SignalError
from nlsf.spectral import (
    AffineGeometricBands,
    AtomBands,
    DyadicBands,
    IndexBands,
    IntervalBands,
    Lens,
    PolynomialBands,
    QuantileBands,
    Spectrum,
    UniformBands,
    laplacian,
    partial_eigh,
)


def spectrum_of(values, gap_tol=1e-9):
    """A complete spectrum with given eigenvalues: the standard basis as vectors."""
    values = torch.tensor(values, dtype=torch.float64)
    n = len(values)
    eye = torch.eye(n, dtype=torch.float64)
    return Spectrum(values, eye, torch.zeros(n), float(values[-1]), math.inf, gap_tol, 0.0)


EIGHT = spectrum_of([0.0, 0.5, 1.0, 2.0, 3.0, 4.0, 6.0, 8.0])


@pytest.mark.parametrize(
    ("bands", "expected"),
    [
        (IndexBands(3), [0, 1, 2, 3, 3, 3, 3, 3]),
        (DyadicBands(0.5, 4), [0, 0, 0, 1, 2, 2, 3, 3]),
        (DyadicBands(0.5, 4, 2), [0, 0, 0, 1, 2, 2, 2, 2]),
        (UniformBands(4), [0, 0, 0, 0, 1, 1, 2, 3]),
        (UniformBands(4, 1), [0, 0, 0, 0, 1, 1, 1, 1]),
        (AffineGeometricBands(r=2.0, S=3), [0, 0, 0, 1, 1, 2, 2, 2]),
        (AffineGeometricBands(r=2.0, S=2, a=1.0, b=1.0), [0, 0, 0, 1, 1, 2, 2, 2]),
        (IntervalBands([(0, 0.5), (2, 4), (6, 9)]), [0, 0, 3, 3, 1, 1, 3, 2]),
        (IntervalBands([(0.5, 1)]), [1, 1, 0, 1, 1, 1, 1, 1]),
        (QuantileBands(4), [0, 0, 1, 1, 2, 2, 3, 3]),
        (AtomBands(UniformBands(2), atoms=1), [0, 0, 0, 0, 0, 0, 1, 1]),
    ],
)
def test_edges_belong_to_the_lower_band(bands, expected):
    assert bands.assign(EIGHT).tolist() == expected


@pytest.mark.parametrize("name", BANDS)
def test_an_eigenspace_lies_in_one_band(name):
    for graph in GRAPHS:
        found = spectrum("N", graph)
        band = BANDS[name].assign(found)
        for e in range(found.num_eigenspaces):
            assert len(set(band[found.eigenspaces == e].tolist())) == 1
        assert ((band >= 0) & (band <= BANDS[name].n_bands)).all()
        if BANDS[name].covers_all:
            assert (band < BANDS[name].n_bands).all()


def test_rounding_at_an_edge_moves_nothing():
    for noise in (-1e-13, 0.0, 1e-13):
        spectrum = spectrum_of([0.0, 1.0 + noise, 1.0 + 2 * noise, 1.5, 2.0])
        assert DyadicBands(0.5, 2).assign(spectrum).tolist() == [0, 0, 0, 1, 1]
        assert IntervalBands([(0, 1), (1, 2)]).assign(spectrum).tolist() == [0, 0, 0, 1, 1]


def test_leaving_k_out_is_the_same_as_all():
    assert DyadicBands(0.5, 6) == DyadicBands(r=0.5, S=6, K=6)
    assert UniformBands(8) == UniformBands(S=8, K=8)
    assert hash(AffineGeometricBands(S=3)) == hash(AffineGeometricBands(S=3, K=3))


def test_affine_geometric_tends_to_uniform_and_equals_dyadic_shifted():
    near = AffineGeometricBands(r=1 + 1e-9, S=5).edges(2.0)
    torch.testing.assert_close(near, UniformBands(5).edges(2.0), atol=1e-6, rtol=0)
    edges = AffineGeometricBands(r=2.0, S=4).edges(15.0)
    torch.testing.assert_close(edges, torch.tensor([0.0, 1, 3, 7, 15], dtype=torch.float64))


def test_dyadic_edges_are_those_of_the_paper():
    edges = DyadicBands(r=0.5, S=4).edges(2.0)
    torch.testing.assert_close(edges, torch.tensor([0, 0.25, 0.5, 1, 2], dtype=torch.float64))


def test_quantiles_of_eigenvalues_have_equal_counts():
    spectrum = partial_eigh(laplacian(GRAPHS["weighted"]))
    counts = torch.bincount(QuantileBands(4).assign(spectrum), minlength=4)
    assert counts.tolist() == [2, 2, 2, 2]


def test_quantiles_of_energy_share_the_energy():
    n = 60
    path = laplacian(torch.stack([torch.arange(n - 1), torch.arange(1, n)]), symmetrize="sum")
    spectrum = partial_eigh(path)
    x = torch.randn(5, n, 4, dtype=torch.float64, generator=torch.Generator().manual_seed(1))
    bands = QuantileBands(3, of="energy").fit(spectrum, x)
    energy = Lens.of(spectrum, bands)(x).norms().square().sum((0, 2))
    share = energy / energy.sum()
    assert share[-1] == 0, "nothing is left to the complement"
    torch.testing.assert_close(share[:3], torch.full((3,), 1 / 3).to(share), atol=0.05, rtol=0)
    # Fitted bands are fixed: another graph uses the same edges.
    other = partial_eigh(laplacian(GRAPHS["ring"]), bands=bands)
    assert Lens.of(other, bands).n_bands == 4


def test_energy_bands_ask_for_a_signal():
    spectrum = partial_eigh(laplacian(GRAPHS["ring"]))
    bands = QuantileBands(3, of="energy")
    with pytest.raises(BandError, match="fit"):
        Lens.of(spectrum, bands)
    with pytest.raises(BandError, match="signal"):
        bands.fit(spectrum)
    with pytest.raises(SignalError, match="no energy"):
        bands.fit(spectrum, torch.zeros(9, 2))
    with pytest.raises(SignalError, match="shape"):
        bands.fit(spectrum, torch.zeros(8, 2))


def test_atoms_get_a_band_of_their_own():
    spectrum = partial_eigh(laplacian(GRAPHS["duplicate nodes"], normalization="sym"))
    bands = AtomBands(UniformBands(2), atoms=1, share=0.3)
    (heavy,) = bands.heaviest(spectrum).tolist()
    assert spectrum.eigenspace_frequencies[heavy] == pytest.approx(1.0)
    alone = spectrum.frequencies[bands.assign(spectrum) == 2]
    assert len(alone) == 7  # K_{2,7}: 1 + 6 duplicates
    torch.testing.assert_close(alone, torch.ones(7, dtype=torch.float64))


def test_the_base_of_atoms_is_fitted():
    spectrum = partial_eigh(laplacian(GRAPHS["duplicate nodes"], normalization="sym"))
    x = torch.randn(9, 2, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    base = QuantileBands(3, of="energy")
    bands = AtomBands(base, atoms=1, share=0.3).fit(spectrum, x)
    assert bands == AtomBands(base.fit(spectrum, x), atoms=1, share=0.3)
    assert Lens.of(spectrum, bands).dimension[3] == 7
    with pytest.raises(BandError, match="signal"):
        AtomBands(base).fit(spectrum)


def test_a_graph_without_atoms_has_empty_atom_bands():
    spectrum = partial_eigh(laplacian(GRAPHS["weighted"]))
    assert AtomBands(atoms=3).assign(spectrum).max() < 8


@pytest.mark.parametrize("operator", OPERATORS)
@pytest.mark.parametrize("name", BANDS)
def test_demand_is_what_the_lens_needs(operator, name):
    shift = OPERATORS[operator](GRAPHS["weighted"])
    spectrum = partial_eigh(shift, bands=BANDS[name])
    BANDS[name].demand().check(spectrum)
    Lens.of(spectrum, BANDS[name])


@pytest.mark.parametrize("name", [b for b in BANDS if b != "index, J > N"])
def test_too_few_eigenpairs_are_refused_with_advice(name):
    spectrum = partial_eigh(laplacian(GRAPHS["weighted"]), k=1)
    if BANDS[name].demand().cut(spectrum.bandwidth) is not None:
        bands = IntervalBands([(0, spectrum.bandwidth / 2)])
    else:
        bands = BANDS[name]
    with pytest.raises(BandError, match=r"1 of 8 eigenpairs.*partial_eigh"):
        Lens.of(spectrum, bands)


@pytest.mark.parametrize(
    "make",
    [
        lambda: IndexBands(0),
        lambda: IndexBands(2.5),
        lambda: IndexBands(True),
        lambda: DyadicBands(r=1.0),
        lambda: DyadicBands(r=0.0),
        lambda: DyadicBands(S=0),
        lambda: DyadicBands(S=3, K=4),
        lambda: UniformBands(S=3, K=0),
        lambda: AffineGeometricBands(r=1.0),
        lambda: AffineGeometricBands(r=math.inf),
        lambda: AffineGeometricBands(a=1.0),
        lambda: AffineGeometricBands(r=1.5, a=1.0, b=2.0),
        lambda: AffineGeometricBands(a=math.nan, b=0.0),
        lambda: IntervalBands([]),
        lambda: IntervalBands([(0, 1), (0.5, 2)]),
        lambda: IntervalBands([(1, 0)]),
        lambda: IntervalBands([(-1, 1)]),
        lambda: IntervalBands([(0, math.nan)]),
        lambda: IntervalBands([(0, 1, 2)]),
        lambda: QuantileBands(0),
        lambda: QuantileBands(3, of="mass"),
        lambda: AtomBands(atoms=0),
        lambda: AtomBands(share=0.0),
        lambda: PolynomialBands(order=0),
        lambda: PolynomialBands(pairs=-1),
        lambda: PolynomialBands(IndexBands(3)),
        lambda: PolynomialBands(QuantileBands(3)),
        lambda: PolynomialBands(AtomBands()),
        lambda: PolynomialBands(PolynomialBands()),
    ],
)
def test_malformed_bands_are_refused(make):
    with pytest.raises(BandError):
        make()


@pytest.mark.parametrize("name", BANDS)
def test_limits_are_the_ends_of_the_bands(name):
    spectrum = partial_eigh(laplacian(GRAPHS["weighted"]))
    limits = BANDS[name].limits(spectrum.bandwidth)
    if name.startswith(("index", "quantiles", "atoms")):
        assert limits is None
        return
    frequency, assigned = spectrum.frequencies, BANDS[name].assign(spectrum)
    for j, (low, high) in enumerate(limits.tolist()):
        inside = (frequency > low if j else frequency >= low) & (frequency <= high + 1e-9)
        assert inside.tolist() == (assigned == j).tolist()


def test_polynomial_bands_are_those_of_their_base_but_need_nothing():
    bands = PolynomialBands(DyadicBands(S=5, K=3), order=8)
    assert (bands.n_bands, bands.covers_all) == (3, False)
    assert bands.demand().pairs == 0
    assert PolynomialBands(UniformBands(4)).covers_all
    with pytest.raises(BandError, match=r"fixed edges.*IndexBands"):
        PolynomialBands(IndexBands(2))
