"""What a run keeps of its telemetry besides the sampler's own files: a Parquet table per host, and
the classic log.
"""

from __future__ import annotations

from pathlib import Path

from profharness.errors import InputError
from profharness.rundir import telemetry, telemetry_files
from profharness.rundir.foreign.inside import Inside
from profharness.rundir.manifest import ClockSnapshot, Manifest
from profharness.rundir.paths import RunDir
from profharness.trace.clocks import align as clocks
from profharness.trace.device_counters import with_figures
from profharness.trace.model import ClockDomain, Trace
from profharness.writers import resource_log, telemetry_parquet

LOG_HZ = 10.0
_DIGITS = 19


def write(run: RunDir, manifest: Manifest) -> tuple[Path, ...]:
    """`<host>.parquet` for each sampler's file, and ResourceLog.csv, with the marks of a scan;
    files that cannot be read are left out.

    The log of a run on one node is that of its first device. Of a run on several nodes, one log
    holds all of them and all their devices.
    """
    made: list[Path] = []
    sampled: dict[str, Trace] = {}
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
        sampled[host] = with_figures(raw)
    step_ns = round(1e9 / LOG_HZ)
    if len(sampled) > 1:
        nodes, note = _joint(manifest, sampled)
        made += resource_log.write_joint(nodes, run.telemetry, step_ns, note)
    for host, trace in sampled.items():
        machine = _machine(manifest, host)
        if machine is None:
            continue
        if len(sampled) == 1:
            device = 0 if trace.devices else None
            made += resource_log.write(trace, run.telemetry, machine, device, step_ns)
        begins = _begins(manifest, host)
        if begins:
            made.append(resource_log.write_marks(begins, run.telemetry, machine))
    return tuple(made)


def _joint(
    manifest: Manifest, sampled: dict[str, Trace]
) -> tuple[list[tuple[Trace, resource_log.Machine]], str]:
    """Every node on the run's clock, and that on the wall clock of the node that led; where a
    node's clock cannot be brought to the run's, all stand by their own wall clocks, and the note
    says so. Nodes without any clock reading are left out, named in the note.
    """
    snapshots: dict[str, list[ClockSnapshot]] = {}
    for reading in manifest.clocks:
        snapshots.setdefault(reading.host, []).append(reading)
    reference = manifest.nodes[0].host if manifest.nodes else ""
    unread = [host for host in sampled if host not in snapshots]
    known = {host: trace for host, trace in sampled.items() if host not in unread}
    aligned = {
        host: clocks.align(trace, snapshots, reference)
        for host, trace in known.items()
        if reference in snapshots
    }
    joint = aligned if len(aligned) == len(known) else {}
    if not all(trace.sources[0].clock is ClockDomain.RUN for trace in joint.values()):
        joint = {}
    left = f" Left out, since nobody read their clocks: {', '.join(unread)}." if unread else ""
    if joint:
        first = snapshots[reference][0]
        offset = first.realtime_ns - first.boot_ns
        return (
            [(trace, _size(manifest, host, trace, offset)) for host, trace in joint.items()],
            f"All nodes stand on the clock of {reference}.{left}",
        )
    return (
        [
            (trace, _size(manifest, host, trace, first.realtime_ns - first.monotonic_ns))
            for host, trace in known.items()
            for first in snapshots[host][:1]
        ],
        f"Each node's times are by its own clock: they could not be brought to one.{left}",
    )


def _size(manifest: Manifest, host: str, trace: Trace, to_realtime_ns: int) -> resource_log.Machine:
    """CPUs and memory of a node, as the sampler on it said, else as the manifest describes it."""
    said = dict(trace.sources[0].details)
    node = next((one for one in manifest.nodes if one.host == host), None)
    cpus, memory = (_number(said.get(name, "")) for name in ("node_cpus", "node_memory_bytes"))
    return resource_log.Machine(
        (node.cpus if node else 0) or cpus,
        (node.memory_bytes if node else 0) or memory,
        to_realtime_ns,
    )


def _number(text: str) -> int:
    return int(text) if text.isascii() and text.isdigit() and len(text) < _DIGITS else 0


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
