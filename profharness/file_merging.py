"""Many loose files into one Perfetto trace, with the memory of the largest one.

Several processes (or the workers of a cluster, which must see the output's folder) read the files; each leaves its
records as Parquet in a folder beside the output, kernels and copies in order of device and time, and sends back
what identifies them. Then the files are loaded, cut and written one after the other.
"""

from __future__ import annotations

import hashlib
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np

from profharness.errors import InputError, UsageError
from profharness.jobs import Files, Unread, Workers, grouped, read_each
from profharness.loading import load_files
from profharness.trace import cutting, select
from profharness.trace.cutting import Cut
from profharness.trace.merge import Places, merge_with_places
from profharness.trace.model import I64, Problem, Source, Trace
from profharness.trace.sketch import placed, sketch
from profharness.units import format_number
from profharness.writers import columns, perfetto
from profharness.writers.metadata import Outline, outline
from profharness.writers.options import LeftOut, WriteOptions, WriteReport
from profharness.writers.perfetto import Parts


@dataclass(frozen=True)
class ByFile:
    """What to write, where, and who reads."""

    target: Path
    cut: Cut
    write: WriteOptions
    attributes: Mapping[str, str | int]
    workers: Workers


@dataclass(frozen=True)
class Merged:
    """What was written, and what was not: records by table, and files."""

    written: WriteReport
    dropped: Counter[str]
    sources: tuple[Source, ...]
    problems: tuple[Problem, ...]
    lines: tuple[str, ...]


@dataclass(frozen=True, eq=False)
class Prepared:
    """One file's records as Parquet in `folder`, and what identifies them (`sketch`)."""

    folder: Path
    sketch: Trace
    outline: Outline
    first_ns: int | None


@dataclass(frozen=True)
class PrepareJob:
    """Files to be read and left in a folder, unless their rank is not among `ranks`."""

    files: Files
    folder: Path
    ranks: frozenset[int] | None

    @property
    def path(self) -> str:
        """What they are called."""
        return self.files.path


def merge_files(paths: Sequence[Path], job: ByFile, clocks: Callable[[Sequence[Source]], tuple[Source, ...] | None]) -> Merged:
    """Write one trace of several loose files. `clocks` gives the sources as they are to be marked, None where all share one clock.

    Raises InputError where nothing can be read, UsageError where no file is of a wanted rank, and what `clocks` raises.
    """
    with tempfile.TemporaryDirectory(prefix=".profharness-merge-", dir=job.target.parent) as scratch, job.workers.open(paths) as processes:
        jobs = [PrepareJob(files, Path(scratch) / str(number), job.cut.ranks) for number, files in enumerate(grouped(paths))]
        found, unread = read_each(processes, prepare, jobs)
        parts = [one for one in found if one is not None]
        if not parts:
            raise UsageError(f"{job.cut.words()}: no file is left", "the files are of other ranks, or do not say their rank")
        pools, places = merge_with_places([one.sketch for one in parts])
        separate = clocks(pools.sources)
        writer = _Writer(replace(pools, sources=separate or pools.sources, problems=()), parts, places, replace(job.cut, ranks=None), separate is None)
        written = writer.write(job)
    problems = (*(Problem("error", str(one.path), 1, f"{one.message}; the file is left out") for one in unread), *pools.problems)
    other = len(found) - len(parts)
    lines = (f"left out {format_number(other)} {'file' if other == 1 else 'files'} of ranks that were not asked for",) if other else ()
    return Merged(written, writer.dropped, writer.pools.sources, problems, lines)


def prepare(job: PrepareJob) -> Prepared | Unread | None:
    """Read one job and leave its records in its folder; None for another rank."""
    from profharness import readers

    try:
        if job.ranks is not None and (stated := readers.stated_rank(job.files.paths[0])) is not None and stated not in job.ranks:
            return None
        trace = load_files(job.files.paths, check=False).trace
    except InputError as error:
        return Unread(job.files.paths[0], error.message, error.hint)
    if job.ranks is not None and not any(source.rank in job.ranks for source in trace.sources):
        return None
    trace = in_order(trace)
    columns.write(replace(trace, problems=()), job.folder)
    told = outline(trace)
    return Prepared(job.folder, replace(sketch(trace), problems=trace.problems),
                    replace(told, content=hashlib.blake2b(told.content).digest()), cutting.first_ns(trace))


