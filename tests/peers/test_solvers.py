import pytest
import torch

from nlsf.data.dataset import Lesson
from nlsf.peers.solvers import SolverConfig, majority
from train.small import node_data, regression_data


def lesson(y):
    rows = torch.arange(len(y))
    return Lesson(rows, y, rows[:0], y[:0])


def test_the_most_frequent_class_of_the_training():
    y = torch.tensor([2, 0, 2, 2, 0])
    out = majority(node_data(), lesson(y), SolverConfig(8, 3), 0)
    assert out.shape == (60, 3)
    assert out.softmax(-1)[7].tolist() == pytest.approx([3 / 8, 1 / 8, 4 / 8])
    assert set(out.argmax(-1).tolist()) == {2}


def test_the_mean_of_the_training_targets():
    y = torch.tensor([[1.0, 5.0], [3.0, -1.0]])
    out = majority(regression_data(), lesson(y), SolverConfig(8, 2), 0)
    assert torch.equal(out, torch.tensor([[2.0, 2.0]]).repeat(60, 1))
