"""A run of several nodes: what each draws, what the job draws, and which stands apart."""

from __future__ import annotations

import msgspec
import numpy as np
import pytest

from profharness.analysis.power.nodes import findings, nodes
from profharness.analysis.power.records import Nodes
from profharness.analysis.power.run_telemetry import figures_in
from profharness.analysis.power.unit_spread import PARTS, compare, part_means
from profharness.report.tables.nodes import node_tables
from profharness.rundir.manifest import ClockSnapshot, Manifest, NodeRecord, PassRecord
from profharness.stats.intervals import window
from profharness.stats.package_figures import power_figures
from profharness.stats.packages import packages
from profharness.stats.streams import streams
from profharness.trace.model import Samples, Trace
from tests.stats.several_nodes import S, cluster

EIGHT = 8 * S


def of(
    trace: Trace,
    clocks: tuple[str, ...] = (),
    passes: tuple[PassRecord, ...] = (PassRecord(name="bare", start_boot_ns=0, end_boot_ns=EIGHT),),
    *,
    damaged: bool = False,
) -> Nodes | None:
    every = streams(trace)
    if damaged:
        every[0].samples.at_ns[0], every[1].samples.until_ns[-1] = -(2**63), 2**63 - 1
    manifest = Manifest(
        id="r",
        created="2026-01-02T03:04:05Z",
        profharness="0",
        kind="command",
        argv=("x",),
        nodes=(NodeRecord(host="n1"),),
        passes=passes,
        clocks=tuple(
            ClockSnapshot(
                host=host,
                phase="before",
                boot_ns=1,
                monotonic_ns=1,
                monotonic_raw_ns=1,
                realtime_ns=1,
                width_ns=1,
            )
            for host in clocks
        ),
    )
    return nodes(manifest, trace, every, packages(every))


def test_one_node_has_no_section() -> None:
    assert of(cluster({"n1": [300.0]})) is None


def test_stamps_that_span_more_than_a_clock_counts_are_of_no_time() -> None:
    trace = cluster({"n1": [300.0], "n2": [310.0]})
    assert of(trace, passes=()) is not None
    assert of(trace, passes=(), damaged=True) is None


def test_nodes_that_share_addresses_are_summed_and_not_mixed() -> None:
    watts = {"n1": [300.0, 310.0], "n2": [200.0, 210.0]}
    found = of(cluster(watts, node_watts={"n1": 900.0, "n2": 700.0}), clocks=("n1", "n2", "n3"))
    assert found is not None
    energy = {row.host: row.figures["energy"].value for row in found.rows}
    assert energy == {
        "n1": pytest.approx(8 * 610, rel=0.01),
        "n2": pytest.approx(8 * 410, rel=0.01),
    }
    assert found.total["energy"].value == pytest.approx(sum(energy.values()))
    assert found.total["energy"].low < 8 * 1020 < found.total["energy"].high
    assert found.total["energy_node"].value == pytest.approx(8 * 1600, rel=0.02)
    assert found.total["cores_used"].value == pytest.approx(4.0)
    assert found.missing == ("n3",)


def test_figures_of_the_run_hold_all_nodes() -> None:
    """Before, one of two devices of the same address was taken for both."""
    every = streams(cluster({"n1": [300.0], "n2": [200.0]}))
    when = window(0, EIGHT)
    found = power_figures(every, packages(every), when, None, "x")
    assert found["power_w"].value == pytest.approx(500, rel=0.02)
    figures = figures_in(every, when, "x")
    assert figures["cores_used"].value == pytest.approx(2.0)
    assert figures["cores_used"].note == "mean over 2 nodes"
    assert figures["cores_used_n2"].value == pytest.approx(2.0)
    assert figures["power_w_n1/0"].value > figures["power_w_n2/0"].value


def test_a_sum_that_a_node_lacks_is_not_given() -> None:
    found = of(cluster({"n1": [300.0], "n2": [200.0]}, node_watts={"n1": 900.0}))
    assert found is not None
    total = found.total["energy_node"]
    assert (total.value, total.needs) == (None, "the same of n2")


