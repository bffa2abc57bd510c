"""What speaks against a run's own measurement: parts that are missing, other work on the CPU, a CPU
quota, holes in the sampling.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import msgspec

from profharness.analysis.power.device_counters import device_counter_findings
from profharness.analysis.records import Figure
from profharness.findings import Finding, finding
from profharness.rundir.jobs.records import JobEnd
from profharness.rundir.manifest import Manifest, PassRecord
from profharness.trace.device_counters import EXPORTER
from profharness.trace.device_counters import NAME as COUNTERS
from profharness.trace.model import Source, Trace

# Waiting for a core this share of the time that the process tree wanted one makes throughput differ
# visibly.
WAITING = 0.05
# A process that wants less than this of a core sleeps: what it waits for is not the CPU.
HARDLY = 0.05
# Cores that others must have used to be what the workload waited for.
OTHERS = 0.1
NOBODY = (
    "nothing else ran here: its own threads met on the same cores, "
    "or the host of a virtual machine took them; fewer threads may do as much"
)
THROTTLED = 0.01
MISSED = 0.05
SOCKETS, SOCKET_SHARE = 50e6, 0.2
"""B/s of one node, and their part of what its NICs carried: from both on there is a finding."""
_HSN = "hsn"
_TIMEOUTS = "slingshot_timeouts"
TOO_SLOW = "sampled too slowly"
"""Begins the note of a figure whose samples are longer than the time that it speaks for."""

# Share of time from which a device's own throttling makes throughput differ visibly.
_DEVICE_THROTTLED = (
    ("throttle_power", 0.05, "its power limit"),
    ("throttle_thermal", 0.01, "its temperature"),
    ("throttle_external", 0.01, "a signal from outside"),
)


RUN_AGAIN = "run the command again, from its start; what was recorded until then is shown"
"""A command cannot be taken up where it ended: --resume is for scans."""
AMD_LIBRARY = "amdsmi"  # the one source that others stand by for
_NAMED = 6  # missing points that are listed by name


def incomplete_findings(manifest: Manifest, state: str) -> tuple[Finding, ...]:
    """One finding that names all that is missing from a run that did not reach its end.

    `state` is the manifest's, or `killed` where the process that made the run is known to be gone.
    """
    missing = [words for record in manifest.passes if (words := _missing(manifest, record))]
    if state == "done" and not missing:
        return ()
    ended = all(record.state in ("done", "interrupted") for record in manifest.passes)
    if manifest.attached is not None and state == "interrupted" and ended:
        return ()  # Ctrl-C is the way to end an attachment early, and what it recorded is whole
    how = {
        "killed": "the harness was killed",
        "running": "the run had not ended when it was read",
        "interrupted": "the run was interrupted",
        "failed": "the run failed" + (f": {manifest.error}" if manifest.error else ""),
    }.get(state, "a pass did not end")
    said = finding("run-incomplete", "; ".join((how, *missing)), state=state)
    if manifest.kind == "command":
        said = msgspec.structs.replace(said, advice=RUN_AGAIN)
    return (said,)


def job_findings(end: JobEnd | None) -> tuple[Finding, ...]:
    """What ended the batch job of a run before its work was done."""
    if end is None or not end.cause:
        return ()
    nodes = f" (its nodes: {end.nodes})" if end.nodes else ""
    message = f"job {end.job} {end.in_words}{nodes}"
    if not end.lost:
        return (finding(end.cause, message, job=end.job, nodes=end.nodes),)
    return (finding(end.cause, message, job=end.job, nodes=end.nodes, lost=end.lost),)


def _missing(manifest: Manifest, record: PassRecord) -> str:
    """What a pass lacks, in words; empty for one that is complete."""
    planned = manifest.scan.planned.get(record.name, ()) if manifest.scan is not None else ()
    present = {
        f"{point.id}~{point.repeat}" if point.repeat else point.id
        for point in manifest.points
        if point.pass_name == record.name
    }
    absent = [key for key in planned if key not in present]
    if record.state == "planned":
        return f"the {record.name} pass never began" + (
            f" ({len(absent)} point{'s' if len(absent) > 1 else ''})" if absent else ""
        )
    if record.state == "done" and not absent:
        return ""
    how = {"running": "did not end", "interrupted": "was interrupted", "failed": "failed"}.get(
        record.state, "is incomplete"
    )
    if not absent:
        return f"the {record.name} pass {how}"
    listed = ", ".join(absent[:_NAMED]) + (
        f" and {len(absent) - _NAMED} more" if len(absent) > _NAMED else ""
    )
    return (
        f"the {record.name} pass {how}: {len(absent)} of {len(planned)} points "
        f"{'are' if len(absent) > 1 else 'is'} missing ({listed})"
    )


_SECOND_MASKS = ("HIP_VISIBLE_DEVICES", "CUDA_VISIBLE_DEVICES")


def mask_findings(manifest: Manifest) -> tuple[Finding, ...]:
    """Nodes and processes for which two variables hide devices one after the other: HIP counts
    among those that ROCR_VISIBLE_DEVICES leaves. A process may have them from its container.

    A second mask that names all that are left, in order, changes nothing. One that counts beyond
    them loses devices.
    """
    findings = []
    places = [(node.host, node.variables) for node in manifest.nodes]
    places += [(process.host, process.masks) for process in manifest.processes]
    seen = {
        (host, *(variables.get(name, "") for name in ("ROCR_VISIBLE_DEVICES", *_SECOND_MASKS)))
        for host, variables in places
    }
    for host, rocr, hip, cuda in sorted(seen):
        first, second = _listed(rocr), _listed(hip or cuda)
        name = _SECOND_MASKS[0] if hip else _SECOND_MASKS[1]
        if not first or not second or second == [str(number) for number in range(len(first))]:
            continue
        lost = [number for number in second if number.isdigit() and int(number) >= len(first)]
        first_mask = (
            f"ROCR_VISIBLE_DEVICES leaves {len(first)} "
            f"{'device' if len(first) == 1 else 'devices'} on {host or 'the node'}, "
            f"of which {name}={','.join(second)} counts"
        )
        consequence = (
            f"device {', '.join(lost)} is not among them"
            if lost
            else "other devices are used than either says"
        )
        findings.append(
            finding(
                "mask-applied-twice",
                f"{first_mask}: {consequence}",
                severity="error" if lost else "warning",
                rocr=",".join(first),
                hip=",".join(second),
            )
        )
    return tuple(findings)


def _listed(mask: str) -> list[str]:
    return [item.strip() for item in mask.split(",") if item.strip()]


def telemetry_findings(trace: Trace, figures: Mapping[str, Figure]) -> tuple[Finding, ...]:
    """Findings from figures over the measured time (`run_telemetry.figures_in`) and from the
    sampler's own account.
    """
    return (
        *_cpu(figures),
        *_device(figures),
        *_sockets(figures),
        *_timeouts(figures),
        *device_counter_findings(trace),
        *(gap for source in trace.sources for gap in (*_gaps(source), *_lost(source))),
    )


def _cpu(figures: Mapping[str, Figure]) -> Iterator[Finding]:
    waited, stopped = waiting_share(figures), _value(figures, "cpu_throttled")
    if waited:
        pressure = finding(
            "cpu-pressure",
            f"the workload waited for a core {100 * waited:.0f} % of the time that it wanted one",
            waiting_share=waited,
        )
        yield msgspec.structs.replace(pressure, advice=NOBODY) if alone(figures) else pressure
    if stopped is not None and stopped > THROTTLED:
        yield finding(
            "cpu-pressure",
            f"the CPU quota of its cgroup stopped the workload {100 * stopped:.0f} % of the time",
            throttled_share=stopped,
        )


def alone(figures: Mapping[str, Figure]) -> bool:
    """Whether hardly anything else ran on the node: what the workload waited for was no other work
    that can be seen from here.
    """
    ran, node = _value(figures, "cores_used"), _value(figures, "cpu_node")
    return ran is not None and node is not None and node - ran < OTHERS


def waiting_share(figures: Mapping[str, Figure]) -> float | None:
    """The share of the time that the process tree wanted a core and waited for one; 0 where that
    does not matter.

    None where it was not measured, or sampled too slowly for the time asked for.
    """
    ran, figure = _value(figures, "cores_used"), figures.get("cpu_tree_wait")
    waited = _value(figures, "cpu_tree_wait")
    if ran is None or waited is None or figure is None or figure.note.startswith(TOO_SLOW):
        return None
    wanted = ran + waited
    return waited / wanted if wanted > HARDLY and waited > WAITING * wanted else 0.0


def _device(figures: Mapping[str, Figure]) -> Iterator[Finding]:
    for name, limit, cause in _DEVICE_THROTTLED:
        share = _value(figures, name)
        if share is not None and share > limit:
            yield finding(
                "throttled",
                f"{cause} held the device's clock down {100 * share:.0f} % of the time",
                throttled_share=share,
            )
    other_processes = _value(figures, "gpu_processes_other")
    if other_processes:
        yield finding(
            "device-shared",
            "processes that are not the workload's used its devices meanwhile: "
            f"{other_processes:.3g} on average",
            other_processes=other_processes,
        )


def _sockets(figures: Mapping[str, Figure]) -> Iterator[Finding]:
    """Collectives that pass the kernel's sockets by leave little there: many bytes over the sockets
    of Slingshot's interfaces are those of a library that found no plugin.
    """
    rates = {
        (direction, host): rate
        for direction in ("sent", "received")
        for host, rate in _over_sockets(figures, f"network_{direction}:{_HSN}").items()
    }
    (direction, host), rate = max(rates.items(), key=lambda one: one[1], default=(("", ""), 0.0))
    octets = _value(figures, f"slingshot_{direction}" + (f"_{host}" if host else ""))
    share = rate / octets if octets else None
    if rate < SOCKETS or (share is not None and share < SOCKET_SHARE):
        return
    of = "" if share is None else f", {100 * min(share, 1):.0f} % of all that its NICs carried"
    yield finding(
        "socket-traffic",
        f"{rate / 1e6:.0f} MB/s went over the sockets of {f'{host}, on ' if host else ''}"
        f"Slingshot's interfaces (hsn){of}: RCCL and MPI by libfabric do not use them",
        bytes_per_s=rate,
    )


def _timeouts(figures: Mapping[str, Figure]) -> Iterator[Finding]:
    """A Slingshot NIC that gives up waiting has lost packets, which libfabric sends again: what
    waits for them, a collective as a rule, waits for whole milliseconds and more.
    """
    hosts = {
        name.removeprefix(f"{_TIMEOUTS}_"): value
        for name in figures
        if name.startswith(f"{_TIMEOUTS}_") and (value := _value(figures, name))
    }
    rate = _value(figures, _TIMEOUTS)
    if rate:
        most = max(hosts, key=lambda host: hosts[host], default="")
        yield finding(
            "network-timeouts",
            f"Slingshot's NICs timed out {rate:.2g} times per second"
            + (f", most often those of {most}" if len(hosts) > 1 else f" on {most}" if most else "")
            + ": packets were lost and sent again",
            timeouts_per_s=rate,
        )


def _over_sockets(figures: Mapping[str, Figure], head: str) -> dict[str, float]:
    """Bytes per second over all interfaces that begin so, by host where several were sampled."""
    rates: dict[str, float] = {}
    for name in figures:
        number, _, host = name.removeprefix(head).partition("_")
        if name.startswith(head) and number.isdigit():
            rates[host] = rates.get(host, 0.0) + (_value(figures, name) or 0.0)
    if len(rates) > 1:
        rates.pop("", None)  # the sum over the nodes
    return rates


def _value(figures: Mapping[str, Figure], name: str) -> float | None:
    figure = figures.get(name)
    return None if figure is None or figure.value is None else float(figure.value)


def _gaps(source: Source) -> Iterator[Finding]:
    """Deadlines that the sampler let pass, as its reader counted them."""
    details = dict(source.details)
    missed, rows = _count(details.get("missed")), _count(details.get("rows"))
    if missed and rows and missed / (missed + rows) > MISSED:
        share = missed / (missed + rows)
        yield finding(
            "sampler-gaps",
            f"{source.path}: {missed} of {missed + rows} samples were missed ({100 * share:.0f} %)",
            missed=missed,
            missed_share=share,
        )


def _lost(source: Source) -> Iterator[Finding]:
    """Sources of telemetry that failed while they were read, and AMD's library where it could not
    be used at all.
    """
    details = dict(source.details)
    for name, text in details.items():
        kind, _, part = name.partition(".")
        if kind == "failed" and part not in (COUNTERS, EXPORTER):
            takes_over = "; our own reader took over" if part == AMD_LIBRARY else ""
            yield finding(
                "sampler-gaps",
                f"the telemetry source {part} failed on {source.host} ({text}){takes_over}",
                severity="warning",
                source=part,
            )
    why = details.get(f"missing.{AMD_LIBRARY}")
    if why is not None:
        took_over = any(name.startswith("package.") for name in details)
        yield finding(
            "sampler-gaps",
            f"{AMD_LIBRARY} gives nothing on {source.host}: {why}"
            + ("; our own reader takes its place" if took_over else ""),
            severity="warning",
            source=AMD_LIBRARY,
        )


def _count(text: str | None) -> int:
    return int(text) if text is not None and text.isdigit() else 0
