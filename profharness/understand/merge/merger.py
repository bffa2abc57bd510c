"""Runs and files into one Perfetto trace, with the memory of the largest group of records that
refer to each other.

Each file is read, by several processes or the workers of a cluster (which must see the output's
folder), and set aside as Parquet beside the output; only what identifies its records stays in
memory. A run becomes a section that is what the run would be alone, loose files become one section;
then the sources, devices and streams of all sections are joined, and the groups of each section are
taken up, completed, cut and written one after the other.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

from profharness.analysis.communication.collectives import arrivals
from profharness.errors import UsageError
from profharness.rundir.paths import MANIFEST
from profharness.rundir.private.folders import private_folder
from profharness.trace.merge import Places, merge_with_places
from profharness.trace.model import ClockDomain, Problem, Source, Trace
from profharness.trace.parts.cutting import Cut
from profharness.trace.parts.select import without_frames
from profharness.trace.wanted import Wanted
from profharness.understand.load import (
    check_clocks,
    load_files,
    load_part,
    marked,
    of_run,
    run_names,
    share_clock,
)
from profharness.understand.load_run import RunRecords, complete_run
from profharness.understand.many.jobs import FileGroup, file_groups, read_each
from profharness.understand.merge.flames import flames_of_groups
from profharness.understand.merge.sections import RunSection, Section, section_of_files
from profharness.understand.merge.spilled import Spill, SpilledTrace, merge_spilled, spill
from profharness.understand.merge.writing import GroupWriter, Merged, MergeJob
from profharness.understand.rank_clocks import OnOneClock, RankPart, on_one_clock
from profharness.understand.run_parts import RunParts, read_run


def merge_spilled_parts(paths: Sequence[Path], job: MergeJob) -> Merged:
    """Write one trace of what was named: runs first, then loose files.

    Raises InputError where a run or all files cannot be read, and UsageError where nothing is left
    or the sources share no clock.
    """
    with private_folder(job.target.parent) as scratch:
        merger = Merger(job, scratch, several=len(paths) > 1)
        for path, run_name in zip(paths, run_names(paths), strict=True):
            if path.is_dir():
                merger.read_folder(path, run_name)
        files = [path for path in paths if not path.is_dir()]
        if files:
            merger.read_files(files, alone=len(files) == len(paths))
        return merger.write(paths)


def merge_and_load(root: Path, job: MergeJob, scratch: Path) -> RunRecords | None:
    """Write the trace of one run, and give what `load_run` does: its files are read once, and no
    more than its columns are kept. `scratch` is where its records are set aside, for as long as
    what comes back is in use.

    None, and no trace, where nothing could be read.
    """
    keep = Spill(scratch, job.cut)
    run = read_run(root, keep, job.workers, job.cut.ranks, records=Wanted.SHOWN)
    if not run.parts:
        return None
    merger = Merger(job, scratch, several=False)
    section = merger.add_run(run, "")
    merger.write([root])
    shown = merge_spilled(run.parts)
    whole = without_frames(shown)
    framed = whole is not shown
    del shown  # the records to be drawn are read again, one group after the other
    records = complete_run(whole, run.notes)
    if framed and section is not None:
        flames = flames_of_groups(section.each(), records)
        records = replace(records, flames=flames, shown=section.each)
    return records


@dataclass(frozen=True, eq=False)
class _JoinedPools:
    """All sources, devices and streams; `places` are those of each section among them, none where
    there is one section.
    """

    pools: Trace
    places: Sequence[Places]
    one_clock: bool


class Merger:
    """Reads what was named into sections, joins them, and writes them. `several`: more than one
    path was named, so that their clocks count.
    """

    def __init__(self, job: MergeJob, scratch: Path, *, several: bool) -> None:
        self._job = job
        self._scratch = scratch
        self._several = several
        self._folders = 0
        self._sections: list[Section] = []
        self._pools: list[Trace] = []  # of each section, as it is called among all
        self._problems: list[
            Callable[[], tuple[Problem, ...]]
        ] = []  # asked for once all is written
        self._files_left_out = 0

    def read_folder(self, path: Path, run_name: str) -> None:
        """A run, or a tool's own folder. Raises InputError for a folder that is neither."""
        job, scratch = self._job, self._folder()
        if (path / MANIFEST).is_file():
            keep = Spill(scratch, job.cut)
            run = read_run(path, keep, job.workers, job.cut.ranks, records=Wanted.STACKS)
            self.add_run(run, run_name)
        else:
            self._add_files([spill(load_part(path).trace, scratch / "0", job.cut)], run_name)

    def add_run(self, run: RunParts[SpilledTrace], run_name: str) -> Section | None:
        """The parts of a run, which `run_name` tells from other runs; None where it has none."""
        self._files_left_out += run.left_out
        if not run.parts:
            self._problems.append(lambda: run.notes.problems)
            return None
        section = RunSection.of(run, lay_over=self._job.overlay, cut=self._job.cut)
        self._add(section.section, run_name, section.problems)
        return section.section

    def read_files(self, paths: Sequence[Path], *, alone: bool) -> None:
        """Loose files; those that cannot be read are problems. Raises InputError where none can be.

        `alone`: there is nothing else, so that files without a common clock are refused as soon as
        two of them were read.
        """
        scratch = self._folder()
        on_clocks = _ClockWatch(allow_unaligned=self._job.allow_unaligned).see if alone else None
        with self._job.workers.open(paths) as processes:
            spilled = partial(spill_files, scratch=scratch, cut=self._job.cut)
            read = read_each(processes, spilled, file_groups(paths), on_clocks)
        unread = tuple(file.problem for file in read.unread)
        self._problems.append(lambda: unread)
        parts = [part for part in read.results if part is not None]
        self._files_left_out += len(read.results) - len(parts)
        if parts:
            self._add_files(self._on_one_clock(parts) if alone else parts, "")

    def _on_one_clock(self, parts: Sequence[SpilledTrace]) -> Sequence[SpilledTrace]:
        """The parts on the clock of one of them, where they share none and collectives tell how.

        Raises UsageError where neither is so, unless that is allowed.
        """
        whole = [RankPart(part.sketch.sources, part.arrivals) for part in parts]
        if share_clock([source for part in whole for source in part.sources]):
            return parts
        found = on_one_clock(whole)
        if isinstance(found, OnOneClock):
            return [
                part.on_clock(sources, conversion)
                for part, sources, conversion in zip(
                    parts, found.sources, found.conversions, strict=True
                )
            ]
        check_clocks(
            [source for part in whole for source in part.sources],
            allow_unaligned=self._job.allow_unaligned,
            collectives=found,
        )
        return parts

    def write(self, paths: Sequence[Path]) -> Merged:
        """Join and write all sections. Raises UsageError where there is none, where the cut leaves
        nothing, and for several clocks.
        """
        if not self._sections:
            raise self._nothing_left(paths)
        joined = self._join()
        writer = GroupWriter(joined.pools, self._sections, joined.one_clock, joined.places)
        report = writer.write(self._job)
        problems = tuple(problem for tell in self._problems for problem in tell())
        return Merged(report, writer.dropped, writer.pools.sources, problems, self._files_left_out)

    def _join(self) -> _JoinedPools:
        pools, places = self._pools[0], list[Places]()
        if len(self._pools) > 1:
            pools, places = merge_with_places(self._pools)
        sources, allowed = pools.sources, self._job.allow_unaligned
        one_clock = not self._several or check_clocks(sources, allow_unaligned=allowed)
        if not one_clock:
            sources = marked(sources)
        return _JoinedPools(replace(pools, sources=sources, problems=()), places, one_clock)

    def _nothing_left(self, paths: Sequence[Path]) -> UsageError:
        asked = self._job.cut.words()
        if self._several:
            return UsageError(
                f"{asked or 'nothing to merge'}: no file is left",
                "the files are of other ranks, or do not say their rank",
            )
        return UsageError(
            f"{asked or paths[0]}: no file is left",
            "look at what the run holds with `profharness metrics`",
        )

    def _folder(self) -> Path:
        folder = self._scratch / f"{self._folders}"
        folder.mkdir()
        self._folders += 1
        return folder

    def _add_files(self, parts: Sequence[SpilledTrace], run_name: str) -> None:
        section = section_of_files(parts)
        self._add(section, run_name, lambda: section.pools.problems)

    def _add(
        self, section: Section, run_name: str, problems: Callable[[], tuple[Problem, ...]]
    ) -> None:
        self._sections.append(section)
        self._pools.append(of_run(section.pools, run_name) if run_name else section.pools)
        self._problems.append(problems)


