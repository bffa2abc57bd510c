"""One function over many items in several processes: of this machine, or of a Dask cluster.

Results come as they are ready, with the item's position. A process that dies (out of memory,
killed) costs its unfinished items another try; an item that keeps killing its process is named in
the error.
"""

from __future__ import annotations

import functools
import os
import re
import threading
import time
from collections import deque
from collections.abc import Callable, Generator, Iterator, Sequence
from concurrent.futures import CancelledError
from contextlib import contextmanager, nullcontext
from queue import Empty, SimpleQueue
from typing import TYPE_CHECKING, Generic, Protocol, TypeVar

from profharness.errors import Unavailable, UsageError
from profharness.understand.many.slurm_jobs import INSTALL, no_jobs, slurm_jobs

if TYPE_CHECKING:
    from dask_jobqueue import SLURMCluster
    from distributed import Client, Future

ItemT = TypeVar("ItemT")
ResultT = TypeVar("ResultT")
Results = Generator[tuple[int, ResultT], None, None]
TRIES = 4  # how often an item may be on a process that dies
WAIT_S = 600.0
"""How long jobs may wait in a queue before the first of them runs."""
LOST_S = 120.0
"""How long a cluster may be without any worker."""
WATCH_S = 5.0
LOOK_S = 1.0
"""How often to look for workers that have come while all others are at work."""
_PATIENCE = "10s"


class Spread(Protocol):
    """Where items are worked on. Functions and items must be importable and picklable; results
    should be small.
    """

    @property
    def width(self) -> int:
        """Processes that work at once."""

    def each(
        self, function: Callable[[ItemT], ResultT], items: Sequence[ItemT]
    ) -> Results[ResultT]:
        """(position, result) as they are ready; what has not begun when this is closed is not done.

        What the function raises is raised here; Unavailable where processes keep dying.
        """


class Here:
    """In this process, in order."""

    width = 1

    def each(
        self, function: Callable[[ItemT], ResultT], items: Sequence[ItemT]
    ) -> Results[ResultT]:
        """One after the other."""
        for position, item in enumerate(items):
            yield position, function(item)


class Processes:
    """A pool of processes of this machine. They start fresh, since a fork of a process with threads
    may hang.
    """

    def __init__(self, width: int) -> None:
        self.width = width

    def each(
        self, function: Callable[[ItemT], ResultT], items: Sequence[ItemT]
    ) -> Results[ResultT]:
        """Unfinished items of a broken pool go to a new one; at the last try to one process, so
        that others' memory is not in the way.
        """
        from concurrent.futures import ProcessPoolExecutor, as_completed
        from concurrent.futures.process import BrokenProcessPool
        from multiprocessing import get_context

        left = dict(enumerate(items))
        for attempt in range(TRIES):
            with ProcessPoolExecutor(
                min(self.width if attempt < TRIES - 1 else 1, len(left)) or 1,
                mp_context=get_context("spawn"),
            ) as pool:
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
        raise Unavailable(
            f"the process that worked on {_named(next(iter(left.values())))} died {TRIES} times",
            "it may need more memory than this machine has: use fewer at once with --processes",
        )


class DaskCluster:
    """The workers of a Dask cluster, which must see the files under the same paths and have
    profharness installed. Each holds one item at a time, however many threads it has.
    """

    def __init__(self, client: Client, watch: Watch) -> None:
        self._client = client
        self._watch = watch

    @property
    def width(self) -> int:
        """Worker processes."""
        return len(self._client.nthreads())

    def each(
        self, function: Callable[[ItemT], ResultT], items: Sequence[ItemT]
    ) -> Results[ResultT]:
        """The scheduler gives the item of a lost worker to another; workers that come later take
        part.
        """
        import distributed

        lost = threading.Event()
        self._watch.given_up = lost.set
        work = _Work(self._client, function, items)
        try:
            while work.left:
                if lost.is_set():
                    raise Unavailable(
                        f"no Dask worker is left since {LOST_S:g} s",
                        "the workers' own logs say why they ended",
                    )
                work.hand_out()
                if (done := work.done()) is not None:
                    yield done
        except distributed.scheduler.KilledWorker as error:
            raise Unavailable(
                f"Dask workers died repeatedly: {error}",
                "give each worker more memory, or use more workers with fewer threads",
            ) from error
        except CancelledError as error:
            raise Unavailable(
                "the Dask scheduler has lost what it was given", "its own log says why"
            ) from error
        finally:
            self._watch.given_up = None
            work.cancel()


