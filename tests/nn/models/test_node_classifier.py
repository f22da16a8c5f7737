import itertools
from functools import partial

import pytest
import torch

from nlsf.data import digits
from nlsf.errors import ModelError
from nlsf.nn import NodeClassifier, NodeClassifierConfig
from nlsf.spectral import DyadicBands, IndexBands, UniformBands, laplacian, partial_eigh
from nlsf.spectral.kernels.sparse_signal import SparseSignal
from nlsf.testing import assert_permutation_equivariant, assert_shift_equivariant
from nlsf.testing.graphs import star, torus, weighted
from pairs import every_pair

GRAPH = torus(4, 5)
BANDS = {"index_bands": IndexBands(4), "value_bands": DyadicBands(0.5, 4, 3)}


OPERATORS = [
    {"index_operator": index, "value_operator": value, "complement": complement}
    for index, value, complement in itertools.product("LN", "LN", (True, False))
]
NAMED_OPERATORS = {"-".join(map(str, fields.values())): fields for fields in OPERATORS}
every_operator = pytest.mark.parametrize("operators", OPERATORS, ids=NAMED_OPERATORS)


def model(**fields):
    torch.manual_seed(0)
    made = NodeClassifier(in_channels=6, out_channels=3, hidden_channels=5, **BANDS, **fields)
    for parameter in made.parameters():  # away from the zeros of the start
        torch.nn.init.normal_(parameter, std=0.3)
    return made.double()


def features(*leading):
    generator = torch.Generator().manual_seed(1)
    return torch.randn(*leading, 20, 6, dtype=torch.float64, generator=generator)


@pytest.mark.parametrize("encoder", ["mlp", "linear", "none"])
@pytest.mark.parametrize("place", ["hidden", "scores"])
@pytest.mark.parametrize("branches", ["attention", "index", "value"])
@pytest.mark.parametrize("num_layers", [1, 3])
def test_every_architecture_trains(encoder, place, branches, num_layers):
    fields = {"encoder": encoder, "place": place, "branches": branches, "num_layers": num_layers}
    if encoder == "none" and place == "scores":
        with pytest.raises(ModelError, match="Class scores need an encoder"):
            NodeClassifierConfig(6, 3, **fields)
        return
    made = model(**fields, dropout=0.0, input_dropout=0.0)
    out = made(features(), GRAPH.edge_index)
    assert out.shape == (20, 3)
    out.square().sum().backward()
    assert all(p.grad is not None and torch.isfinite(p.grad).all() for p in made.parameters())
    many = made(features(2), GRAPH.edge_index)
    torch.testing.assert_close(many[1], made(features(2)[1], GRAPH.edge_index))


@pytest.mark.parametrize("num_layers", [1, 2])
@pytest.mark.parametrize("encoder", ["mlp", "linear", "none"])
def test_the_filters_have_the_hidden_width(encoder, num_layers):
    made = model(encoder=encoder, place="hidden", branches="value", num_layers=num_layers)
    assert made.decoder.in_features == 5
    assert {layer.out_channels for layer in made.filters.layers} == {5}


@pytest.mark.parametrize("prepared", [False, True])
def test_one_spectrum_for_two_branches_is_refused(prepared):
    made = model(encoder="linear", input_dropout=0.0)
    spectrum = partial_eigh(laplacian(GRAPH))
    call = partial(made.prepare, torch.tensor([0])) if prepared else made
    with pytest.raises(ModelError, match="An attention takes a pair"):
        call(features(), spectrum=spectrum)


@every_pair(
    encoder=["linear", "none"],
    branches=["attention", "index", "value"],
    score=["scalar", "spectral"],
    response=["diagonal", "bandwise", "full"],
    rows={"one": [3], "some": [0, 7, 19], "all": list(range(20))},
    form={"dense": lambda x: x, "sparse": SparseSignal.of},
)
def test_the_fast_path_has_the_numbers_of_the_plain_one(
    encoder, branches, score, response, rows, form
):
    made = model(
        encoder=encoder,
        place="hidden",
        branches=branches,
        score=score,
        response=response,
        a=0.5,
        input_dropout=0.0,
        dropout=0.0,
    )
    x, rows = features(), torch.tensor(rows)
    plain = made(x, GRAPH.edge_index)[rows]
    fast = made.forward_rows(made.prepare(rows, form(x), GRAPH.edge_index))
    torch.testing.assert_close(fast, plain, atol=1e-9, rtol=1e-9)
    wanted = torch.autograd.grad(plain.sin().sum(), list(made.parameters()))
    found = torch.autograd.grad(fast.sin().sum(), list(made.parameters()))
    for a, b in zip(found, wanted, strict=True):
        torch.testing.assert_close(a, b, atol=1e-8, rtol=1e-8)


