"""Projections of a signal on all bands, in blocks of channels, and on disk where they are large."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from nlsf.errors import SignalError
from nlsf.spectral.kernels.chebyshev import ScaledOperator
from nlsf.store.files import DAY, remove_leftovers, whole_file

_GROUP = 4
"""Chebyshev terms that are added to the bands in one pass: each pass reads and writes all bands."""

MEMORY = 6 << 30
"""Bytes that a preparation takes at most where nothing else is said."""

_ROWS = 1 << 18
"""Rows that are added to the bands at a time, so that products stay within a BLAS's integers."""


class StreamedProjections:
    r"""All :math:`P_j X` at some nodes, and the Gram matrices :math:`X^* P_j X`, of a fixed signal.

    The channels are processed in blocks, so that no more than ``memory`` bytes of buffers are
    needed. Projections that would take more than half of that are written to ``folder``, one file a
    block, and mapped into memory; a block that is there already is not computed again, so an
    interrupted preparation goes on where it was.

    Args:
        lens: a `PolynomialLens` on one graph.
        x: (N, F), the signal.
        rows: (R,), the nodes.
        memory: bytes; the blocks have at least one channel, whatever this takes.
        folder: for projections that are too large; they stay in memory without one.
        progress: is told which block is being computed.

    Attributes:
        blocks: of each block, (B, R, c).
        grams: (B, F, F).
    """

    def __init__(
        self,
        lens: Any,
        x: Tensor,
        rows: Tensor,
        *,
        memory: int = MEMORY,
        folder: str | os.PathLike[str] | None = None,
        progress: Callable[[str], None] = lambda text: None,
    ) -> None:
        if memory <= 0:
            raise SignalError(f"memory is a positive number of bytes, not {memory!r}.")
        x = lens.fitting(x)
        self.lens, self.x, self.rows = lens, x, rows
        nodes, channels = x.shape
        kept = lens.n_bands * len(rows)
        width = memory // max(x.element_size() * ((_GROUP + 2) * nodes + kept), 1)
        count = -(-channels // max(width, 1))
        width = max(-(-channels // max(count, 1)), 1)  # blocks of nearly equal width
        large = x.element_size() * kept * channels > memory // 2
        self.files = _Files(folder, self._key(width)) if folder is not None and large else None
        starts = range(0, max(channels, 1), width)
        self.blocks: list[Tensor] = []
        grams = []
        for number, start in enumerate(starts):
            progress(f"Projections, block {number + 1} of {len(starts)}")
            block, gram = self._block(number, slice(start, start + width))
            self.blocks.append(block)
            grams.append(gram)
        none = x.new_zeros(lens.n_bands, channels, 0)
        self.grams = torch.cat(grams or [none], dim=2)

    def _block(self, number: int, channels: slice) -> tuple[Tensor, Tensor]:
        if self.files is None:
            return self._computed(channels)
        if not self.files.has(number):
            self.files.write(number, *self._computed(channels))
        return self.files.read(number)

    def _computed(self, channels: slice) -> tuple[Tensor, Tensor]:
        """The projections (B, R, c) of some channels, and their columns (B, F, c) of the Grams."""
        lens, x = self.lens, self.x[:, channels]
        series = lens.series.to(x.dtype)
        known = lens.end
        coefficients = None
        if known is not None:
            coefficients, x = known.split(x)
        # Rows that are all nodes tell the Gram matrices; else the terms must.
        every = len(self.rows) == len(x) and bool((self.rows.diff() == 1).all())
        bands = series[:, 0, None, None] * (x if every else x[self.rows])
        gram = x.new_zeros(lens.n_bands, self.x.shape[1], x.shape[1])
        if not every:
            gram += series[:, 0, None, None] * (self.x.mH @ x)
        for first, terms in _groups(lens.operator, x.contiguous(), series.shape[1]):
            weights = series[:, first : first + len(terms)]
            _add(bands, weights, terms if every else terms[:, self.rows])
            if not every:
                gram += torch.einsum("bk,kfc->bfc", weights, self.x.mH @ terms)
        if known is not None and coefficients is not None:
            vectors = known.vectors[self.rows]
            left = self.x.mH @ known.vectors  # (F, k)
            for j, member in enumerate(known.member.T):
                mine = coefficients * member[:, None]
                bands[j] += vectors @ mine
                gram[j] += left @ mine
        return bands, self.x.mH @ bands if every else gram

    def _key(self, width: int) -> str:
        """A hash of all that the projections depend on."""
        matrix, end = self.lens.operator.matrix, self.lens.end
        digest = hashlib.blake2b(digest_size=16)
        parts = [matrix.crow_indices(), matrix.col_indices(), matrix.values(), self.x, self.rows]
        for part in [*parts, self.lens.series, *([] if end is None else [end.vectors])]:
            array = part.detach().cpu().resolve_conj().contiguous().numpy()
            digest.update(repr((array.shape, array.dtype, width)).encode())
            digest.update(array.data if array.size else b"")
        return digest.hexdigest()


def _groups(operator: ScaledOperator, x: Tensor, count: int) -> Iterator[tuple[int, Tensor]]:
    """The terms T_k x, k = 1 .. count - 1, in groups: the first k and a view (n, N, c).

    The next group is written over it.
    """
    ring = x.new_empty(_GROUP + 2, *x.shape)  # two terms of the group before, and the group
    for first in range(1, count, _GROUP):
        size = min(_GROUP, count - first)
        for slot in range(2, 2 + size):
            if first + slot == 3:
                ring[slot] = operator.apply(x)
            else:
                before = x if first + slot == 4 else ring[slot - 2]
                operator.advance(before, ring[slot - 1], ring[slot])
        yield first, ring[2 : 2 + size]
        if first + size < count:
            ring[:2] = ring[_GROUP:]


def _add(bands: Tensor, weights: Tensor, terms: Tensor) -> None:
    """Adds the sums over k of w_jk T_k to the bands (B, R, c), in one pass over them."""
    to, what, channels = bands.flatten(1), terms.flatten(1), bands.shape[2]
    for start in range(0, bands.shape[1], _ROWS):
        some = slice(start * channels, (start + _ROWS) * channels)
        to[:, some].addmm_(weights, what[:, some])


class _Files:
    """The blocks of one preparation on disk: a pair of files each, whole or absent."""

    def __init__(self, folder: str | os.PathLike[str], key: str) -> None:
        self.folder, self.key = Path(folder).expanduser(), key
        self.folder.mkdir(parents=True, exist_ok=True)
        remove_leftovers(self.folder, age=DAY)

    def _path(self, number: int, what: str) -> Path:
        return self.folder / f"{self.key}-{number:04d}-{what}.npy"

    def has(self, number: int) -> bool:
        return self._path(number, "bands").exists()

    def write(self, number: int, bands: Tensor, gram: Tensor) -> None:
        # The bands last: where they are, their Gram matrices are.
        for what, tensor in (("gram", gram), ("bands", bands)):
            with whole_file(self._path(number, what)) as file:
                np.save(file, tensor.numpy(), allow_pickle=False)

    def read(self, number: int) -> tuple[Tensor, Tensor]:
        gram = np.load(self._path(number, "gram"), allow_pickle=False)
        # Copy on write: a tensor cannot be marked as one that must not be written to.
        bands = np.load(self._path(number, "bands"), mmap_mode="c", allow_pickle=False)
        return torch.from_numpy(bands), torch.from_numpy(gram)
