"""Runs and trace files into one Perfetto trace.

Loose files, and the files of one large run, are read by several processes, each of which leaves its
file as Parquet beside the output; they are then written one after the other, so that the memory
that is needed is that of the largest file (or of those of a run that refer to each other), not of
all; so are several runs, and runs with files. A small run, and a single file, is merged in memory.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import cast, get_args

from profharness import __version__
from profharness.errors import OutputExists, UsageError
from profharness.findings import problem_text
from profharness.rundir.manifest import Manifest
from profharness.rundir.outputs import require_writable
from profharness.rundir.paths import MANIFEST, RunDir
from profharness.trace.model import Problem, Source
from profharness.trace.parts import cutting
from profharness.trace.parts.cutting import Cut, StepRange
from profharness.understand.load import (
    NO_CLOCK,
    check_clocks,
    check_hosts,
    check_paths,
    load,
    marked,
)
from profharness.understand.many.jobs import IN_ONE, Workers
from profharness.understand.merge.files import merge_files, stated_hosts
from profharness.understand.merge.one_run import LARGE, artifact_paths, merge_run, size_of
from profharness.understand.merge.parts import Merged, MergeJob
from profharness.understand.merge.several_runs import merge_mixed
from profharness.units import format_ns
from profharness.writers import perfetto
from profharness.writers.options import (
    ClockReading,
    GpuRepresentation,
    HostFacts,
    LeftOut,
    WriteOptions,
)

_ALL = Cut()
_NAMED = 3


@dataclass(frozen=True)
class MergeOptions:
    """How `merge` treats clocks, what it writes, and who reads the files."""

    overlay: bool = False
    allow_unaligned: bool = False
    gpu_repr: str = "render-stage"
    force: bool = False
    cut: Cut = _ALL
    max_kernels: int | None = None
    workers: Workers = IN_ONE


@dataclass(frozen=True)
class MergeReport:
    """Where the trace went, and what there is to say about it: `lines` in full, `brief` in
    short.
    """

    path: Path
    lines: tuple[str, ...]
    brief: tuple[str, ...] = ()


def merge_to_file(paths: Sequence[Path], output: Path | None, options: MergeOptions) -> MergeReport:
    """Write one Perfetto trace. Raises OutputExists for a file that is there, unless forced, and as
    `load` does.
    """
    target = output or _default_output(paths)
    if target.exists() and not options.force:
        raise OutputExists(f"{target} exists", "name another with -o, or overwrite it with --force")
    check_paths(paths)
    require_writable(target, "name another place with -o")
    options = replace(options, cut=_as_recorded(options.cut, paths))
    if len(paths) > 1:
        return (
            _merge_mixed(paths, target, options)
            if any(path.is_dir() for path in paths)
            else _merge_files(paths, target, options)
        )
    if (
        len(paths) == 1
        and (paths[0] / MANIFEST).is_file()
        and (options.workers != IN_ONE or size_of(artifact_paths(paths[0])) >= LARGE)
    ):
        return _merge_run(paths[0], target, options)
    loaded = load(paths, allow_unaligned=options.allow_unaligned, overlay=options.overlay)
    of_ranks, others = cutting.cut(loaded.trace, Cut(ranks=options.cut.ranks), 0)
    if options.cut.steps is not None:
        cutting.steps_found(of_ranks, options.cut).check(options.cut)
    trace, dropped = cutting.cut(
        of_ranks, replace(options.cut, ranks=None), cutting.first_ns(of_ranks) or 0
    )
    dropped += others
    if not any(len(table) for _, table in trace.tables()):
        cutting.check_kept(options.cut, 0, cutting.steps_found(loaded.trace, options.cut))
    chosen = replace(
        write_options(loaded.manifest, _gpu_repr(options.gpu_repr)), max_kernels=options.max_kernels
    )
    written = perfetto.write(
        trace,
        target,
        attributes=attributes(loaded.source, loaded.manifest, trace.sources),
        options=chosen,
    )
    report = replace(written, left_out=(*_left_out(dropped, options.cut), *written.left_out))
    return _report(target, trace.sources, loaded.trace.problems, report.lines())


def _as_recorded(wanted: Cut, paths: Sequence[Path]) -> Cut:
    """With the ranges that the runs recorded as their steps, where none were asked for and all runs
    that name any name the same.
    """
    if wanted.steps is None or wanted.step_range is not None:
        return wanted
    recorded = {
        RunDir.open(path).read_manifest().step_range
        for path in paths
        if (path / MANIFEST).is_file()
    } - {""}
    return (
        replace(wanted, step_range=StepRange(recorded.pop(), recorded=True))
        if len(recorded) == 1
        else wanted
    )


def _merge_files(paths: Sequence[Path], target: Path, options: MergeOptions) -> MergeReport:
    """Loose files, each prepared where it is."""
    if not options.allow_unaligned:
        check_hosts(stated_hosts(paths, options.cut.ranks))
    said: dict[str, str | int] = {
        "profharness.source": f"{len(paths)} files",
        "profharness.version": __version__,
    }
    chosen = WriteOptions(gpu_repr=_gpu_repr(options.gpu_repr), max_kernels=options.max_kernels)
    return _of_parts(
        target,
        merge_files(
            paths,
            MergeJob(target, options.cut, chosen, lambda _: said, options.workers),
            _clocks(options),
        ),
        options,
    )


def _merge_mixed(paths: Sequence[Path], target: Path, options: MergeOptions) -> MergeReport:
    """Several runs, or runs and files."""
    chosen = WriteOptions(gpu_repr=_gpu_repr(options.gpu_repr), max_kernels=options.max_kernels)
    named = ", ".join(str(path) for path in paths)
    job = MergeJob(
        target,
        options.cut,
        chosen,
        lambda sources: attributes(named, None, sources),
        options.workers,
    )
    return _of_parts(
        target, merge_mixed(paths, job, _clocks(options), lay_over=options.overlay), options
    )


def _clocks(options: MergeOptions) -> Callable[[Sequence[Source]], tuple[Source, ...] | None]:
    """The sources as they are to be marked; None where all share one clock."""

    def clocks(sources: Sequence[Source]) -> tuple[Source, ...] | None:
        together = check_clocks(sources, allow_unaligned=options.allow_unaligned)
        return None if together else marked(sources)

    return clocks


def _merge_run(root: Path, target: Path, options: MergeOptions) -> MergeReport:
    """A run, each file prepared where it is."""
    manifest = RunDir.open(root).read_manifest()
    chosen = replace(
        write_options(manifest, _gpu_repr(options.gpu_repr)), max_kernels=options.max_kernels
    )
    job = MergeJob(
        target,
        options.cut,
        chosen,
        lambda sources: attributes(str(root), manifest, sources),
        options.workers,
    )
    return _of_parts(target, merge_run(root, job, lay_over=options.overlay), options)


def _of_parts(target: Path, merged: Merged, options: MergeOptions) -> MergeReport:
    report = replace(
        merged.written, left_out=(*_left_out(merged.dropped, options.cut), *merged.written.left_out)
    )
    return _report(target, merged.sources, merged.problems, (*report.lines(), *merged.lines))


def _report(
    target: Path, sources: Sequence[Source], problems: Sequence[Problem], written: Sequence[str]
) -> MergeReport:
    return MergeReport(
        target,
        (*_told(sources, problems), *written),
        (*_short(sources), *_serious(problems), *written),
    )


def _short(sources: Sequence[Source]) -> Iterator[str]:
    """How many sources, the worst bound of their alignment, and those that have none or are not on
    the common clock.
    """
    count = f"{len(sources)} {'source' if len(sources) == 1 else 'sources'}"
    bounds = [
        (bound, source.path)
        for source in sources
        if (bound := source.residual_ns if source.bound_ns is None else source.bound_ns) is not None
    ]
    worst = max(bounds, default=None)
    yield (
        count
        if worst is None
        else f"{count}, aligned to {format_ns(worst[0], 2)} or better (worst: {worst[1]})"
    )
    lost = [source.path for source in sources if source.alignment == NO_CLOCK]
    if lost:
        more = f" and {len(lost) - _NAMED} more" if len(lost) > _NAMED else ""
        yield (
            f"{len(lost)} not aligned, their times stand as the tools wrote them: "
            f"{', '.join(lost[:_NAMED])}{more}"
        )


def _serious(problems: Sequence[Problem]) -> Iterator[str]:
    """Errors, then warnings; the same message of several sources once."""
    groups: dict[tuple[str, str], list[Problem]] = {}
    for problem in problems:
        if problem.severity != "info":
            groups.setdefault((problem.severity, problem.message), []).append(problem)
    for (severity, message), group in sorted(groups.items(), key=lambda pair: pair[0][0]):
        others = f" and {len(group) - 1} more" if len(group) > 1 else ""
        yield (
            f"{severity}: "
            f"{problem_text(f'{group[0].source}{others}', sum(one.count for one in group), message)}"
        )


def _left_out(dropped: Counter[str], wanted: Cut) -> tuple[LeftOut, ...]:
    return tuple(
        LeftOut(table, count, f"outside of {wanted.words()}") for table, count in dropped.items()
    )


def _told(sources: Sequence[Source], problems: Sequence[Problem]) -> tuple[str, ...]:
    return (
        *(f"{source.path}: {source.alignment}" for source in sources if source.alignment),
        *(
            f"{problem.severity}: {problem_text(problem.source, problem.count, problem.message)}"
            for problem in problems
        ),
    )


def _default_output(paths: Sequence[Path]) -> Path:
    if len(paths) == 1 and (paths[0] / MANIFEST).is_file():
        return RunDir(paths[0]).merged
    return Path("merged.pftrace")


def attributes(
    named: str, manifest: Manifest | None, sources: Sequence[Source]
) -> dict[str, str | int]:
    """What the trace of what was `named` says of itself in the viewer's overview."""
    said: dict[str, str | int] = {"profharness.source": named, "profharness.version": __version__}
    if manifest is not None:
        said |= {
            "profharness.run_id": manifest.id,
            "profharness.argv": " ".join(manifest.argv),
            "profharness.created": manifest.created,
        }
    for number, source in enumerate(sources):
        if source.bound_ns is not None:
            said[f"profharness.clock.{number}.bound_ns"] = source.bound_ns
        if source.residual_ns is not None:
            said[f"profharness.clock.{number}.residual_ns"] = source.residual_ns
        if source.alignment:
            said[f"profharness.clock.{number}.alignment"] = f"{source.path}: {source.alignment}"
    return said


def write_options(
    manifest: Manifest | None, gpu_repr: GpuRepresentation = "render-stage"
) -> WriteOptions:
    """With the reference host's wall clock and the nodes' facts, where a manifest has them."""
    if manifest is None:
        return WriteOptions(gpu_repr=gpu_repr)
    reference = manifest.nodes[0].host if manifest.nodes else ""
    readings = tuple(
        ClockReading(one.boot_ns, one.realtime_ns)
        for one in manifest.clocks
        if one.host == reference
    )
    hosts = tuple(
        HostFacts(
            host=node.host,
            sysname="Linux",
            release=node.kernel,
            cpus=len(node.cpus_allowed) or None,
        )
        for node in manifest.nodes
    )
    return WriteOptions(gpu_repr=gpu_repr, clocks=readings, hosts=hosts)


def _gpu_repr(text: str) -> GpuRepresentation:
    for known in get_args(GpuRepresentation):
        if text == known:
            return cast("GpuRepresentation", known)
    raise UsageError(
        f"--gpu-repr: {text!r} is not a representation", "use render-stage or track-event"
    )
