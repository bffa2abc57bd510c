"""What-ifs on small programs whose answer can be worked out by hand."""

from __future__ import annotations

import pytest

from profharness.analysis.critical.changes import parse
from profharness.analysis.critical.records import NO_CHANGE, Forecast, RankPath
from profharness.analysis.critical.scan_forecasts import Scan, ScanPoint
from profharness.analysis.critical.summary import critical_path
from profharness.errors import UsageError
from profharness.units import format_share
from tests.analysis.scene import Scene

US = 1_000


def path(scene: Scene, *changes: str) -> RankPath:
    found = critical_path(scene.build(), [parse(change) for change in changes])
    assert found is not None
    [only] = found.processes
    return only


def forecast(scene: Scene, change: str) -> Forecast:
    return path(scene, change).what_if[1]


def device_bound() -> Scene:
    """Two kernels of 100 us behind each other, then a synchronisation that returns after 2 us."""
    scene = Scene()
    scene.op("aten::mm", 0, 20 * US)
    first = scene.launch(4 * US, 6 * US)
    second = scene.launch(12 * US, 14 * US)
    scene.kernel(10 * US, 110 * US, first, name="gemm", op=0)
    scene.kernel(111 * US, 211 * US, second, name="relu", op=0)
    scene.call("hipDeviceSynchronize", 20 * US, 213 * US)
    return scene


def test_the_path_of_a_device_bound_step() -> None:
    found = path(device_bound())
    assert {key: part.ns for key, part in found.segments.items()} == {
        "kernel": 200 * US,
        "launch_latency": 6 * US,
        "host_operator": 4 * US,
        "sync_return": 2 * US,
        "stream_gap": 1 * US,
    }
    assert found.window_ns == 213 * US
    assert [(row.name, row.operator, row.ns) for row in found.rows[:2]] == [
        ("gemm", "aten::mm", 100 * US),
        ("relu", "aten::mm", 100 * US),
    ]


def test_a_faster_kernel_shortens_the_window_by_what_it_loses() -> None:
    made = forecast(device_bound(), "kernel:gemm=0.5")
    assert made.forecast_ns == 163 * US
    assert made.at_most_ns == 50 * US
    assert made.next_limit == "kernel"
    assert made.touched == 1


def test_a_gain_ends_where_the_next_limit_appears() -> None:
    """Without the kernels the host's 20 us remain, and the device is ready 2 us before."""
    made = forecast(device_bound(), "kernel:.=0")
    assert made.at_most_ns == 200 * US
    assert made.forecast_ns == 20 * US
    assert made.next_limit == "host_operator"


def test_operators_scale_the_work_that_they_launched() -> None:
    assert forecast(device_bound(), "op:^aten::mm$=0.5").forecast_ns == 113 * US
    assert forecast(device_bound(), "op:^mm$=0.5").touched == 0


def test_without_synchronisation_the_host_goes_on() -> None:
    """A value is read in the middle: without the wait the second kernel is launched at once."""
    scene = Scene()
    scene.op("aten::mm", 0, 10 * US)
    scene.kernel(10 * US, 110 * US, scene.launch(4 * US, 6 * US))
    scene.call("hipStreamSynchronize", 10 * US, 112 * US)
    scene.op("aten::mm", 120 * US, 130 * US)
    scene.kernel(130 * US, 230 * US, scene.launch(124 * US, 126 * US))
    scene.call("hipStreamSynchronize", 130 * US, 232 * US)
    made = forecast(scene, "no-sync")
    assert made.forecast_ns == 210 * US  # back to back: the first ends at 110, no gap is known
    assert made.at_most_ns == 32 * US  # of 232: the device works for 200


def test_where_no_device_works_the_host_waits_for_none() -> None:
    """A value of the host is read: that takes its 2 us, and nothing of the operators around it."""
    scene = Scene()
    scene.op("aten::mm", 0, 100 * US)
    scene.op("aten::item", 100 * US, 102 * US)
    scene.op("aten::mm", 102 * US, 200 * US)
    made = forecast(scene, "no-sync")
    assert (made.window_ns, made.forecast_ns, made.at_most_ns) == (200 * US, 198 * US, 2 * US)


def test_graphs_take_the_host_away_between_launches() -> None:
    """Five launches 50 us apart of kernels of 1 us: one launch call of 2 us, and the 10 us between
    the last operator and the synchronisation stay.
    """
    scene = Scene()
    for number in range(5):
        at = number * 50 * US
        scene.op("aten::add", at, at + 40 * US)
        scene.kernel(at + 15 * US, at + 16 * US, scene.launch(at + 10 * US, at + 12 * US))
    scene.call("hipDeviceSynchronize", 250 * US, 251 * US)
    made = forecast(scene, "graphs")
    assert made.window_ns == 251 * US
    assert made.forecast_ns == 14 * US  # the latency, five kernels and four gaps of 1 us
    assert made.at_most_ns == 241 * US  # a latency of 5, and the kernels
    assert made.next_limit == "kernel"


def test_data_loading_can_be_taken_away() -> None:
    scene = Scene()
    scene.mark("range", 0, 30 * US, "enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__")
    scene.op("aten::stack", 5 * US, 25 * US)
    scene.op("aten::mm", 30 * US, 70 * US)
    found = path(scene, "dataloader", "op:mm=0.5")
    assert found.segments["host_data_loader"].ns == 30 * US
    assert [made.forecast_ns for made in found.what_if] == [70 * US, 40 * US, 50 * US]


def test_of_a_device_that_may_have_worked_unrecorded_no_host_time_is_taken_away() -> None:
    """The second kernel begins 4 ms after its launch returned, and nothing shows why."""
    scene = Scene()
    for at, start in ((0, 20 * US), (100 * US, 4_112 * US)):
        scene.op("aten::mm", at, at + 40 * US)
        scene.kernel(start, start + 10 * US, scene.launch(at + 10 * US, at + 12 * US))
    asked = [parse(change) for change in ("graphs", "no-sync", "op:mm=0.5")]
    found = critical_path(scene.build(), asked)
    assert found is not None
    assert [made.change for made in found.processes[0].what_if] == [NO_CHANGE, "op:mm=0.5"]
    assert [one.change for one in found.refused] == ["graphs", "no-sync"]
    # from the usual millisecond after the second launch's return to its kernel
    share = format_share((4_112 - 112 - 1_000) / 4_122)
    assert all(f"in {share} of the window" in one.why for one in found.refused)


def test_one_trace_says_nothing_of_another_batch_size() -> None:
    """Which part of the 40 us is per call, nothing tells: neither a point nor an interval."""
    scene = Scene()
    scene.op("aten::mm", 0, 40 * US)
    found = critical_path(scene.build(), [parse("batch=8")])
    assert found is not None
    assert found.processes[0].what_if == ()
    assert [one.change for one in found.refused] == ["batch=8"]
    assert all("--batch-sizes 4,16" in one.why for one in found.refused)
    known = critical_path(scene.build(), [parse("batch=8")], Scan({"": ScanPoint(4)}))
    assert known is not None
    assert known.processes[0].what_if == ()


@pytest.mark.parametrize(
    "text",
    ["", "kernel", "kernel:gemm", "kernel:gemm=fast", "kernel:gemm=-1", "kernel:(=0.5", "op:=1",
     "batch", "batch=0", "batch=x", "batch=:4", "batch=4:8", "graph", "kernel:x=nan",
     "kernel:x=inf"],
)  # fmt: skip
def test_what_is_no_change_is_refused(text: str) -> None:
    with pytest.raises(UsageError):
        parse(text)
