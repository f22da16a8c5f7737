"""A small graph, and dense transcriptions of what the spatial methods sum over."""

import torch
from torch.nn.functional import leaky_relu

from nlsf.data.generators import block_model
from nlsf.peers import Neighbourhood

N, F, C = 12, 4, 3
F64 = torch.float64


def small_graph():
    """12 nodes, of which the last is isolated, features, and the dense adjacency."""
    edges = block_model(N, 3, 4.0, seed=2).edge_index
    graph = Neighbourhood(edges[:, (edges != N - 1).all(0)], N, dtype=F64)
    A = torch.zeros(N, N, dtype=F64)
    A[graph.edge_index[0], graph.edge_index[1]] = 1
    x = torch.randn(N, F, dtype=F64, generator=torch.Generator().manual_seed(0))
    return graph, x, A


def made(method, config):
    """In evaluation mode, at parameters that no start makes special."""
    torch.manual_seed(1)
    model = method(config).to(F64).eval()
    with torch.no_grad():
        for p in model.parameters():
            p += 0.3 * torch.randn(p.shape, dtype=F64)
    return model


def attended(scores, mask, values):
    """Softmax over the entries of each row that the mask leaves; zeros for a row without any."""
    weights = scores.masked_fill(mask == 0, -torch.inf).softmax(-1).nan_to_num()
    return weights @ values


def dot_product_attention(conv, h, mask):
    """What a ``TransformerConv`` without biases and skips computes."""
    heads = []
    for k in range(conv.heads):
        rows = slice(k * conv.out_channels, (k + 1) * conv.out_channels)
        q, key, v = (
            h @ lin.weight[rows].T for lin in (conv.lin_query, conv.lin_key, conv.lin_value)
        )
        heads.append(attended(q @ key.T / conv.out_channels**0.5, mask, v))
    return torch.cat(heads, dim=1)


def additive_attention(conv, z, mask):
    """What a ``GATConv`` without a bias computes of the signal after its linear map."""
    heads = []
    for k, part in enumerate(z.split(conv.out_channels, dim=1)):
        to, of = part @ conv.att_dst[0, k], part @ conv.att_src[0, k]
        scores = leaky_relu(to[:, None] + of[None], conv.negative_slope)
        heads.append(attended(scores, mask, part))
    return torch.cat(heads, dim=1)
