import pytest
import torch
from torch_geometric.utils import to_undirected

import nlsf.nn.layers.spectra as spectra
from nlsf.errors import ModelError, NotSymmetricError
from nlsf.nn import NodeNLSF, forget_spectra
from nlsf.nn.layers.spectra import lens_for
from nlsf.peers.adaptive import spectrum_of as specformer_spectrum
from nlsf.peers.matrices import Neighbourhood
from nlsf.spectral import (
    DyadicBands,
    IndexBands,
    Lens,
    PolynomialBands,
    UniformBands,
    laplacian,
    partial_eigh,
)
from nlsf.testing.graphs import path, ring, torus
from nn.layers import MIXED, batch_of, randomised, signal, spectrum_of


@pytest.fixture
def solved(monkeypatch):
    """The graphs that were solved since the test began, by their number of nodes."""
    forget_spectra()
    seen = []

    def watch(name, count):
        original = getattr(spectra, name)

        def wrapped(graph, *args, **kwargs):
            seen.append(count(graph))
            return original(graph, *args, **kwargs)

        monkeypatch.setattr(spectra, name, wrapped)

    watch("partial_eigh", lambda shift: shift.num_nodes)
    watch("batched_eigh", lambda shifts: [s.num_nodes for s in shifts])
    yield seen
    forget_spectra()


def filter_(normalization="sym", bands=None, **options):
    return randomised(NodeNLSF(2, 2, bands or IndexBands(3), normalization, **options))


def test_a_graph_is_solved_once(solved):
    layer, g, x = filter_(), torus(4, 5), signal(20, 2)
    first = layer(x, g.edge_index)
    for edges in (g.edge_index, g.edge_index.clone(), g.edge_index.contiguous()):
        assert torch.equal(layer(x, edges), first)
        filter_()(x.float().double(), edges)
    assert solved == [20]


def test_a_batch_is_solved_once(solved):
    layer, batch = filter_(), batch_of(MIXED)
    for again in (batch, batch.clone()):
        layer(again.x, again.edge_index, None, again.batch)
    assert solved == [[g.num_nodes for g in MIXED]]


def test_layers_share_what_they_can(solved):
    g, x = torus(4, 5), signal(20, 2)
    filter_(bands=IndexBands(4))(x, g.edge_index)
    filter_(bands=IndexBands(4), complement=False)(x, g.edge_index)
    filter_(bands=IndexBands(4)).float()(x.float(), g.edge_index)
    assert solved == [20]
    filter_(None, IndexBands(4))(x, g.edge_index)
    filter_("sym", IndexBands(4), self_loops=True)(x, g.edge_index)
    filter_("sym", IndexBands(3))(x, g.edge_index)
    assert solved == [20] * 4


@pytest.mark.parametrize("complement", [True, False])
def test_bands_that_need_nearly_all_pairs_get_all_of_them(complement):
    """Then the largest band is implicit, and a layer has the lens that a training has."""
    g, x = torus(4, 5), signal(20, 2)
    layer = filter_(bands=DyadicBands(), complement=complement)
    lens = layer.lens(x, g.edge_index)
    same = Lens.of(laplacian(g, normalization="sym"), layer.bands, complement=complement)
    assert (lens.rest, lens.vectors.shape) == (same.rest, same.vectors.shape)
    assert lens.spectrum.is_complete == complement or layer.bands.covers_all


def test_a_changed_graph_is_solved_again(solved):
    layer, x = filter_(), signal(20, 2)
    edges = torus(4, 5).edge_index.clone()
    weight = torch.ones(edges.shape[1], dtype=torch.float64)
    before = layer(x, edges, weight)
    weight[(edges == 0).any(0)] = 0.5
    after = layer(x, edges, weight)
    assert len(solved) == 2
    assert not torch.allclose(before, after)
    plain = layer(x, edges)
    edges.copy_(torch.randperm(20, generator=torch.Generator().manual_seed(0))[edges])
    assert not torch.allclose(layer(x, edges), plain)
    assert len(solved) == 4


def test_new_storage_in_the_same_tensor_is_noticed(solved):
    layer, x = filter_(), signal(20, 2)
    edges = torus(4, 5).edge_index.clone()
    layer(x, edges)
    edges.data = ring(20).edge_index
    torch.testing.assert_close(layer(x, edges), layer(x, ring(20).edge_index.clone()))
    assert len(solved) == 2


def test_a_tensor_that_takes_the_place_of_another_is_not_mistaken_for_it(solved):
    layer, x = filter_(), signal(20, 2)
    for graph in (torus(4, 5), ring(20), path(20)) * 3:
        # Freed at once, so that the next one is likely to get the same address.
        temporary = graph.edge_index.clone()
        found = layer(x, temporary)
        del temporary
        expected = layer(x, spectrum=spectrum_of(graph, "sym", layer.bands))
        torch.testing.assert_close(found, expected)
    assert len(solved) == 3


def test_isolated_nodes_at_the_end_count(solved):
    layer = filter_()
    g = torus(4, 5)
    layer(signal(20, 2), g.edge_index)
    assert layer(signal(22, 2), g.edge_index).shape == (22, 2)
    assert solved == [20, 22]


