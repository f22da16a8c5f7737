import pytest
import torch
from torch import nn

from nlsf.nn.dropout import Dropout
from nlsf.peers.solvers import KnownOutputs
from nlsf.train.loop.model_batch import ModelBatch, WeightAverage


class Small(nn.Module):
    def __init__(self):
        super().__init__()
        self.lin = nn.Linear(2, 3)
        self.norm = nn.BatchNorm1d(3)
        self.dropout = Dropout(0.5)


def batch_of(models=2):
    return ModelBatch([Small() for _ in range(models)], KnownOutputs(), list(range(models)))


def moved(batch, value):
    """All weights at one number a model: value, value + 1, ..."""
    with torch.no_grad():
        for part in (batch.params, batch.buffers):
            for weights in part.values():
                own = value + torch.arange(len(batch)).reshape(-1, *[1] * (weights.ndim - 1))
                weights.copy_(own.expand_as(weights))


def test_a_share_of_one_is_the_mean_of_all_steps():
    batch = batch_of()
    average = WeightAverage(batch, 1.0)
    for step, value in enumerate((4.0, 8.0, 0.0), start=1):
        moved(batch, value)
        average.update(step)
    for name, weights in average.state().items():
        mean = 0.0 if name.endswith("num_batches_tracked") else 4.0
        torch.testing.assert_close(weights[0], torch.full_like(weights[0], mean))
        torch.testing.assert_close(weights[1], torch.full_like(weights[1], mean + 1))


@pytest.mark.parametrize("share", [0.05, 0.1, 0.5])
def test_what_counts_is_about_the_last_share(share):
    batch, steps = batch_of(1), 2000
    average = WeightAverage(batch, share)
    for step in range(1, steps + 1):
        moved(batch, float(step))
        average.update(step)
    # The mean of the last s t numbers is t (1 - s / 2), and of the faded ones t / (1 + s).
    found = float(average.state()["lin.bias"].mean()) / steps
    assert found == pytest.approx(1 / (1 + share), rel=2e-2)


def test_the_first_step_forgets_the_start():
    batch = batch_of()
    average = WeightAverage(batch, 0.1)
    moved(batch, 7.0)
    average.update(1)
    assert all(float(weights[0].double().mean()) == 7 for weights in average.state().values())


def test_the_mean_is_there_inside_and_the_weights_come_back():
    batch = batch_of()
    average = WeightAverage(batch, 1.0)
    for step, value in enumerate((2.0, 4.0), start=1):
        moved(batch, value)
        average.update(step)
    params = batch.params
    with average.applied():
        assert float(batch.weights()["norm.running_mean"][0, 0]) == 3
        assert float(batch.params["lin.bias"][1, 0]) == 4
    assert batch.params is params
    assert float(batch.weights()["lin.bias"][0, 0]) == 4


def test_without_a_share_nothing_is_kept():
    batch = batch_of()
    average = WeightAverage(batch, 0.0)
    moved(batch, 1.0)
    average.update(1)
    assert average.state() == {}
    with average.applied():
        assert float(batch.weights()["lin.bias"][0, 0]) == 1


def test_it_goes_on_with_some_and_from_a_state():
    batch = batch_of(3)
    average = WeightAverage(batch, 1.0)
    moved(batch, 1.0)
    average.update(1)
    saved = {name: value.clone() for name, value in average.state().items()}
    other = WeightAverage(batch_of(3), 1.0)
    other.load_state(saved)
    for one in (average, other):
        one.keep(torch.tensor([2]))
        assert {float(v.double().mean()) for v in one.state().values()} == {3.0}
