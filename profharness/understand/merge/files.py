"""Many loose files into one Perfetto trace, with the memory of the largest one.

Several processes (or the workers of a cluster, which must see the output's folder) read the files;
each leaves its records as Parquet in a folder beside the output, and sends back what identifies
them. Then the files are taken up, cut and written one after the other.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from profharness.errors import InputError, UsageError
from profharness.trace.merge import merge_with_places
from profharness.trace.model import ClockDomain, Problem, Source
from profharness.trace.parts.cutting import Cut
from profharness.understand.load import load_files
from profharness.understand.many.jobs import Files, Unread, grouped, read_each
from profharness.understand.merge import spilled as prepared
from profharness.understand.merge.parts import Merged, MergeJob, PartWriter, Section
from profharness.understand.merge.spilled import Prepared, set_aside
from profharness.units import format_number


@dataclass(frozen=True)
class PrepareJob:
    """Files to be read and left in a folder, unless their rank is not wanted."""

    files: Files
    folder: Path
    cut: Cut

    @property
    def path(self) -> str:
        """What they are called."""
        return self.files.path


def merge_files(
    paths: Sequence[Path],
    job: MergeJob,
    clocks: Callable[[Sequence[Source]], tuple[Source, ...] | None],
) -> Merged:
    """Write one trace of several loose files. `clocks` gives the sources as they are to be marked,
    None where all share one clock.

    It is asked as the files come in, so that files that share none are refused when two of them
    were read.

    Raises InputError where nothing can be read, UsageError where no file is of a wanted rank, and
    what `clocks` raises.
    """
    with (
        tempfile.TemporaryDirectory(prefix=".profharness-merge-", dir=job.target.parent) as scratch,
        job.workers.open(paths) as processes,
    ):
        jobs = [
            PrepareJob(files, Path(scratch) / str(number), job.cut)
            for number, files in enumerate(grouped(paths))
        ]
        found, unread = read_each(processes, prepare, jobs, _Clocks(clocks).see)
        parts = [one for one in found if one is not None]
        if not parts:
            raise UsageError(
                f"{job.cut.words()}: no file is left",
                "the files are of other ranks, or do not say their rank",
            )
        pools, places = merge_with_places([one.sketch for one in parts])
        separate = clocks(pools.sources)
        pools = replace(pools, sources=separate or pools.sources)
        writer = PartWriter(
            replace(pools, problems=()),
            [Section.of(pools, parts, places, prepared.together(parts))],
            separate is None,
        )
        written = writer.write(job)
    problems = (
        *(
            Problem("error", str(one.path), 1, f"{one.message}; the file is left out")
            for one in unread
        ),
        *pools.problems,
    )
    return Merged(
        written,
        writer.dropped,
        writer.pools.sources,
        problems,
        other_ranks(len(found) - len(parts)),
    )


class _Clocks:
    """Asks about the clocks of what has come so far, as often as something new has."""

    def __init__(self, ask: Callable[[Sequence[Source]], object]) -> None:
        self._ask = ask
        self._sources: list[Source] = []
        self._known: set[tuple[ClockDomain, str]] = set()

    def see(self, part: Prepared | None) -> None:
        """The sources of one more part. Raises what the asking does."""
        for source in part.sketch.sources if part is not None else ():
            self._sources.append(source)
            if (source.clock, source.host) not in self._known or len(self._sources) == 2:
                self._known.add((source.clock, source.host))
                self._ask(self._sources)


def stated_hosts(paths: Sequence[Path], ranks: frozenset[int] | None) -> dict[str, str]:
    """The hosts that files of the wanted ranks state in their heads; nothing of a file that cannot
    be read.
    """
    from profharness import readers

    found = {}
    for path in paths:
        try:
            if ranks is None or (rank := readers.stated_rank(path)) is None or rank in ranks:
                found[str(path)] = readers.stated_host(path)
        except InputError:
            continue  # the reading of the whole file says why
    return found


def other_ranks(files: int) -> tuple[str, ...]:
    """What to say of files that were not read."""
    return (
        (
            (
                f"left out {format_number(files)} {'file' if files == 1 else 'files'} of ranks "
                "that "
                "were not asked for"
            ),
        )
        if files
        else ()
    )


def prepare(job: PrepareJob) -> Prepared | Unread | None:
    """Read one job and leave its records in its folder; None for another rank."""
    from profharness import readers

    ranks = job.cut.ranks
    try:
        if (
            ranks is not None
            and (stated := readers.stated_rank(job.files.paths[0])) is not None
            and stated not in ranks
        ):
            return None
        trace = load_files(job.files.paths, check=False).trace
    except InputError as error:
        return Unread(job.files.paths[0], error.message, error.hint)
    if ranks is not None and not any(source.rank in ranks for source in trace.sources):
        return None
    return set_aside(trace, job.folder, job.cut)
