"""What a power cap costs and saves, on surfaces whose truth is known."""

from __future__ import annotations

import json
from dataclasses import dataclass

import numpy as np
import pytest
from msgspec.structs import replace
from scipy import stats

from profharness.analysis.axes.cap_cost import CapSeries, cap_cost, isotonic
from profharness.analysis.axes.caps import cap_curves
from profharness.analysis.axes.records import AxesScan, AxisLevels, PointRate
from profharness.analysis.records import Figure
from profharness.report.axes.cap_plots import cap_plots
from profharness.report.axes.caps import cap_sentences, cap_table, cost_table
from profharness.stats.estimate import Estimate
from profharness.trace.model import F64


@dataclass(frozen=True)
class Surface:
    """A device that draws `draw_w` without a cap, of which `idle_w` do no work; its throughput
    grows with a power of the rest.
    """

    draw_w: float = 260.0
    idle_w: float = 60.0
    power: float = 0.45
    most: float = 1000.0

    def rate(self, cap_w: F64 | float) -> F64:
        share = (np.minimum(cap_w, self.draw_w) - self.idle_w) / (self.draw_w - self.idle_w)
        return np.asarray(self.most * share**self.power)

    def watts(self, cap_w: F64 | float) -> F64:
        return np.asarray(np.minimum(cap_w, self.draw_w))

    def at(self, highest_w: float, cost: float = 0.05) -> float:
        """The cap that costs the share of the throughput at the highest one."""
        most = min(highest_w, self.draw_w)
        return self.idle_w + (most - self.idle_w) * (1 - cost) ** (1 / self.power)

    def saves(self, highest_w: float) -> float:
        """The share of the energy per item that is saved there."""
        at = self.at(highest_w)
        there, before = (self.watts(w) / self.rate(w) for w in (at, highest_w))
        return float(1 - there / before)


CAPS = np.array([150.0, 180.0, 210.0, 240.0, 270.0, 300.0])


def exact(surface: Surface, caps: F64 = CAPS) -> CapSeries:
    none = np.full(len(caps), 1e-6)
    return CapSeries(caps, surface.rate(caps), none, surface.watts(caps), none)


def noisy(surface: Surface, noise: float, seed: int) -> CapSeries:
    """Three executions of each cap, and power that telemetry knows within 2 %."""
    random, repeats = np.random.default_rng(seed), 3
    logs = np.log(surface.rate(CAPS))[:, None]
    logs = logs + noise * random.standard_normal((len(CAPS), repeats))
    means = logs.mean(axis=1)
    freedom = len(CAPS) * (repeats - 1)
    sigma = np.sqrt(((logs - means[:, None]) ** 2).sum() / freedom)
    half = float(np.expm1(stats.t.ppf(0.975, freedom) * sigma / np.sqrt(repeats)))
    watts = surface.watts(CAPS) * np.exp(0.01 * random.standard_normal(len(CAPS)))
    widths = np.full(len(CAPS), half), np.full(len(CAPS), 0.02)
    return CapSeries(CAPS, np.exp(means), widths[0], watts, widths[1])


@pytest.mark.parametrize("surface", [Surface(), Surface(draw_w=400), Surface(power=1.0)])
def test_the_cap_of_a_known_surface(surface: Surface) -> None:
    found = cap_cost(exact(surface))
    assert found.at_w.value == pytest.approx(surface.at(300), abs=5)
    assert found.saves.value == pytest.approx(surface.saves(300), abs=0.02)
    for estimate, truth in ((found.at_w, surface.at(300)), (found.saves, surface.saves(300))):
        assert estimate.low is not None
        assert estimate.high is not None
        assert estimate.low - 0.3 <= truth <= estimate.high + 0.3


def test_intervals_hold_the_truth_in_19_of_20_scans() -> None:
    surface, scans = Surface(), 80
    truth = surface.at(300), surface.saves(300)
    held = np.zeros(2)
    for seed in range(scans):
        found = cap_cost(noisy(surface, 0.01, seed), seed=str(seed))
        for at, estimate in enumerate((found.at_w, found.saves)):
            assert estimate.low is not None
            assert estimate.high is not None
            held[at] += estimate.low <= truth[at] <= estimate.high
    assert (held >= 0.88 * scans).all()  # 95 % less two standard errors of so many scans
    assert found.at_w.high - found.at_w.low < 40  # and say something


