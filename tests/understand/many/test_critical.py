"""What a scan tells of its batch sizes besides traces: trials without a profiler, and drift."""

from __future__ import annotations

import pytest

from profharness.rundir.manifest import Manifest, PointRecord
from profharness.trace.model import Source
from profharness.understand.load import Loaded
from profharness.understand.loose.critical import scan_of, shown_path
from tests.analysis.scene import Scene

US = 1_000


def loaded(points: tuple[PointRecord, ...]) -> Loaded:
    """A bare pass with three trials per point; sizes 1, 4 and 4 again at the end, which is 10 %
    slower then; and a traced pass of both.
    """
    sources = (
        Source("trials", "own", pass_name="bare"),
        Source("b1.json", "kineto", pid=7, pass_name="torch", point="b1"),
        Source("b4.json", "kineto", pid=7, pass_name="torch", point="b4"),
    )
    scene, at = Scene(sources=sources), 0
    for point, lasting in (("b1", 100), ("b4", 200), ("b4~1", 220)):
        for _ in range(3):
            scene.mark("trial", at, at + lasting * US, point=point)
            at += lasting * US
    for source, (point, lasting) in enumerate((("b1", 130), ("b4", 260)), start=1):
        for _ in range(3):
            scene.op("aten::mm", at, at + lasting * US, source=source)
            scene.mark("trial", at, at + lasting * US, point=point, source=source)
            at += lasting * US
    manifest = Manifest(
        id="r", created="", profharness="0", kind="scan", argv=(), points=points
    )  # fmt: skip
    return Loaded(scene.build(), "r", manifest)


def record(name: str, size: int, **more: object) -> PointRecord:
    return PointRecord(id=name, pass_name="bare", batch_size=size, **more)  # type: ignore[arg-type]


POINTS = (record("b1", 1), record("b4", 4), record("b4", 4, repeat=1))


def test_points_have_their_bare_trials_and_repeats_tell_the_drift() -> None:
    scan = scan_of(loaded(POINTS))
    assert {name: point.size for name, point in scan.points.items()} == {"b1": 1, "b4": 4}
    assert scan.points["b4"].bare_ns == (200 * US,) * 3
    assert scan.drift == {"": pytest.approx(0.1)}


def test_failed_points_and_other_series_stand_apart() -> None:
    failed = scan_of(loaded((record("b1", 1), record("b4", 4, state="failed"))))
    assert list(failed.points) == ["b1"]
    mixed = scan_of(loaded((record("b1", 1, backend="torch"), record("b4", 4, backend="onnx"))))
    assert [point.series for point in mixed.points.values()] == ["torch", "onnx"]


def test_the_report_of_a_scan_knows_what_its_largest_operator_is_worth() -> None:
    path = shown_path(loaded(POINTS), None)
    assert path is not None
    first, second = path.processes
    assert (first.point, second.point) == ("b1", "b4")
    worth = {made.change: made.forecast_ns / made.window_ns for made in second.what_if}
    assert worth[r"op:^aten::mm$=0.5"] == pytest.approx(0.5)
    assert worth["no change"] == worth["graphs"] == 1
