import itertools

import pytest

from pairs import covering, every_pair


@pytest.mark.parametrize(
    ("sizes", "most"), [((2, 2, 2), 6), ((3, 4), 12), ((2, 3, 2, 3, 3, 2), 15), ((4, 1, 5), 20)]
)
def test_each_pair_stands_in_some_row(sizes, most):
    rows = list(covering(sizes))
    assert len(rows) <= most
    for i, j in itertools.combinations(range(len(sizes)), 2):
        pairs = set(itertools.product(range(sizes[i]), range(sizes[j])))
        assert {(row[i], row[j]) for row in rows} == pairs


def test_arguments_values_and_names():
    names, cases = every_pair(graph={"ring": 7, "star": 8}, score=["scalar"]).args
    assert names == ["graph", "score"]
    assert [(case.values, case.id) for case in cases] == [
        ((7, "scalar"), "ring-scalar"),
        ((8, "scalar"), "star-scalar"),
    ]
