"""Time, residual, peak memory and missed eigenvalues of `partial_eigh` against SciPy's eigsh.

    python benchmarks/eigensolve.py                 run what is missing, print the table
    python benchmarks/eigensolve.py --only torus    only cases whose name contains "torus"
    python benchmarks/eigensolve.py --others        further solvers, on the cases of 10^4 nodes
    python benchmarks/eigensolve.py --table         print the tables of the rows at hand

Every measurement is a process of its own, so that peak memory is its own, and runs on one thread;
the solvers of a case are interleaved and repeated, the table shows medians. All solve for the
smallest eigenpairs of the normalised Laplacian, to a comparable residual. The true
eigenvalues are the smallest that any solver found at each place: Ritz values only err upwards.
"""

import argparse
import json
import os
import resource
import statistics
import subprocess
import sys
import time
from collections import defaultdict
from pathlib import Path

HERE = Path(__file__).parent
ROWS = HERE / "results" / "eigensolve.jsonl"
RESIDUAL = 1e-10
MEMORY = 10  # GB; a factorisation of an expander would take all there is
SOLVERS = ("partial_eigh", "eigsh SA", "eigsh shift-invert")
OTHERS = ("eigsh LA of 2I - N", "LOBPCG", "block, Chebyshev filter", "block, solve filter")

# name: (how to build it, k, repetitions, seconds after which a peer is stopped)
CASES = {
    "Cora": ("load('cora').graphs[0]", 128, 3, 120),
    "Citeseer": ("load('citeseer').graphs[0]", 512, 3, 120),
    "Pubmed": ("load('pubmed').graphs[0]", 64, 3, 180),
    "Squirrel": ("load('squirrel').graphs[0]", 64, 3, 120),
    "Cornell5": ("load('cornell5').graphs[0]", 64, 3, 180),
    "torus 10^4": ("torus(100, 100)", 64, 3, 120),
    "geometric 10^4": ("random_geometric(10_000)", 64, 3, 120),
    "block model 10^4": ("block_model(10_000)", 64, 3, 120),
    "preferential 10^4": ("preferential_attachment(10_000)", 64, 3, 120),
    "torus 10^5": ("torus(316, 316)", 32, 1, 150),
    "geometric 10^5": ("random_geometric(100_000, 16.0)", 32, 1, 150),
    "block model 10^5": ("block_model(100_000)", 32, 1, 150),
    "preferential 10^5": ("preferential_attachment(100_000)", 32, 1, 150),
    "geometric 10^6": ("random_geometric(1_000_000, 16.0)", 8, 1, 400),
}


def solve(shift, solver, k):
    """Eigenvalues and vectors, at least k, by one of the solvers."""
    import numpy as np
    from scipy import sparse
    from scipy.sparse.linalg import eigsh, lobpcg

    from nlsf.spectral import partial_eigh
    from nlsf.spectral.eigen.lowest import lowest_eigenpairs

    A, n = shift.matrix, shift.num_nodes
    rng = np.random.default_rng(0)
    v0 = rng.standard_normal(n)
    if solver == "partial_eigh":
        spectrum = partial_eigh(shift, k=k, tol=RESIDUAL)
        return spectrum.values.numpy(), spectrum.vectors.numpy()
    if solver == "eigsh SA":
        return eigsh(A, k, v0=v0, tol=RESIDUAL, which="SA")
    if solver == "eigsh shift-invert":
        return eigsh(A, k, v0=v0, tol=RESIDUAL, sigma=-0.01)
    if solver == "eigsh LA of 2I - N":
        flipped = (2 * sparse.eye_array(n, format="csr") - A).tocsr()
        values, vectors = eigsh(flipped, k, v0=v0, tol=RESIDUAL, which="LA")
        return 2 - values, vectors
    if solver == "LOBPCG":
        start = rng.standard_normal((n, k))
        return lobpcg(A, start, tol=RESIDUAL, maxiter=2000, largest=False)
    found = lowest_eigenpairs(
        A, count=k, bounds=shift.bounds, gap_tol=1e-9, tol=2 * RESIDUAL, max_pairs=n // 4,
        _filter="solve" if "solve" in solver else "chebyshev",
    )  # fmt: skip
    return found.values, found.vectors


