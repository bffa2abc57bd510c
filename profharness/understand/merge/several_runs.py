"""Several runs, with or without loose files beside them, into one Perfetto trace, with the memory
of the largest group of files that refer to each other.

Each run becomes what it would be alone, the loose files what they would be together; then sources,
devices and streams of all are joined, and the groups of each are written one after the other.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

from profharness.errors import UsageError
from profharness.rundir.paths import MANIFEST
from profharness.trace.merge import merge_with_places
from profharness.trace.model import Problem, Source, Trace
from profharness.understand.load import load_part, of_run, run_names
from profharness.understand.many.jobs import grouped, read_each
from profharness.understand.merge import spilled as prepared
from profharness.understand.merge.files import PrepareJob, other_ranks, prepare
from profharness.understand.merge.one_run import SCRATCH, RunSection, run_parts
from profharness.understand.merge.parts import Merged, MergeJob, PartWriter, Section
from profharness.understand.merge.spilled import Prepared, set_aside

Clocks = Callable[[Sequence[Source]], tuple[Source, ...] | None]


def merge_mixed(
    paths: Sequence[Path], job: MergeJob, clocks: Clocks, *, lay_over: bool = False
) -> Merged:
    """Write one trace of several runs and files; runs come first. `clocks` gives the sources as
    they are to be marked, None where all share one clock.

    Raises InputError where a run or no file can be read, UsageError where nothing is left, and what
    `clocks` raises.
    """
    with tempfile.TemporaryDirectory(prefix=SCRATCH, dir=job.target.parent) as name:
        mixture = _Mixture(job, Path(name))
        for path, run_name in zip(paths, run_names(paths), strict=True):
            if path.is_dir():
                mixture.add_folder(path, run_name, lay_over=lay_over)
        mixture.add_files([path for path in paths if not path.is_dir()])
        if not mixture.sections:
            raise UsageError(
                f"{job.cut.words() or 'nothing to merge'}: no file is left",
                "the files are of other ranks, or do not say their rank",
            )
        pools, places = merge_with_places(mixture.pools)
        separate = clocks(pools.sources)
        writer = PartWriter(
            replace(pools, sources=separate or pools.sources, problems=()),
            mixture.sections,
            separate is None,
            places,
        )
        report = writer.write(job)
    problems = tuple(problem for tell in mixture.problems for problem in tell())
    return Merged(
        report, writer.dropped, writer.pools.sources, problems, other_ranks(mixture.left_out)
    )


class _Mixture:
    """The sections of a trace as they come in: their pools as they are called among all, and what
    there is to say of each once it is written.
    """

    def __init__(self, job: MergeJob, scratch: Path) -> None:
        self._job = job
        self._scratch = scratch
        self.sections: list[Section] = []
        self.pools: list[Trace] = []
        self.problems: list[Callable[[], tuple[Problem, ...]]] = []
        self.left_out = 0

    def add_folder(self, path: Path, run_name: str, *, lay_over: bool) -> None:
        """A run, or a tool's own folder. Raises InputError for a folder that is neither."""
        scratch = self._folder()
        if not (path / MANIFEST).is_file():
            self._add_parts(
                [set_aside(load_part(path).trace, scratch / "0", self._job.cut)], run_name
            )
            return
        found = run_parts(path, self._job, scratch)
        self.left_out += found.left_out
        if not found.parts:
            self.problems.append(lambda: found.gathered_problems)
            return
        section = RunSection.of(found, lay_over=lay_over, cut=self._job.cut)
        self._add(section.joined, run_name, section.problems)

    def add_files(self, paths: Sequence[Path]) -> None:
        """Loose files; what cannot be read of several is a problem. Raises InputError where nothing
        can.
        """
        if not paths:
            return
        scratch = self._folder()
        with self._job.workers.open(paths) as processes:
            jobs = [
                PrepareJob(files, scratch / str(number), self._job.cut)
                for number, files in enumerate(grouped(paths))
            ]
            found, unread = read_each(processes, prepare, jobs)
        self.problems.append(
            lambda: tuple(
                Problem("error", str(one.path), 1, f"{one.message}; the file is left out")
                for one in unread
            )
        )
        self.left_out += found.count(None)
        parts = [one for one in found if one is not None]
        if parts:
            self._add_parts(parts, "")

    def _folder(self) -> Path:
        folder = self._scratch / str(len(self.problems))
        folder.mkdir()
        return folder

    def _add_parts(self, parts: Sequence[Prepared], run_name: str) -> None:
        pools, places = merge_with_places([one.sketch for one in parts])
        self._add(
            Section.of(pools, parts, places, prepared.together(parts)),
            run_name,
            lambda: pools.problems,
        )

    def _add(
        self, section: Section, run_name: str, problems: Callable[[], tuple[Problem, ...]]
    ) -> None:
        self.sections.append(section)
        self.pools.append(of_run(section.pools, run_name) if run_name else section.pools)
        self.problems.append(problems)
