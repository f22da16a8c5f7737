import pytest
import torch

from nlsf.errors import SignalError
from nlsf.spectral import BatchProjector, DyadicBands, IndexBands, analyze, batched_eigh, laplacian
from nlsf.spectral.prepared_nodes import PreparedNodes
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


def projector(bands, graphs=GRAPHS, complement=True):
    return BatchProjector(
        batched_eigh([laplacian(g) for g in graphs], bands=bands), bands, complement=complement
    )


@pytest.mark.parametrize("bands", [IndexBands(4), DyadicBands(0.5, 4, 3)], ids=str)
@pytest.mark.parametrize("complement", [True, False])
@pytest.mark.parametrize("p", [1.0, 2.0])
def test_it_holds_the_projections_and_their_norms(bands, complement, p):
    made = projector(bands, complement=complement)
    x = signals()
    prepared = PreparedNodes.of(x, made, p, normalize=True)
    assert prepared.projections.shape == (sum(SIZES), made.n_bands, 3)
    torch.testing.assert_close(prepared.norms, analyze(x, made, p=p, normalize=True))
    if complement:
        torch.testing.assert_close(prepared.projections.sum(1), x)


def test_a_batch_has_the_nodes_of_its_graphs_in_order():
    x = signals()
    prepared = PreparedNodes.of(x, projector(IndexBands(4)))
    parts = x.split(SIZES)
    for chosen in ([2], [1], [6, 0, 4, 1, 2], [3, 3], []):
        batch = prepared[torch.tensor(chosen, dtype=torch.int64)]
        expected = torch.cat([parts[i] for i in chosen]) if chosen else x[:0]
        torch.testing.assert_close(batch.projections.sum(1), expected)
        places = [place for place, i in enumerate(chosen) for _ in range(SIZES[i])]
        assert batch.graph.tolist() == places
        assert torch.equal(batch.norms, prepared.norms[chosen])
        assert torch.equal(batch.frequencies, prepared.frequencies[chosen])


def test_many_models_look_at_their_own_graphs_and_the_rest_is_padding():
    prepared = PreparedNodes.of(signals(), projector(IndexBands(4)))
    rows = torch.tensor([[0, 1, 3], [2, 4, 5], [1, 1, 3]])
    many = prepared[rows]
    for m, row in enumerate(rows):
        one = prepared[row]
        count = len(one.graph)
        assert torch.equal(many.projections[m, :count], one.projections)
        assert torch.equal(many.graph[m, :count], one.graph)
        assert (many.graph[m, count:] == 3).all()
        assert torch.equal(many.norms[m], one.norms)
    assert many.graph.shape[1] == max(len(prepared[row].graph) for row in rows)


def test_parts_are_put_together():
    x, bands = signals(), DyadicBands(0.5, 4, 3)
    whole = PreparedNodes.of(x, projector(bands))
    first = sum(SIZES[:3])
    pieces = [
        PreparedNodes.of(x[:first], projector(bands, GRAPHS[:3])),
        PreparedNodes.of(x[first:], projector(bands, GRAPHS[3:])),
    ]
    joined = PreparedNodes.cat(pieces)
    assert len(joined) == len(GRAPHS)
    torch.testing.assert_close(joined.projections, whole.projections)
    torch.testing.assert_close(joined.norms, whole.norms)
    other = PreparedNodes.of(x, projector(IndexBands(2)))
    for parts in ([], [whole, other]):
        with pytest.raises(SignalError, match="equal bands"):
            PreparedNodes.cat(parts)
