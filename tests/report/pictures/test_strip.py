from __future__ import annotations

import json
from typing import Any

from profharness.analysis.pictures.records import KINDS, Pictures, Strip, Strips
from profharness.analysis.time.idle import IdleAnalysis
from profharness.analysis.time.strips import device_strips
from profharness.analysis.time.windows import Windows
from profharness.report.pictures.strip import strip_plot
from profharness.report.plots.partition import PARTS
from profharness.stats import intervals
from tests.analysis.scene import Scene


def drawn(strips: Strips) -> dict[str, Any]:
    plot = strip_plot(Pictures(strips=strips))
    assert plot is not None
    return {"option": json.loads(plot.json), "plot": plot}


def exact() -> Strips:
    scene = Scene()
    scene.call("hipGetDevice", 0, 1)
    scene.kernel(100, 200, scene.launch(50, 60))
    scene.kernel(300, 400, scene.launch(240, 260))
    trace = scene.build()
    return device_strips(trace, Windows(intervals.window(100, 400), ""), IdleAnalysis(trace))


def test_each_kind_is_a_series_in_its_colour_of_the_partition() -> None:
    option = drawn(exact())["option"]
    parts = {part.field: part for part in PARTS}
    compute = parts["compute_ns"]
    assert [(one["name"], one["itemStyle"]["color"]) for one in option["series"]] == [
        (parts[kind].label, parts[kind].color)
        for kind in ("compute_ns", "launch_in_progress_ns", "host_not_ready_ns")
    ]
    assert option["series"][0]["name"] == compute.label
    assert option["series"][0]["data"] == [[0, 0, 100], [0, 200, 300]]
    assert option["xAxis"]["max"] == 300


def test_every_kind_has_a_colour() -> None:
    assert set(KINDS) <= {part.field for part in PARTS}


def test_the_description_says_the_shares_largest_first() -> None:
    plot = drawn(exact())["plot"]
    assert "compute 66.7 %, idle: launches 20.0 %, idle: host not ready 13.3 %" in plot.description
    assert "bins" not in plot.description


def test_devices_begin_at_their_own_times_and_bins_say_their_shares() -> None:
    first = Strip(
        device="0",
        start_ns=1_000,
        end_ns=1_100,
        window_ns=100,
        thinned=True,
        kind=(0, 8),
        at=(0, 0),
        width=(100, 100),
        before=(0, 25),
        ns=(25, 75),
    )
    later = Strip(
        device="host7/3/1",
        start_ns=1_050,
        end_ns=1_150,
        window_ns=100,
        thinned=False,
        kind=(0,),
        at=(0,),
        width=(100,),
        before=(0,),
        ns=(100,),
    )
    seen = drawn(Strips(strips=(first, later), left_out=3))
    compute, idle = (one["data"] for one in seen["option"]["series"])
    assert compute == [[0, 0, 100, 0.0, 0.25], [1, 50, 150]]
    assert idle == [[0, 0, 100, 0.25, 1.0]]
    assert seen["option"]["yAxis"]["data"] == ["device 0", "device host7/3/1"]
    assert "3 more devices" in seen["plot"].title
    assert "bins of time" in seen["plot"].description


def test_without_device_time_there_is_no_strip() -> None:
    assert strip_plot(None) is None
    assert strip_plot(Pictures()) is None
