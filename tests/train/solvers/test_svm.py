import dataclasses

import numpy as np
import pytest
import torch

from nlsf.errors import ConfigError
from nlsf.train.fit import Lesson
from nlsf.train.solvers.svm import KernelConfig, check_classes, normalised, svm_outputs, tuned_svm
from train.small import graph_data, regression_data


def line(*points):
    """A linear kernel of numbers."""
    x = np.array(points, dtype=np.float64)
    return np.outer(x, x)


def test_cosines():
    found = normalised(np.array([[4.0, 3.0, 0.0], [3.0, 9.0, 0.0], [0.0, 0.0, 0.0]]))
    assert found == pytest.approx(np.array([[1, 0.5, 0], [0.5, 1, 0], [0, 0, 0]]))


def test_two_classes_are_parted_in_the_middle():
    # The widest margin between -1 and 1 is f(x) = x.
    kernel = line(-1, 1, 3, -0.5)
    out = svm_outputs(kernel, torch.tensor([0, 1]), torch.tensor([0, 1]), 100.0, 2)
    assert out[:, 1].numpy() == pytest.approx(np.array([-1, 1, 3, -0.5]), abs=1e-6)
    assert torch.equal(out[:, 0], -out[:, 1])


def test_a_class_that_was_not_seen_is_never_predicted():
    rng = np.random.default_rng(0)
    x = rng.normal(size=(30, 4))
    y = torch.arange(30) % 3
    names = torch.tensor([0, 2, 4])[y]
    x[np.arange(30), y.numpy()] += 4
    out = svm_outputs(x @ x.T, torch.arange(24), names[:24], 1.0, 5)
    assert out.shape == (30, 5)
    assert torch.equal(out.argmax(-1)[24:], names[24:])
    assert (out[:, [1, 3]] < out[:, [0, 2, 4]].min(1, keepdim=True).values).all()


def test_one_class_alone():
    out = svm_outputs(line(1, 2, 3), torch.tensor([0, 1]), torch.tensor([1, 1]), 1.0, 2)
    assert out.argmax(-1).tolist() == [1, 1, 1]


def test_validation_examples_choose_kernel_and_cost():
    # The first kernel ignores the examples; only the second one tells them apart.
    x = np.array([-1, 1, -2, 2, -3, 3, -1.5, 1.5])
    useless, useful = np.ones((8, 8)), np.outer(x, x)
    y = torch.tensor([0, 1, 0, 1])
    train, val = torch.arange(4), torch.arange(4, 8)
    costs = (10.0, 1e-3)

    def choose(val_y):
        return tuned_svm(
            iter([useless, useful]), Lesson(train, y, val, val_y), costs, 2, "accuracy"
        )

    right = choose(torch.tensor([0, 1, 0, 1]))
    assert right.argmax(-1).tolist() == [0, 1] * 4
    # Of equally good machines the first kernel and the smallest C is kept.
    assert torch.equal(right, svm_outputs(useful, train, y, 1e-3, 2))
    wrong = choose(torch.tensor([1, 0, 1, 0]))
    assert torch.equal(wrong, svm_outputs(useless, train, y, 1e-3, 2))


@pytest.mark.parametrize("costs", [(), (0.0,), (1.0, -1.0), (float("inf"),)])
def test_costs_are_positive(costs):
    with pytest.raises(ConfigError, match=r"model\.costs must be numbers above 0"):
        KernelConfig(1, 2, costs)


def test_what_cannot_be_separated_is_refused():
    with pytest.raises(ConfigError, match="'wl' separates classes, but numbers is a regression"):
        check_classes(regression_data(), "wl")
    many = dataclasses.replace(graph_data(), y=torch.zeros(20_001, dtype=torch.int64))
    with pytest.raises(ConfigError, match=r"shapes has 20,001, more than 20,000"):
        check_classes(many, "gk")
