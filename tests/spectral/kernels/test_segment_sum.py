import pytest
import torch

from nlsf.spectral.kernels.segments import segment_energy, segment_sum

F64 = torch.float64
INDEX = torch.tensor([[2, 0, 0, 2, 3], [1, 1, 0, 3, 3]])  # no row has all of 0 to 3
BOTH = pytest.mark.parametrize("sums", [segment_sum, segment_energy])


def y(*leading):
    return torch.randn(*leading, 5, 3, dtype=F64, requires_grad=True)


def expected(sums, y, index):
    y = y if sums is segment_sum else y * y
    return y.new_zeros(*y.shape[:-2], 4, 3).index_add(-2, index, y)


@BOTH
def test_it_is_index_add_and_so_is_its_gradient(sums):
    for x in (y(), y(2), y(2, 3)):
        torch.testing.assert_close(sums(x, INDEX[0], 4), expected(sums, x, INDEX[0]))
        torch.autograd.gradcheck(lambda x: sums(x, INDEX[0], 4), x)
    assert sums(y()[:0], INDEX[0, :0], 4).tolist() == [[0.0] * 3] * 4


@BOTH
@pytest.mark.parametrize("dims", [(0, 0), (0, None), (None, 0)])
def test_many_at_once(sums, dims):
    x = y(2) if dims[0] == 0 else y()
    index = INDEX if dims[1] == 0 else INDEX[0]
    found = torch.func.vmap(lambda a, b: sums(a, b, 4), in_dims=dims)(x, index)
    pairs = [
        [t[m] if dim == 0 else t for t, dim in zip((x, index), dims, strict=True)] for m in range(2)
    ]
    wanted = torch.stack([expected(sums, *pair) for pair in pairs])
    torch.testing.assert_close(found, wanted)
    grads = [torch.autograd.grad(out.sin().sum(), x)[0] for out in (found, wanted)]
    torch.testing.assert_close(*grads)


@BOTH
def test_models_inside_of_models(sums):
    x = torch.randn(2, 3, 5, 3, dtype=F64)
    inner = torch.func.vmap(lambda a, b: sums(a, b, 4), in_dims=(0, None))
    found = torch.func.vmap(inner)(x, INDEX)
    for m in range(2):
        torch.testing.assert_close(found[m], expected(sums, x[m], INDEX[m]))
