import pytest
import torch

from nlsf.report.errors_section import confusion, confusion_charts, regression_charts


def labels(count, classes, seed):
    return torch.randint(classes, (count,), generator=torch.Generator().manual_seed(seed))


def test_rows_of_the_confusion_count_the_classes():
    y, predicted = labels(500, 4, 0), labels(500, 4, 1)
    counts = confusion(predicted, y, 4)
    assert torch.equal(counts.sum(1), torch.bincount(y, minlength=4))
    assert torch.equal(counts.sum(0), torch.bincount(predicted, minlength=4))
    assert int(counts.trace()) == int((y == predicted).sum())
    assert int(counts[2, 3]) == int(((y == 2) & (predicted == 3)).sum())


def test_shares_of_a_class_sum_to_one():
    heat, bars = confusion_charts(labels(300, 3, 0), labels(300, 3, 1), ("a", "b", "c"))
    assert [sum(row) for row in heat.values] == pytest.approx([1, 1, 1])
    recall = dict(bars.series)["found (recall)"]
    assert recall == pytest.approx([heat.values[i][i] for i in range(3)])


def test_classes_that_are_missing_or_never_predicted_have_no_share():
    y, predicted = torch.tensor([0, 0, 1]), torch.tensor([0, 1, 1])
    heat, bars = confusion_charts(predicted, y, ("a", "b", "c"))
    assert heat.rows == ["a (2)", "b (1)", "c (0)"]
    assert heat.values[2] == [None] * 3
    assert dict(bars.series)["found (recall)"] == [0.5, 1.0, None]
    assert dict(bars.series)["right (precision)"] == [1.0, 0.5, None]


def test_residuals_are_all_counted():
    y = torch.randn(5000, 1, generator=torch.Generator().manual_seed(0))
    scatter, bars = regression_charts(y * 0.5, y)
    assert sum(bars.series[0][1]) == 5000
    assert len(scatter.series[0].x) == 2000
    assert "2,000 of 5,000" in scatter.caption
    assert scatter.series[0].y == pytest.approx([0.5 * x for x in scatter.series[0].x])
    assert list(scatter.series[1].x) == list(scatter.series[1].y)


def test_every_target_has_its_charts_up_to_six():
    y = torch.randn(20, 9, generator=torch.Generator().manual_seed(0))
    charts = regression_charts(y, y)
    assert len(charts) == 12
    assert charts[0].title == "Predicted and true values of target 1"
    assert sum(charts[1].series[0][1]) == 20  # all errors are 0: one bin
