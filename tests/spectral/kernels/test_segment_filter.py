import pytest
import torch

from nlsf.spectral.kernels.segments import segment_filter

F64 = torch.float64
INDEX = torch.tensor([[2, 0, 0, 2, 3], [1, 1, 0, 3, 3]])


def random(*shape):
    return torch.randn(*shape, dtype=F64, requires_grad=True)


def expected(x, gains, index):
    return (x * gains.index_select(-3, index)).sum(-2)


def test_it_is_a_gain_a_segment_and_so_is_its_gradient():
    for leading in ((), (2,), (2, 3)):
        x, gains = random(*leading, 5, 2, 3), random(*leading, 4, 2, 3)
        torch.testing.assert_close(segment_filter(x, gains, INDEX[0]), expected(x, gains, INDEX[0]))
        torch.autograd.gradcheck(lambda x, g: segment_filter(x, g, INDEX[0]), (x, gains))
    assert segment_filter(random(0, 2, 3), random(4, 2, 3), INDEX[0, :0]).shape == (0, 3)


@pytest.mark.parametrize("dims", [(0, 0, 0), (0, 0, None), (None, 0, 0), (0, None, 0)])
def test_many_at_once(dims):
    each = (random(2, 5, 2, 3), random(2, 4, 2, 3), INDEX)
    given = [t if dim == 0 else t[0] for t, dim in zip(each, dims, strict=True)]
    found = torch.func.vmap(segment_filter, in_dims=dims)(*given)
    wanted = torch.stack(
        [
            expected(*(t[m] if dim == 0 else t for t, dim in zip(given, dims, strict=True)))
            for m in range(2)
        ]
    )
    torch.testing.assert_close(found, wanted)
    grads = [torch.autograd.grad(out.sin().sum(), each[:2]) for out in (found, wanted)]
    for one, other in zip(*grads, strict=True):
        torch.testing.assert_close(one, other)


def test_models_inside_of_models():
    x, gains = random(2, 3, 5, 2, 3), random(2, 3, 4, 2, 3)
    inner = torch.func.vmap(segment_filter, in_dims=(0, 0, None))
    found = torch.func.vmap(inner)(x, gains, INDEX)
    for m in range(2):
        torch.testing.assert_close(found[m], expected(x[m], gains[m], INDEX[m]))
