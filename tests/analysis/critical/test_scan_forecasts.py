"""Forecasts of batch sizes on made-up scans whose law is known: each size from the others."""

from __future__ import annotations

import random
from dataclasses import dataclass

import pytest

from profharness.analysis.critical.changes import parse
from profharness.analysis.critical.records import BatchForecast, CriticalPath
from profharness.analysis.critical.scan_forecasts import Scan, ScanPoint
from profharness.analysis.critical.scope import scopes
from profharness.analysis.critical.summary import critical_path
from profharness.trace.model import Source
from tests.analysis.scene import Scene

US = 1_000
SIZES = (1, 4, 16, 64)
STEPS = 9


@dataclass(frozen=True)
class Law:
    """Times of two operators and of the rest of a step, in ns, by batch size."""

    call_ns: int = 20 * US
    item_ns: int = 5 * US
    other_ns: int = 30 * US
    noise: float = 0.0
    other_way_from: int = 1_000_000

    def step(self, size: int) -> float:
        return self.call_ns + self.item_ns * size + self.other_ns


def scan(law: Law, sizes: tuple[int, ...] = SIZES, slower: float = 1.0) -> tuple[Scene, Scan]:
    """A trace of each size; without the profiler trials take `slower` times as long."""
    dice = random.Random(3)
    sources = tuple(
        Source(f"{size}.json", "kineto", pid=7, pass_name="torch", point=f"b{size}")
        for size in sizes
    )
    scene, points, at = Scene(sources=sources), {}, 0
    for source, size in enumerate(sizes):
        for _ in range(STEPS):
            begun, factor = at, 1 + law.noise * dice.uniform(-1, 1)
            name = "aten::conv" if size < law.other_way_from else "aten::other_conv"
            outer = int((law.call_ns + law.item_ns * size) * factor)
            scene.op("aten::conv2d", at, at + outer, source=source)
            scene.op(name, at + 100, at + outer - 100, source=source)
            at += outer + int(law.other_ns * factor)
            scene.mark("trial", begun, at, point=f"b{size}", source=source)
            at += 5 * US
        points[f"b{size}"] = ScanPoint(size, bare_ns=(int(law.step(size) * slower),) * 5)
        at += 1_000 * US
    return scene, Scan(points)


def made_of(law: Law, *asked: int, slower: float = 1.0) -> CriticalPath:
    scene, points = scan(law, slower=slower)
    found = critical_path(scene.build(), [parse(f"batch={size}") for size in asked], points)
    assert found is not None
    return found


def by_size(found: CriticalPath) -> dict[int, BatchForecast]:
    return {made.size: made for made in found.batches}


def test_a_law_of_calls_and_items_is_given_back_at_every_size() -> None:
    made = by_size(made_of(Law(), 8, 256, slower=0.8))
    assert sorted(made) == [1, 4, 8, 16, 64, 256]
    for size, one in made.items():
        assert one.traced.forecast_ns == pytest.approx(Law().step(size), rel=1e-3)
        assert one.traced.low_ns <= one.traced.forecast_ns <= one.traced.high_ns
        assert one.bare is not None
        assert one.bare.forecast_ns == pytest.approx(0.8 * Law().step(size), rel=1e-3)
        if size in SIZES:
            assert one.traced.error == pytest.approx(0, abs=1e-3)
            assert one.bare.error == pytest.approx(0, abs=1e-3)
        else:
            assert one.traced.measured_ns is None
            assert one.traced.error is None
    assert (made[4].rests_on, made[4].inside) == ((1, 16), True)
    assert (made[64].rests_on, made[64].inside) == ((4, 16), False)


def test_an_operator_that_takes_another_way_is_told_by_the_one_around_it() -> None:
    for size, one in by_size(made_of(Law(other_way_from=16))).items():
        assert one.traced.forecast_ns == pytest.approx(Law().step(size), rel=1e-3)


def test_noise_makes_the_interval_wider_and_it_holds_what_was_measured() -> None:
    still, loud = by_size(made_of(Law())), by_size(made_of(Law(noise=0.2)))
    for size in (4, 16):
        plain, noisy = still[size].traced, loud[size].traced
        assert noisy.high_ns - noisy.low_ns > plain.high_ns - plain.low_ns
        assert noisy.measured_ns is not None
        assert noisy.low_ns < noisy.measured_ns < noisy.high_ns


def test_drift_of_repeated_points_makes_the_interval_wider() -> None:
    scene, points = scan(Law())
    drifting = critical_path(scene.build(), (), Scan(points.points, drift={"": 0.3}))
    assert drifting is not None
    one = by_size(drifting)[4].traced
    assert one.low_ns <= 0.71 * one.forecast_ns
    assert one.high_ns >= 1.29 * one.forecast_ns


