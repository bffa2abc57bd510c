"""Work on many files: who does it, and what cannot be read."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, closing, contextmanager, nullcontext
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Generic, TypeVar

from profharness.errors import InputError, UsageError
from profharness.trace.model import Problem
from profharness.understand.many import spread
from profharness.understand.many.spread import Results, Spread

ItemT = TypeVar("ItemT")
ResultT = TypeVar("ResultT")


@dataclass(frozen=True)
class Workers:
    """Who does the work: so many processes of this machine (None: as the work asks for), or a Dask
    cluster. `told` hears how many of how many are done, at the beginning, after each, and at the
    end, whatever ended the work.
    """

    processes: int | None = None
    dask: str | None = None
    dask_workers: int = 0
    told: Callable[[int, int], None] | None = None

    @contextmanager
    def open(self, paths: Sequence[Path]) -> Iterator[Spread]:
        """The processes for these files."""
        with self._processes(paths) as processes:
            yield processes if self.told is None else _Told(processes, self.told)

    def _processes(self, paths: Sequence[Path]) -> AbstractContextManager[Spread]:
        if self.dask is not None:
            return spread.dask_cluster(self.dask, self.dask_workers)
        size = sum(path.stat().st_size for path in paths)
        return nullcontext(spread.here(size, len(paths), self.processes))


class _Told:
    """Processes that tell somebody how far they are."""

    def __init__(self, processes: Spread, told: Callable[[int, int], None]) -> None:
        self._processes = processes
        self._told = told

    @property
    def width(self) -> int:
        return self._processes.width

    def each(
        self, function: Callable[[ItemT], ResultT], items: Sequence[ItemT]
    ) -> Results[ResultT]:
        """As the processes do it."""
        done = 0
        self._told(done, len(items))
        try:
            with closing(self._processes.each(function, items)) as results:
                for result in results:
                    done += 1
                    self._told(done, len(items))
                    yield result
        finally:
            self._told(len(items), len(items))


IN_ONE = Workers()


@dataclass(frozen=True)
class Unread:
    """A file that nothing could be read from."""

    path: Path
    message: str
    hint: str

    @property
    def problem(self) -> Problem:
        """For those who read on without the file."""
        return Problem("error", str(self.path), 1, f"{self.message}; the file is left out")


@dataclass(frozen=True)
class FileGroup:
    """Files that are read as one trace: the tables that a tool wrote of one process, or files that
    share a device.
    """

    paths: tuple[Path, ...]

    @property
    def path(self) -> str:
        """How they are called."""
        return ", ".join(str(path) for path in self.paths)


@dataclass(frozen=True)
class Readings(Generic[ResultT]):
    """What was read of several groups of files, in their order, and the files that could not be
    read.
    """

    results: list[ResultT]
    unread: list[Unread]


def check_files(paths: Sequence[Path]) -> None:
    """Raises UsageError where one of several paths is a run."""
    run = next((path for path in paths if path.is_dir()), None)
    if run is not None:
        raise UsageError(
            f"{run} is a run: it is read alone",
            "name one run, or trace files; `profharness compare` sets two runs side by side",
        )


def file_groups(paths: Sequence[Path]) -> list[FileGroup]:
    """The groups that make one trace each. Raises InputError for a table that cannot be read."""
    from profharness import readers

    return [FileGroup(paths) for paths in readers.group_files(paths)]


def read_each(
    processes: Spread,
    read: Callable[[FileGroup], ResultT],
    groups: Sequence[FileGroup],
    on_result: Callable[[ResultT], None] | None = None,
) -> Readings[ResultT]:
    """Each group by `read`, which raises InputError for one that cannot be read. Raises that error
    where none can be.

    `on_result` gets each result as it comes; what it raises ends the work.
    """
    by_position: dict[int, ResultT | Unread] = {}
    with closing(processes.each(partial(_result_or_unread, read), groups)) as results:
        for position, result in results:
            by_position[position] = result
            if on_result is not None and not isinstance(result, Unread):
                on_result(result)
    ordered = [by_position[position] for position in range(len(groups))]
    unread = [result for result in ordered if isinstance(result, Unread)]
    if unread and len(unread) == len(groups):
        raise InputError(unread[0].message, unread[0].hint)
    return Readings([result for result in ordered if not isinstance(result, Unread)], unread)


def _result_or_unread(read: Callable[[FileGroup], ResultT], group: FileGroup) -> ResultT | Unread:
    """In the process that reads: one group's error must not end the work on the others."""
    try:
        return read(group)
    except InputError as error:
        return Unread(group.paths[0], error.message, error.hint)
