import copy
import pickle
import subprocess
import sys

import pytest
import torch
from torch.func import vmap

from nlsf.errors import SignalError
from nlsf.nn import NodeClassifier
from nlsf.nn.dropout import draw_masks, dropout_shapes
from nlsf.spectral import DyadicBands, IndexBands
from nlsf.spectral.kernels import sparse_signal
from nlsf.spectral.kernels.sparse_signal import Pattern, SparseSignal
from nlsf.testing.graphs import torus

F64 = torch.float64
GRAPH = torus(4, 5)


def dense(rows=20, columns=6, density=0.3, seed=0):
    """A matrix with an empty row and an empty column."""
    rng = torch.Generator().manual_seed(seed)
    x = torch.randn(rows, columns, generator=rng, dtype=F64)
    x = x * (torch.rand(rows, columns, generator=rng) < density)
    x[3], x[:, 2] = 0, 0
    return x


def csr(x):
    rows, columns = x.nonzero(as_tuple=True)
    first = torch.cat([torch.zeros(1, dtype=torch.int64), (x != 0).sum(1).cumsum(0)])
    return torch.sparse_csr_tensor(first, columns, x[rows, columns], x.shape, check_invariants=True)


def random(*shape, seed=1):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed), dtype=F64)


@pytest.fixture(params=["csr", "bag"])
def path(request, monkeypatch):
    """Each way to multiply, whatever the number of columns."""
    if request.param == "csr" and not torch.backends.mkl.is_available():
        pytest.skip("This PyTorch has no MKL, and multiplies in one way only.")
    monkeypatch.setattr(sparse_signal, "_FEW", 1000 if request.param == "csr" else 0)
    return request.param


@pytest.mark.filterwarnings("ignore:Sparse CSR tensor support is in beta")
@pytest.mark.parametrize("form", [lambda x: x, csr])
def test_it_is_the_matrix_that_it_was_made_of(form):
    x = dense()
    made = SparseSignal.of(form(x))
    assert made.shape == x.shape
    assert (made.dtype, made.device) == (x.dtype, x.device)
    assert made.values.numel() == int((x != 0).sum())
    assert made.density == made.values.numel() / x.numel()
    assert torch.equal(made.dense(), x)
    flipped = SparseSignal(made.values[made.pattern.order], made.transposed, made.pattern)
    assert torch.equal(flipped.dense(), x.T)
    assert torch.equal(made.transposed.order[made.pattern.order], torch.arange(len(made.values)))


@pytest.mark.usefixtures("path")
def test_product_and_gradients_are_those_of_the_dense_matrix():
    x, weight = dense(), random(6, 4).requires_grad_()
    made = SparseSignal.of(x)
    torch.testing.assert_close(made @ weight, x @ weight)
    assert torch.autograd.gradcheck(lambda w: made @ w, (weight,), check_batched_grad=True)
    assert torch.autograd.gradgradcheck(lambda w: (made @ w) ** 2, (weight,))
    turned = random(4, 6).requires_grad_()
    assert torch.autograd.gradcheck(lambda w: made @ w.T, (turned,))


@pytest.mark.usefixtures("path")
@pytest.mark.parametrize("dims", [(0, 0), (None, 0), (0, None), (0, 2), (1, 1)])
def test_many_at_once_are_the_products_one_by_one(dims):
    made = SparseSignal.of(dense())
    nnz = made.values.numel()
    sizes = [nnz], [6, 4]
    values, weight = (
        random(*size) if dim is None else random(*size[:dim], 3, *size[dim:])
        for size, dim in zip(sizes, dims, strict=True)
    )
    weight.requires_grad_()

    def member(tensor, dim, i):
        return tensor if dim is None else tensor.select(dim, i)

    def together(w):
        return vmap(lambda v, w: made.with_values(v) @ w, in_dims=dims)(values, w)

    expected = [
        made.with_values(member(values, dims[0], i)).dense() @ member(weight, dims[1], i)
        for i in range(3)
    ]
    torch.testing.assert_close(together(weight), torch.stack(expected))
    assert torch.autograd.gradcheck(together, (weight,))


