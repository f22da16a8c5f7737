import os

import pytest
import torch
from torch.func import vmap

from nlsf.errors import SignalError
from nlsf.spectral import (
    DyadicBands,
    Lens,
    PolynomialBands,
    UniformBands,
    laplacian,
    magnetic_laplacian,
)
from nlsf.spectral.lens import FixedBands
from nlsf.spectral.lens.streamed import StreamedProjections
from nlsf.testing.graphs import hostile_graphs, star, tiny_graphs, torus

F64 = torch.float64
GRAPHS = {**tiny_graphs(), **hostile_graphs()}
BANDS = [
    PolynomialBands(DyadicBands(r=0.5, S=3), order=9),
    PolynomialBands(UniformBands(S=4), order=2),
    PolynomialBands(UniformBands(S=3), order=7, pairs=2),
]


def lens_on(graph, bands=BANDS[0], **options):
    made = laplacian(graph.edge_index, graph.edge_weight, graph.num_nodes, "sym")
    return Lens.of(made, bands, **options)


def random(*shape, seed=0, dtype=F64):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed), dtype=dtype)


@pytest.mark.parametrize("bands", BANDS)
@pytest.mark.parametrize("name", GRAPHS)
def test_rows_and_grams_are_those_of_the_projections(name, bands):
    graph = GRAPHS[name]
    lens = lens_on(graph, bands)
    x = random(graph.num_nodes, 5)
    every = torch.arange(graph.num_nodes)
    wanted = torch.stack(list(lens(x).parts()))
    for memory, rows in ((1, every[::2].flip(0)), (1 << 30, every), (1 << 30, every[1:])):
        streamed = StreamedProjections(lens, x, rows, memory=memory)
        assert len(streamed.blocks) == (5 if memory == 1 else 1)
        torch.testing.assert_close(torch.cat(streamed.blocks, dim=2), wanted[:, rows])
        torch.testing.assert_close(streamed.grams, x.mT @ wanted, atol=1e-12, rtol=1e-9)


@pytest.mark.parametrize("complement", [True, False])
@pytest.mark.parametrize("mapped", [True, False])
def test_a_filter_after_a_map_is_the_filter_on_the_mapped_signal(complement, mapped):
    lens = lens_on(torus(4, 5), complement=complement)
    x, weight = random(20, 5), random(5, 3, seed=1) if mapped else None
    rows, index = torch.tensor([3, 0, 19, 7]), torch.tensor([2, 2, 0])
    parts = FixedBands.of(x, lens, rows)[index].map(weight)
    signal = x if weight is None else x @ weight
    chosen, d = rows[index], signal.shape[1]
    norms = parts.norms()
    torch.testing.assert_close(norms, lens(signal).norms())
    for form, shape in (
        ("diagonal", (lens.n_bands, d)),
        ("matrices", (lens.n_bands, d, 2)),
        ("full", (lens.n_bands * d, 2)),
    ):
        r = random(*shape, seed=2)
        wanted = lens(signal).synthesize(r, form=form)[chosen]
        torch.testing.assert_close(parts.synthesize(r, form=form, norms=norms), wanted)
    for j, part in enumerate(lens(signal).parts()):
        torch.testing.assert_close(parts.part(j), part[chosen])
    torch.testing.assert_close(parts.signal, sum(lens(signal).parts())[chosen])


def test_gradients_of_the_map():
    lens = lens_on(star(6))
    prepared = FixedBands.of(random(7, 4), lens, torch.arange(7))
    r = random(lens.n_bands, 2, seed=2)

    def filtered(weight):
        return prepared.map(weight).synthesize(r)

    assert torch.autograd.gradcheck(filtered, (random(4, 2, seed=1).requires_grad_(),))


def test_models_that_look_at_rows_of_their_own():
    lens = lens_on(GRAPHS["ring"])
    prepared = FixedBands.of(random(9, 4), lens, torch.arange(9), memory=1)
    index, weight = torch.tensor([[0, 3], [8, 1], [4, 4]]), random(3, 4, 2)
    together = vmap(lambda i, w: prepared[i].map(w).mixed(torch.ones(4, 2, 2, dtype=F64)))
    alone = [
        prepared[i].map(w).mixed(torch.ones(4, 2, 2, dtype=F64))
        for i, w in zip(index, weight, strict=True)
    ]
    torch.testing.assert_close(together(index, weight), torch.stack(alone))


def test_complex_operators():
    edges = torch.tensor([[0, 1, 2, 3, 0], [1, 2, 3, 0, 2]])
    lens = Lens.of(magnetic_laplacian(edges), BANDS[1])
    x, weight = random(4, 3).to(torch.complex128), random(3, 2).to(torch.complex128)
    parts = FixedBands.of(x, lens, torch.arange(4)).map(weight)
    torch.testing.assert_close(parts.norms(), lens(x @ weight).norms())


def test_large_projections_go_to_files_and_are_found_again(tmp_path, monkeypatch):
    lens, x, rows = lens_on(torus(4, 5)), random(20, 6), torch.arange(20)
    inside = StreamedProjections(lens, x, rows)
    assert not list(tmp_path.iterdir())
    memory = 20 * 8 * (6 + lens.n_bands) * 2  # two channels
    first = StreamedProjections(lens, x, rows, memory=memory, folder=tmp_path)
    assert [b.shape[2] for b in first.blocks] == [2, 2, 2]
    files = sorted(tmp_path.iterdir())
    assert len(files) == 6
    torch.testing.assert_close(torch.cat(first.blocks, dim=2), inside.blocks[0])
    torch.testing.assert_close(first.grams, inside.grams)
    # One block is lost: the others are not computed again.
    files[2].unlink()
    computed = []
    plain = StreamedProjections._computed
    monkeypatch.setattr(
        StreamedProjections,
        "_computed",
        lambda self, channels: computed.append(channels) or plain(self, channels),
    )
    again = StreamedProjections(lens, x, rows, memory=memory, folder=tmp_path)
    assert computed == [slice(2, 4)]
    assert all(torch.equal(a, b) for a, b in zip(again.blocks, first.blocks, strict=True))
    assert torch.equal(again.grams, first.grams)
    # Another signal is another preparation.
    other = StreamedProjections(lens, 2 * x, rows, memory=memory, folder=tmp_path)
    torch.testing.assert_close(other.blocks[0], 2 * first.blocks[0])


def test_a_preparation_that_fails_leaves_no_half_written_file(tmp_path, monkeypatch):
    lens, x, rows = lens_on(GRAPHS["ring"]), random(9, 2), torch.arange(9)

    def full(*_):
        raise OSError("No space left on device")

    monkeypatch.setattr(os, "replace", full)
    monkeypatch.setattr("pathlib.Path.replace", full)
    with pytest.raises(OSError, match="No space"):
        StreamedProjections(lens, x, rows, memory=1, folder=tmp_path)
    assert not list(tmp_path.iterdir())


def test_memory_must_be_positive():
    with pytest.raises(SignalError, match="positive number of bytes"):
        StreamedProjections(lens_on(GRAPHS["ring"]), random(9, 2), torch.arange(9), memory=0)


def test_a_signal_without_channels():
    lens = lens_on(torus(4, 5))
    fixed = lens.fix_rows(random(20, 0), torch.tensor([3, 0]))
    assert fixed.norms().shape == (lens.n_bands, 0)
    assert fixed.weighted(fixed.norms()).shape == (2, 0)
