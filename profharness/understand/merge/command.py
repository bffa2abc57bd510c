"""`profharness merge`: the checks before any file is read, the choice between memory and disk, and
the report.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from profharness.errors import OutputExists, UsageError
from profharness.rundir.foreign.patterns import why_not
from profharness.rundir.manifest import Manifest
from profharness.rundir.outputs import refuse_inputs, require_writable
from profharness.rundir.paths import MANIFEST, RunDir
from profharness.trace.parts.cutting import Cut, StepRange
from profharness.trace.wanted import Wanted
from profharness.understand.load import check_paths, load
from profharness.understand.many.jobs import IN_ONE, Workers
from profharness.understand.merge.figures import teller
from profharness.understand.merge.head import attributes, gpu_representation, write_options
from profharness.understand.merge.merger import merge_spilled_parts
from profharness.understand.merge.report import MergeReport, merge_report
from profharness.understand.merge.writing import MergeJob, write_whole
from profharness.understand.run_parts import artifact_bytes

LARGE = 256 << 20
"""Bytes of tools' files from which on a run is merged in parts: less is sooner merged in memory."""
_ALL = Cut()


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
    critical_path: bool = False


def merge_to_file(paths: Sequence[Path], output: Path | None, options: MergeOptions) -> MergeReport:
    """Write one Perfetto trace. Raises OutputExists for a file that is there, unless forced,
    UsageError for one that is read here, and as `load` does.
    """
    target = output or _default_output(paths)
    refuse_inputs(target, paths)
    if target.exists() and not options.force:
        raise OutputExists(f"{target} exists", "name another with -o, or overwrite it with --force")
    check_paths(paths)
    require_writable(target, "name another place with -o")
    options = replace(options, cut=_as_recorded(options.cut, paths))
    if fits_in_memory(paths, options.workers):
        loaded = load(
            paths,
            allow_unaligned=options.allow_unaligned,
            overlay=options.overlay,
            wanted=Wanted.STACKS,
            every_pass=True,
        )
        whole = loaded.trace
        if options.critical_path:
            from profharness.understand.merge.critical import with_critical_path

            whole = with_critical_path(loaded)
        merged = write_whole(whole, _job(paths, target, options, loaded.manifest))
    elif options.critical_path:
        raise UsageError(
            "--critical-path is for one run or file that fits in memory",
            "name one file or one run (without --processes), or use `metrics --critical-path`",
        )
    else:
        merged = merge_spilled_parts(paths, _job(paths, target, options, _manifest(paths)))
    return merge_report(target, merged, options.cut)


def fits_in_memory(paths: Sequence[Path], workers: Workers = IN_ONE) -> bool:
    """Whether what was named is merged in memory: one file, whose records are needed at once
    anyway, and a run that is not `LARGE`.

    Where several were named, or workers were asked for, each file is set aside on disk once it was
    read.
    """
    if len(paths) != 1:
        return False
    if not (paths[0] / MANIFEST).is_file():
        return True
    return workers == IN_ONE and artifact_bytes(paths[0]) < LARGE


def _job(
    paths: Sequence[Path], target: Path, options: MergeOptions, manifest: Manifest | None
) -> MergeJob:
    chosen = replace(
        write_options(manifest, gpu_representation(options.gpu_repr)),
        max_kernels=options.max_kernels,
        tell_kernels=teller(paths, manifest, options.cut, options.max_kernels),
    )
    only_files = len(paths) > 1 and not any(path.is_dir() for path in paths)
    named = f"{len(paths)} files" if only_files else ", ".join(str(path) for path in paths)
    return MergeJob(
        target,
        options.cut,
        chosen,
        lambda sources: attributes(named, manifest, () if only_files else sources),
        options.workers,
        options.overlay,
        options.allow_unaligned,
    )


def _manifest(paths: Sequence[Path]) -> Manifest | None:
    """The manifest of a run which is merged alone; None otherwise."""
    return RunDir.open(paths[0]).read_manifest() if len(paths) == 1 else None


def _as_recorded(wanted: Cut, paths: Sequence[Path]) -> Cut:
    """The cut with the ranges that the runs recorded as their steps, where none were asked for and
    all runs that name any name the same.
    """
    if wanted.steps is None or wanted.step_range is not None:
        return wanted
    recorded = {
        RunDir.open(path).read_manifest().step_range
        for path in paths
        if (path / MANIFEST).is_file()
    } - {""}
    if len(recorded) != 1 or why_not(min(recorded)):
        return wanted
    return replace(wanted, step_range=StepRange(recorded.pop(), recorded=True))


def _default_output(paths: Sequence[Path]) -> Path:
    if len(paths) == 1 and (paths[0] / MANIFEST).is_file():
        return RunDir(paths[0]).merged
    return Path("merged.pftrace")
