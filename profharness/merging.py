"""Runs and trace files into one Perfetto trace.

A run, or a mix with runs, is merged in memory. Loose files are read by several processes, each of which leaves its
file as Parquet beside the output; they are then written one after the other, so that the memory that is needed is
that of the largest file, not of all.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import cast, get_args

import numpy as np

from profharness import __version__
from profharness.errors import OutputExists, UsageError
from profharness.file_merging import ByFile, merge_files
from profharness.jobs import IN_ONE, Workers
from profharness.loading import NO_CLOCK, Loaded, check_clocks, check_paths, load, marked
from profharness.outputs import require_writable
from profharness.rundir import RunDir
from profharness.trace import cutting
from profharness.trace.cutting import Cut
from profharness.trace.model import I64, NULL, Problem, Source, Trace
from profharness.units import format_ns
from profharness.writers import perfetto
from profharness.writers.options import ClockReading, GpuRepresentation, HostFacts, LeftOut, WriteOptions

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
    """Where the trace went, and what there is to say about it: `lines` in full, `brief` in short."""

    path: Path
    lines: tuple[str, ...]
    brief: tuple[str, ...] = ()


def merge_to_file(paths: Sequence[Path], output: Path | None, options: MergeOptions) -> MergeReport:
    """Write one Perfetto trace. Raises OutputExists for a file that is there, unless forced, and as `load` does."""
    target = output or _default_output(paths)
    if target.exists() and not options.force:
        raise OutputExists(f"{target} exists", "name another with -o, or overwrite it with --force")
    check_paths(paths)
    require_writable(target, "name another place with -o")
    if len(paths) > 1 and not any(path.is_dir() for path in paths) and not options.overlay:
        return _merge_files(paths, target, options)
    loaded = load(paths, allow_unaligned=options.allow_unaligned, overlay=options.overlay)
    trace, dropped = cutting.cut(loaded.trace, options.cut, cutting.first_ns(loaded.trace) or 0)
    _check_kept(options.cut, sum(len(table) for _, table in trace.tables()), loaded.trace)
    chosen = replace(write_options(loaded, _gpu_repr(options.gpu_repr)), max_kernels=options.max_kernels)
    written = perfetto.write(trace, target, attributes=attributes(loaded), options=chosen)
    report = replace(written, left_out=(*_left_out(dropped, options.cut), *written.left_out))
    return _report(target, loaded.trace.sources, loaded.trace.problems, report.lines())


def _merge_files(paths: Sequence[Path], target: Path, options: MergeOptions) -> MergeReport:
    """Loose files, each prepared where it is."""
    def clocks(sources: Sequence[Source]) -> tuple[Source, ...] | None:
        together = check_clocks(sources, allow_unaligned=options.allow_unaligned)
        return None if together else marked(sources)

    said: dict[str, str | int] = {"profharness.source": f"{len(paths)} files", "profharness.version": __version__}
    chosen = WriteOptions(gpu_repr=_gpu_repr(options.gpu_repr), max_kernels=options.max_kernels)
    merged = merge_files(paths, ByFile(target, options.cut, chosen, said, options.workers), clocks)
    report = replace(merged.written, left_out=(*_left_out(merged.dropped, options.cut), *merged.written.left_out))
    return _report(target, merged.sources, merged.problems, (*report.lines(), *merged.lines))


def _report(target: Path, sources: Sequence[Source], problems: Sequence[Problem], written: Sequence[str]) -> MergeReport:
    return MergeReport(target, (*_told(sources, problems), *written), (*_short(sources), *_serious(problems), *written))


def _short(sources: Sequence[Source]) -> Iterator[str]:
    """How many sources, the worst bound of their alignment, and those that have none or are not on the common clock."""
    count = f"{len(sources)} {'source' if len(sources) == 1 else 'sources'}"
    bounds = [(bound, source.path) for source in sources if (bound := source.residual_ns if source.bound_ns is None else source.bound_ns) is not None]
    worst = max(bounds, default=None)
    yield count if worst is None else f"{count}, aligned to {format_ns(worst[0], 2)} or better (worst: {worst[1]})"
    lost = [source.path for source in sources if source.alignment == NO_CLOCK]
    if lost:
        more = f" and {len(lost) - _NAMED} more" if len(lost) > _NAMED else ""
        yield f"{len(lost)} not aligned, their times stand as the tools wrote them: {', '.join(lost[:_NAMED])}{more}"


def _serious(problems: Sequence[Problem]) -> Iterator[str]:
    """Errors, then warnings; the same message of several sources once."""
    groups: dict[tuple[str, str], list[Problem]] = {}
    for problem in problems:
        if problem.severity != "info":
            groups.setdefault((problem.severity, problem.message), []).append(problem)
    for (severity, message), group in sorted(groups.items(), key=lambda pair: pair[0][0]):
        others = f" and {len(group) - 1} more" if len(group) > 1 else ""
        yield f"{severity}: {group[0].source}{others}: {sum(one.count for one in group)} x {message}"


def _left_out(dropped: Counter[str], wanted: Cut) -> tuple[LeftOut, ...]:
    return tuple(LeftOut(table, count, f"outside of {wanted.words()}") for table, count in dropped.items())


def _check_kept(wanted: Cut, rows: int, whole: Trace) -> None:
    """Raises UsageError where a selection left nothing."""
    if rows or wanted.is_all:
        return
    hint = "look at what the files hold with `profharness metrics`"
    if wanted.steps is not None and len(numbers := _steps_of(whole)):
        hint = f"the trace holds steps {numbers[0]} to {numbers[-1]}"
    raise UsageError(f"{wanted.words()}: no record is left", hint)


def _steps_of(trace: Trace) -> I64:
    numbers = cutting.step_numbers(trace)
    distinct: I64 = np.unique(numbers[numbers != NULL])
    return distinct


def _told(sources: Sequence[Source], problems: Sequence[Problem]) -> tuple[str, ...]:
    return (*(f"{source.path}: {source.alignment}" for source in sources if source.alignment),
            *(f"{problem.severity}: {problem.source}: {problem.count} x {problem.message}" for problem in problems))


def _default_output(paths: Sequence[Path]) -> Path:
    if len(paths) == 1 and paths[0].is_dir():
        return RunDir(paths[0]).merged
    return Path("merged.pftrace")


def attributes(loaded: Loaded) -> dict[str, str | int]:
    """What the trace says of itself in the viewer's overview."""
    said: dict[str, str | int] = {"profharness.source": loaded.source, "profharness.version": __version__}
    if loaded.manifest is not None:
        said |= {"profharness.run_id": loaded.manifest.id, "profharness.argv": " ".join(loaded.manifest.argv),
                 "profharness.created": loaded.manifest.created}
    for number, source in enumerate(loaded.trace.sources):
        if source.bound_ns is not None:
            said[f"profharness.clock.{number}.bound_ns"] = source.bound_ns
        if source.residual_ns is not None:
            said[f"profharness.clock.{number}.residual_ns"] = source.residual_ns
        if source.alignment:
            said[f"profharness.clock.{number}.alignment"] = f"{source.path}: {source.alignment}"
    return said


def write_options(loaded: Loaded, gpu_repr: GpuRepresentation = "render-stage") -> WriteOptions:
    """With the reference host's wall clock and the nodes' facts, where a manifest has them."""
    manifest = loaded.manifest
    if manifest is None:
        return WriteOptions(gpu_repr=gpu_repr)
    reference = manifest.nodes[0].host if manifest.nodes else ""
    readings = tuple(ClockReading(one.boot_ns, one.realtime_ns) for one in manifest.clocks if one.host == reference)
    hosts = tuple(HostFacts(host=node.host, sysname="Linux", release=node.kernel, cpus=len(node.cpus_allowed) or None)
                  for node in manifest.nodes)
    return WriteOptions(gpu_repr=gpu_repr, clocks=readings, hosts=hosts)


def _gpu_repr(text: str) -> GpuRepresentation:
    for known in get_args(GpuRepresentation):
        if text == known:
            return cast("GpuRepresentation", known)
    raise UsageError(f"--gpu-repr: {text!r} is not a representation", "use render-stage or track-event")
