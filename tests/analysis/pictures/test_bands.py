from __future__ import annotations

from profharness.analysis.pictures.bands import bands
from profharness.trace.model import Trace
from tests.analysis.run.run_scene import Builder, manifest


def recorded(*, telemetry: bool) -> tuple[Trace, int]:
    """Two points in a pass, the second one measured twice; and when the first begins."""
    builder = Builder()
    began = builder.now
    builder.trials("bare", "torch-b1", 1, [2_000_000_000, 1_000_000_000], start=began)
    builder.trials("bare", "torch-b4", 4, [500_000_000], start=began + 4_000_000_000)
    builder.trials("torch", "torch-b4", 4, [700_000_000], start=began + 9_000_000_000)
    if telemetry:
        builder.telemetry("power_w", [began - 1_000_000_000], [began], [100.0])
    return builder.trace(), began


def test_points_are_bands_from_their_first_trial_to_the_last() -> None:
    trace, _ = recorded(telemetry=True)
    found = [band for band in bands(trace, manifest()) if band.point]
    assert [(one.pass_name, one.point, one.start_s) for one in found] == [
        ("bare", "torch-b1", 1.0),
        ("bare", "torch-b4", 5.0),
        ("torch", "torch-b4", 10.0),
    ]
    assert all(one.end_s > one.start_s for one in found)
    assert found[1].end_s == 5.5


def test_passes_without_times_have_no_band() -> None:
    trace, _ = recorded(telemetry=True)
    timed = [
        one.name
        for one in manifest().passes
        if one.start_boot_ns is not None and one.end_boot_ns is not None
    ]
    assert [one.pass_name for one in bands(trace, manifest()) if not one.point] == timed


def test_without_telemetry_there_are_none() -> None:
    trace, _ = recorded(telemetry=False)
    assert bands(trace, manifest()) == ()
