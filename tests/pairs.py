"""Products of parameters, thinned out: `every_pair`."""

import itertools

import pytest


def covering(sizes):
    """Rows of numbers below ``sizes`` in which each pair of numbers of two columns stands."""
    columns = list(itertools.combinations(range(len(sizes)), 2))
    rows = list(itertools.product(*map(range, sizes)))
    open_ = {(i, j, row[i], row[j]) for row in rows for i, j in columns}

    def new(row):
        return [pair for i, j in columns if (pair := (i, j, row[i], row[j])) in open_]

    while open_:
        best = max(rows, key=lambda row: len(new(row)))  # the first of those that are equal
        open_.difference_update(new(best))
        yield best


def every_pair(**values):
    """Parametrises a test so that each pair of values of two arguments stands in some case.

    A law that fails for one value, or for two together, fails in some case; the whole product says
    no more unless three values must meet.

    Args:
        values: the values of each argument; of a mapping, its keys name the cases.
    """
    columns = [
        list(given.items()) if isinstance(given, dict) else [(named(one), one) for one in given]
        for given in values.values()
    ]
    cases = [
        [column[k] for column, k in zip(columns, row, strict=True)]
        for row in covering([len(column) for column in columns])
    ]
    return pytest.mark.parametrize(
        list(values),
        [
            pytest.param(*(value for _, value in case), id="-".join(str(name) for name, _ in case))
            for case in cases
        ],
    )


def named(value):
    """A short text for a value."""
    return getattr(value, "__name__", None) or str(value)
