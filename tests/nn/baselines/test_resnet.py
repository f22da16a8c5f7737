import torch

from nlsf.nn.baselines import Neighbourhood
from nlsf.nn.baselines.resnet import ResNet, ResNetConfig


def standardised(h, norm):
    centred = h - h.mean(1, keepdim=True)
    scale = (centred.square().mean(1, keepdim=True) + norm.eps).sqrt()
    return centred / scale * norm.weight + norm.bias


def test_layers_add_to_what_they_get():
    torch.manual_seed(0)
    model = ResNet(ResNetConfig(4, 3, 6, num_layers=3)).double().eval()
    x = torch.randn(5, 4, dtype=torch.float64)
    gelu = torch.nn.functional.gelu
    h = gelu(model.first(x))
    for layer in model.layers:
        h = h + layer.last(gelu(layer.first(standardised(h, layer.norm))))
    expected = model.last(standardised(h, model.norm))
    graph = Neighbourhood(torch.zeros(2, 0, dtype=torch.int64), 5, dtype=torch.float64)
    torch.testing.assert_close(model(x, graph), expected)


def test_edges_do_not_matter():
    model = ResNet(ResNetConfig(4, 3, 6)).eval()
    x = torch.randn(2, 4)
    apart = model(x, Neighbourhood(torch.zeros(2, 0, dtype=torch.int64), 2))
    assert torch.equal(model(x, Neighbourhood(torch.tensor([[0, 1], [1, 0]]), 2)), apart)
