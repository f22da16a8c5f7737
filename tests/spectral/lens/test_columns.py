import pytest
import torch

from cases import BANDS, GRAPHS, OPERATORS, lens, signal
from nlsf.errors import BandError, SignalError
from nlsf.spectral import DyadicBands, IndexBands, Lens, laplacian, partial_eigh

TORUS = laplacian(GRAPHS["torus"])


def test_the_implicit_band_saves_columns():
    bands = DyadicBands(r=0.5, S=4)
    spectrum = partial_eigh(TORUS)
    P = Lens.of(spectrum, bands)
    assert P.rest == int(P.dimension.argmax())
    assert P.vectors.shape[1] == 16 - int(P.dimension.max())
    some = Lens.of(partial_eigh(TORUS, k=1), IndexBands(J=1))
    assert some.rest == 1
    assert some.dimension.tolist() == [1, 15]


def test_the_last_band_is_implicit_when_a_partial_spectrum_must_cover_everything():
    bands = DyadicBands(r=0.5, S=4)
    spectrum = partial_eigh(TORUS, bands=bands)
    assert spectrum.num_pairs < 16
    P = Lens.of(spectrum, bands)
    assert P.rest == 3
    assert P.dimension[4] == 0


@pytest.mark.parametrize("operator", OPERATORS)
@pytest.mark.parametrize("bands", BANDS)
def test_mean_frequencies_do_not_depend_on_how_much_was_computed(operator, bands):
    for graph in ("weighted", "torus", "star", "one edge and an isolated node"):
        some = lens(operator, bands, "float64", graph)
        every = lens(operator, bands, "float64", graph, complete=True)
        torch.testing.assert_close(some.frequencies, every.frequencies, atol=1e-9, rtol=0)


def test_a_real_signal_on_a_complex_operator_becomes_complex():
    P = lens("magnetic N", "dyadic", "float64", "torus")
    x = torch.randn(P.num_nodes, 2, dtype=torch.float64)
    total = sum(P(x).parts())
    assert total.is_complex()
    torch.testing.assert_close(total.real, x)


@pytest.mark.parametrize(
    ("x", "says"),
    [
        (torch.zeros(16, dtype=torch.float64), r"\(\.\.\., 16, channels\), not \(16,\)"),
        (torch.zeros(15, 3, dtype=torch.float64), r"not \(15, 3\)"),
        (torch.zeros(16, 3), "torch.float32, the lens torch.float64"),
        (torch.zeros(16, 3, dtype=torch.int64), "torch.int64"),
        (torch.full((16, 3), torch.nan, dtype=torch.float64), r"value nan at \[0, 0\]"),
        (torch.full((2, 16, 3), torch.inf, dtype=torch.float64), r"value inf at \[0, 0, 0\]"),
    ],
)
def test_signals_that_do_not_fit_are_named(x, says):
    P = lens("L", "dyadic", "float64", "torus")
    with pytest.raises(SignalError, match=says):
        P(x)


def test_the_search_for_nan_can_be_left_out():
    P = lens("L", "dyadic", "float64", "torus")
    x = torch.full((16, 1), torch.nan, dtype=torch.float64)
    assert P(x, check_finite=False).coefficients.isnan().all()


def test_bands_are_numbered_from_zero():
    P = lens("L", "dyadic", "float64", "torus")
    with pytest.raises(BandError, match="0 to 6"):
        P(signal(P)).part(7)


def test_precision_and_repr():
    P = lens("L", "dyadic", "float64", "torus").to(torch.float32)
    assert P.dtype == torch.float32
    assert "dimension=[1, 0, 0" in repr(P)


@pytest.mark.parametrize("operator", ["N", "magnetic N"])
@pytest.mark.parametrize("bands", BANDS)
def test_another_precision_keeps_the_rows(operator, bands):
    P = lens(operator, bands, "float64", "torus")
    rows = torch.tensor([3, 0, 3])
    some = P.rows(rows).to(torch.float32)
    assert some.vectors.dtype == some.dtype == P.to(torch.float32).dtype
    assert torch.equal(some.vectors, P.to(torch.float32).vectors[rows])
    # As if the spectrum had been of that precision from the start.
    made = Lens.of(P.spectrum.to(torch.float32), P.bands)
    x = signal(made)
    for a, b in zip(P.to(torch.float32)(x).parts(), made(x).parts(), strict=True):
        assert torch.equal(a, b)


def test_no_channels():
    P = lens("N", "uniform", "float64", "torus")
    assert P(signal(P, channels=0)).part(0).shape == (16, 0)