@every_pair(
    operators=NAMED_OPERATORS,
    graph={"weighted": weighted(20), "star": star(19)},
    response=["diagonal", "bandwise", "full"],
)
def test_the_fast_path_reads_the_same_operators(operators, graph, response):
    made = model(
        **operators, encoder="linear", response=response, a=0.5, input_dropout=0.0, dropout=0.0
    )
    x, rows = features(), torch.tensor([0, 7, 19])
    plain = made(x, graph.edge_index, graph.edge_weight)[rows]
    fast = made.forward_rows(made.prepare(rows, x, graph.edge_index, graph.edge_weight))
    torch.testing.assert_close(fast, plain, atol=1e-9, rtol=1e-9)
    wanted = torch.autograd.grad(plain.sin().sum(), list(made.parameters()))
    found = torch.autograd.grad(fast.sin().sum(), list(made.parameters()))
    for a, b in zip(found, wanted, strict=True):
        torch.testing.assert_close(a, b, atol=1e-8, rtol=1e-8)


@every_pair(
    operators=NAMED_OPERATORS,
    branches=["attention", "index", "value"],
    self_loops=[True, False],
)
def test_each_branch_reads_its_operator(operators, branches, self_loops):
    graph = weighted(20)
    made = model(**operators, branches=branches, self_loops=self_loops).eval()
    shifts = {
        "L": laplacian(graph, normalization=None),
        "N": laplacian(graph, normalization="sym", self_loops=self_loops),
    }
    spectra = [partial_eigh(shifts[operators[f"{name}_operator"]]) for name in ("index", "value")]
    given = {"attention": spectra, "index": spectra[0], "value": spectra[1]}[branches]
    plain = made(features(), graph.edge_index, graph.edge_weight)
    torch.testing.assert_close(made(features(), spectrum=given), plain, atol=1e-9, rtol=1e-9)
    swapped = {"L": "N", "N": "L"}
    others = [
        partial_eigh(shifts[swapped[operators[f"{name}_operator"]]]) for name in ("index", "value")
    ]
    wrong = {"attention": others, "index": others[0], "value": others[1]}[branches]
    assert not torch.allclose(made(features(), spectrum=wrong), plain, atol=1e-3)


def test_without_the_complement_what_the_bands_leave_out_is_dropped():
    fields = {"encoder": "linear", "branches": "index", "input_dropout": 0.0}
    lead, whole = (model(**fields, complement=c).eval() for c in (False, True))
    spectrum = partial_eigh(laplacian(GRAPH, normalization=None))
    assigned = BANDS["index_bands"].assign(spectrum)
    left_out = spectrum.vectors[:, assigned == 4]
    x = left_out @ torch.randn(left_out.shape[1], 6, dtype=torch.float64)
    assert lead(x, GRAPH.edge_index).abs().max() < 1e-9
    assert whole(x, GRAPH.edge_index).abs().max() > 1e-3
    bands = (lead.filters.layers[0].n_bands, whole.filters.layers[0].n_bands)
    assert bands == (4, 5)


def test_the_fast_path_works_with_many_features():
    """More features than nodes: the remainder itself is smaller than its Gram matrix."""
    made = NodeClassifier(
        in_channels=50, out_channels=3, encoder="linear", input_dropout=0.0, **BANDS
    ).double()
    x = torch.randn(20, 50, dtype=torch.float64)
    rows = torch.tensor([1, 2])
    made.eval()
    fast = made.forward_rows(made.prepare(rows, x, GRAPH.edge_index))
    torch.testing.assert_close(fast, made(x, GRAPH.edge_index)[rows])


@pytest.mark.parametrize(
    "fields", [{"encoder": "mlp"}, {"num_layers": 2}, {"input_dropout": 0.1}, {"residual": True}]
)
def test_the_fast_path_says_what_it_needs(fields):
    open_to = {"encoder": "linear", "input_dropout": 0.0}
    assert model(**open_to).can_prepare
    made = model(**(open_to | fields))
    assert not made.can_prepare
    with pytest.raises(ModelError, match="fast path needs"):
        made.prepare(torch.tensor([0]), features(), GRAPH.edge_index)


