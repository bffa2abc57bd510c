"""Work on many files: who does it, and what cannot be read."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, closing, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from profharness.errors import InputError, UsageError
from profharness.understand.many import spread
from profharness.understand.many.spread import Spread

JobT = TypeVar("JobT")
ResultT = TypeVar("ResultT")


@dataclass(frozen=True)
class Workers:
    """Who does the work: so many processes of this machine (None: as the work asks for), or a Dask
    cluster.
    """

    processes: int | None = None
    dask: str | None = None
    dask_workers: int = 0

    def open(self, paths: Sequence[Path]) -> AbstractContextManager[Spread]:
        """The processes for these files."""
        if self.dask is not None:
            return spread.dask_cluster(self.dask, self.dask_workers)
        size = sum(path.stat().st_size for path in paths)
        return nullcontext(spread.here(size, len(paths), self.processes))


IN_ONE = Workers()


@dataclass(frozen=True)
class Unread:
    """A file that nothing could be read from."""

    path: Path
    message: str
    hint: str


@dataclass(frozen=True)
class Files:
    """Files to be read together: what a tool wrote as several tables, and files that share a
    device.
    """

    paths: tuple[Path, ...]

    @property
    def path(self) -> str:
        """How they are called."""
        return ", ".join(str(path) for path in self.paths)


def check_files(paths: Sequence[Path]) -> None:
    """Raises UsageError where one of several paths is a run."""
    run = next((path for path in paths if path.is_dir()), None)
    if run is not None:
        raise UsageError(
            f"{run} is a run: it is read alone",
            "name one run, or trace files; `profharness compare` sets two runs side by side",
        )


def grouped(paths: Sequence[Path]) -> list[Files]:
    """One job per trace. Raises InputError for a table that cannot be read."""
    from profharness import readers

    return [Files(group) for group in readers.together(paths)]


def read_each(
    processes: Spread,
    function: Callable[[JobT], ResultT | Unread],
    jobs: Sequence[JobT],
    seen: Callable[[ResultT], None] | None = None,
) -> tuple[list[ResultT], list[Unread]]:
    """Results in the order of the jobs, and what could not be read. Raises InputError where nothing
    could.

    `seen` gets each result as it comes; what it raises ends the work.
    """
    found: dict[int, ResultT | Unread] = {}
    with closing(processes.each(function, jobs)) as results:
        for position, result in results:
            found[position] = result
            if seen is not None and not isinstance(result, Unread):
                seen(result)
    ordered = [found[position] for position in range(len(jobs))]
    unread = [one for one in ordered if isinstance(one, Unread)]
    if unread and len(unread) == len(jobs):
        raise InputError(unread[0].message, unread[0].hint)
    return [one for one in ordered if not isinstance(one, Unread)], unread
