"""What the user named, as traces: run directories and loose files, alone or together.

A part is one run or one file. Parts of different hosts, files or runs never fold together: devices
without identity stay apart, and the passes of several runs carry the run's name.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from profharness.errors import InputError, UsageError
from profharness.findings import Finding
from profharness.trace.model import PUT_ON, ClockDomain, Problem, Source, Trace
from profharness.trace.wanted import Wanted

if TYPE_CHECKING:
    from profharness.rundir.manifest import Manifest
    from profharness.understand.load_run import RunRecords

_NAMED = 4  # files of a folder that an error names
NO_CLOCK = "not aligned: its times stand as the tool wrote them"


@dataclass(frozen=True)
class Loaded:
    """Everything that was read, on one clock. `findings` are about clocks and steps; figures are
    the analysis's.

    `steps_from` says which ranges of the program are its steps (`steps.stepped`); empty where
    marks of tools or hooks are. `counted` are the records with the counters, where a merged file
    holds them in another pass, and `shown` gives those with Python's functions and modules, by
    which what the host did is told: in parts that each hold all of their processes.
    """

    trace: Trace
    source: str
    manifest: Manifest | None = None
    findings: tuple[Finding, ...] = ()
    steps_from: str = ""
    counted: Trace | None = None
    shown: Callable[[], Iterable[Trace]] | None = None


def told(loaded: Loaded) -> Loaded:
    """What was read with Python's functions and modules (Wanted.SHOWN), as figures take it: without
    them. They stand in `shown`, where there are any.
    """
    from profharness.trace.parts.select import without_frames

    whole, plain = loaded.trace, without_frames(loaded.trace)
    shown = None if plain is whole else lambda: (whole,)
    return replace(loaded, trace=plain, shown=shown)


def load(
    paths: Sequence[Path],
    *,
    allow_unaligned: bool = False,
    overlay: bool = False,
    wanted: Wanted = Wanted.ALL,
    every_pass: bool = False,
) -> Loaded:
    """One run directory, or any mix of runs and files, merged. `wanted` is ALL, STACKS or SHOWN;
    `every_pass` is for `load_files`.

    Raises InputError for a path that cannot be read, and UsageError for several sources that share
    no clock (unless allowed).
    """
    check_paths(paths)
    parts = [
        load_part(path, run_name=name, overlay=overlay, wanted=wanted)
        for path, name in zip(paths, run_names(paths), strict=True)
        if path.is_dir()
    ]
    files = [path for path in paths if not path.is_dir()]
    if files:
        from profharness import readers

        parts += [
            load_files(group, wanted=wanted, every_pass=every_pass)
            for group in readers.group_files(files)
        ]
    if len(parts) == 1:
        return parts[0]
    from profharness.trace import merge

    sources = [source for part in parts for source in part.trace.sources]
    traces = [part.trace for part in parts]
    one_clock = share_clock(sources)
    if not one_clock:
        of_files = not any(path.is_dir() for path in paths)
        traces, why_not = _by_collectives(traces) if of_files else (traces, "")
        sources = [source for trace in traces for source in trace.sources]
        one_clock = check_clocks(sources, allow_unaligned=allow_unaligned, collectives=why_not)
    trace = merge.merge(traces)
    return Loaded(
        trace if one_clock else replace(trace, sources=marked(trace.sources)),
        ", ".join(str(path) for path in paths),
        None,
        tuple(finding for part in parts for finding in part.findings),
    )


def _by_collectives(traces: list[Trace]) -> tuple[list[Trace], str]:
    """The traces on the clock of one of them; as they are, and why, where collectives do not tell
    it.
    """
    from profharness.analysis.communication.collectives import arrivals
    from profharness.trace.clocks.align import moved
    from profharness.understand.rank_clocks import OnOneClock, RankPart, on_one_clock

    found = on_one_clock([RankPart(trace.sources, arrivals(trace)) for trace in traces])
    if not isinstance(found, OnOneClock):
        return traces, found
    return [
        replace(trace if conversion is None else moved(trace, conversion), sources=sources)
        for trace, sources, conversion in zip(traces, found.sources, found.conversions, strict=True)
    ], ""


def load_part(
    path: Path, *, run_name: str = "", overlay: bool = False, wanted: Wanted = Wanted.ALL
) -> Loaded:
    """One run, or a tool's own folder. `run_name` goes in front of the names of a run's passes, so
    that those of another are others.
    """
    from profharness.rundir.paths import MANIFEST

    if not (path / MANIFEST).is_file():
        loaded = _load_tools_folder(path)
        if loaded is None:
            raise no_run(path)
        return loaded
    loaded = _load_run(path, wanted)
    if overlay:
        from profharness.trace.overlay import overlay as overlaid

        loaded = replace(loaded, trace=overlaid(loaded.trace))
    return replace(loaded, trace=of_run(loaded.trace, run_name)) if run_name else loaded


def no_run(folder: Path, *, files: str = "name one of its files: {}") -> InputError:
    """The error that a folder is no run. `files` says what to do with those in it that can be
    given: the most telling formats first.
    """
    from profharness import readers
    from profharness.rundir.paths import MANIFEST

    names = readers.readable_in(folder)
    rest = len(names) - _NAMED
    listed = ", ".join(names[:_NAMED]) + (f" and {rest} more" if rest > 0 else "")
    return InputError(
        f"{folder} is not a run directory (no {MANIFEST})",
        files.format(listed)
        if names
        else "name a folder made by `profharness run`, or trace files",
    )


def load_files(
    paths: Sequence[Path],
    *,
    wanted: Wanted = Wanted.ALL,
    check: bool = True,
    every_pass: bool = False,
) -> Loaded:
    """Loose files as one trace: one file, the tables that a tool wrote apart, or files that share a
    device.

    A single source stays on its own clock. Where less is wanted, or without the check of cause and
    effect, it takes less time. Of a file into which several passes of a run were merged it is the
    pass that speaks for kernels, as in the run's hotspots, unless `every_pass` is wanted.
    """
    from profharness import readers
    from profharness.secrets.discretion import without_secrets

    traces = [
        without_secrets(readers.read_group(group, wanted=wanted))
        for group in readers.group_files(paths)
    ]
    if len(traces) == 1:
        trace = traces[0]
    else:
        from profharness.trace import merge

        trace = merge.merge(traces)
    loaded = Loaded(trace, ", ".join(str(path) for path in paths))
    if not every_pass:
        loaded = _of_one_pass(loaded)
    if not check:
        return loaded
    from profharness.trace.clocks.causality import causality_findings

    return replace(loaded, findings=causality_findings(loaded.trace))


def _of_one_pass(loaded: Loaded) -> Loaded:
    """The pass of a merged file that speaks for kernels; the same of everything else."""
    if len(loaded.trace.sources) < 2:
        return loaded
    from profharness.analysis.run.kernel_pass import of_merged_file

    chosen = of_merged_file(loaded.trace)
    if chosen is None:
        return loaded
    name, trace = chosen
    passes = [source.pass_name for source in loaded.trace.sources if source.pass_name]
    note = Problem(
        "info",
        loaded.source,
        len(passes),
        f"passes were merged into this file ({', '.join(passes)}): its figures are of {name}, "
        "which speaks for kernels in its run, too",
    )
    counted = loaded.trace if len(loaded.trace.counters) else None
    return replace(loaded, trace=replace(trace, problems=(*trace.problems, note)), counted=counted)


def _load_run(root: Path, wanted: Wanted) -> Loaded:
    from profharness.understand.load_run import load_run

    return of_records(load_run(root, wanted), root)


def of_records(records: RunRecords, root: Path) -> Loaded:
    """What was read of a run, without secrets."""
    from profharness.secrets.discretion import without_secrets

    loaded = Loaded(without_secrets(records.trace), str(root), records.manifest, records.findings)
    shown = records.shown
    return loaded if shown is None else replace(loaded, shown=lambda: map(without_secrets, shown()))


def _load_tools_folder(folder: Path) -> Loaded | None:
    """A folder that is no run and that rocprof-compute wrote; None for another."""
    from profharness.readers import bounded
    from profharness.readers.border import reading
    from profharness.readers.rocprof_compute import folder as rocprof_compute_folder
    from profharness.secrets.discretion import without_secrets

    with reading(folder):
        if not rocprof_compute_folder.holds(folder):
            return None
        trace = rocprof_compute_folder.read(folder)
        table = Path(trace.sources[0].path)
        beside = [path for path in table.parent.iterdir() if path != table and path.is_file()]
        trace = bounded(trace, (table, *beside))
    return Loaded(without_secrets(trace), str(folder))


def check_paths(paths: Sequence[Path]) -> None:
    """Raises UsageError where no path is given or one is given twice, and InputError for one that
    does not exist.
    """
    if not paths:
        raise UsageError("nothing to read", "name a run directory or trace files")
    for path in paths:
        if not path.exists():
            raise InputError(
                f"{path}: there is no such file or run directory", "`profharness ls` lists runs"
            )
    twice = [path for path, count in Counter(path.resolve() for path in paths).items() if count > 1]
    if twice:
        raise UsageError(
            f"{twice[0]} is named twice",
            "its records would count twice: name each file or run once",
        )


def run_names(paths: Sequence[Path]) -> list[str]:
    """For each path what tells its passes from those of the other runs: the folder's name, as much
    of its path as is needed.
    """
    runs = [path.resolve() for path in paths if path.is_dir()]
    if len(runs) < 2:
        return [""] * len(paths)
    depth = 1
    while len({run.parts[-depth:] for run in runs}) < len(runs):
        depth += 1
    return [
        "/".join(path.resolve().parts[-depth:]).lstrip("/") if path.is_dir() else ""
        for path in paths
    ]


def of_run(trace: Trace, run_name: str) -> Trace:
    """The trace of one of several runs: its passes named after the run. Sources that belong to no
    pass get the run's name.
    """
    return replace(
        trace,
        sources=tuple(
            replace(source, pass_name=f"{run_name}/{source.pass_name}".rstrip("/"))
            for source in trace.sources
        ),
    )


def share_clock(sources: Sequence[Source]) -> bool:
    """Whether all sources share one clock of one host, or collectives put them on one."""
    put_on = {dict(source.details).get(PUT_ON, "") for source in sources}
    if len(sources) < 2 or (len(put_on) == 1 and "" not in put_on):
        return True
    return len({(source.clock, source.host) for source in sources}) == 1 and not _lost(sources)


def _lost(sources: Sequence[Source]) -> list[str]:
    """Those that say neither host nor clock."""
    return [
        source.path for source in sources if source.clock is ClockDomain.UNKNOWN or not source.host
    ]


def check_clocks(
    sources: Sequence[Source], *, allow_unaligned: bool, collectives: str = ""
) -> bool:
    """Whether all sources share one clock. Where not, raises UsageError, naming those that do not,
    unless that is allowed. `collectives` is why these do not put them on one.
    """
    one_clock = share_clock(sources)
    if one_clock or allow_unaligned:
        return one_clock
    lost = _lost(sources)
    shared = sorted({f"{source.clock.value} of {source.host}" for source in sources})
    reason = (
        f"{lost[0]} does not say which clock or host it was recorded on"
        if lost
        else f"they were recorded on {', '.join(shared)}"
    )
    if collectives:
        reason += f", and {collectives}"
    raise UsageError(
        f"these sources cannot be put on one clock: {reason}",
        "record them in one run, or merge them as they are with --allow-unaligned (they will "
        "be marked)",
    )


def marked(sources: Sequence[Source]) -> tuple[Source, ...]:
    """The sources of a merge without a common clock: each that nothing aligned says so."""
    return tuple(
        source if source.alignment else replace(source, alignment=NO_CLOCK) for source in sources
    )
