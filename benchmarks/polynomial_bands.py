"""How far polynomial bands are from exact ones: leakage, and error on white noise, by order.

    NLSF_DATA=... python benchmarks/polynomial_bands.py          measure what is missing
    NLSF_DATA=... python benchmarks/polynomial_bands.py --table  print the table of the rows at hand

Operator N with self loops, dyadic bands r = 0.5, S = 6, on Cora and Pubmed. The error is the
distance of all projections of white noise from the exact ones, relative to the noise.

The exact projections need all eigenvectors of half the spectrum. Nodes with the same neighbours
(6,704 of Pubmed's 19,717 have a twin before them, mostly leaves of one node) make that cheaper: the
differences of twins are eigenvectors with a known value, and what is left is a smaller graph.
"""

import argparse
import json
from pathlib import Path

ROWS = Path(__file__).parent / "results" / "polynomial_bands.jsonl"
SETS = ("Cora", "Pubmed")
ORDERS = (10, 16, 32, 64, 128, 200)
LARGE = 5_000  # nodes from which on single precision must do: 7 digits of errors of a tenth


def bands():
    from nlsf.spectral import DyadicBands

    return DyadicBands(r=0.5, S=6)


def twins(A):
    """The class of each node (N,), where nodes with equal rows of A (N, N) are one, from 0 on."""
    import numpy as np

    seen = {}
    rows = np.split(A.indices, A.indptr[1:-1])
    return np.array([seen.setdefault(row.tobytes(), len(seen)) for row in rows])


def exact_projections(N, x, edges):
    r"""The projections of x (N, d) on the bands between ``edges``, (B, N, d).

    With Q (N, n) the normalised indicators of classes of twins, :math:`Q^T N Q` has the eigenvalues
    of N whose vectors are constant on classes. All other vectors sum to zero on every class, and N
    multiplies them by its diagonal: twins have no edge between them.

    Args:
        N: the operator with self loops, CSR without weights, so that twins have one degree.
        x: the signal.
        edges: e_0 < e_1 < ...; the last band takes all that is above e_{B-1}.
    """
    import numpy as np
    from scipy import linalg, sparse

    n = N.shape[0]
    alone = sparse.csr_array(N - sparse.diags_array(N.diagonal()))
    alone.eliminate_zeros()
    alone.sort_indices()
    group = twins(alone)
    size = np.bincount(group)
    Q = sparse.csr_array((1 / np.sqrt(size[group]), (np.arange(n), group)), shape=(n, len(size)))
    small = (Q.T @ N @ Q).toarray().astype(x.dtype, copy=False)
    values, vectors = linalg.eigh(
        small, subset_by_value=(-np.inf, float(edges[-2])), overwrite_a=True, check_finite=False
    )
    constant, known = Q.T @ x, N.diagonal()
    different = x - Q @ constant
    parts = []
    for low, high in zip([-np.inf, *edges[1:-2]], edges[1:-1], strict=True):
        mine = vectors[:, (values > low) & (values <= high)]
        inside = ((known > low) & (known <= high))[:, None]
        parts.append(Q @ (mine @ (mine.T @ constant)) + np.where(inside, different, 0))
    return np.stack([*parts, x - sum(parts)])


def measure(name):
    """The rows of one set."""
    import numpy as np
    import torch

    from nlsf.data import load
    from nlsf.spectral import PolynomialBands, PolynomialProjector, laplacian
    from nlsf.spectral.chebyshev import ScaledOperator

    graph = load(name).graphs[0]
    shift = laplacian(graph.edge_index, normalization="sym", self_loops=True)
    noise = torch.Generator().manual_seed(0)
    x = torch.randn(shift.num_nodes, 8, dtype=torch.float64, generator=noise)
    edges = bands().edges(ScaledOperator.of(shift).bandwidth).numpy()
    precision = np.float32 if shift.num_nodes > LARGE else np.float64
    wanted = exact_projections(shift.matrix, x.numpy().astype(precision), edges)
    for order in ORDERS:
        soft = PolynomialProjector(shift, PolynomialBands(bands(), order=order), complement=False)
        found = torch.stack(list(soft.projections(x))).numpy()
        yield {
            "set": name, "nodes": shift.num_nodes, "order": order,
            "leakage": float(soft.leakage.sum()),
            "error": float(np.linalg.norm(found - wanted) / np.linalg.norm(x.numpy())),
        }  # fmt: skip


def read():
    return [json.loads(line) for line in ROWS.read_text().splitlines()] if ROWS.exists() else []


def table():
    """The rows as Markdown."""
    rows = {(row["set"], row["order"]): row for row in read()}
    lines = ["| order | " + " | ".join(map(str, ORDERS)) + " |", "|---" * (len(ORDERS) + 1) + "|"]
    for name in SETS:
        if (name, ORDERS[0]) in rows:
            for what, digits in (("leakage", 3), ("error", 2)):
                cells = [f"{rows[name, order][what]:.{digits}f}" for order in ORDERS]
                lines.append(f"| {name}, {what} | " + " | ".join(cells) + " |")
    return "\n".join(lines)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--table", action="store_true")
    if not parser.parse_args().table:
        ROWS.parent.mkdir(exist_ok=True)
        for name in SETS:
            if any(row["set"] == name for row in read()):
                continue
            for row in list(measure(name)):
                with ROWS.open("a") as file:
                    file.write(json.dumps(row) + "\n")
    print(table())


if __name__ == "__main__":
    main()
