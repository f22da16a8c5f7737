import math

import numpy as np
import pytest
import torch
from scipy import stats
from sklearn import metrics as reference
from torch.nn import functional

from nlsf.data.metrics import (
    METRICS,
    default_metrics,
    higher_is_better,
    interval,
    loss,
    measure,
    score,
)
from nlsf.errors import ConfigError


def classification(n=60, classes=4, seed=0, models=()):
    generator = torch.Generator().manual_seed(seed)
    output = torch.randn(*models, n, classes, generator=generator)
    return output, torch.randint(classes, (*models, n), generator=generator)


def regression(n=60, targets=2, seed=0, models=()):
    generator = torch.Generator().manual_seed(seed)
    draw = torch.randn(2, *models, n, targets, generator=generator)
    return draw[0], draw[1]


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("classes", [2, 3, 7])
def test_measures_of_classes_equal_scikit_learn(seed, classes):
    output, y = classification(classes=classes, seed=seed)
    predicted = output.argmax(-1)
    assert measure("accuracy", output, y) == pytest.approx(
        reference.accuracy_score(y, predicted), abs=1e-15
    )
    assert measure("macro_f1", output, y) == pytest.approx(
        reference.f1_score(y, predicted, average="macro", zero_division=0), abs=1e-12
    )
    probability = output.double().softmax(-1)
    expected = (
        reference.roc_auc_score(y, probability[:, 1])
        if classes == 2
        else reference.roc_auc_score(y, probability, multi_class="ovr", average="macro")
    )
    assert measure("roc_auc", output, y) == pytest.approx(expected, abs=1e-12)


def test_macro_f1_leaves_out_classes_that_never_occur():
    y = torch.tensor([0, 0, 2, 4])
    output = functional.one_hot(torch.tensor([0, 2, 2, 1]), 6).float()
    expected = reference.f1_score(y, output.argmax(-1), average="macro", zero_division=0)
    assert measure("macro_f1", output, y) == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize("seed", range(3))
def test_roc_auc_counts_ties_as_a_half(seed):
    generator = torch.Generator().manual_seed(seed)
    output = torch.randint(3, (80, 2), generator=generator).float()
    y = torch.randint(2, (80,), generator=generator)
    expected = reference.roc_auc_score(y, output[:, 1] - output[:, 0])
    assert measure("roc_auc", output, y) == pytest.approx(expected, abs=1e-12)


def test_roc_auc_sees_differences_where_the_softmax_is_one():
    output = torch.tensor([[0.0, 100.0], [0.0, 200.0], [0.0, 300.0]])
    assert measure("roc_auc", output, torch.tensor([0, 1, 1])) == 1
    assert measure("roc_auc", output, torch.tensor([1, 0, 0])) == 0


def test_roc_auc_needs_two_classes():
    with pytest.raises(ConfigError, match="at least two classes"):
        measure("roc_auc", torch.randn(5, 2), torch.ones(5, dtype=torch.int64))


def test_measures_of_numbers_equal_scikit_learn():
    output, y = regression(targets=1)
    expected = reference.root_mean_squared_error(y, output)
    assert measure("rmse", output, y) == pytest.approx(expected, rel=1e-6)
    assert measure("mae", output, y) == pytest.approx(
        reference.mean_absolute_error(y, output), rel=1e-6
    )


def test_rmse_of_many_targets_is_the_root_of_the_loss():
    output, y = regression(targets=3)
    assert measure("rmse", output, y) ** 2 == pytest.approx(float(loss(output, y)), rel=1e-6)


def test_loss_of_classes_equals_torch():
    output, y = classification(models=(3, 2))
    assert loss(output, y).shape == (3, 2)
    for i in range(3):
        for j in range(2):
            expected = functional.cross_entropy(output[i, j], y[i, j])
            torch.testing.assert_close(loss(output, y)[i, j], expected)


def test_scores_of_many_models_equal_one_by_one():
    output, y = classification(models=(2, 3), classes=3)
    for name in ("accuracy", "macro_f1", "roc_auc"):
        scores = score(name, output, y)
        assert scores.shape == (2, 3)
        assert float(scores[1, 2]) == pytest.approx(measure(name, output[1, 2], y[1, 2]))


@pytest.mark.parametrize("name", METRICS)
def test_which_of_two_models_is_better(name):
    output, y = regression(models=(2,)) if name in METRICS[3:] else classification(models=(2,))
    output[1] = y[1] + 0.01 if y.is_floating_point() else functional.one_hot(y[1]).float()
    worse, better = score(name, output, y).tolist()
    assert (better > worse) == higher_is_better(name)


def test_scores_have_no_gradient():
    output, y = regression()
    assert not score("rmse", output.requires_grad_(), y).requires_grad


def test_an_unlabelled_row_that_counts_is_an_error():
    output, y = classification()
    y[3] = -1
    with pytest.raises(IndexError):
        loss(output, y)


def test_unknown_names_are_refused():
    for call in (
        lambda: measure("acuracy", torch.zeros(1, 2), torch.zeros(1)),
        lambda: score("acuracy", torch.zeros(1, 2), torch.zeros(1)),
        lambda: higher_is_better("acuracy"),
    ):
        with pytest.raises(ConfigError, match="Did you mean 'accuracy'"):
            call()


def test_the_defaults_can_be_measured():
    for name in default_metrics(False):
        assert 0 <= measure(name, *classification()) <= 1
    for name in default_metrics(True):
        assert measure(name, *regression()) > 0


def test_the_interval_is_that_of_student():
    values = list(np.random.default_rng(0).normal(size=10))
    mean, half = interval(values)
    low, high = stats.t.interval(0.95, 9, loc=np.mean(values), scale=stats.sem(values))
    assert (mean - half, mean + half) == pytest.approx((low, high))


def test_short_intervals():
    assert interval([0.5, 0.5]) == (0.5, 0)
    mean, half = interval([0.25])
    assert mean == 0.25
    assert math.isnan(half)
    assert all(math.isnan(v) for v in interval([]))
