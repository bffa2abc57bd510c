"""Power of accelerator packages: which samples tell it, whether the energy counter can be trusted,
what an idle one draws.

A package is read on one device for all of its dies or partitions; it counts once, whole, however
many of them worked. Without an accelerator's power the CPU packages of the node stand in, where
RAPL gives them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from profharness.findings import Finding, finding
from profharness.node.ceilings import Calibration, of_device, relevant
from profharness.stats.energy import (
    CounterCheck,
    Energy,
    check_counter,
    energy_in,
    too_short,
    total,
)
from profharness.stats.estimate import Figure
from profharness.stats.intervals import EMPTY, Intervals
from profharness.stats.sensor import (
    Response,
    UpdatePeriod,
    response,
    sensor_period_ns,
    update_period,
)
from profharness.stats.streams import Stream, mean_in
from profharness.trace.model import F64, I64, Samples, Trace
from profharness.units import format_ns

Figures = Callable[[float, str, float, float, float], Figure]
CPU = "CPU packages of the node"
MODULE = "accelerator modules of the node"
ACTIVE_PERCENT = 1.0  # of the driver's figure: below it a device did nothing
_LONGEST_FIT = 600  # samples, for the sensor's response


@dataclass(frozen=True, eq=False)
class Package:
    """Power samples of one package, on the trace's clock. `dies` are the names of its devices;
    `idle` is when it did nothing.
    """

    identity: str
    scope: str
    dies: tuple[str, ...]
    power: Samples
    raw_counter: Samples
    limit_w: float | None = None
    idle: Intervals = EMPTY
    gemm_w: float | None = None  # by calibration, with one die at work
    gemm_idle_w: float | None = None

    @cached_property
    def check(self) -> CounterCheck:
        return check_counter(self.raw_counter, self.power)

    @property
    def counter(self) -> Samples:
        """The energy counter's samples; none where it failed its check."""
        return self.raw_counter if not self.check.why_not else Samples.empty()

    @cached_property
    def update(self) -> UpdatePeriod | None:
        return update_period(self.power.at_ns, self.power.value)

    @cached_property
    def response(self) -> Response | None:
        """Sensor against counter, over the last part of the run."""
        if self.check.why_not or not len(self.power):
            return None
        last = self.power.take(np.arange(max(len(self.power) - _LONGEST_FIT, 0), len(self.power)))
        at, joules = _readings(self.raw_counter.take(self.raw_counter.until_ns > last.at_ns[0]))
        return response(last.at_ns, last.value, at, joules)

    @cached_property
    def period_ns(self) -> int:
        """How long one value speaks for."""
        if not len(self.power):
            return (
                int(np.median(self.raw_counter.until_ns - self.raw_counter.at_ns))
                if len(self.raw_counter)
                else 0
            )
        return sensor_period_ns(self.power.at_ns, self.update, self.response)

    def energy(self, when: Intervals) -> Energy | None:
        return energy_in(self.power, self.counter, when, self.period_ns)

    @cached_property
    def idle_w(self) -> float | None:
        found = self.energy(self.idle)
        return None if found is None else found.watts


def _readings(counter: Samples) -> tuple[I64, F64]:
    """The counter's readings from its rates: joules since the first one."""
    joules = np.cumsum(counter.value * (counter.until_ns - counter.at_ns)) / 1e9
    return np.concatenate((counter.at_ns[:1], counter.until_ns)), np.concatenate(([0.0], joules))


def packages(every: Sequence[Stream], idle: Intervals = EMPTY) -> tuple[Package, ...]:
    """All packages that report power, or the node's CPUs where no accelerator does. `idle` is
    before the workload began.
    """
    found = []
    for identity in dict.fromkeys(one.package for one in every if one.device):
        members = [one for one in every if one.device and one.package == identity]
        by_metric = {one.metric: one for one in members}
        power, counter = (
            by_metric[name].samples if name in by_metric else Samples.empty()
            for name in ("power_w" if "power_w" in by_metric else "power_average", "power_energy")
        )
        if len(power) or len(counter):
            limit = by_metric.get("power_limit")
            found.append(
                Package(
                    identity,
                    members[0].scope,
                    tuple(dict.fromkeys(one.device for one in members)),
                    power,
                    counter,
                    float(limit.samples.value.mean()) if limit is not None else None,
                    idle,
                )
            )
    if found:
        return tuple(found)
    return _modules(every, idle) or _processors(every, idle)


def _modules(every: Sequence[Stream], idle: Intervals) -> tuple[Package, ...]:
    """Accelerator modules as the node meters them (`power_module:accel0`), where no driver gives
    power.
    """
    found: dict[str, dict[str, Samples]] = {}
    for one in every:
        metric, _, module = one.metric.partition(":")
        if module and metric in ("power_module", "power_module_energy", "power_module_limit"):
            found.setdefault(module, {})[metric] = one.samples
    none = Samples.empty()
    return tuple(
        Package(
            module,
            MODULE,
            (),
            parts.get("power_module", none),
            parts.get("power_module_energy", none),
            float(parts["power_module_limit"].value.mean())
            if "power_module_limit" in parts
            else None,
            idle,
        )
        for module, parts in found.items()
        if "power_module" in parts or "power_module_energy" in parts
    )