def test_a_cap_that_costs_less_even_at_the_lowest_is_not_reached() -> None:
    found = cap_cost(exact(Surface(draw_w=155)))
    assert found.at_w.value is None
    assert found.saves.value is None


def test_an_end_that_the_caps_do_not_bound_is_open() -> None:
    """The lowest cap may cost 5 %, or less: nobody knows what a lower one does."""
    caps = np.array([239.0, 260.0, 300.0])
    half = np.full(3, 0.02)
    series = CapSeries(
        caps, Surface().rate(caps) * [0.998, 1, 1], half, Surface().watts(caps), half
    )
    found = cap_cost(series)
    assert found.at_w.value is not None
    assert found.at_w.low is None
    assert found.at_w.high is not None
    assert (found.saves.low, found.saves.high) == (None, None)


def test_a_cap_that_slows_more_than_it_saves_takes_energy() -> None:
    """Half of the power is idle and flows for longer."""
    caps = np.array([200.0, 250.0, 300.0])
    rate, watts = np.array([500.0, 800.0, 1000.0]), np.array([290.0, 295.0, 300.0])
    found = cap_cost(CapSeries(caps, rate, np.full(3, 1e-3), watts, np.full(3, 1e-3)))
    assert found.saves.value is not None
    assert found.saves.value < 0


def test_without_repeats_or_power_the_rest_remains() -> None:
    series = exact(Surface())
    none = np.full(len(CAPS), np.nan)
    found = cap_cost(CapSeries(CAPS, series.rate, none))
    assert found.at_w.value == pytest.approx(Surface().at(300), abs=5)
    assert (found.at_w.low, found.at_w.high, found.saves.value) == (None, None, None)


def test_the_isotonic_fit_pools_what_falls() -> None:
    values = np.array([[1.0, 3.0], [3.0, 2.0], [2.0, 1.0], [4.0, 4.0]])
    assert isotonic(values) == pytest.approx(
        np.array([[1.0, 2.0], [2.5, 2.0], [2.5, 2.0], [4.0, 4.0]])
    )


BATCHES = (8, 16)


def scan(
    *, power: bool = True, unit: str = "items/s"
) -> tuple[AxesScan, dict[str, dict[str, Figure]]]:
    """Two batch sizes under six caps; the larger batch is twice as fast at the same power."""
    surface, points, metrics = Surface(), [], {}
    for batch in BATCHES:
        for cap_w in CAPS[::-1]:
            name, rate = f"{cap_w:g}-{batch}", float(surface.rate(cap_w)) * batch / 16
            points.append(
                PointRate(
                    point=name,
                    parameters={"power-cap": int(cap_w), "batch": batch},
                    throughput=rate,
                    low=0.999 * rate,
                    high=1.001 * rate,
                    executions=3,
                )
            )
            watts = float(surface.watts(cap_w))
            metrics[name] = (
                {"power_w": Figure(value=watts, unit="W", low=0.99 * watts, high=1.01 * watts)}
                if power
                else {"power_w": Figure(value=None, unit="W", needs="a longer time")}
            )
    axes = (
        AxisLevels(name="power-cap", values=tuple(map(int, CAPS)), is_number=True),
        AxisLevels(name="batch", values=BATCHES, is_number=True),
    )
    return AxesScan(axes=axes, unit=unit, points=tuple(points), best="300-16"), metrics


def with_caps(**options: object) -> AxesScan:
    made, metrics = scan(**options)  # type: ignore[arg-type]
    return replace(made, caps=cap_curves(made, metrics))


