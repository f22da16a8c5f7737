"""Cut norms are right, the theorem holds, and a worse approximation is noticed."""

from itertools import product

import numpy as np
import pytest

from nlsf.errors import ConfigError
from nlsf.lab.cut_norm import CutNormSettings, cut_norm, cut_norm_bounds, leading, run

QUICK = {"nodes": (40,), "J": (4, 32)}


def symmetric(n, seed):
    M = np.random.default_rng(seed).normal(size=(n, n))
    return (M + M.T) / 2


@pytest.mark.parametrize("seed", range(2))
def test_the_claim_holds(seed):
    finding = run(CutNormSettings(**QUICK, seed=seed))
    assert finding.holds
    # alpha / sqrt(m + 1) bounds the cut norm for every m.
    assert max(case["direct"] for case in finding.data["cases"]) <= 1
    assert finding.data["exact"]["lower_max"] <= 1 + 1e-9
    assert finding.data["exact"]["upper_min"] >= 1 - 1e-9


@pytest.mark.parametrize("seed", range(2))
def test_the_cut_norm_is_the_largest_over_all_pairs_of_sets(seed):
    M = symmetric(5, seed)
    sets = [np.array(bits, dtype=float) for bits in product((0, 1), repeat=5)]
    expected = max(abs(S @ M @ T) for S in sets for T in sets) / 25
    assert cut_norm(M) == pytest.approx(expected)
    lower, upper = cut_norm_bounds(M)
    assert lower <= expected + 1e-12 <= upper + 1e-9


def test_known_cut_norms():
    assert cut_norm(np.ones((6, 6))) == pytest.approx(1.0)
    assert cut_norm_bounds(np.ones((30, 30))) == pytest.approx((1.0, 1.0))
    assert cut_norm(np.diag([1.0, -1.0])) == pytest.approx(0.25)


def test_the_leading_part_is_the_best_of_its_rank():
    M = symmetric(20, 0)
    values = np.sort(np.abs(np.linalg.eigvalsh(M)))[::-1]
    rest = M - leading(M, 4)
    assert np.linalg.norm(rest, 2) == pytest.approx(values[4])
    assert np.linalg.norm(rest) == pytest.approx(np.linalg.norm(values[4:]))


def trailing(M, m):
    """The eigenvectors of the smallest magnitude."""
    return M - leading(M, len(M) - m)


@pytest.mark.parametrize("broken", [trailing, lambda M, m: 0 * M, lambda M, m: 3 * leading(M, m)])
def test_a_worse_approximation_is_noticed(broken):
    finding = run(CutNormSettings(**QUICK), broken)
    assert not finding.holds


def test_the_sparse_bound_is_the_same_bound_in_other_units():
    sparse = run(CutNormSettings(**QUICK)).data["sparse"]
    assert sparse["matrix"] == pytest.approx(2.0), "each edge counts twice"
    assert sparse["rest"] < sparse["bound"] == pytest.approx(1.5 * 1600 / sparse["E"] / 4)


def test_graphs_of_data_sets_are_added_unless_they_are_large():
    with pytest.raises(ConfigError, match="digits has 1,797"):
        run(CutNormSettings(**QUICK, data=("digits",)))
    names = {case["matrix"] for case in run(CutNormSettings(**QUICK)).data["cases"]}
    assert "digits-grid" in names


@pytest.mark.data
def test_real_data_from_a_root(root):
    assert run(CutNormSettings(**QUICK, data=("MUTAG", "ENZYMES"), root=str(root))).holds


@pytest.mark.parametrize("change", [{"R": (3,)}, {"nodes": (20,)}, {"J": (0,)}])
def test_wrong_settings_are_named(change):
    with pytest.raises(ConfigError, match=next(iter(change))):
        CutNormSettings(**change)
