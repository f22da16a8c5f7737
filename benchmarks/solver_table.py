"""Eigensolvers on five families of graphs, 3,000 to 200,000 nodes: time, residual, wrong values.

    python benchmarks/solver_table.py                 run what is missing, print the table
    python benchmarks/solver_table.py --only torus    only cases whose name contains "torus"
    python benchmarks/solver_table.py --solvers LOBPCG
    python benchmarks/solver_table.py --table         print the table of the rows at hand

All solvers look for the k smallest eigenpairs of N, to a residual of 1e-10, on one thread, each in
a process of its own that is killed when its time is up. Seconds are those of the processor, so that
other work on the machine has little part in them. A solver whose time was up is not tried again on
larger graphs of the same family.

*Wrong* counts the true k smallest eigenvalues, copies included, that are not among those returned.
What is true is known

- from a formula, for a torus and for disjoint tori;
- from a dense solve, for the other graphs of 3,000 nodes;
- from a count of the eigenvalues below a gap by inertia, for larger geometric graphs: the values
  that were found are all there are;
- otherwise only from agreement of at least two solvers: the smallest value at each place that any
  of them found, since Ritz values err upwards only. A value that all missed would not be seen.
"""

import argparse
import itertools
import json
import os
import resource
import signal
import subprocess
import sys
import time
from pathlib import Path

from eigensolve import missed, solve

HERE = Path(__file__).parent
ROWS = HERE / "results" / "solver_table.jsonl"
SOLVERS = ("partial_eigh", "eigsh SA", "eigsh shift-invert", "LOBPCG")
FAMILIES = ("torus", "disjoint tori", "geometric", "block model", "preferential")
SIZES = {3_000: (64, 30), 20_000: (64, 30), 200_000: (32, 300)}  # k, and seconds a solver may take
ALONE = "one solver"  # what is known where a single one has run, without a formula
MEMORY = 10  # GB; a factorisation of an expander would take all there is
SIDES = {3_000: (50, 60), 20_000: (100, 200), 200_000: (400, 500)}
COPIES = {3_000: ((20, 50), 3), 20_000: ((20, 50), 20), 200_000: ((100, 200), 10)}  # equal tori


def build(family, n):
    """The graph of a case."""
    from torch_geometric.data import Batch

    from nlsf.data import block_model, preferential_attachment, random_geometric, torus

    if family == "torus":
        return torus(*SIDES[n])
    if family == "disjoint tori":
        sides, copies = COPIES[n]
        return Batch.from_data_list([torus(*sides)] * copies)
    if family == "geometric":
        return random_geometric(n, 16.0)
    return {"block model": block_model, "preferential": preferential_attachment}[family](n)


def torus_values(rows, columns):
    """All eigenvalues of N of a torus, ascending: 1 - (cos(2 pi i / rows) + ...) / 2."""
    import numpy as np

    one, other = (np.cos(2 * np.pi * np.arange(side) / side) for side in (rows, columns))
    return np.sort(1 - (one[:, None] + other) / 2, axis=None)


def reference(family, n, k, found, matrix):
    """The k smallest eigenvalues, and how they are known.

    Args:
        family: of graphs.
        n: nodes.
        k: eigenvalues wanted.
        found: what the solvers returned, lists of k values each.
        matrix: a function without arguments that builds N.
    """
    if family == "torus":
        return torus_values(*SIDES[n])[:k].tolist(), "formula"
    if family == "disjoint tori":
        sides, copies = COPIES[n]
        return torus_values(*sides).repeat(copies)[:k].tolist(), "formula"
    if n <= 3_000:
        import scipy.linalg

        return scipy.linalg.eigvalsh(matrix().toarray())[:k].tolist(), "dense"
    lowest = [min(column) for column in zip(*found, strict=True)]
    if family == "geometric" and complete(matrix(), lowest):
        return lowest, "count"
    return lowest, "agreement" if len(found) > 1 else ALONE


def complete(A, lowest):
    """Whether A has as many eigenvalues below a gap near the end of ``lowest`` as stand there.

    Pivots of A - c I, factorised without pivoting for stability, have the signs of its eigenvalues.
    """
    import numpy as np
    from scipy import sparse
    from scipy.sparse.linalg import splu

    gaps = np.diff(lowest)
    below = len(lowest) - 8 + int(np.argmax(gaps[len(lowest) - 9 :]))
    cut = (lowest[below - 1] + lowest[below]) / 2
    factor = splu(
        (A - cut * sparse.eye_array(A.shape[0])).tocsc(),
        permc_spec="MMD_AT_PLUS_A", diag_pivot_thresh=0.0, options={"SymmetricMode": True},
    )  # fmt: skip
    symmetric = np.array_equal(factor.perm_r, factor.perm_c)
    return symmetric and int((factor.U.diagonal() < 0).sum()) == below