def _processors(every: Sequence[Stream], idle: Intervals) -> tuple[Package, ...]:
    """The CPUs of the node as one, by RAPL or else by the node's own meter."""
    counters = {
        one.metric: one.samples for one in every if one.metric in ("power_cpu", "power_cpu_energy")
    }
    return tuple(
        Package("cpu", CPU, (), Samples.empty(), samples, idle=idle)
        for samples in list(counters.values())[:1]
    )


def used(every: Sequence[Stream], when: Intervals) -> tuple[str, ...]:
    """Names of the devices that worked in the windows; all of them where none did, or nothing
    says.
    """
    devices = tuple(dict.fromkeys(one.device for one in every if one.device))
    worked = {
        one.device
        for one in every
        if one.metric == "gpu_percent" and (mean_in(one, when) or 0.0) >= ACTIVE_PERCENT
    }
    return tuple(device for device in devices if device in worked) or devices


def power_figures(
    every: Sequence[Stream],
    found: Sequence[Package],
    when: Intervals,
    items: int | None,
    source: str,
) -> dict[str, Figure]:
    """Power, energy and their shares over the packages of the devices that worked; `items` were
    processed meanwhile.
    """
    active = used(every, when)
    mine = [package for package in found if not package.dies or set(package.dies) & set(active)]
    if not mine or not when.total:
        return {}
    needs = next((asked for package in mine if (asked := too_short(when, package.period_ns))), "")
    parts = [package.energy(when) for package in mine]
    known = [part for part in parts if part is not None]
    if needs or len(known) < len(parts):
        reason = needs or "power samples that cover the point"
        names = (
            ("power_w", "W"),
            ("power_saturation", "share"),
            ("power_vs_gemm", "share"),
            ("energy", "J"),
            ("energy_per_item", "J/item"),
        )
        return {
            name: Figure(
                value=None, unit=unit, needs=reason, note=_scope(mine, active, every, when)
            )
            for name, unit in names
        }
    return dict(
        _of_energy(mine, active, total(known), items, source, _scope(mine, active, every, when))
    ) | dict(_of_sensor(mine))


def _of_sensor(mine: Sequence[Package]) -> Iterator[tuple[str, Figure]]:
    """What the slowest of the sensors resolves, found from its own samples."""
    slowest = max(mine, key=lambda package: package.period_ns)
    refreshed = slowest.update
    note = (
        "time between new values: at most this, it is new at every sample"
        if refreshed is not None and not refreshed.resolved
        else "time over which one value speaks"
    )
    yield (
        "power_sensor_period",
        Figure(
            value=slowest.period_ns, unit="ns", source="power samples of the whole run", note=note
        ),
    )
    if slowest.response is not None:
        yield (
            "power_sensor_delay",
            Figure(
                value=slowest.response.delay_ns,
                unit="ns",
                source="power against the energy counter, whole run",
            ),
        )


def _scope(
    mine: Sequence[Package], active: Sequence[str], every: Sequence[Stream], when: Intervals
) -> str:
    """What the power covers, in words, and whether others used a die of it too."""
    dies = {die for package in mine for die in package.dies}
    others = any(
        one.metric == "gpu_processes_other" and one.device in dies and mean_in(one, when)
        for one in every
    )
    covered = _covered(mine, active)
    if not others:
        return covered
    return f"{covered}; other processes used it too" + (
        "" if "not attributable" in covered else ": shared, not attributable"
    )


def _covered(mine: Sequence[Package], active: Sequence[str]) -> str:
    """The packages and their dies: their power is never halved, never doubled."""
    first = mine[0]
    if not first.dies:
        return f"{first.scope}, whatever ran on them"
    working = [die for package in mine for die in package.dies if die in active]
    dies = sum(len(package.dies) for package in mine)
    several = f"{len(mine)} packages, " if len(mine) > 1 else ""
    if dies == len(mine):
        return f"{several}one device each" if several else "one device"
    return (
        f"{several}{first.scope}, {len(working)} of {dies} active: shared, not attributable to one"
        if len(working) < dies
        else f"{several}{first.scope}, all active"
    )


