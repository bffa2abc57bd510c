"""Runs and trace files into one Perfetto trace."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import cast, get_args

from profharness import __version__
from profharness.errors import OutputExists, UsageError
from profharness.loading import Loaded, load
from profharness.rundir import RunDir
from profharness.writers import perfetto
from profharness.writers.options import ClockReading, GpuRepresentation, HostFacts, WriteOptions


@dataclass(frozen=True)
class MergeOptions:
    """How `merge` treats clocks and what it writes."""

    overlay: bool = False
    allow_unaligned: bool = False
    gpu_repr: str = "render-stage"
    force: bool = False


@dataclass(frozen=True)
class MergeReport:
    """Where the trace went, and what there is to say about it."""

    path: Path
    lines: tuple[str, ...]


def merge_to_file(paths: Sequence[Path], output: Path | None, options: MergeOptions) -> MergeReport:
    """Write one Perfetto trace. Raises OutputExists for a file that is there, unless forced."""
    target = output or _default_output(paths)
    if target.exists() and not options.force:
        raise OutputExists(f"{target} exists", "name another with -o, or overwrite it with --force")
    loaded = load(paths, allow_unaligned=options.allow_unaligned, overlay=options.overlay)
    written = perfetto.write(loaded.trace, target, attributes=attributes(loaded), options=write_options(loaded, _gpu_repr(options.gpu_repr)))
    lines = [f"{source.path}: {source.alignment}" for source in loaded.trace.sources if source.alignment]
    lines += [f"{problem.severity}: {problem.source}: {problem.count} x {problem.message}" for problem in loaded.trace.problems]
    return MergeReport(target, (*lines, *written.lines()))


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
