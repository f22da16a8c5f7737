import pytest
import torch

from nlsf.nn.segment_sum import segment_sum

F64 = torch.float64
INDEX = torch.tensor([[2, 0, 0, 2, 3], [1, 1, 0, 3, 3]])  # no row has all of 0 to 3


def y(*leading):
    return torch.randn(*leading, 5, 3, dtype=F64, requires_grad=True)


def expected(y, index):
    return y.new_zeros(*y.shape[:-2], 4, 3).index_add(-2, index, y)


def test_it_is_index_add_and_so_is_its_gradient():
    for x in (y(), y(2), y(2, 3)):
        torch.testing.assert_close(segment_sum(x, INDEX[0], 4), expected(x, INDEX[0]))
        torch.autograd.gradcheck(lambda x: segment_sum(x, INDEX[0], 4), x)
    assert segment_sum(y()[:0], INDEX[0, :0], 4).tolist() == [[0.0] * 3] * 4


@pytest.mark.parametrize("dims", [(0, 0), (0, None), (None, 0)])
def test_many_at_once(dims):
    x = y(2) if dims[0] == 0 else y()
    index = INDEX if dims[1] == 0 else INDEX[0]
    found = torch.func.vmap(lambda a, b: segment_sum(a, b, 4), in_dims=dims)(x, index)
    for m in range(2):
        one, where = (t[m] if dim == 0 else t for t, dim in zip((x, index), dims, strict=True))
        torch.testing.assert_close(found[m], expected(one, where))
    (grad,) = torch.autograd.grad(found.square().sum(), x)
    assert grad.any()


def test_models_inside_of_models():
    x = torch.randn(2, 3, 5, 3, dtype=F64)
    inner = torch.func.vmap(lambda a, b: segment_sum(a, b, 4), in_dims=(0, None))
    found = torch.func.vmap(inner)(x, INDEX)
    for m in range(2):
        torch.testing.assert_close(found[m], expected(x[m], INDEX[m]))