def work(case, solver):
    """Solves one case with one solver and prints a row."""
    import numpy as np

    from nlsf import data
    from nlsf.spectral import laplacian

    resource.setrlimit(resource.RLIMIT_AS, (MEMORY << 30, MEMORY << 30))
    recipe, k, _, _ = CASES[case]
    shift = laplacian(
        eval(recipe, {name: getattr(data, name) for name in dir(data)}), normalization="sym"
    )
    A, n = shift.matrix, shift.num_nodes
    before = _resident()
    start = time.perf_counter()
    values, vectors = solve(shift, solver, k)
    seconds = time.perf_counter() - start
    order = np.argsort(values)[:k]
    values, vectors = values[order], vectors[:, order]
    residual = np.linalg.norm(A @ vectors - vectors * values, axis=0).max()
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    edges = int((A.nnz - np.count_nonzero(A.diagonal())) // 2)
    row = {
        "n": n, "edges": edges, "k": k, "seconds": seconds, "residual": float(residual),
        "peak": max(peak - before, 0), "values": values.tolist(),
    }  # fmt: skip
    print(json.dumps(row))


def _resident():
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE")


def measure(case, solver, repetition):
    """Runs one measurement in a process of its own and appends its row."""
    limit = CASES[case][3]
    row = {"case": case, "solver": solver, "repetition": repetition, "limit": limit}
    command = [sys.executable, __file__, "--work", case, solver]
    one_thread = os.environ | {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
    try:
        allowed = limit + 20 if solver != SOLVERS[0] else None  # 20 s to load the graph
        done = subprocess.run(
            command, capture_output=True, text=True, timeout=allowed, env=one_thread
        )
        if done.returncode == 0:
            row |= json.loads(done.stdout.splitlines()[-1])
        else:
            error = (done.stderr.strip().splitlines() or ["killed"])[-1]
            row["failed"] = f"over {MEMORY} GB" if "emory" in error else error[:300]
    except subprocess.TimeoutExpired:
        row["failed"] = f"over {limit} s"
    with ROWS.open("a") as file:
        file.write(json.dumps(row) + "\n")
    result = row.get("failed") or "{:.2f} s".format(row["seconds"])
    print(f"{case:20} {solver:20} {result}", flush=True)


def read():
    """The rows at hand by case and solver."""
    rows = defaultdict(lambda: defaultdict(list))
    if ROWS.exists():
        for line in ROWS.read_text().splitlines():
            row = json.loads(line)
            rows[row["case"]][row["solver"]].append(row)
    return rows


def table():
    """Ours against plain eigsh, as Markdown."""
    head = ["graph", "nodes", "edges", "k"]
    head += [f"{s}: {c}" for s in SOLVERS for c in ("s", "MB", "residual", "missed")]
    lines = ["| " + " | ".join([*head, "ratio to SA", "to shift-invert"]) + " |"]
    lines.append("|" + "---|" * (len(head) + 2))
    rows_of = read()
    for case in (c for c in CASES if c in rows_of):
        solvers = rows_of[case]
        good = {s: [r for r in rows if "values" in r] for s, rows in solvers.items()}
        found = [r for rows in good.values() for r in rows]
        if not found:
            continue
        lowest = [min(column) for column in zip(*(r["values"] for r in found), strict=True)]
        cells = [case, f"{found[0]['n']:,}", f"{found[0]['edges']:,}", str(found[0]["k"])]
        seconds = {}
        for solver in SOLVERS:
            if not good.get(solver):
                why = solvers[solver][0]["failed"] if solvers.get(solver) else "not run"
                cells += [why if why.startswith(("over", "not")) else "failed", "", "", ""]
                continue
            rows = good[solver]
            seconds[solver] = statistics.median(r["seconds"] for r in rows)
            lost = max(missed(r, lowest) for r in rows)
            cells += [
                f"{seconds[solver]:.2f}",
                f"{statistics.median(r['peak'] for r in rows) / 1e6:.0f}",
                f"{max(r['residual'] for r in rows):.0e}",
                f"**{lost}**" if lost else "0",
            ]
        for solver in SOLVERS[1:]:
            limit = CASES[case][3]
            if solver in seconds:
                cells.append(f"{seconds[solver] / seconds['partial_eigh']:.1f} x")
            elif solvers.get(solver):
                cells.append(f"> {limit / seconds['partial_eigh']:.0f} x")
            else:
                cells.append("")
        lines.append("| " + " | ".join(cells) + " |")
    return "\n".join(lines)


def compared():
    """Seconds (and missed eigenvalues) of every solver on the cases that all of them ran on."""
    solvers = (*SOLVERS, *OTHERS)
    lines = ["| graph, k | " + " | ".join(solvers) + " |", "|---" * (len(solvers) + 1) + "|"]
    for case, rows in read().items():
        if not any(s in rows for s in OTHERS):
            continue
        found = [r for s in solvers for r in rows.get(s, ()) if "values" in r]
        lowest = [min(column) for column in zip(*(r["values"] for r in found), strict=True)]
        cells = [f"{case}, {found[0]['k']}"]
        for solver in solvers:
            good = [r for r in rows.get(solver, ()) if "values" in r]
            if not good:
                cells.append(rows[solver][0]["failed"] if rows.get(solver) else "")
                continue
            lost = max(missed(r, lowest) for r in good)
            seconds = statistics.median(r["seconds"] for r in good)
            cells.append(f"{seconds:.2f} s" + (f", **{lost} missed**" if lost else ""))
        lines.append("| " + " | ".join(cells) + " |")
    return "\n".join(lines)


def missed(row, lowest):
    """How many of the true lowest eigenvalues a solver did not find, copies counted."""
    left = 0
    found = iter([*row["values"], float("inf")])
    value = next(found)
    for true in lowest:
        while value < true - 1e-7:
            value = next(found)
        if value <= true + 1e-7:
            value = next(found)
        else:
            left += 1
    return left


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", default="")
    parser.add_argument("--table", action="store_true")
    parser.add_argument("--others", action="store_true", help="further solvers, on 10^4 nodes")
    parser.add_argument("--work", nargs=2, metavar=("CASE", "SOLVER"))
    arguments = parser.parse_args()
    if arguments.work:
        work(*arguments.work)
        return
    ROWS.parent.mkdir(exist_ok=True)
    if not arguments.table:
        done = read()
        solvers = OTHERS if arguments.others else SOLVERS
        only = "10^4" if arguments.others else arguments.only
        for case, (_, _, wanted, _) in CASES.items():
            repetitions = 1 if arguments.others else wanted
            for repetition in range(repetitions if only.casefold() in case.casefold() else 0):
                for solver in solvers:
                    rows = done[case][solver]
                    # One failure is enough: a time-out is not repeated.
                    if len(rows) <= repetition and not any("failed" in r for r in rows):
                        measure(case, solver, repetition)
                        done = read()
    print(table(), compared(), sep="\n\n")


if __name__ == "__main__":
    main()