def test_the_size_itself_does_not_count() -> None:
    """A point that is off from the law is forecast as the others have it."""
    scene, points = scan(Law())
    trace = scene.build()
    marks = trace.marks
    assert len(marks) == len(SIZES) * STEPS
    found = critical_path(trace, (), Scan({**points.points, "b16": ScanPoint(20)}))
    assert found is not None
    made = by_size(found)
    assert 16 not in made
    assert made[20].traced.forecast_ns == pytest.approx(Law().step(20), rel=1e-3)
    assert made[20].traced.error == pytest.approx(Law().step(20) / Law().step(16) - 1, rel=1e-2)


def test_what_is_too_far_or_rests_on_too_little_is_refused() -> None:
    found = made_of(Law(), 257)
    assert [one.change for one in found.refused] == ["batch=257"]
    assert "1, 4, 16, 64" in found.refused[0].why
    scene, points = scan(Law(), (1, 4))
    two = critical_path(scene.build(), [parse("batch=4"), parse("batch=8")], points)
    assert two is not None
    assert [made.size for made in two.batches] == [8]
    assert [one.change for one in two.refused] == ["batch=4"]


def test_errors_of_other_sizes_make_the_interval_wider() -> None:
    """A scan with one size far off from the law of the others."""
    scene, points = scan(Law())
    off = {**points.points, "b16": ScanPoint(26)}
    found = critical_path(scene.build(), [parse("batch=8")], Scan(off))
    assert found is not None
    made = by_size(found)
    assert made[26].traced.error == pytest.approx(0.38, abs=0.02)
    error = made[4].traced.error
    assert error is not None
    assert made[8].traced.high_ns > 1.1 * made[8].traced.forecast_ns
    assert made[8].traced.low_ns < made[8].traced.forecast_ns / 1.1


def test_series_do_not_mix() -> None:
    scene, points = scan(Law())
    split = {
        name: ScanPoint(point.size, "a" if point.size < 16 else "b")
        for name, point in points.points.items()
    }
    found = critical_path(scene.build(), [parse("batch=8")], Scan(split))
    assert found is not None
    assert [(made.series, made.size, made.rests_on) for made in found.batches] == [
        ("a", 8, (1, 4)),
        ("b", 8, (16, 64)),
    ]


def test_kernels_of_a_device_scale_and_the_host_becomes_the_limit() -> None:
    """A kernel of 10 us per item behind a host of 100 us per step, which waits at the end."""
    sizes = (1, 16, 64)
    sources = tuple(
        Source(f"{size}.json", "kineto", pid=7, pass_name="torch", point=f"b{size}")
        for size in sizes
    )
    scene, at = Scene(sources=sources), 0
    for source, size in enumerate(sizes):
        for _ in range(STEPS):
            begun = at
            op = scene.op("aten::mm", at, at + 20 * US, source=source)
            by = scene.launch(at + 10 * US, at + 12 * US, source=source)
            ended = at + 15 * US + 10 * US * size
            scene.kernel(at + 15 * US, ended, by, op=op, source=source)
            scene.op("aten::add", at + 20 * US, at + 100 * US, source=source)
            at = max(ended + 2 * US, at + 101 * US)
            scene.call("hipDeviceSynchronize", begun + 100 * US, at, source=source)
            scene.mark("trial", begun, at, point=f"b{size}", source=source)
        at += 1_000 * US
    points = Scan({f"b{size}": ScanPoint(size) for size in sizes})
    found = critical_path(scene.build(), [parse("batch=32"), parse("batch=4")], points)
    assert found is not None
    made = by_size(found)
    assert made[32].traced.forecast_ns == pytest.approx((15 + 320 + 2) * US, rel=0.02)
    assert made[4].traced.forecast_ns == pytest.approx(101 * US, rel=0.05)


def test_trials_are_the_steps_of_a_tool_that_marks_none() -> None:
    """onnxruntime's profile has one range for each execution and no steps: our own record of the
    trials tells where each begins, so that a step is one trial and not the whole point.
    """
    sources = tuple(
        Source(f"{name}{size}", name, pid=7, pass_name="onnxruntime", host="n", point=f"b{size}")
        for size in (1, 4)
        for name in ("trials", "onnxruntime")
    )
    scene, at = Scene(sources=sources), 0
    for place, (size, lasting) in enumerate(((1, 100), (4, 200))):
        for _ in range(5):
            scene.mark("trial", at, at + lasting * US, point=f"b{size}", source=2 * place)
            scene.op("Conv", at + US, at + (lasting - 1) * US, source=2 * place + 1)
            at += lasting * US
    found = list(scopes(scene.build()))
    assert [scope.source.point for scope in found] == ["b1", "b4"]
    assert [[step.dur_ns for step in scope.steps] for scope in found] == [
        [100 * US] * 5,
        [200 * US] * 5,
    ]
