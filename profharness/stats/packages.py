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
    `idle` is when it did nothing. `host` is named where several were sampled, and `identity` then
    begins with it.
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
    host: str = ""

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
        """Mean power in W over the idle time before the workload; None where nothing was measured
        then.
        """
        found = self.energy(self.idle)
        return None if found is None else found.watts


def _readings(counter: Samples) -> tuple[I64, F64]:
    """The counter's readings from its rates: joules since the first one."""
    joules = np.cumsum(counter.value * (counter.until_ns - counter.at_ns)) / 1e9
    return np.concatenate((counter.at_ns[:1], counter.until_ns)), np.concatenate(([0.0], joules))


def packages(every: Sequence[Stream], idle: Intervals = EMPTY) -> tuple[Package, ...]:
    """All packages that report power, of each node by itself; the CPUs of a node where no
    accelerator of it does. `idle` is before the workload began.
    """
    return tuple(
        package
        for host in dict.fromkeys(one.host for one in every)
        for package in _of_host([one for one in every if one.host == host], idle)
    )


def _of_host(every: Sequence[Stream], idle: Intervals) -> tuple[Package, ...]:
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
                    host=members[0].host,
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
    host = every[0].host if every else ""
    for one in every:
        metric, _, module = one.metric.partition(":")
        if module and metric in ("power_module", "power_module_energy", "power_module_limit"):
            found.setdefault(module, {})[metric] = one.samples
    none = Samples.empty()
    return tuple(
        Package(
            f"{host}/{module}" if host else module,
            MODULE,
            (),
            parts.get("power_module", none),
            parts.get("power_module_energy", none),
            float(parts["power_module_limit"].value.mean())
            if "power_module_limit" in parts
            else None,
            idle,
            host=host,
        )
        for module, parts in found.items()
        if "power_module" in parts or "power_module_energy" in parts
    )


def _processors(every: Sequence[Stream], idle: Intervals) -> tuple[Package, ...]:
    """The CPUs of the node as one, by RAPL or else by the node's own meter."""
    counters = {one.metric: one for one in every if one.metric in ("power_cpu", "power_cpu_energy")}
    return tuple(
        Package(
            f"{one.host}/cpu" if one.host else "cpu",
            CPU,
            (),
            Samples.empty(),
            one.samples,
            idle=idle,
            host=one.host,
        )
        for one in list(counters.values())[:1]
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
        name: device.name
        for device in trace.devices
        if device.identity and device.name
        for name in (device.identity, f"{device.host}/{device.identity}")
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
            if late is None or not late.determined:
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
