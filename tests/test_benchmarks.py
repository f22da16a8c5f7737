"""Benchmarks: tables in the documentation are those of their rows, and references are true."""

import argparse
import math
from dataclasses import replace
from functools import partial
from itertools import product
from pathlib import Path

import numpy as np
import pytest
import torch

import batches
import cost_model
import import_cost
import polynomial_bands
import scaling
import solver_table
import train_epoch
from nlsf.cluster import block_rows as blocks
from nlsf.data import block_model, preferential_attachment, random_geometric
from nlsf.spectral import laplacian
from nlsf.spectral.kernels.chebyshev import ScaledOperator
from nlsf.testing.graphs import complete, star, torus

ROOT = Path(__file__).parents[1]

MACHINE = cost_model.Machine.number(1, 2)
PROBLEM = cost_model.Problem(1e6, 8e6)


@pytest.mark.parametrize(
    ("page", "table"),
    [
        ("eigensolve", solver_table.table),
        ("decisions", polynomial_bands.table),
        ("decisions", import_cost.table),
        ("scaling", scaling.table),
        ("scaling", batches.table),
        ("scaling", partial(cost_model.comparison, 1)),
        ("scaling", partial(cost_model.comparison, 2)),
        ("scaling", cost_model.one_machine),
        ("scaling", cost_model.cluster),
    ],
)
def test_tables_are_made_from_rows(page, table):
    assert len(table().splitlines()) > 2
    assert table() in (ROOT / "docs" / f"{page}.md").read_text()


def test_names_of_data_sets_are_those_of_the_command_line():
    assert train_epoch.data_set("squirrel") == "Squirrel"
    for name in ("squirel", "MUTAG"):
        with pytest.raises(argparse.ArgumentTypeError):
            train_epoch.data_set(name)


def test_ours_has_no_wrong_eigenvalue_in_the_table_of_solvers():
    rows = solver_table.read()
    alone = solver_table.ALONE
    known = [c[:2] for c, row in rows.items() if c[2] == "reference" and row["known"] != alone]
    assert len(known) >= len(solver_table.FAMILIES)
    for family, n in known:
        true, ours = (rows[family, n, solver] for solver in ("reference", "partial_eigh"))
        assert solver_table.missed(ours, true["values"]) == 0


class TestReferences:
    @pytest.mark.parametrize(("rows", "columns"), [(3, 3), (4, 7), (10, 10)])
    def test_the_formula_of_a_torus(self, rows, columns):
        matrix = laplacian(torus(rows, columns), normalization="sym").matrix
        values = np.linalg.eigvalsh(matrix.toarray())
        np.testing.assert_allclose(solver_table.torus_values(rows, columns), values, atol=1e-12)

    @pytest.mark.parametrize("missing", [0, 1, 30])
    def test_a_count_sees_what_is_missing(self, missing):
        matrix = laplacian(random_geometric(500, 12.0), normalization="sym").matrix
        values = np.linalg.eigvalsh(matrix.toarray())
        found = np.delete(values, slice(5, 5 + missing))[:40]
        assert solver_table.complete(matrix, found.tolist()) == (missing == 0)

    def test_a_solver_that_failed_is_not_tried_on_larger_graphs(self):
        rows = {("torus", 3_000, "LOBPCG"): {"failed": "over 30 s"}}
        assert solver_table.hopeless("torus", 20_000, "LOBPCG", rows) == 3_000
        assert solver_table.hopeless("torus", 3_000, "LOBPCG", rows) is None
        assert solver_table.hopeless("geometric", 20_000, "LOBPCG", rows) is None

    @pytest.mark.parametrize("order", [60, 600])
    @pytest.mark.parametrize(
        "graph",
        [star(40), torus(5, 8), complete(12), preferential_attachment(150, 1), block_model(80)],
        ids=["star", "torus", "complete", "tree", "block model"],
    )
    def test_sharp_projections_are_as_near_as_they_say(self, graph, order):
        shift = laplacian(graph, normalization="sym", self_loops=True)
        x = torch.randn(shift.num_nodes, 3, dtype=torch.float64)
        exact, none = polynomial_bands.exact_projections(shift, x)
        sharp, bound = polynomial_bands.sharp_projections(shift, x, order)
        assert none == 0.0
        assert (sharp - exact).norm() / x.norm() <= bound + 1e-6


class TestCosts:
    @pytest.mark.parametrize(("machine", "factor"), [(1, 2.0), (2, 2.1)])
    def test_every_prediction_is_within_a_factor_of_about_two(self, machine, factor):
        lines = list(cost_model.compared(machine))
        assert {"preparation", "epoch", "products alone"} <= {line[0] for line in lines}
        for what, case, predicted, measured in lines:
            assert 1 / factor <= predicted / measured <= factor, (what, case)

    @pytest.mark.parametrize("threads", [1, 4])
    def test_threads_divide_a_product(self, threads):
        one, many = (replace(MACHINE, threads=t) for t in (1, threads))
        whole = cost_model.product(one, 1e6, 1e7, 64)
        assert math.isclose(whole / threads, cost_model.product(many, 1e6, 1e7, 64))

    @pytest.mark.parametrize(("columns", "number"), [*product((1, 10, 64), (4, 8))])
    def test_a_product_grows_with_each_of_its_sizes(self, columns, number):
        cost = cost_model.product(MACHINE, 1e5, 1e6, columns, number)
        assert cost > 0
        assert cost_model.product(MACHINE, 1e5, 2e6, columns, number) > cost
        assert cost_model.product(MACHINE, 1e5, 1e6, 2 * columns, number) > cost
        assert cost_model.product(MACHINE, 2e5, 1e6, columns, number) > cost

    def test_ten_times_the_graph_takes_about_ten_times_as_long(self):
        larger = replace(PROBLEM, nodes=10 * PROBLEM.nodes, edges=10 * PROBLEM.edges)
        for what in (cost_model.products, cost_model.epoch, lambda _, p: cost_model.memory(p)):
            assert 5 < what(MACHINE, larger) / what(MACHINE, PROBLEM) < 15

    def test_one_block_is_sent_nothing(self):
        alone = cost_model.block_rows(MACHINE, PROBLEM, 1)
        assert alone["received"] == alone["waits"] == 0

    @pytest.mark.parametrize("machines", [2, 3, 16])
    def test_a_mesh_is_sent_no_more_than_an_expander(self, machines):
        mesh, expander = (
            cost_model.block_rows(MACHINE, PROBLEM, machines, m) for m in (True, False)
        )
        assert mesh["received"] <= expander["received"]
        assert mesh["work"] == expander["work"]

    @pytest.mark.parametrize(
        ("graph", "mesh"), [(complete(24), False), (torus(24, 3), True)], ids=["complete", "torus"]
    )
    def test_bytes_are_those_that_blocks_ask_for(self, graph, mesh):
        operator = ScaledOperator.of(laplacian(graph))
        n, count, columns = operator.num_nodes, 4, 5
        rows = blocks.block_rows(operator, count)
        asked = sum(len(rows[q].rows) for p, row in enumerate(rows) for q in row.sources if q != p)
        problem = cost_model.Problem(n, 1, columns, number=8)
        received = cost_model.block_rows(MACHINE, problem, count, mesh)["received"]
        assert count * received == asked * columns * 8
