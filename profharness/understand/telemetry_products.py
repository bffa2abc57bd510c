"""What a run keeps of its telemetry besides the sampler's own files: a Parquet table per host, and
the classic log.
"""

from __future__ import annotations

from pathlib import Path

from profharness.errors import InputError
from profharness.rundir import telemetry, telemetry_files
from profharness.rundir.foreign.inside import Inside
from profharness.rundir.manifest import Manifest
from profharness.rundir.paths import RunDir
from profharness.trace.device_counters import with_figures
from profharness.writers import resource_log, telemetry_parquet

LOG_HZ = 10.0


def write(run: RunDir, manifest: Manifest) -> tuple[Path, ...]:
    """`<host>.parquet` for each sampler's file, and ResourceLog.csv of the node that led the run,
    with the marks of a scan; files that cannot be read are left out.
    """
    made: list[Path] = []
    for path in telemetry_files.found_in(Inside(run.root)).paths:
        host = path.name.removesuffix(telemetry_files.SAMPLES)
        try:
            raw = telemetry.read_raw(path)
        except InputError:
            continue  # it is among the problems of the run already
        if not len(raw.samples):
            continue
        made.append(run.telemetry / f"{host}.parquet")
        telemetry_parquet.write(raw, made[-1])
        trace = with_figures(raw)
        machine = _machine(manifest, host)
        if machine is not None:
            made += resource_log.write(
                trace, run.telemetry, machine, 0 if trace.devices else None, round(1e9 / LOG_HZ)
            )
            begins = _begins(manifest, host)
            if begins:
                made.append(resource_log.write_marks(begins, run.telemetry, machine))
    return tuple(made)


def _begins(manifest: Manifest, host: str) -> list[tuple[int, int]]:
    """When each point of a scan began on this host, in every pass, and its batch size."""
    return [
        (point.start_monotonic_ns, point.batch_size)
        for point in manifest.points
        if point.start_monotonic_ns is not None
        and point.batch_size is not None
        and point.host in ("", host)
    ]


def _machine(manifest: Manifest, host: str) -> resource_log.Machine | None:
    """The first node, where this is its telemetry and its clocks were read."""
    node = manifest.nodes[0] if manifest.nodes else None
    if node is None or node.host != host or not node.memory_bytes:
        return None
    offsets = [
        reading.realtime_ns - reading.monotonic_ns
        for reading in manifest.clocks
        if reading.host == host
    ]
    return (
        resource_log.Machine(
            node.cpus or len(node.cpus_allowed) or 1, node.memory_bytes, offsets[0]
        )
        if offsets
        else None
    )
