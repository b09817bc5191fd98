"""The same models on a Dask cluster, and from disk on one machine.

Both cut the target into blocks of rows and blocks of columns and solve one block at a time with
the kernels of the fit in memory. :class:`DiskCompleter` needs pyarrow, :class:`DaskCompleter` the
extra ``dask``.
"""

from unseen.distributed.dask_completer import DaskCompleter
from unseen.distributed.disk import DiskCompleter
from unseen.distributed.learners import fit_learners
from unseen.distributed.sizing import MemoryNeed, cluster_memory, local_memory

__all__ = ["DaskCompleter", "DiskCompleter", "MemoryNeed", "cluster_memory", "fit_learners", "local_memory"]
