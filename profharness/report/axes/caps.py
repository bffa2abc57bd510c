"""Power caps of a scan of a command: what a cap costs and saves, in a sentence and in tables."""

from __future__ import annotations

from collections.abc import Iterator

from profharness.analysis.axes.naming import setting_text
from profharness.analysis.axes.records import AxesScan, CapCurve, CapPoint
from profharness.report.table import Cell, Column, Table
from profharness.report.text.figures import brief_text, estimate_text, interval_text
from profharness.stats.estimate import Estimate

COSTS = "What power caps cost and save"
POINTS = "Under each power cap"
_MOST_ROWS = 60
_PER = {"items/s": "J/item", "steps/s": "J/step", "runs/s": "J/run", "units/s": "J/unit"}
"""What energy per item is counted in, by the unit of the rate."""


def energy_unit(scan: AxesScan) -> str:
    """`J/item`, or per step, run or unit of the script's own figure."""
    return _PER.get(scan.unit, "J/item")


def cap_sentences(scan: AxesScan) -> Iterator[str]:
    """What the cap of the curve through the best point costs and saves."""
    if not scan.caps:
        return
    curve = scan.caps[0]
    where = f" at {setting_text(curve.key)}" if curve.key else ""
    if curve.at_w.value is None:
        lowest = curve.points[0]
        yield f"No power cap{where} costs {_cost(curve)} of throughput: {curve.needs}."
        if len(curve.points) > 1 and lowest.throughput.value:
            yield f"Scan below {brief_text(lowest.cap_w)} W."
        return
    saved = _saved_words(curve)
    yield (
        f"A power cap of {estimate_text(curve.at_w)} W{where} costs {_cost(curve)} of the "
        f"throughput at {brief_text(curve.reference_w)} W{saved}."
    )


def _cost(curve: CapCurve) -> str:
    return f"{100 * curve.cost:g} %"


def _saved_words(curve: CapCurve) -> str:
    saves = curve.saves
    if saves.value is None:
        return f"; what it saves needs {curve.needs}"
    if saves.low is None or saves.high is None or saves.low > 0:
        return f" and saves {percent_text(saves)} of the energy per item"
    if saves.high >= 0:
        return f"; that it saves energy per item is not proven: {percent_text(saves)}"
    more = Estimate(value=-saves.value, low=-saves.high, high=-saves.low)
    return f" and takes {percent_text(more)} more energy per item"


def percent_text(share: Estimate) -> str:
    """`18.1 % (14.2 to 22.0)`; empty without a value."""
    if share.value is None:
        return ""
    value = f"{100 * share.value:.1f} %"
    if share.low is None or share.high is None:
        return value
    return f"{value} ({100 * share.low:.1f} to {100 * share.high:.1f})"


def cost_table(scan: AxesScan | None) -> Table | None:
    """A row per setting of the other axes: the cap, what it saves, and where the least energy is
    taken; None without caps.
    """
    if scan is None or not scan.caps:
        return None
    share = _cost(scan.caps[0])
    return Table(
        COSTS,
        (
            Column("at", wraps=True),
            Column("caps, W"),
            Column(f"costs {share}, W", "right", "95 % interval; against the highest cap"),
            Column("saves", "right", f"of the {energy_unit(scan)} at the highest cap"),
            Column(
                "least energy, W", "right", f"the measured cap with the least {energy_unit(scan)}"
            ),
            Column("needs", wraps=True),
        ),
        tuple(_cost_row(curve) for curve in scan.caps[:_MOST_ROWS]),
        left_out=max(len(scan.caps) - _MOST_ROWS, 0),
    )


def _cost_row(curve: CapCurve) -> tuple[Cell, ...]:
    least = curve.least_energy_w
    return (
        Cell(setting_text(curve.key)),
        Cell(", ".join(brief_text(point.cap_w) for point in curve.points)),
        Cell("" if curve.at_w.value is None else estimate_text(curve.at_w)),
        Cell(percent_text(curve.saves)),
        Cell("" if least is None else brief_text(least)),
        Cell(curve.needs, emphasis="muted"),
    )


def cap_table(scan: AxesScan | None) -> Table | None:
    """A row per point: the cap, its throughput and its energy per item."""
    if scan is None or not scan.caps:
        return None
    rows = [_cap_row(curve, point) for curve in scan.caps for point in curve.points]
    return Table(
        POINTS,
        (
            Column("at", wraps=True),
            Column("cap, W", "right"),
            Column(scan.unit, "right", "throughput with its 95 % interval"),
            Column(energy_unit(scan), "right", "from telemetry, with its interval"),
        ),
        tuple(rows[:_MOST_ROWS]),
        left_out=max(len(rows) - _MOST_ROWS, 0),
    )


def _cap_row(curve: CapCurve, point: CapPoint) -> tuple[Cell, ...]:
    return (
        Cell(setting_text(curve.key)),
        Cell(brief_text(point.cap_w)),
        Cell(_with_interval(point.throughput)),
        Cell(_with_interval(point.energy_per_item)),
    )


def _with_interval(estimate: Estimate) -> str:
    if estimate.value is None:
        return "not measured"
    return interval_text(estimate.value, estimate.low, estimate.high)
