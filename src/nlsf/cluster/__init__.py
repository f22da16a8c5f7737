"""Past one machine: spectra of many graphs, and projections of one huge graph, on Dask.

| what | call |
|---|---|
| a cluster, running or of this machine's cores | `connect` |
| the spectra of a collection, as `nlsf.spectral.batched_eigh` gives them | `cluster_eigh` |
| the same into the cache on disk, where nobody needs them in memory | `fill_cache` |
| the bands of one huge graph, as `nlsf.spectral.Lens.of` | `BlockLens` |

Needs the extra ``nlsf[cluster]``, also on the workers. docs/scaling.md says when to use which, what
is guaranteed and what it costs.
"""

from nlsf.cluster.block_lens import BlockLens
from nlsf.cluster.collection import cluster_eigh, fill_cache
from nlsf.cluster.connection import connect

__all__ = ["BlockLens", "cluster_eigh", "connect", "fill_cache"]