def test_a_slow_device_is_named_with_its_ratio() -> None:
    watts = {f"n{number}": [300.0, 300.0] for number in range(4)}
    clocks = {host: [2100.0, 2100.0] for host in watts}
    clocks["n2"] = [2100.0, 0.7 * 2100.0]
    found = of(cluster(watts, clocks=clocks))
    (one,) = findings(found)
    assert one.id == "node-apart"
    assert one.message.startswith("the clock of device n2/1 is 0.7")
    assert one.figures["low"] < 0.7 < one.figures["high"]
    assert one.figures["host"] == "n2"
    nodes_table, units_table = node_tables(found)
    assert [row[0].text for row in nodes_table.rows] == ["n0", "n1", "n2", "n3", "all nodes"]
    assert units_table.marked == frozenset({0})
    assert units_table.rows[0][0].text == "device n2/1"


def test_a_node_that_draws_less_is_named() -> None:
    watts = {f"n{number}": [300.0] for number in range(4)}
    meters = {"n0": 900.0, "n1": 905.0, "n2": 600.0, "n3": 895.0}
    apart = list(findings(of(cluster(watts, node_watts=meters))))
    assert [one.figures["host"] for one in apart] == ["n2"]
    assert apart[0].figures["ratio"] == pytest.approx(600 / 897.5, rel=0.01)


def test_like_nodes_make_no_finding() -> None:
    watts = {f"n{number}": [300.0 + number, 302.0] for number in range(4)}
    made = findings(of(cluster(watts, node_watts=dict.fromkeys(watts, 900.0))))
    assert "node-apart" not in [one.id for one in made]


def test_two_nodes_cannot_tell_which_is_off() -> None:
    found = of(cluster({"n1": [300.0], "n2": [200.0]}))
    assert found is not None
    assert not list(findings(found))
    assert {one.ratio.needs for one in found.units} == {"at least 3 of a kind"}


def noisy(rng: np.random.Generator, units: int, spread: float = 0.01) -> np.ndarray:
    return (
        500
        * rng.normal(1, spread, (units, 1))
        * rng.uniform(0.4, 1.6, PARTS)  # what all do at once
        * rng.normal(1, 0.02, (units, PARTS))
    )


@pytest.mark.parametrize("units", [3, 4, 8, 64])
def test_like_units_are_seldom_told_apart(units: int) -> None:
    """Devices of one kind differ by some per cent, and that is nobody's fault."""
    rng = np.random.default_rng(units)
    runs = 100
    wrong = sum(any(one.apart for one in compare(noisy(rng, units))) for _ in range(runs))
    assert wrong <= 0.05 * runs


@pytest.mark.parametrize("units", [3, 4, 8, 64])
def test_one_that_is_off_is_found_alone(units: int) -> None:
    rng = np.random.default_rng(100 + units)
    runs, alone, inside = 100, 0, 0
    for _ in range(runs):
        means = noisy(rng, units, spread=0.0)
        means[1] *= 0.8
        found = compare(means)
        alone += [one.apart for one in found].count(True) == 1 and found[1].apart is True
        inside += found[1].low <= 0.8 <= found[1].high
    assert alone >= 0.95 * runs
    assert inside >= 0.88 * runs  # the median of few units has noise of its own


def test_a_wide_family_has_no_outlier() -> None:
    rng = np.random.default_rng(5)
    means = noisy(rng, 16, spread=0.10)
    assert sum(bool(one.apart) for one in compare(means)) <= 1


def test_parts_without_samples_are_not_zero() -> None:
    samples = Samples.build(
        4, at_ns=[0, 1, 2, 3], until_ns=[0, 1, 2, 3], value=[5.0] * 4, device=0, metric=0, source=0
    )
    means = part_means(samples, window(0, 16))
    assert means[:4].tolist() == [5.0] * 4
    assert np.isnan(means[4:]).all()
    found = compare(np.stack([means, means, means]))
    assert {one.apart for one in found} == {None}
    assert msgspec.to_builtins(found[0].needs) == "samples in 8 of 16 parts of the time"
