import numpy as np
import pytest

from nlsf.spectral import adjacency, laplacian, magnetic_laplacian
from nlsf.spectral import frequency_range as module
from nlsf.spectral.frequency_range import frequency_range
from nlsf.testing.graphs import disjoint, hostile_graphs, star, tiny_graphs, torus

GRAPHS = {
    **tiny_graphs(),
    **hostile_graphs(),
    "large torus": torus(30, 31),
    "many stars": disjoint(star(20), 40),
}


def operators(graph):
    arguments = graph.edge_index, graph.edge_weight, graph.num_nodes
    yield laplacian(*arguments)
    yield laplacian(*arguments, "sym", self_loops=True)
    yield adjacency(*arguments)
    yield magnetic_laplacian(*arguments)


@pytest.mark.parametrize("name", GRAPHS)
def test_the_ends_and_their_bounds(name, monkeypatch):
    for shift in operators(GRAPHS[name]):
        sign = 1 if shift.order == "ascending" else -1
        values = np.sort(sign * np.linalg.eigvalsh(shift.to_dense().numpy()))
        monkeypatch.setattr(module, "SHARP", 10**9)
        low, far = frequency_range(shift)
        if len(values):
            assert far == pytest.approx(values[-1], abs=1e-8 * shift.scale)
        monkeypatch.setattr(module, "DENSE_LIMIT", 0)
        monkeypatch.setattr(module, "SHARP", 0)
        outer_low, outer_far = frequency_range(shift)
        monkeypatch.undo()
        # Bounds lie outside, and not far.
        rounding, width = 1e-9 * shift.scale, far - low
        assert outer_low - rounding <= low
        assert far <= outer_far + rounding
        assert outer_far - outer_low <= 1.05 * width + rounding
