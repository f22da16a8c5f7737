"""A GCN and a nonlinear spectral filter on one task: handwritten digits, 20 labels a class.

The second model is the first with its graph convolutions replaced; all else is shared.
"""

import torch
import torch.nn.functional as F
from torch.nn import Linear
from torch_geometric.nn import GCNConv
from torch_geometric.transforms import RandomNodeSplit

from nlsf.data import digits
from nlsf.nn import NodeNLSF
from nlsf.spectral import DyadicBands


class GCN(torch.nn.Module):
    def __init__(self, features, hidden, classes):
        super().__init__()
        self.conv1 = GCNConv(features, hidden)
        self.conv2 = GCNConv(hidden, classes)

    def forward(self, x, edge_index):
        x = F.dropout(self.conv1(x, edge_index).relu(), 0.5, self.training)
        return self.conv2(x, edge_index)


class NLSF(torch.nn.Module):
    def __init__(self, features, hidden, classes):
        super().__init__()
        self.lin1 = Linear(features, hidden)
        self.filter = NodeNLSF(hidden, hidden, bands=DyadicBands(r=0.5, S=6), start="ppr")
        self.lin2 = Linear(hidden, classes)

    def forward(self, x, edge_index):
        x = F.dropout(self.lin1(x).relu(), 0.5, self.training)
        return self.lin2(self.filter(x, edge_index))


def run(model_class, data):
    torch.manual_seed(0)
    model = model_class(data.num_features, 64, 10)
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01, weight_decay=5e-4)
    for _ in range(100):
        model.train()
        optimizer.zero_grad()
        out = model(data.x, data.edge_index)  # the spectrum is computed in the first epoch only
        F.cross_entropy(out[data.train_mask], data.y[data.train_mask]).backward()
        optimizer.step()
    model.eval()
    correct = model(data.x, data.edge_index).argmax(dim=-1) == data.y
    return correct[data.test_mask].double().mean().item()


torch.manual_seed(0)
data = RandomNodeSplit("random", num_train_per_class=20, num_val=0, num_test=1500)(digits())
for model_class in (GCN, NLSF):
    print(f"{model_class.__name__}: test accuracy {run(model_class, data):.4f}")
