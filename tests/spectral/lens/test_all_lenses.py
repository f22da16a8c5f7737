"""What must hold for every lens, however it computes its projections.

A new lens is an entry of `LENSES`: the bands that it is for.
"""

import functools

import pytest
import torch
from torch.func import vmap

from cases import GRAPHS, OPERATORS, signal
from nlsf.errors import BandError, SignalError
from nlsf.spectral import (
    DyadicBands,
    IndexBands,
    Lens,
    PolynomialBands,
    QuantileBands,
    UniformBands,
    partial_eigh,
)
from nlsf.testing import assert_shift_equivariant, assert_shift_invariant

LENSES = {
    "columns": UniformBands(S=4),
    "columns, one left out": DyadicBands(r=0.5, S=4, K=2),
    "columns of all": QuantileBands(S=3),
    "eigenspaces": IndexBands(J=3),
    "polynomials": PolynomialBands(UniformBands(S=3), order=9),
    "polynomials and pairs": PolynomialBands(DyadicBands(S=3), order=5, pairs=2),
}
OF_ONE_GRAPH = ["polynomials and pairs"]
NOT_FIXED = []
every_lens = pytest.mark.parametrize("name", LENSES)
SOME = ["L", "N", "A", "magnetic N"]
CLOSE = {"atol": 1e-9, "rtol": 1e-9}


@functools.cache
def lens_of(name, operator, graph, complement=True):
    return Lens.of(OPERATORS[operator](GRAPHS[graph]), LENSES[name], complement=complement)


def lenses(name, operators=SOME, graphs=GRAPHS, **options):
    """The lenses of a law: empty graphs, repeated eigenvalues and components are among them."""
    return [lens_of(name, operator, graph, **options) for operator in operators for graph in graphs]


def coefficients(*shape, seed=1):
    return torch.randn(shape, dtype=torch.float64, generator=torch.Generator().manual_seed(seed))


def close(found, expected):
    torch.testing.assert_close(found, expected.to(found.dtype), **CLOSE)


@every_lens
def test_projections_sum_to_the_identity(name):
    for lens in lenses(name):
        x = signal(lens)
        parts = list(lens(x).parts())
        assert len(parts) == lens.n_bands == lens.bands.n_bands + 1
        close(sum(parts), x)
        close(lens.dimension.sum(), torch.tensor(float(lens.num_nodes)))


@every_lens
def test_projections_are_symmetric_and_not_negative(name):
    for lens in lenses(name):
        eye = torch.eye(lens.num_nodes, dtype=lens.dtype)
        for part in lens(eye).parts():
            close(part, part.mH)
            assert not lens.num_nodes or torch.linalg.eigvalsh(part).min() > -1e-9


@every_lens
def test_norms_by_pythagoras(name):
    for lens in lenses(name):
        x = signal(lens)
        view = lens(x)
        energies = torch.stack([(x.conj() * part).sum(-2).real for part in view.parts()])
        close(view.energies(), energies)
        assert (view.energies() >= 0).all()
        close(view.norms().square().sum(-2), x.abs().square().sum(-2))


@every_lens
def test_gains_of_one_give_the_signal_back(name):
    for lens in lenses(name):
        x = signal(lens, leading=(2,))
        view, one = lens(x), torch.ones(2, lens.n_bands, 3, dtype=torch.float64)
        close(view.weighted(one), x)
        close(view.mixed(torch.eye(3, dtype=torch.float64) * one[..., None]), x)
        close(view.synthesize(one, a=0.0, eps=1e-14), x)


@every_lens
@pytest.mark.parametrize("complement", [True, False])
def test_synthesis_is_the_sum_over_the_projections(name, complement):
    for lens in lenses(name, complement=complement):
        view = lens(signal(lens))
        parts, gain = list(view.parts()), coefficients(lens.n_bands, 3)
        maps, weight = coefficients(lens.n_bands, 3, 2), coefficients(3, 2)
        gained = sum(g * part for g, part in zip(gain, parts, strict=True))
        close(view.weighted(gain), gained)
        close(view.mapped(gain, weight), gained @ weight.to(gained))
        mixed = sum(part @ r.to(part) for r, part in zip(maps, parts, strict=True))
        close(view.mixed(maps), mixed)
        both = sum((g * part) @ r.to(part) for g, r, part in zip(gain, maps, parts, strict=True))
        close(view.gained_and_mixed(gain, maps), both)


@every_lens
def test_leading_dimensions_are_signals_one_by_one(name):
    for lens in lenses(name, graphs=["torus", "one node", "empty"]):
        x, gain = signal(lens, leading=(2, 3)), coefficients(2, 3, lens.n_bands, 3)
        view = lens(x)
        for i in range(2):
            one = lens(x[i, 2])
            close(view.norms()[i, 2], one.norms())
            close(view.weighted(gain)[i, 2], one.weighted(gain[i, 2]))


