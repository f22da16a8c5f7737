import pytest
import torch

from nlsf.errors import ModelError
from nlsf.peers import Neighbourhood
from nlsf.peers.graph_level import DiffPool, DiffPoolConfig, row_mean, side_loss


def small_graph(num_nodes=12):
    A = (torch.rand(num_nodes, num_nodes) < 0.3).double().triu(1)
    A[:, -1] = 0  # the last node is isolated
    A = A + A.T
    return Neighbourhood(A.nonzero().T, num_nodes, dtype=torch.float64), A


def convolution(layer, h, A):
    degree = A.sum(1, keepdim=True)
    mean = torch.where(degree > 0, A / degree, 0.0)
    y = h @ layer.own.weight.T + layer.own.bias + mean @ h @ layer.near.weight.T
    return y / y.norm(dim=1, keepdim=True)


def by_hand(model, h, A):
    """One graph, with its dense adjacency matrix; also the shares and matrices of all levels."""
    out, seen = 0.0, []
    for level, last in zip(model.levels, model.maps, strict=False):
        shares = level.scores(convolution(level.assign, h, A).relu()).softmax(1)
        for layer in level.embed:
            h = convolution(layer, h, A).relu()
        out = out + last(h.mean(0))
        seen.append((shares, A))
        h, A = shares.T @ h, shares.T @ A @ shares
    return out + model.maps[-1](convolution(model.top, h, A).relu().mean(0)), seen


def loss_by_hand(seen):
    loss = 0.0
    for S, A in seen:
        loss = loss + (A - S @ S.T).square().mean() - (S * S.log()).sum(1).mean()
    return loss


def two_graphs():
    torch.manual_seed(0)
    model = DiffPool(DiffPoolConfig(4, 5, 6, input_dropout=0.0, clusters=(4, 2))).double()
    parts = [small_graph(12), small_graph(7)]
    edges = torch.cat([parts[0][0].edge_index, parts[1][0].edge_index + 12], dim=1)
    x = torch.randn(19, 4, dtype=torch.float64)
    batch = torch.repeat_interleave(torch.tensor([12, 7]))
    both = [(x[:12], parts[0][1]), (x[12:], parts[1][1])]
    return model, (x, Neighbourhood(edges, 19, dtype=torch.float64), batch), both


def test_two_graphs_are_pooled_as_the_dense_formula_says():
    model, inputs, parts = two_graphs()
    expected = torch.stack([by_hand(model, x, A)[0] for x, A in parts])
    torch.testing.assert_close(model(*inputs), expected)


def test_the_side_losses_are_those_of_the_dense_matrices():
    torch.manual_seed(0)
    _, A = small_graph()
    S = torch.randn(12, 4, dtype=torch.float64).softmax(1)
    padded = torch.cat([S, torch.zeros(3, 4, dtype=torch.float64)]).unsqueeze(0)
    squares, nodes = A.square().sum().reshape(1), torch.tensor([12])
    loss = side_loss(padded, (S.T @ A @ S).unsqueeze(0), squares, nodes)
    torch.testing.assert_close(loss[0], loss_by_hand([(S, A)]))


def test_the_gradient_has_the_side_losses_in_it():
    model, inputs, parts = two_graphs()
    weight = torch.randn(5, dtype=torch.float64)
    (model(*inputs) @ weight).sum().backward()
    found = {name: p.grad.clone() for name, p in model.named_parameters()}
    model.zero_grad()
    pairs = [by_hand(model, x, A) for x, A in parts]
    total = sum(out @ weight for out, _ in pairs)
    (total + sum(loss_by_hand(seen) for _, seen in pairs) / 2).backward()
    for name, p in model.named_parameters():
        torch.testing.assert_close(found[name], p.grad, msg=name)


def test_a_row_of_zeros_has_no_mean():
    A = torch.tensor([[[0.0, 0.0], [1.0, 3.0]]])
    assert row_mean(A).tolist() == [[[0.0, 0.0], [0.25, 0.75]]]


def test_clusters_are_asked_for():
    with pytest.raises(ModelError, match="at least one number of clusters"):
        DiffPoolConfig(2, 2, clusters=())