@pytest.mark.usefixtures("path")
def test_a_batch_of_batches():
    made = SparseSignal.of(dense())
    values, weight = random(2, made.values.numel()), random(2, 3, 6, 4)
    found = vmap(lambda v, ws: vmap(lambda w: made.with_values(v) @ w)(ws))(values, weight)
    for i in range(2):
        for j in range(3):
            expected = made.with_values(values[i]).dense() @ weight[i, j]
            torch.testing.assert_close(found[i, j], expected)


def test_dense_in_a_batch():
    made = SparseSignal.of(dense())
    values = random(3, made.values.numel())
    found = vmap(lambda v: made.with_values(v).dense())(values)
    assert torch.equal(found, torch.stack([made.with_values(v).dense() for v in values]))


@pytest.mark.usefixtures("path")
@pytest.mark.parametrize("shape", [(5, 3), (0, 3), (5, 0), (0, 0)])
def test_nothing_but_zeros(shape):
    made = SparseSignal.of(torch.zeros(shape, dtype=F64))
    weight = random(shape[1], 2).requires_grad_()
    out = made @ weight
    out.sum().backward()
    assert torch.equal(out, torch.zeros(shape[0], 2, dtype=F64))
    assert not weight.grad.any()
    assert made.density == 0
    assert made.dense().shape == shape
    assert (made @ weight[:, :0]).shape == (shape[0], 0)


@pytest.mark.usefixtures("path")
def test_a_value_that_is_not_a_number_stays_one():
    x = dense()
    x[0, 0] = float("nan")
    out = SparseSignal.of(x) @ torch.ones(6, 1, dtype=F64)
    assert out[0].isnan()
    assert not out[1:].isnan().any()


def test_the_way_to_multiply_depends_on_the_number_of_columns(monkeypatch):
    if not torch.backends.mkl.is_available():
        pytest.skip("This PyTorch has no MKL, and multiplies in one way only.")
    made, asked = SparseSignal.of(dense()), []
    known = Pattern.remembered_matrix
    monkeypatch.setattr(Pattern, "remembered_matrix", lambda *args: asked.append(1) or known(*args))

    def asks(product):
        before = len(asked)
        product()
        return len(asked) > before

    for d, few in {1: True, 16: True, 17: False, 64: False}.items():
        weight = random(6, d)
        assert asks(lambda w=weight: torch.testing.assert_close(made @ w, dense() @ w)) == few
    many = random(3, 6, 5)
    assert asks(lambda: torch.testing.assert_close(vmap(lambda w: made @ w)(many), dense() @ many))
    monkeypatch.setattr(torch.backends.mkl, "is_available", lambda: False)
    assert not asks(lambda: made @ random(6, 1))


def test_fixed_values_make_one_matrix_and_others_one_a_product(monkeypatch):
    if not torch.backends.mkl.is_available():
        pytest.skip("This PyTorch has no MKL, and makes no matrix.")
    made, kept = [], sparse_signal.csr_matrix
    monkeypatch.setattr(sparse_signal, "csr_matrix", lambda *args: made.append(1) or kept(*args))
    signal, weight = SparseSignal.of(dense()), random(6, 2).requires_grad_()
    for _ in range(3):
        (signal @ weight).sum().backward()
    assert len(made) == 2  # it, and the transposed one
    for factor in (2.0, 3.0):
        other = signal.with_values(factor * signal.values)
        torch.testing.assert_close(other @ weight, factor * dense() @ weight)
    assert len(made) == 4
    signal.values.mul_(2)
    torch.testing.assert_close(signal @ weight, 2 * dense() @ weight)  # its memory is shared


@pytest.mark.usefixtures("path")
@pytest.mark.parametrize("copied", [copy.deepcopy, lambda x: pickle.loads(pickle.dumps(x))])
def test_a_copy_after_a_product_multiplies_too(copied):
    made, weight = SparseSignal.of(dense()), random(6, 2)
    expected = made @ weight
    assert torch.equal(copied(made) @ weight, expected)