def _of_energy(
    mine: Sequence[Package],
    active: Sequence[str],
    energy: Energy,
    items: int | None,
    source: str,
    note: str,
) -> Iterator[tuple[str, Figure]]:
    origin = (
        f"{source}, by "
        f"{'the energy counter' if energy.by == 'counter' else 'integrated power' if energy.by == 'power' else 'counter and power'}"
    )

    def figure(
        value: float,
        unit: str,
        scale: float = 1.0,
        low: float = energy.low,
        high: float = energy.high,
    ) -> Figure:
        return Figure(
            value=value * scale,
            unit=unit,
            low=low * scale,
            high=high * scale,
            source=origin,
            note=note,
            coverage=energy.covered,
        )

    yield "power_w", figure(energy.joules, "W", 1 / energy.seconds)
    yield "energy", figure(energy.joules, "J")
    if items:
        yield "energy_per_item", figure(energy.joules, "J/item", 1 / items)
        yield (
            "items_per_joule",
            Figure(
                value=items / energy.joules if energy.joules else None,
                unit="items/J",
                source=origin,
                note=note,
            ),
        )
    idle = [package.idle_w for package in mine]
    limits = [package.limit_w for package in mine]
    floor = sum(watts for watts in idle if watts is not None) if None not in idle else None
    ceiling = sum(watts for watts in limits if watts is not None) if None not in limits else None
    if floor is not None:
        yield (
            "power_idle",
            Figure(value=floor, unit="W", source="before the workload began", note=note),
        )
        net = floor * energy.seconds
        if items:
            yield (
                "energy_per_item_net",
                figure(
                    energy.joules - net, "J/item", 1 / items, energy.low - net, energy.high - net
                ),
            )
    yield "power_saturation", _saturation(energy, floor, ceiling, figure)
    yield "power_vs_gemm", _against_gemm(mine, active, energy, figure)


def _saturation(
    energy: Energy, floor: float | None, ceiling: float | None, figure: Figures
) -> Figure:
    if floor is None or ceiling is None or ceiling <= floor:
        return Figure(
            value=None, unit="share", needs="--idle-seconds" if floor is None else "a power limit"
        )
    base = floor * energy.seconds
    return figure(
        energy.joules - base,
        "share",
        1 / ((ceiling - floor) * energy.seconds),
        energy.low - base,
        energy.high - base,
    )


def _against_gemm(
    mine: Sequence[Package], active: Sequence[str], energy: Energy, figure: Figures
) -> Figure:
    """Against the calibrated product, which ran on one die: with more dies of a package at work it
    says nothing.
    """
    if any(len(set(package.dies) & set(active)) > 1 for package in mine):
        return Figure(
            value=None, unit="share", needs="a package with one die at work, as the calibration had"
        )
    idle = [
        package.idle_w if package.idle_w is not None else package.gemm_idle_w for package in mine
    ]
    gemm = [package.gemm_w for package in mine]
    if None in gemm or None in idle:
        return Figure(
            value=None,
            unit="share",
            needs="profharness calibrate" if None in gemm else "--idle-seconds",
        )
    floor, top = (sum(watts for watts in both if watts is not None) for both in (idle, gemm))
    if top <= floor:
        return Figure(
            value=None, unit="share", needs="a calibration that draws more than an idle device"
        )
    base = floor * energy.seconds
    return figure(
        energy.joules - base,
        "share",
        1 / ((top - floor) * energy.seconds),
        energy.low - base,
        energy.high - base,
    )


def calibrated(
    found: Sequence[Package],
    trace: Trace,
    calibrations: Sequence[Calibration],
    software: dict[str, str] | None,
    cpu_model: str,
) -> tuple[Package, ...]:
    """With what the calibrated product draws on each, where one was calibrated; on a CPU the
    product with the most threads.
    """
    names = {
        device.identity: device.name for device in trace.devices if device.identity and device.name
    }
    widest = max((one.compute_units or 0 for one in relevant(calibrations, {cpu_model})), default=0)
    fitting = tuple(
        one for one in calibrations if one.kind != "cpu" or (one.compute_units or 0) == widest
    )
    return tuple(
        _with_gemm(
            package,
            of_device(
                fitting,
                name=names.get(package.identity)
                or names.get(f"{package.identity}/0")
                or (cpu_model if package.scope == CPU else ""),
                software=software,
            ),
        )
        for package in found
    )


def _with_gemm(package: Package, known: Calibration | None) -> Package:
    return (
        package
        if known is None
        else replace(package, gemm_w=known.gemm_power_w, gemm_idle_w=known.idle_power_w)
    )


def package_findings(found: Sequence[Package]) -> Iterator[Finding]:
    """What the power sensors resolve, and energy counters that failed their check."""
    for package in found:
        if package.update is not None and package.update.resolved:
            told = (
                f"the power sensor of {package.identity} gives a new value every "
                f"{format_ns(package.update.period_ns)}"
            )
            late = package.response
            if late is None:
                yield finding("power-sensor", told, period_ns=package.update.period_ns)
            else:
                yield finding(
                    "power-sensor",
                    f"{told}, each {format_ns(late.delay_ns)} late and the mean over "
                    f"{format_ns(late.window_ns)}",
                    period_ns=package.update.period_ns,
                    delay_ns=late.delay_ns,
                    window_ns=late.window_ns,
                )
        check = package.check
        if len(package.raw_counter) and len(package.power) and check.why_not:
            ratio = 0.0 if check.ratio is None else check.ratio
            yield finding(
                "energy-counter",
                f"the energy counter of {package.identity} is not used: {check.why_not}",
                counter_over_power=ratio,
            )
