import torch

from nlsf.nn.dropout import Dropout
from nlsf.nn.feature_linear import FeatureLinear, dropped
from nlsf.spectral.sparse_signal import SparseSignal


def test_sparse_features_give_what_dense_ones_give():
    torch.manual_seed(0)
    x = torch.randn(6, 4) * (torch.rand(6, 4) < 0.5)
    for bias in (True, False):
        layer = FeatureLinear(4, 3, bias=bias)
        torch.testing.assert_close(layer(SparseSignal.of(x)), layer(x))


def test_dropout_acts_on_the_entries():
    x = torch.eye(50)
    drop = Dropout(0.5).train()
    drop.generator = torch.Generator().manual_seed(0)
    sparse = dropped(SparseSignal.of(x), drop)
    assert set(sparse.values.tolist()) == {0.0, 2.0}
    assert set(dropped(x, drop).unique().tolist()) == {0.0, 2.0}
    assert torch.equal(dropped(x, drop.eval()), x)
