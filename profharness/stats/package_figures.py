"""Power and energy of the packages over chosen times, as figures with their origin."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from profharness.stats.energy import OF_SCAN, Energy, too_short, total
from profharness.stats.estimate import Figure
from profharness.stats.intervals import Intervals
from profharness.stats.packages import Figures, Package, used
from profharness.stats.streams import Stream, mean_in
from profharness.units import format_ns

_METHODS = {"counter": "the energy counter", "power": "integrated power"}


def power_figures(
    every: Sequence[Stream],
    found: Sequence[Package],
    when: Intervals,
    items: int | None,
    source: str,
    longer: str = OF_SCAN,
) -> dict[str, Figure]:
    """Power, energy and their shares over the packages of the devices that worked; `items` were
    processed meanwhile. Where it was too short for the sensors, `longer` says what is needed.
    """
    active = used(every, when)
    mine = [package for package in found if not package.dies or set(package.dies) & set(active)]
    if not mine or not when.total:
        return {}
    asked = (too_short(when, package.period_ns, longer) for package in mine)
    needs = next((one for one in asked if one), "")
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
    late = slowest.response
    if late is not None:
        origin = "power against the energy counter, whole run"
        yield (
            "power_sensor_delay",
            Figure(value=late.delay_ns, unit="ns", source=origin)
            if late.determined
            else Figure(
                value=None,
                unit="ns",
                source=origin,
                needs="a load that does not repeat: delays between "
                f"{format_ns(late.low_ns)} and {format_ns(late.high_ns)} explain the samples "
                "equally well",
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
    origin = f"{source}, by {_METHODS.get(energy.by, 'counter and power')}"

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
            coverage_of="the time",
        )

    yield "power_w", figure(energy.joules, "W", 1 / energy.seconds)
    yield "energy", figure(energy.joules, "J")
    if items:
        per_joule = items / energy.joules if energy.joules else None
        yield "energy_per_item", figure(energy.joules, "J/item", 1 / items)
        yield (
            "items_per_joule",
            Figure(value=per_joule, unit="items/J", source=origin, note=note),
        )
    floor = _sum_if_all_known([package.idle_w for package in mine])
    ceiling = _sum_if_all_known([package.limit_w for package in mine])
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


def _sum_if_all_known(watts: Sequence[float | None]) -> float | None:
    known = [value for value in watts if value is not None]
    return sum(known) if len(known) == len(watts) else None


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