@every_lens
def test_a_batch_is_its_graphs_one_by_one(name):
    for operator in SOME:
        alone = lenses(name, [operator])
        every = [OPERATORS[operator](graph) for graph in GRAPHS.values()]
        if name in OF_ONE_GRAPH:
            with pytest.raises(BandError, match="for one graph"):
                Lens.of(every, LENSES[name])
            return
        lens = Lens.of(Lens.each(every, LENSES[name]), LENSES[name])
        x, sizes = signal(lens), [one.num_nodes for one in alone]
        assert lens.nodes.tolist() == sizes
        signals = x.split(sizes)
        gain, maps = (coefficients(len(sizes), lens.n_bands, 3, *d) for d in ((), (2,)))
        view, views = lens(x), [one(s) for one, s in zip(alone, signals, strict=True)]
        for p, normalize in ((2.0, False), (2.0, True), (1.5, True)):
            expected = [one.norms(p=p, normalize=normalize) for one in views]
            close(view.norms(p=p, normalize=normalize), torch.stack(expected))
        close(
            view.weighted(gain),
            torch.cat([v.weighted(g) for v, g in zip(views, gain, strict=True)]),
        )
        close(view.mixed(maps), torch.cat([v.mixed(r) for v, r in zip(views, maps, strict=True)]))
        for j, part in enumerate(view.parts()):
            close(part, torch.cat([v.part(j) for v in views]))
        close(lens.dimension, torch.stack([one.dimension for one in alone]))
        close(lens.frequencies, torch.stack([one.frequencies for one in alone]))
        fixed = lens.fix_nodes(x)
        close(fixed.norms(), view.norms())
        close(fixed.weighted(gain), view.weighted(gain))


@every_lens
def test_fixed_rows_are_rows_of_the_view(name):
    for lens in lenses(name, graphs=["weighted", "torus", "star"]):
        x, rows = signal(lens), torch.tensor([4, 0, 2, 5])
        if name in NOT_FIXED:
            with pytest.raises(BandError, match="with a lens that can"):
                lens.fix_rows(x, rows)
            return
        fixed = lens.fix_rows(x, rows)
        index, gain = torch.tensor([3, 1]), coefficients(lens.n_bands, 3)
        close(fixed[index].norms(), lens(x).norms())
        close(fixed[index].weighted(gain), lens(x).weighted(gain)[rows[index]])


@every_lens
@pytest.mark.parametrize("graph", ["weighted", "two equal components", "one node", "empty"])
def test_gradients(name, graph):
    lens = lens_of(name, "N", graph)
    x = signal(lens, channels=2).requires_grad_()
    gain = coefficients(lens.n_bands, 2).requires_grad_()

    def layer(x, gain):
        view = lens(x)
        return view.synthesize(gain * view.norms().cos(), a=0.5, eps=0.1), view.energies()

    assert torch.autograd.gradcheck(layer, (x, gain))


@every_lens
def test_many_signals_at_once(name):
    for lens in lenses(name, ["N", "magnetic N"], ["torus", "weighted", "one node"]):
        x, gain = signal(lens, leading=(4,)), coefficients(4, lens.n_bands, 3)

        def layer(x, gain, lens=lens):
            view = lens(x, check_finite=False)
            return view.norms(), view.weighted(gain)

        for found, expected in zip(vmap(layer)(x, gain), layer(x, gain), strict=True):
            close(found, expected)


@every_lens
def test_functional_shifts_are_respected(name):
    for operator in SOME:
        for graph in ("weighted", "torus", "two equal components"):
            lens = lens_of(name, operator, graph)
            spectrum = partial_eigh(OPERATORS[operator](GRAPHS[graph]))
            assert_shift_invariant(lambda x, lens=lens: lens(x).norms(), spectrum)
            assert_shift_equivariant(
                lambda x, lens=lens: lens(x).synthesize(lens(x).norms().sin(), eps=1e-2), spectrum
            )


@every_lens
def test_renumbered_nodes_have_renumbered_projections(name):
    for operator in SOME:
        for graph in ("weighted", "one edge and an isolated node", "complete"):
            lens, shift = lens_of(name, operator, graph), OPERATORS[operator](GRAPHS[graph])
            order = torch.randperm(lens.num_nodes, generator=torch.Generator().manual_seed(0))
            x, other = signal(lens), Lens.of(shift.permute(order), LENSES[name])
            close(other(x[order]).norms(), lens(x).norms())
            for found, expected in zip(other(x[order]).parts(), lens(x).parts(), strict=True):
                close(found, expected[order])


@every_lens
def test_single_precision_is_close(name):
    for lens in lenses(name):
        single = lens.to(torch.float32)
        assert single.dtype == (torch.complex64 if lens.dtype.is_complex else torch.float32)
        x = signal(lens)
        found = single(x.to(single.dtype)).norms()
        assert found.dtype == torch.float32
        torch.testing.assert_close(found, lens(x).norms().float(), atol=2e-3, rtol=2e-3)


@every_lens
def test_signals_that_do_not_fit_are_refused(name):
    lens = lens_of(name, "L", "torus")
    x = signal(lens)
    for wrong in (x[1:], x[:, 0], x.float(), x.to(torch.complex128), x.long(), x / 0):
        with pytest.raises(SignalError):
            lens(wrong)
    with pytest.raises(BandError, match="no band"):
        lens(x).part(lens.n_bands)


@every_lens
@pytest.mark.parametrize("mode", [torch.no_grad, torch.inference_mode])
def test_a_look_without_gradients_leaves_a_view_fit_for_training(name, mode):
    lens = lens_of(name, "N", "weighted")
    x, found = signal(lens).requires_grad_(), []
    for looked_at in (False, True):
        view = lens(x)
        if looked_at:
            with mode():
                view.norms(), view.norms(3.0)
        gain = coefficients(lens.n_bands, x.shape[1]).requires_grad_()
        loss = view.norms().sum() + view.weighted(gain).sum() + view.norms(3.0).sum()
        found.append(torch.autograd.grad(loss, (x, gain)))
    for one, other in zip(*found, strict=True):
        close(one, other)
