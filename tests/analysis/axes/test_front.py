"""Settings that none beats in throughput, latency, memory and energy at once."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from profharness.analysis.axes.front import front_of
from profharness.analysis.axes.records import PointRate
from profharness.stats.estimate import Figure


def point(name: str, rate: float, half: float = 0.0) -> PointRate:
    return PointRate(
        point=name,
        parameters={"n": int(name[1:])},
        throughput=rate,
        low=rate - half,
        high=rate + half,
    )


def figures(latency: float, memory: float, half: float = 0.0) -> dict[str, Figure]:
    return {
        "latency_p99": Figure(value=latency, unit="ms", low=latency - half, high=latency + half),
        "memory_peak": Figure(value=memory, unit="B"),
    }


def test_a_setting_that_is_worse_in_everything_is_off_the_front() -> None:
    points = [point("p1", 100.0), point("p2", 90.0), point("p3", 50.0)]
    metrics = {"p1": figures(10, 100), "p2": figures(12, 120), "p3": figures(2, 50)}
    front = front_of(points, metrics)
    assert front is not None
    assert front.figures == ("throughput", "latency_p99", "memory_peak")
    assert front.units == {"latency_p99": "ms", "memory_peak": "B"}
    assert [(one.point, one.certain) for one in front.points] == [("p1", True), ("p3", True)]


def test_what_is_not_proven_worse_stays_and_is_told() -> None:
    points = [point("p1", 100.0, 20.0), point("p2", 90.0, 20.0)]
    metrics = {"p1": figures(10, 100, 3), "p2": figures(11, 101, 3)}
    front = front_of(points, metrics)
    assert front is not None
    assert [(one.point, one.certain) for one in front.points] == [("p1", True), ("p2", False)]


def test_a_command_or_one_setting_has_no_front() -> None:
    points = [point("p1", 100.0), point("p2", 90.0)]
    assert front_of(points, {"p1": {}, "p2": {}}) is None
    assert front_of(points[:1], {"p1": figures(1, 1)}) is None


def test_a_figure_that_one_point_lacks_is_left_out() -> None:
    points = [point("p1", 100.0), point("p2", 90.0)]
    lacking = {**figures(1, 1), "memory_peak": Figure(value=None, unit="B", needs="telemetry")}
    front = front_of(points, {"p1": figures(2, 1), "p2": lacking})
    assert front is not None
    assert front.figures == ("throughput", "latency_p99")


@given(
    st.lists(st.tuples(*(st.integers(1, 30).map(float) for _ in range(3))), min_size=2, max_size=12)
)
def test_without_noise_it_is_the_pareto_front(rows: list[tuple[float, float, float]]) -> None:
    # exact figures: whatever another one dominates is off it
    points = [point(f"p{at}", rate) for at, (rate, _, _) in enumerate(rows)]
    metrics = {
        f"p{at}": {
            "latency_p50": Figure(value=latency, unit="ms", low=latency, high=latency),
            "memory_peak": Figure(value=memory, unit="B", low=memory, high=memory),
        }
        for at, (_, latency, memory) in enumerate(rows)
    }
    front = front_of(points, metrics)
    assert front is not None
    kept = {
        f"p{at}"
        for at, (rate, latency, memory) in enumerate(rows)
        if not any(
            r >= rate
            and lat <= latency
            and mem <= memory
            and (r, lat, mem) != (rate, latency, memory)
            for r, lat, mem in rows
        )
    }
    assert {one.point for one in front.points} == kept
    assert all(one.certain for one in front.points)