def work(family, n, solver):
    """Solves one case with one solver and prints a row."""
    import numpy as np

    from nlsf.spectral import laplacian

    k, limit = SIZES[n]
    shift = laplacian(build(family, n), normalization="sym")
    A = shift.matrix
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY << 30, MEMORY << 30))
    start = time.process_time()
    resource.setrlimit(resource.RLIMIT_CPU, (int(start + limit) + 1,) * 2)
    values, vectors = solve(shift, solver, k)
    seconds = time.process_time() - start
    order = np.argsort(values)[:k]
    values, vectors = values[order], vectors[:, order]
    residual = np.linalg.norm(A @ vectors - vectors * values, axis=0).max()
    edges = int((A.nnz - np.count_nonzero(A.diagonal())) // 2)
    row = {"edges": edges, "seconds": seconds, "residual": float(residual)}
    print(json.dumps(row | {"values": values.tolist()}))


def measure(family, n, solver):
    """Runs one measurement in a process of its own and appends its row."""
    limit = SIZES[n][1]
    row = {"family": family, "nodes": n, "k": SIZES[n][0], "solver": solver, "limit": limit}
    command = [sys.executable, __file__, "--work", family, str(n), solver]
    one_thread = os.environ | {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
    done = subprocess.run(command, capture_output=True, text=True, env=one_thread)
    if done.returncode == 0:
        row |= json.loads(done.stdout.splitlines()[-1])
    elif done.returncode in (-signal.SIGKILL, -signal.SIGXCPU):
        row["failed"] = f"over {limit} s"
    else:
        error = (done.stderr.strip().splitlines() or ["killed"])[-1]
        row["failed"] = f"over {MEMORY} GB" if "emory" in error else error[:300]
    append(row)


def append(row):
    with ROWS.open("a") as file:
        file.write(json.dumps(row) + "\n")
    shown = row.get("failed") or row.get("known") or "{:.2f} s".format(row["seconds"])
    print(f"{row['family']:15} {row['nodes']:8,} {row['solver']:20} {shown}", flush=True)


def read():
    """The rows at hand by family, nodes and solver."""
    lines = ROWS.read_text().splitlines() if ROWS.exists() else []
    rows = map(json.loads, lines)
    return {(row["family"], row["nodes"], row["solver"]): row for row in rows}


def hopeless(family, n, solver, rows):
    """The largest smaller graph of the family on which the solver failed, or None."""
    tried = [m for m in SIZES if m < n and "failed" in rows.get((family, m, solver), {})]
    return max(tried, default=None)


def add_reference(family, n, rows):
    """Appends what is true, from the solvers that ran; again where one has run since."""
    from nlsf.spectral import laplacian

    solved = [rows[family, n, s] for s in SOLVERS if "values" in rows.get((family, n, s), {})]
    if len(solved) in (0, rows.get((family, n, "reference"), {}).get("solvers")):
        return
    values, known = reference(
        family, n, SIZES[n][0], [row["values"] for row in solved],
        lambda: laplacian(build(family, n), normalization="sym").matrix,
    )  # fmt: skip
    row = {"family": family, "nodes": n, "solver": "reference", "known": known}
    append(row | {"solvers": len(solved), "values": values})


def table():
    """The rows as Markdown."""
    rows = read()
    head = ["graph", "nodes", "edges", "k", "known from"]
    head += [f"{s}: {c}" for s in SOLVERS for c in ("s", "residual", "wrong")]
    lines = ["| " + " | ".join(head) + " |", "|" + "---|" * len(head)]
    for family, n in ((f, n) for f in FAMILIES for n in SIZES):
        if (true := rows.get((family, n, "reference"))) is None:
            continue
        solved = [rows[family, n, s] for s in SOLVERS if "values" in rows.get((family, n, s), {})]
        cells = [family, f"{n:,}", f"{solved[0]['edges']:,}", str(SIZES[n][0]), true["known"]]
        for solver in SOLVERS:
            row = rows.get((family, n, solver))
            if row is None:
                smaller = hopeless(family, n, solver, rows)
                cells += [f"failed at {smaller:,}" if smaller else "not run", "", ""]
            elif "failed" in row:
                short = row["failed"] if row["failed"].startswith("over") else "failed"
                cells += [short, "", ""]
            else:
                wrong = missed(row, true["values"])
                cells += [f"{row['seconds']:.2f}", f"{row['residual']:.0e}"]
                # Compared with itself alone, nothing is wrong.
                alone = true["known"] == ALONE
                cells.append("?" if alone else f"**{wrong}**" if wrong else "0")
        lines.append("| " + " | ".join(cells) + " |")
    return "\n".join(lines)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", default="")
    parser.add_argument("--solvers", nargs="+", default=SOLVERS, choices=SOLVERS)
    parser.add_argument("--table", action="store_true")
    parser.add_argument("--work", nargs=3, metavar=("FAMILY", "NODES", "SOLVER"))
    arguments = parser.parse_args()
    if arguments.work:
        family, n, solver = arguments.work
        return work(family, int(n), solver)
    if not arguments.table:
        for n in SIZES:
            families = [f for f in FAMILIES if arguments.only.casefold() in f"{f} {n}".casefold()]
            for solver, family in itertools.product(arguments.solvers, families):
                rows = read()
                if (family, n, solver) not in rows and not hopeless(family, n, solver, rows):
                    measure(family, n, solver)
            for family in families:
                add_reference(family, n, read())
    print(table())


if __name__ == "__main__":
    main()
