import pytest
import torch

from nlsf.errors import SignalError
from nlsf.spectral import DyadicBands, IndexBands, Lens, batched_eigh, laplacian
from nlsf.spectral.lens import FixedNodes
from nlsf.testing.graphs import hostile_graphs, ring, star, torus, weighted

HOSTILE = hostile_graphs()
GRAPHS = [
    star(5),
    HOSTILE["empty"],
    torus(3, 4),
    HOSTILE["one node"],
    weighted(9),
    ring(6),
    HOSTILE["isolated nodes"],
]
SIZES = [g.num_nodes for g in GRAPHS]


def signals(channels=3):
    generator = torch.Generator().manual_seed(0)
    return torch.randn(sum(SIZES), channels, dtype=torch.float64, generator=generator)


def lens(bands, graphs=GRAPHS, complement=True):
    return Lens.of(
        batched_eigh([laplacian(g) for g in graphs], bands=bands), bands, complement=complement
    )


@pytest.mark.parametrize("bands", [IndexBands(4), DyadicBands(0.5, 4, 3)], ids=str)
@pytest.mark.parametrize("complement", [True, False])
@pytest.mark.parametrize("p", [1.0, 2.0])
def test_it_holds_the_projections_and_their_norms(bands, complement, p):
    made = lens(bands, complement=complement)
    x = signals()
    prepared = made.fix_nodes(x, p, normalize=True)
    assert prepared.projections.shape == (sum(SIZES), made.n_bands, 3)
    torch.testing.assert_close(prepared.norms(), made(x).norms(p=p, normalize=True))
    if complement:
        torch.testing.assert_close(prepared.projections.sum(1), x)


def test_a_batch_has_the_nodes_of_its_graphs_in_order():
    x = signals()
    prepared = lens(IndexBands(4)).fix_nodes(x)
    parts = x.split(SIZES)
    for chosen in ([2], [1], [6, 0, 4, 1, 2], [3, 3], []):
        batch = prepared[torch.tensor(chosen, dtype=torch.int64)]
        expected = torch.cat([parts[i] for i in chosen]) if chosen else x[:0]
        torch.testing.assert_close(batch.projections.sum(1), expected)
        places = [place for place, i in enumerate(chosen) for _ in range(SIZES[i])]
        assert batch.graph_of_nodes.tolist() == places
        assert torch.equal(batch.known_norms, prepared.known_norms[chosen])
        assert torch.equal(batch.frequencies, prepared.frequencies[chosen])


def test_many_models_look_at_their_own_graphs_and_the_rest_is_padding():
    prepared = lens(IndexBands(4)).fix_nodes(signals())
    rows = torch.tensor([[0, 1, 3], [2, 4, 5], [1, 1, 3]])
    many = prepared[rows]
    for m, row in enumerate(rows):
        one = prepared[row]
        count = len(one.graph_of_nodes)
        assert torch.equal(many.projections[m, :count], one.projections)
        assert torch.equal(many.graph_of_nodes[m, :count], one.graph_of_nodes)
        assert (many.graph_of_nodes[m, count:] == 3).all()
        assert torch.equal(many.known_norms[m], one.known_norms)
    assert many.graph_of_nodes.shape[1] == max(len(prepared[row].graph_of_nodes) for row in rows)


def test_parts_are_put_together():
    x, bands = signals(), DyadicBands(0.5, 4, 3)
    whole = lens(bands).fix_nodes(x)
    first = sum(SIZES[:3])
    pieces = [
        lens(bands, GRAPHS[:3]).fix_nodes(x[:first]),
        lens(bands, GRAPHS[3:]).fix_nodes(x[first:]),
    ]
    joined = FixedNodes.cat(pieces)
    assert len(joined) == len(GRAPHS)
    torch.testing.assert_close(joined.projections, whole.projections)
    torch.testing.assert_close(joined.norms(), whole.norms())
    other = lens(IndexBands(2)).fix_nodes(x)
    for parts in ([], [whole, other]):
        with pytest.raises(SignalError, match="equal bands"):
            FixedNodes.cat(parts)
