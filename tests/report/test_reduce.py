import numpy as np
import pytest
import torch

from nlsf.report.reduce import histogram, thinned


@pytest.mark.parametrize("count", [0, 1, 2, 99, 2000])
def test_few_points_are_all_kept(count):
    assert np.array_equal(thinned(count), np.arange(count))


def test_many_points_are_thinned_evenly():
    chosen = thinned(100_000)
    assert len(chosen) == 2_000
    assert chosen[0] == 0
    assert chosen[-1] == 99_999
    steps = np.diff(chosen)
    assert steps.max() - steps.min() <= 1


def test_a_point_that_must_stay_stays():
    assert 77_777 in thinned(100_000, 77_777)


def test_a_histogram_counts_everything():
    values = torch.randn(1000, generator=torch.Generator().manual_seed(0))
    edges, counts = histogram(values, bins=7)
    assert len(edges) == 8
    assert sum(counts) == 1000
    assert edges[0] == pytest.approx(float(values.min()))
    assert edges[-1] == pytest.approx(float(values.max()))


@pytest.mark.parametrize("values", [torch.zeros(0), torch.full((5,), 3.0)])
def test_equal_numbers_share_a_bin(values):
    edges, counts = histogram(values)
    assert counts == [len(values)]
    assert edges[0] < edges[1]