@pytest.mark.usefixtures("path")
def test_a_product_in_inference_mode_does_no_harm_to_later_ones():
    made, weight = SparseSignal.of(dense()), random(6, 2).requires_grad_()
    with torch.inference_mode():
        expected = made @ weight
    found = made @ weight
    torch.testing.assert_close(found.detach(), expected.clone())
    (grad,) = torch.autograd.grad(found.sum(), weight)
    torch.testing.assert_close(grad, dense().sum(0)[:, None].expand(6, 2))


def test_no_product_warns():
    """PyTorch warns of CSR tensors once a process, so this needs a new one."""
    code = "import torch, nlsf.spectral as s; s.SparseSignal.of(torch.eye(3)) @ torch.eye(3)"
    subprocess.run([sys.executable, "-W", "error::UserWarning", "-c", code], check=True)


def test_precision_and_repr():
    made = SparseSignal.of(dense()).to(dtype=torch.float32, device="cpu")
    assert (made @ torch.ones(6, 2)).dtype == torch.float32
    torch.testing.assert_close(made.dense(), dense().float())
    assert repr(made).startswith("SparseSignal((20, 6), density=0.")


def test_what_does_not_fit_is_refused():
    made = SparseSignal.of(dense())
    for x in (torch.zeros(3), torch.zeros(2, 3, 4), torch.zeros(2, 3, dtype=torch.int64)):
        with pytest.raises(SignalError, match=r"\(nodes, channels\)"):
            SparseSignal.of(x)
    with pytest.raises(SignalError, match="dense or CSR"):
        SparseSignal.of(dense().to_sparse_coo())
    for weight in (random(5, 2), random(6), random(6, 2).float()):
        with pytest.raises(SignalError, match=r"by a matrix \(6, d\)"):
            made @ weight
    with pytest.raises(SignalError, match="fixed"):
        made.with_values(made.values.clone().requires_grad_()) @ random(6, 2)


@pytest.mark.parametrize("encoder", ["mlp", "linear", "none"])
@pytest.mark.parametrize("training", [True, False])
def test_a_model_gives_the_numbers_of_the_dense_signal(encoder, training):
    torch.manual_seed(0)
    made = NodeClassifier(
        in_channels=6,
        out_channels=3,
        hidden_channels=5,
        encoder=encoder,
        place="hidden",
        index_bands=IndexBands(4),
        value_bands=DyadicBands(0.5, 4, 3),
    )
    made.double().train(training)
    x = dense()
    sparse = SparseSignal.of(x)
    shapes = dropout_shapes(made, lambda: made(sparse, GRAPH.edge_index))
    assert shapes["input_dropout"] == sparse.values.shape
    masks = draw_masks(made, shapes, torch.Generator().manual_seed(2))
    full = sparse.with_values(masks["input_dropout.mask"]).dense()
    found, expected = (
        torch.func.functional_call(made, {**masks, **more}, (signal, GRAPH.edge_index))
        for signal, more in ((sparse, {}), (x, {"input_dropout.mask": full}))
    )
    torch.testing.assert_close(found, expected, rtol=1e-10, atol=1e-10)
    parameters = list(made.parameters())
    pairs = zip(
        torch.autograd.grad(found.sin().sum(), parameters),
        torch.autograd.grad(expected.sin().sum(), parameters),
        strict=True,
    )
    for a, b in pairs:
        torch.testing.assert_close(a, b, rtol=1e-9, atol=1e-10)
    assert torch.equal(made.eval()(x, GRAPH.edge_index), expected) == (not training)


def test_rows_are_prepared_from_a_sparse_signal():
    made = NodeClassifier(in_channels=6, out_channels=3, encoder="linear", input_dropout=0.0)
    made.double().eval()
    x, rows = dense(), torch.tensor([3, 0, 7])
    found = made.forward_rows(made.prepare(rows, SparseSignal.of(x), GRAPH.edge_index))
    torch.testing.assert_close(found, made(x, GRAPH.edge_index)[rows])