@pytest.mark.parametrize("score", ["scalar", "spectral"])
def test_the_scores_of_two_branches_are_added(score):
    made = model(encoder="linear", place="scores", score=score).eval()
    x, attention = made.encoder(features()), made.filters.layers[0]
    out = made(features(), GRAPH.edge_index)
    weight = attention.alpha
    first, second = (b(x, GRAPH.edge_index) for b in (attention.first, attention.second))
    torch.testing.assert_close(out, 2 * (weight * first + (1 - weight) * second))
    made.reset_parameters()
    out = made(features(), GRAPH.edge_index)
    x = made.encoder(features())
    first, second = (b(x, GRAPH.edge_index) for b in (attention.first, attention.second))
    torch.testing.assert_close(out, first + second)


def test_a_linear_encoder_keeps_the_symmetry_and_an_mlp_does_not():
    spectra = [partial_eigh(laplacian(GRAPH, normalization=n)) for n in (None, "sym")]
    kept = model(encoder="linear", place="scores").eval()
    assert_shift_equivariant(lambda x: kept(x, spectrum=spectra), spectra[0], features())
    broken = model(encoder="mlp", place="scores").eval()
    with pytest.raises(AssertionError):
        assert_shift_equivariant(lambda x: broken(x, spectrum=spectra), spectra[0], features())


@every_operator
@pytest.mark.parametrize("response", ["diagonal", "bandwise", "full"])
def test_every_pair_of_operators_keeps_the_symmetry(operators, response):
    """On a regular graph L and N have the same eigenspaces, so both branches share a group."""
    pair = [operators["index_operator"], operators["value_operator"]]
    spectra = [partial_eigh(laplacian(GRAPH, normalization={"N": "sym"}.get(o))) for o in pair]
    made = model(**operators, encoder="linear", response=response, self_loops=False).eval()
    assert_shift_equivariant(lambda x: made(x, spectrum=spectra), spectra[0], features())


@every_operator
@pytest.mark.parametrize("branches", ["index", "value"])
def test_one_branch_keeps_the_symmetry_of_its_operator(operators, branches):
    graph = weighted(20)
    normalization = {"N": "sym"}.get(operators[f"{branches}_operator"])
    spectrum = partial_eigh(laplacian(graph, normalization=normalization))
    made = model(**operators, encoder="linear", branches=branches, self_loops=False).eval()
    assert_shift_equivariant(lambda x: made(x, spectrum=spectrum), spectrum, features())


@every_operator
def test_the_numbers_of_the_nodes_do_not_matter(operators):
    graph = weighted(20)
    made = model(**operators).eval()
    L = laplacian(graph, normalization=None)

    def outputs(x, shift):
        A = -shift.to_dense().fill_diagonal_(0)
        edges = A.nonzero().T
        return made(x, edges, A[edges[0], edges[1]])

    assert_permutation_equivariant(outputs, L, features())


def test_config_or_fields():
    config = NodeClassifierConfig(6, 3, branches="value", value_bands=UniformBands(4))
    assert NodeClassifier(config).config == config
    with pytest.raises(TypeError, match="branch"):
        NodeClassifier(in_channels=6, out_channels=3, branch="value")
    for field, value in (("encoder", "cnn"), ("place", "top"), ("branches", "both")):
        with pytest.raises(ModelError, match=field):
            NodeClassifierConfig(6, 3, **{field: value})
    for field in ("index_operator", "value_operator"):
        with pytest.raises(ModelError, match="must be L or N, not 'A'"):
            NodeClassifierConfig(6, 3, **{field: "A"})


def test_it_learns_the_digits():
    torch.manual_seed(0)
    graph = digits()
    order = torch.randperm(graph.num_nodes)
    train = torch.cat([order[graph.y[order] == c][:20] for c in range(10)])
    test = torch.ones(graph.num_nodes, dtype=torch.bool)
    test[train] = False
    made = NodeClassifier(
        in_channels=64,
        out_channels=10,
        encoder="linear",
        branches="value",
        value_bands=DyadicBands(0.5, 6, 4),
        input_dropout=0.0,
    )
    prepared = made.prepare(train, graph.x, graph.edge_index)
    optimizer = torch.optim.Adam(made.parameters(), lr=0.02)
    for _ in range(150):
        optimizer.zero_grad()
        logits = made.forward_rows(prepared)
        torch.nn.functional.cross_entropy(logits, graph.y[train]).backward()
        optimizer.step()
    made.eval()
    guess = made(graph.x, graph.edge_index).argmax(1)
    assert (guess == graph.y)[test].double().mean() > 0.9
