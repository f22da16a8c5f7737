import pytest
import torch

from nlsf.errors import SignalError
from nlsf.nn.baselines import Neighbourhood
from nlsf.nn.block_signal import BlockSignal, diagonal_blocks
from nlsf.testing.graphs import disjoint, star

F64 = torch.float64
# Three stars of four nodes; the second one, padding, the first one.
NODE = torch.tensor([4, 5, 6, 7, 0, 0, 0, 1, 2, 3])
INSIDE = torch.tensor([True] * 4 + [False] * 2 + [True] * 4)


def matrix(kind):
    graph = disjoint(star(3), 3)
    return Neighbourhood(graph.edge_index, 12, dtype=F64).matrix(kind)


@pytest.mark.parametrize("kind", ["gcn", "sym", "row", "row-loops", "adjacency"])
def test_blocks_are_rows_and_columns_of_the_matrix(kind):
    whole = matrix(kind)
    assert whole.symmetric is (kind in ("gcn", "sym", "adjacency"))
    both = INSIDE[:, None] & INSIDE
    same = torch.tensor([0] * 6 + [1] * 4)
    expected = (whole.dense()[NODE][:, NODE] * both * (same[:, None] == same)).to(F64)
    found = diagonal_blocks(whole, NODE, INSIDE)
    assert torch.equal(found.dense(), expected)
    assert torch.equal(found.values[found.pattern.order], found.moved)
    h = torch.randn(10, 3, dtype=F64, requires_grad=True)
    g = torch.randn(10, 3, dtype=F64)
    torch.testing.assert_close(found @ h, expected @ h)
    (grad,) = torch.autograd.grad((found @ h * g).sum(), h)
    torch.testing.assert_close(grad, expected.T @ g)


def test_each_model_multiplies_by_its_own_block():
    blocks = BlockSignal(diagonal_blocks(matrix("row"), NODE, INSIDE), 2)
    h = torch.randn(2, 5, 3, dtype=F64)
    found = torch.func.vmap(lambda one: blocks @ one)(h)
    torch.testing.assert_close(found.flatten(0, 1), blocks.dense() @ h.flatten(0, 1))
    with pytest.raises(SignalError, match=r"inside of a torch\.func\.vmap"):
        blocks @ h[0]
    with pytest.raises(SignalError, match="2 models"):
        torch.func.vmap(lambda one: blocks @ one)(h[:1])