class _Work(Generic[ItemT, ResultT]):
    """Items on their way: to each worker one, and another when it has given the result."""

    def __init__(
        self, client: Client, function: Callable[[ItemT], ResultT], items: Sequence[ItemT]
    ) -> None:
        self._client = client
        self._function = function
        self._waiting = deque(enumerate(items))
        self._running: dict[str, tuple[int, str]] = {}  # position and worker, by the future's key
        self._futures: dict[str, Future] = {}
        self._ended: SimpleQueue[Future] = SimpleQueue()

    @property
    def left(self) -> bool:
        return bool(self._waiting or self._running)

    def hand_out(self) -> None:
        """One item to each worker that has none. Raises Unavailable where no scheduler answers."""
        if not self._waiting:
            return
        try:
            workers = self._client.nthreads()
        except (OSError, TimeoutError) as error:
            raise Unavailable(
                f"the Dask scheduler does not answer any more: {error}", "its own log says why"
            ) from error
        busy = {worker for _, worker in self._running.values()}
        for worker in workers:
            if worker in busy or not self._waiting:
                continue
            position, item = self._waiting.popleft()
            future = self._client.submit(
                _in_turn,
                self._function,
                item,
                pure=False,
                retries=0,
                workers=[worker],
                allow_other_workers=True,
            )
            self._running[future.key] = position, worker
            self._futures[future.key] = future
            future.add_done_callback(self._ended.put)

    def done(self) -> tuple[int, ResultT] | None:
        """A result with its item's position, which the cluster need not keep any more; None where
        none came within LOOK_S. Raises what the function raised.
        """
        try:
            future = self._ended.get(timeout=LOOK_S)
        except Empty:
            return None
        result = future.result()
        position, _ = self._running.pop(future.key)
        self._futures.pop(future.key).release()
        return position, result

    def cancel(self) -> None:
        """What has not ended is not needed. Nothing to cancel is not told: the scheduler would tell
        every client of it.
        """
        if self._futures:
            self._client.cancel(list(self._futures.values()))


_TURN = threading.Lock()


def _in_turn(function: Callable[[ItemT], ResultT], item: ItemT) -> ResultT:
    """In a worker: its threads take turns, so that it holds the memory of one item."""
    with _TURN:
        return function(item)


class Watch(threading.Thread):
    """Looks after a cluster's workers while it is open: jobs that ended are submitted again, and
    where no worker is left for long, work is given up.
    """

    def __init__(self, client: Client, restore: Callable[[], object]) -> None:
        super().__init__(daemon=True)
        self._client = client
        self._restore = restore
        self._over = threading.Event()
        self.given_up: Callable[[], object] | None = None

    def run(self) -> None:
        """Until `stop`."""
        seen = time.monotonic()
        while not self._over.wait(WATCH_S):
            if self._client.scheduler_info(n_workers=1)["workers"]:
                seen = time.monotonic()
            elif time.monotonic() - seen > LOST_S and self.given_up is not None:
                self.given_up()
            self._restore()

    def stop(self) -> None:
        """Ends before the cluster is closed."""
        self._over.set()
        self.join()


def here(paths_bytes: int, count: int, processes: int | None) -> Spread:
    """On this machine: a pool where several items are worth one, as wide as the CPUs that this
    process may use (or as asked).
    """
    width = min(processes or len(os.sched_getaffinity(0)), count)
    return Processes(width) if width > 1 and (processes or paths_bytes >= _WORTH_A_POOL) else Here()


_WORTH_A_POOL = 16 << 20  # reading less takes no longer than starting processes


@contextmanager
def dask_cluster(address: str, workers: int) -> Iterator[Spread]:
    """A cluster: `slurm` starts `workers` jobs as dask-jobqueue is configured to, and a scheduler
    that only this process and these jobs can talk to; anything else is a scheduler's address or
    file.

    Raises Unavailable where dask is not installed or no scheduler answers, and UsageError for jobs
    without a number and for what is none of the three.
    """
    is_file = os.path.isfile(address)  # noqa: PTH113  it may be an address
    if address != "slurm" and not is_file and not re.search(r":\d+$", address):
        raise UsageError(
            f"--dask: {address!r} is neither slurm, nor a scheduler's address (HOST:PORT), "
            "nor its file",
            "several processes of this machine: --processes N",
        )
    try:
        import distributed
    except ImportError as error:
        raise Unavailable("--dask needs dask and distributed", INSTALL) from error
    with slurm_jobs(workers) if address == "slurm" else nullcontext() as jobs:
        where = jobs or address
        try:
            options = {"scheduler_file": where} if is_file else {"address": where}
            client = distributed.Client(**options, timeout=_PATIENCE, set_as_default=False)
        except AssertionError as error:  # distributed's own: more than a greeting came
            raise Unavailable(
                f"the Dask scheduler at {address} told all its clients something as this one came",
                "another client cancelled its work at that moment: start the command again",
            ) from error
        except (OSError, ValueError) as error:
            raise Unavailable(
                f"no Dask scheduler answers at {address}: {error}",
                "start one with `dask scheduler`, and workers with `dask worker ADDRESS`",
            ) from error
        with client:
            _await_worker(client, jobs)
            watch = Watch(
                client,
                functools.partial(jobs.scale, jobs=workers) if jobs is not None else _nothing,
            )
            watch.start()
            try:
                yield DaskCluster(client, watch)
            finally:
                watch.stop()


def _await_worker(client: Client, jobs: SLURMCluster | None) -> None:
    """Until the first worker is there. A job that could not be submitted is tried once more, so
    that the reason is known.
    """
    deadline = time.monotonic() + WAIT_S
    while True:
        try:
            client.wait_for_workers(1, timeout=min(1.0, WAIT_S))
            return
        except TimeoutError as error:
            if time.monotonic() >= deadline:
                raise Unavailable(
                    f"no Dask worker came within {WAIT_S:g} s",
                    "look at the queue, and at the workers' logs",
                ) from error
        if jobs is not None:
            _submit_again(client, jobs)


def _submit_again(client: Client, jobs: SLURMCluster) -> None:
    for job in jobs.workers.values():
        if job.job_id is None:
            try:
                client.sync(job.start)
            except RuntimeError as error:
                raise no_jobs(error) from None


def _nothing() -> None:
    """Workers that others started are theirs to look after."""


def _named(item: object) -> str:
    return str(getattr(item, "path", item))