def spill_files(group: FileGroup, scratch: Path, cut: Cut) -> SpilledTrace | None:
    """Read a group of loose files and set it aside; None for another rank than those that are
    wanted.
    """
    if cut.ranks is not None:
        from profharness import readers

        rank = readers.stated_rank(group.paths[0])
        if rank is not None and rank not in cut.ranks:
            return None
    trace = load_files(group.paths, check=False, wanted=Wanted.STACKS, every_pass=True).trace
    if cut.ranks is not None and not any(source.rank in cut.ranks for source in trace.sources):
        return None
    name = hashlib.blake2s(os.fsencode(group.path), digest_size=16).hexdigest()
    return replace(spill(trace, scratch / name, cut), arrivals=arrivals(trace))


class _ClockWatch:
    """Checks the clocks of what has come so far, as often as something new has, until there are
    collectives that may put them on one.
    """

    def __init__(self, *, allow_unaligned: bool) -> None:
        self._allow_unaligned = allow_unaligned
        self._sources: list[Source] = []
        self._known: set[tuple[ClockDomain, str]] = set()
        self._collectives = False

    def see(self, part: SpilledTrace | None) -> None:
        """The sources of one more part. Raises UsageError where they share no clock with those
        before, unless that is allowed.
        """
        if part is None:
            return
        self._collectives = self._collectives or bool(part.arrivals)
        for source in part.sketch.sources if not self._collectives else ():
            self._sources.append(source)
            if (source.clock, source.host) not in self._known or len(self._sources) == 2:
                self._known.add((source.clock, source.host))
                check_clocks(self._sources, allow_unaligned=self._allow_unaligned)