def in_order(trace: Trace) -> Trace:
    """Kernels and copies by device and start; hardware counters follow their kernels."""
    kernels, copies, counters = trace.kernels, trace.copies, trace.counters
    by_time = np.lexsort((kernels.start_ns, kernels.device))
    if len(counters) and len(kernels):
        place = np.empty(len(kernels), np.int64)
        place[by_time] = np.arange(len(kernels))
        counters = counters.with_columns(kernel=np.where(counters.kernel < 0, counters.kernel, place[counters.kernel]))
    return replace(trace, kernels=kernels.take(by_time), copies=copies.take(np.lexsort((copies.start_ns, copies.device))), counters=counters)


@dataclass(frozen=True, eq=False)
class _Writer:
    """Loads the parts in turn. Times of a cut count from the first record of all, of each part where they share no clock (`together`)."""

    pools: Trace
    parts: Sequence[Prepared]
    places: Sequence[Places]
    cut: Cut
    together: bool
    dropped: Counter[str] = field(default_factory=Counter)

    def write(self, job: ByFile) -> WriteReport:
        shares, over = self._shares(job.write.max_kernels)
        parts = Parts(self.pools, [one.outline for one in self.parts], self._traces(shares))
        report = perfetto.write_parts(parts, job.target, attributes=job.attributes, options=replace(job.write, max_kernels=None))
        return replace(report, left_out=(*over, *report.left_out))

    def _origins(self) -> list[int]:
        starts = [one.first_ns for one in self.parts]
        first = min((start for start in starts if start is not None), default=0)
        return [first if self.together or start is None else start for start in starts]

    def _traces(self, shares: Sequence[int | None]) -> Iterator[Trace]:
        """The parts as they are to be written. Raises UsageError at the end, before the file is complete, where the cut left nothing."""
        kept = 0
        for one, place, origin, share in zip(self.parts, self.places, self._origins(), shares, strict=True):
            trace, dropped = self._loaded(one, origin)
            self.dropped.update(dropped)
            kept += sum(len(table) for _, table in trace.tables())
            yield placed(trace if share is None else _earliest(trace, share), place, self.pools)

        if not kept and not self.cut.is_all:
            raise UsageError(f"{self.cut.words()}: no record is left", "look at what the files hold with `profharness metrics`")

    def _loaded(self, one: Prepared, origin: int) -> tuple[Trace, Counter[str]]:
        trace = columns.read(one.folder, replace(one.sketch, strings=self.pools.strings))
        return (trace, Counter()) if self.cut.is_all else cutting.cut(trace, self.cut, origin)

    def _shares(self, limit: int | None) -> tuple[list[int | None], tuple[LeftOut, ...]]:
        """How many kernels of each part are among the first `limit` of all (None: no limit), and what that leaves out."""
        if limit is None:
            return [None] * len(self.parts), ()
        first, owner, total = np.empty(0, np.int64), np.empty(0, np.int64), 0
        for number, (one, origin) in enumerate(zip(self.parts, self._origins(), strict=True)):
            starts: I64 = self._loaded(one, origin)[0].kernels.start_ns - origin
            total += len(starts)
            first, owner = np.concatenate((first, starts)), np.concatenate((owner, np.full(len(starts), number)))
            kept = np.argsort(first, kind="stable")[:limit]
            first, owner = first[kept], owner[kept]
        over = (LeftOut("kernels", total - limit, f"more than the {limit} kernels asked for; the first were kept"),) if total > limit else ()
        return [int(count) for count in np.bincount(owner, minlength=len(self.parts))], over


def _earliest(trace: Trace, count: int) -> Trace:
    keep = np.zeros(len(trace.kernels), np.bool_)
    keep[np.argsort(trace.kernels.start_ns, kind="stable")[:count]] = True
    return trace if keep.all() else select.rows(trace, {"kernels": keep})
