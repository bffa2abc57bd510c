"""A run of several nodes as one: node by node and summed, and which node or device stands apart."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from profharness.analysis.power.records import NodeRow, Nodes, NodeUnit
from profharness.analysis.power.unit_spread import Spread, compare, part_means
from profharness.findings import Finding, finding
from profharness.rundir.manifest import Manifest
from profharness.stats.energy import Energy, energy_in, total
from profharness.stats.estimate import Figure
from profharness.stats.intervals import Intervals, window
from profharness.stats.packages import CPU, Package, used
from profharness.stats.streams import Stream, mean_in
from profharness.trace.model import Samples, Trace

APART = "node-apart"
_SOURCE = "the job's time, telemetry"
_METER, _METER_POWER = "power_node_energy", "power_node"
_METER_PERIOD_NS = 100_000_000  # pm_counters are new ten times a second
_MEANS = {"cpu_tree": "cores_used", "gpu_percent": "gpu_percent", "clock_gpu": "clock_gpu"}
_TRAFFIC = (
    *("network_received", "network_sent", "rdma_received", "rdma_sent"),
    *("slingshot_received", "slingshot_sent", "slingshot_received_least", "slingshot_sent_least"),
    *("slingshot_link_retries", "slingshot_pauses", "slingshot_timeouts"),
)
_LONGEST_NS = 2**62
_SUMS = frozenset({"energy", "power_w", "energy_node", "power_node", "cores_used", *_TRAFFIC})


@dataclass(frozen=True, eq=False)
class _Unit:
    """A series that is compared with others of its `group`."""

    name: str
    host: str
    kind: str
    metric: str
    unit: str
    group: str
    samples: Samples


def nodes(
    manifest: Manifest, trace: Trace, every: Sequence[Stream], found: Sequence[Package]
) -> Nodes | None:
    """Over the time of all passes, else of all samples. None where one node was sampled alone, or
    where damaged stamps span more than a clock can count.
    """
    hosts = list(dict.fromkeys(one.host for one in every if one.host))
    if len(hosts) < 2:
        return None
    when = _job(manifest, every)
    if when is None:
        return None
    rows = tuple(_row(host, every, found, when) for host in hosts)
    names = dict.fromkeys((*(node.host for node in manifest.nodes), *_clocked(manifest)))
    return Nodes(
        window_ns=when.total,
        rows=rows,
        total=_total(rows),
        units=tuple(_compared(_units(trace, every, found, when), when)),
        missing=tuple(name for name in names if name and name not in hosts),
    )


def findings(found: Nodes | None) -> Iterator[Finding]:
    """Each unit that stands apart from the others of its kind, with its ratio and interval."""
    for one in found.units if found is not None else ():
        ratio, low, high = one.ratio.value, one.ratio.low, one.ratio.high
        if not one.apart or ratio is None or low is None or high is None:
            continue
        what = "clock" if one.metric == "clock_gpu" else "power"
        yield finding(
            APART,
            f"the {what} of {one.kind} {one.unit} is {ratio:.3g} times the median of the others "
            f"({low:.3g} to {high:.3g})",
            host=one.host,
            metric=one.metric,
            ratio=float(ratio),
            low=float(low),
            high=float(high),
        )


def _clocked(manifest: Manifest) -> Iterator[str]:
    """The hosts whose clocks were read: of a run of several nodes the manifest describes one."""
    yield from dict.fromkeys(reading.host for reading in manifest.clocks)


def _job(manifest: Manifest, every: Sequence[Stream]) -> Intervals | None:
    starts = [one.start_boot_ns for one in manifest.passes if one.start_boot_ns is not None]
    ends = [one.end_boot_ns for one in manifest.passes if one.end_boot_ns is not None]
    if not starts or not ends:
        starts = [int(one.samples.at_ns[0]) for one in every]
        ends = [int(one.samples.until_ns.max()) + 1 for one in every]
    begin, end = min(starts), max(ends)
    return window(begin, end) if end - begin < _LONGEST_NS else None


def _row(host: str, every: Sequence[Stream], found: Sequence[Package], when: Intervals) -> NodeRow:
    mine = [one for one in every if one.host == host]
    packages = [one for one in found if one.host == host]
    figures: dict[str, Figure] = {}
    parts = [package.energy(when) for package in packages]
    known = [part for part in parts if part is not None]
    if packages:
        energy = total(known) if len(known) == len(parts) else None
        figures |= _of_energy(energy, "energy", "power_w", _covers(packages))
    meter = {one.metric: one.samples for one in mine if one.metric in (_METER, _METER_POWER)}
    if meter:
        none = Samples.empty()
        power, counter = meter.get(_METER_POWER, none), meter.get(_METER, none)
        energy = energy_in(power, counter, when, _METER_PERIOD_NS)
        figures |= _of_energy(energy, "energy_node", "power_node", "the node's own meter")
    return NodeRow(
        host=host,
        packages=tuple(one.identity.removeprefix(f"{host}/") for one in packages),
        figures={**figures, **_means(mine, when)},
    )


def _covers(packages: Sequence[Package]) -> str:
    if packages[0].scope == CPU:
        return CPU
    return f"{len(packages)} {'package' if len(packages) == 1 else 'packages'}, idle ones too"


def _of_energy(energy: Energy | None, name: str, power: str, note: str) -> dict[str, Figure]:
    if energy is None:
        return {
            name: Figure(value=None, unit="J", needs="power samples that cover the job", note=note)
        }
    seconds = energy.seconds
    return {
        name: Figure(
            value=energy.joules,
            unit="J",
            low=energy.low,
            high=energy.high,
            source=_SOURCE,
            coverage=energy.covered,
            coverage_of="the time",
            note=note,
        ),
        power: Figure(
            value=energy.watts,
            unit="W",
            low=energy.low / seconds,
            high=energy.high / seconds,
            source=_SOURCE,
            coverage=energy.covered,
            coverage_of="the time",
            note=note,
        ),
    }


def _means(mine: Sequence[Stream], when: Intervals) -> dict[str, Figure]:
    active = set(used(mine, when))
    found: dict[str, list[float]] = {}
    units: dict[str, str] = {}
    for one in mine:
        name = _MEANS.get(one.metric, one.metric if one.metric in _TRAFFIC else "")
        if not name or (one.device and one.device not in active):
            continue
        mean = mean_in(one, when)
        if mean is not None:
            found.setdefault(name, []).append(mean)
            units[name] = one.unit
    return {
        name: Figure(
            value=float(np.mean(values)),
            unit=units[name],
            source=_SOURCE,
            note=f"mean of {len(values)} devices" if len(values) > 1 else "",
        )
        for name, values in found.items()
    }


def _total(rows: Sequence[NodeRow]) -> dict[str, Figure]:
    """Sums over the nodes of what adds up. One that a node lacks is not measured, and says so."""
    names = dict.fromkeys(name for row in rows for name in row.figures if name in _SUMS)
    return {name: _summed({row.host: row.figures.get(name) for row in rows}) for name in names}


def _summed(of_nodes: Mapping[str, Figure | None]) -> Figure:
    known = [one for one in of_nodes.values() if one is not None and one.value is not None]
    unit = next(one.unit for one in of_nodes.values() if one is not None)
    lacking = [host for host, one in of_nodes.items() if one is None or one.value is None]
    if lacking:
        return Figure(value=None, unit=unit, needs=f"the same of {', '.join(lacking)}")
    bounded = all(one.low is not None and one.high is not None for one in known)
    return Figure(
        value=sum(float(one.value or 0) for one in known),
        unit=unit,
        low=sum(float(one.low or 0) for one in known) if bounded else None,
        high=sum(float(one.high or 0) for one in known) if bounded else None,
        source=_SOURCE,
        coverage=min((one.coverage for one in known if one.coverage is not None), default=None),
        coverage_of="the time",
        note=f"sum over {len(known)} nodes",
    )


def _units(
    trace: Trace, every: Sequence[Stream], found: Sequence[Package], when: Intervals
) -> Iterator[_Unit]:
    names = {f"{one.host}/{one.index}": one.name for one in trace.devices}
    active = set(used(every, when))
    for host in dict.fromkeys(one.host for one in every):
        mine = {one.metric: one for one in every if one.host == host and not one.device}
        meter = next(
            (mine[name] for name in (_METER, _METER_POWER, "power_cpu") if name in mine), None
        )
        if meter is not None:
            yield _Unit(host, host, "node", meter.metric, "W", meter.metric, meter.samples)
    for package in found:
        if package.dies and not set(package.dies) & active:
            continue
        samples = package.counter if len(package.counter) else package.power
        kind = names.get(package.dies[0], "") if package.dies else package.scope
        if len(samples) and package.scope != CPU:
            yield _Unit(package.identity, package.host, "device", "power_w", "W", kind, samples)
    for one in every:
        if one.metric == "clock_gpu" and one.device in active:
            kind = names.get(one.device, "")
            yield _Unit(one.device, one.host, "device", one.metric, one.unit, kind, one.samples)


def _compared(units: Iterator[_Unit], when: Intervals) -> Iterator[NodeUnit]:
    groups: dict[tuple[str, str, str], list[_Unit]] = {}
    for unit in units:
        groups.setdefault((unit.kind, unit.metric, unit.group), []).append(unit)
    for members in groups.values():
        means = np.stack([part_means(one.samples, when) for one in members])
        for one, spread in zip(members, compare(means), strict=True):
            if spread.mean is not None:
                yield _record(one, spread)


def _record(one: _Unit, spread: Spread) -> NodeUnit:
    return NodeUnit(
        unit=one.name,
        host=one.host,
        kind="node" if one.kind == "node" else "device",
        metric=one.metric,
        mean=Figure(value=spread.mean, unit=one.unit, source=_SOURCE),
        ratio=Figure(
            value=spread.ratio,
            unit="",
            low=spread.low,
            high=spread.high,
            source=_SOURCE,
            needs=spread.needs,
        ),
        apart=spread.apart,
    )