def test_forgetting(solved):
    layer, g, x = filter_(), torus(4, 5), signal(20, 2)
    before = layer(x, g.edge_index)
    forget_spectra()
    assert torch.equal(layer(x, g.edge_index), before)
    assert solved == [20, 20]


def test_everything_that_any_model_remembers_is_forgotten():
    g = torus(4, 5)
    graph = Neighbourhood.of(g.edge_index, 20)
    spectrum = specformer_spectrum(graph)
    assert Neighbourhood.of(g.edge_index, 20) is graph
    assert specformer_spectrum(graph) is spectrum
    forget_spectra()
    assert Neighbourhood.of(g.edge_index, 20) is not graph
    assert specformer_spectrum(graph) is not spectrum


def test_the_memory_does_not_grow_without_end(monkeypatch):
    forget_spectra()
    monkeypatch.setenv("NLSF_MEMORY", "200K")
    layer = filter_()
    for n in range(3, 80):
        layer(signal(n, 2), path(n).edge_index)
    for memo in (spectra._spectra, spectra._lenses):
        assert 0 < len(memo) < 77
    forget_spectra()
    assert not len(spectra._spectra)
    assert not len(spectra._lenses)


def test_digests_of_dead_tensors_are_dropped():
    before = len(spectra._digests)
    for _ in range(20):
        spectra.content_digest(torch.arange(3))
    assert len(spectra._digests) <= before + 1


def test_a_layer_needs_a_graph():
    with pytest.raises(ModelError, match=r"pass edge_index, or spectrum="):
        filter_()(signal(4, 2))


@pytest.mark.parametrize("bands", [UniformBands(3), PolynomialBands(UniformBands(3), 8)], ids=str)
@pytest.mark.parametrize("many", [False, True])
def test_one_way_edges_come_with_a_way_out_that_works(bands, many):
    layer, x = filter_(bands=bands), signal(4, 2)
    edges = torch.tensor([[0, 1, 2, 3], [1, 2, 3, 0]])
    batch = torch.zeros(4, dtype=torch.int64) if many else None
    with pytest.raises(NotSymmetricError, match=r"to_undirected.* symmetrize='sum'") as caught:
        layer(x, edges, None, batch)
    assert "pass symmetrize" not in str(caught.value), "no layer takes it"
    undirected = layer(x, to_undirected(edges), None, batch)
    if many or isinstance(bands, PolynomialBands):
        return
    spectrum = partial_eigh(laplacian(edges, symmetrize="sum"), bands=layer.bands)
    torch.testing.assert_close(layer(x, spectrum=spectrum), undirected)


@pytest.mark.parametrize("form", ["spectrum", "lens", "polynomial"])
def test_one_spectrum_next_to_several_graphs_is_refused(form):
    g, x = torus(4, 5), signal(20, 2)
    bands = PolynomialBands(UniformBands(3), 8) if form == "polynomial" else UniformBands(3)
    given = {
        "spectrum": lambda: spectrum_of(g),
        "lens": lambda: Lens.of(spectrum_of(g), bands, complement=False),
        "polynomial": lambda: Lens.of(laplacian(g), bands, complement=False),
    }[form]()
    layer = filter_(bands=bands)
    with pytest.raises(ModelError, match="spectrum is that of one graph"):
        layer(x, None, None, torch.arange(2).repeat_interleave(10), spectrum=given)
    assert layer(x, spectrum=given).shape == (20, 2)


def test_a_lens_of_other_bands_is_refused():
    layer, x = filter_(bands=UniformBands(4)), signal(20, 2)
    spectrum = spectrum_of(torus(4, 5))
    layer(x, spectrum=Lens.of(spectrum, UniformBands(4), complement=False))
    for bands, complement in ((UniformBands(5), False), (UniformBands(4), True)):
        for wrong in (
            Lens.of(spectrum, bands, complement=complement),
            Lens.of([spectrum], bands, complement=complement),
        ):
            with pytest.raises(ModelError, match=r"The lens has .*, the layer"):
                layer(x, spectrum=wrong)


def test_a_spectrum_a_list_and_a_lens_are_the_same():
    layer, x = filter_(bands=DyadicBands()), signal(20, 2)
    spectrum = spectrum_of(torus(4, 5))
    expected = layer(x, spectrum=spectrum)
    for same in (
        [spectrum],
        (spectrum,),
        Lens.of(spectrum, DyadicBands(), complement=False),
        Lens.of([spectrum], DyadicBands(), complement=False),
    ):
        torch.testing.assert_close(layer(x, spectrum=same), expected, atol=1e-12, rtol=0)
    torch.testing.assert_close(layer(x, torus(4, 5).edge_index), expected, atol=1e-10, rtol=0)


def test_the_lens_has_the_precision_of_the_signal():
    spectrum = spectrum_of(torus(4, 5))
    for dtype in (torch.float32, torch.float64):
        P = lens_for(signal(20, 2, dtype=dtype), DyadicBands(), True, spectrum=spectrum)
        assert P.dtype == dtype
        assert P.frequencies.dtype == torch.float64
        assert lens_for(signal(20, 5, dtype=dtype), DyadicBands(), True, spectrum=spectrum) is P