def test_a_curve_per_setting_the_one_with_the_best_point_first() -> None:
    first, second = with_caps().caps
    assert (first.key, second.key) == ({"batch": 16}, {"batch": 8})
    assert [point.cap_w for point in first.points] == CAPS.tolist()
    assert first.reference_w == 300
    assert first.least_energy_w == 150
    assert first.at_w.value == pytest.approx(Surface().at(300), abs=5)
    low = first.points[0].energy_per_item
    assert low.value == pytest.approx(150 / float(Surface().rate(150.0)))
    assert low.high is not None
    assert low.low is not None
    assert (low.high - low.low) / 2 / low.value == pytest.approx(np.hypot(0.01, 0.001), rel=1e-3)
    twice = second.points[0].energy_per_item.value
    assert twice == pytest.approx(2 * low.value)


def test_items_that_were_marked_have_the_energy_of_telemetry() -> None:
    made, metrics = scan()
    metrics["150-16"]["energy_per_item"] = Figure(value=7.0, unit="J/item", low=6.9, high=7.1)
    assert cap_curves(made, metrics)[0].points[0].energy_per_item.value == 7.0


def test_without_the_axis_there_is_nothing() -> None:
    made, metrics = scan()
    assert cap_curves(replace(made, axes=made.axes[1:]), metrics) == ()
    assert cost_table(made) is None
    assert cap_table(None) is None
    assert list(cap_sentences(made)) == []
    assert cap_plots(made) == ()


def test_the_sentence_says_cost_and_saving() -> None:
    (sentence,) = cap_sentences(with_caps())
    assert sentence.startswith("A power cap of 2")
    assert "W at batch 16 costs 5 % of the throughput at 300 W and saves " in sentence
    assert sentence.endswith(" of the energy per item.")


@pytest.mark.parametrize(
    ("saves", "said"),
    [
        ((0.181, 0.142, 0.22), " W and saves 18.1 % (14.2 to 22.0) of the energy per item."),
        (
            (0.01, -0.02, 0.05),
            "; that it saves energy per item is not proven: 1.0 % (-2.0 to 5.0).",
        ),
        ((-0.05, -0.07, -0.04), " W and takes 5.0 % (4.0 to 7.0) more energy per item."),
        ((0.1, None, None), " W and saves 10.0 % of the energy per item."),
    ],
)
def test_what_is_not_proven_is_not_said(
    saves: tuple[float, float | None, float | None], said: str
) -> None:
    made = with_caps()
    value, low, high = saves
    first = replace(made.caps[0], saves=Estimate(value=value, low=low, high=high))
    (sentence,) = cap_sentences(replace(made, caps=(first,)))
    assert sentence.endswith(said)


def test_without_power_the_sentence_says_what_it_needs() -> None:
    made = with_caps(power=False)
    (sentence,) = cap_sentences(made)
    assert "what it saves needs power over each point" in sentence
    assert made.caps[0].at_w.value is not None
    assert made.caps[0].points[0].energy_per_item.value is None
    assert [plot.name for plot in cap_plots(made)] == ["cap-throughput-map"]


def test_tables_have_a_row_per_setting_and_per_point() -> None:
    made = with_caps(unit="steps/s")
    costs, points = cost_table(made), cap_table(made)
    assert costs is not None
    assert points is not None
    assert [row[0].text for row in costs.rows] == ["batch 16", "batch 8"]
    assert costs.rows[0][4].text == "150"
    assert len(points.rows) == 12
    assert [column.title for column in points.columns] == ["at", "cap, W", "steps/s", "J/step"]


def test_throughput_and_energy_are_maps_over_the_cap_and_the_other_axis() -> None:
    plots = {plot.name: plot for plot in cap_plots(with_caps())}
    assert list(plots) == ["cap-energy", "cap-throughput-map", "cap-energy-map"]
    chart = json.loads(plots["cap-energy-map"].json)
    assert chart["xAxis"]["data"] == [f"{cap:g} W" for cap in CAPS]
    assert chart["yAxis"]["data"] == ["batch 8", "batch 16"]
    cells = {tuple(cell["value"][:2]): cell["value"][2] for cell in chart["series"][0]["data"]}
    assert len(cells) == 12
    assert cells[0, 1] == pytest.approx(150 / float(Surface().rate(150.0)))
