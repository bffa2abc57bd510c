"""One function over many items in several processes: of this machine, or of a Dask cluster.

Results come as they are ready, with the item's position. A process that dies (out of memory, killed) costs
its unfinished items another try; an item that keeps killing its process is named in the error.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import TYPE_CHECKING, Protocol, TypeVar

from profharness.errors import Unavailable, UsageError

if TYPE_CHECKING:
    from distributed import Client

ItemT = TypeVar("ItemT")
ResultT = TypeVar("ResultT")
TRIES = 4  # how often an item may be on a process that dies
_PATIENCE = "10s"
_DASK = "pip install 'profharness[dask]'"


class Spread(Protocol):
    """Where items are worked on. Functions and items must be importable and picklable; results should be small."""

    @property
    def width(self) -> int:
        """Processes that work at once."""

    def each(self, function: Callable[[ItemT], ResultT], items: Sequence[ItemT]) -> Iterator[tuple[int, ResultT]]:
        """(position, result) as they are ready. What the function raises is raised here; Unavailable where processes keep dying."""


class Here:
    """In this process, in order."""

    width = 1

    def each(self, function: Callable[[ItemT], ResultT], items: Sequence[ItemT]) -> Iterator[tuple[int, ResultT]]:
        """One after the other."""
        for position, item in enumerate(items):
            yield position, function(item)


class Processes:
    """A pool of processes of this machine. They start fresh, since a fork of a process with threads may hang."""

    def __init__(self, width: int) -> None:
        self.width = width

    def each(self, function: Callable[[ItemT], ResultT], items: Sequence[ItemT]) -> Iterator[tuple[int, ResultT]]:
        """Unfinished items of a broken pool go to a new one; at the last try to one process, so that others' memory is not in the way."""
        from concurrent.futures import ProcessPoolExecutor, as_completed
        from concurrent.futures.process import BrokenProcessPool
        from multiprocessing import get_context

        left = dict(enumerate(items))
        for attempt in range(TRIES):
            with ProcessPoolExecutor(min(self.width if attempt < TRIES - 1 else 1, len(left)) or 1, mp_context=get_context("spawn")) as pool:
                futures = {pool.submit(function, item): position for position, item in left.items()}
                try:
                    for future in as_completed(futures):
                        position = futures[future]
                        result = future.result()
                        del left[position]
                        yield position, result
                except BrokenProcessPool:
                    pass  # what is left goes to the next pool
                finally:
                    pool.shutdown(wait=True, cancel_futures=True)
            if not left:
                return
        raise Unavailable(f"the process that worked on {_named(next(iter(left.values())))} died {TRIES} times",
                          "it may need more memory than this machine has: use fewer at once with --processes")


class DaskCluster:
    """The workers of a Dask cluster, which must see the files under the same paths and have profharness installed."""

    def __init__(self, client: Client) -> None:
        self._client = client

    @property
    def width(self) -> int:
        """Threads of all workers."""
        return sum(self._client.nthreads().values())

    def each(self, function: Callable[[ItemT], ResultT], items: Sequence[ItemT]) -> Iterator[tuple[int, ResultT]]:
        """The scheduler gives the items of a lost worker to others."""
        import distributed

        futures = self._client.map(function, list(items), pure=False, retries=0)
        place = {future.key: position for position, future in enumerate(futures)}
        try:
            for future, result in distributed.as_completed(futures, loop=self._client.loop, with_results=True):
                yield place[future.key], result
                future.release()
        except distributed.scheduler.KilledWorker as error:
            raise Unavailable(f"Dask workers died repeatedly: {error}", "give each worker more memory, or use more workers with fewer threads") from error
        finally:
            self._client.cancel(futures)


def here(paths_bytes: int, count: int, processes: int | None) -> Spread:
    """On this machine: a pool where several items are worth one, as wide as the CPUs that this process may use (or as asked)."""
    width = min(processes or len(os.sched_getaffinity(0)), count)
    return Processes(width) if width > 1 and (processes or paths_bytes >= _WORTH_A_POOL) else Here()


_WORTH_A_POOL = 16 << 20  # reading less takes no longer than starting processes


@contextmanager
def dask_cluster(address: str, workers: int) -> Iterator[Spread]:
    """A cluster: `slurm` starts `workers` jobs as dask-jobqueue is configured to; anything else is a scheduler's address or file.

    Raises Unavailable where dask is not installed or no scheduler answers, and UsageError for jobs without a number.
    """
    try:
        import distributed
    except ImportError as error:
        raise Unavailable("--dask needs dask and distributed", _DASK) from error
    with _slurm(workers) if address == "slurm" else nullcontext(address) as where:
        try:
            options = {"scheduler_file": where} if isinstance(where, str) and os.path.isfile(where) else {"address": where}  # noqa: PTH113  it may be an address
            client = distributed.Client(**options, timeout=_PATIENCE, set_as_default=False)
        except (OSError, ValueError) as error:
            raise Unavailable(f"no Dask scheduler answers at {address}: {error}", "start one with `dask scheduler`, and workers with `dask worker ADDRESS`") from error
        with client:
            client.wait_for_workers(1, timeout=600)
            yield DaskCluster(client)


def _slurm(workers: int) -> AbstractContextManager[object]:
    if workers < 1:
        raise UsageError("--dask slurm: how many jobs?", "add --dask-workers N; partition, memory and time come from dask-jobqueue's configuration")
    try:
        from dask_jobqueue import SLURMCluster
    except ImportError as error:
        raise Unavailable("--dask slurm needs dask-jobqueue", _DASK) from error
    try:
        cluster: AbstractContextManager[object] = SLURMCluster(n_workers=workers)
    except (OSError, ValueError, RuntimeError) as error:
        raise Unavailable(f"no Dask workers through Slurm: {error}", "configure dask-jobqueue: jobqueue.slurm in its yaml (queue, cores, memory, walltime)") from error
    return cluster


def _named(item: object) -> str:
    return str(getattr(item, "path", item))
