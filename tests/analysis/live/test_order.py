"""What is done, measured now and to come, of manifests that were made up."""

from __future__ import annotations

import msgspec
import pytest

from profharness.analysis.live.order import Clock, Order, order_of
from profharness.analysis.live.points import point_words
from profharness.rundir.manifest import Manifest, PassRecord, PointRecord, RunState, ScanRecord

S = 1_000_000_000
AHEAD = 7 * S  # of CLOCK_BOOTTIME, which also counts while the machine sleeps
BARE = ("torch-b1", "torch-b2", "torch-b4", "torch-b1~1")


def point(name: str, end_s: float, pass_name: str = "bare", repeat: int = 0) -> PointRecord:
    end = int(end_s * S) - AHEAD
    return PointRecord(id=name, pass_name=pass_name, repeat=repeat, end_monotonic_ns=end)


def running(
    points: tuple[PointRecord, ...], *, planned: dict[str, tuple[str, ...]] | None = None
) -> Manifest:
    names = {"bare": BARE, "torch": BARE[:3]} if planned is None else planned
    return manifest(
        points=points,
        scan=ScanRecord(name="particlenet", item="jet", planned=names),
        passes=(
            PassRecord(name="bare", state="running", start_boot_ns=100 * S),
            PassRecord(name="torch", layers=("torch",)),
        ),
    )


def manifest(
    *,
    passes: tuple[PassRecord, ...],
    points: tuple[PointRecord, ...] = (),
    scan: ScanRecord | None = None,
    state: RunState = "running",
) -> Manifest:
    return Manifest(
        id="run",
        created="2026-11-27T10:00:00Z",
        profharness="0",
        kind="command" if scan is None else "scan",
        argv=(),
        state=state,
        scan=scan,
        passes=passes,
        points=points,
    )


def at(seconds: float) -> Clock:
    return Clock(int(seconds * S), AHEAD)


def order(made: Manifest, seconds: float, begun: tuple[str, ...] = ()) -> Order:
    return order_of(made, at(seconds), begun)


def test_before_the_first_point_the_order_is_known_and_the_time_is_not() -> None:
    found = order(running(()), 103.0)
    assert (found.done, found.planned) == (0, 7)
    assert found.now == "torch batch 1"
    assert found.now_s == pytest.approx(3.0)
    assert found.following == (
        "torch batch 2",
        "torch batch 4",
        "torch batch 1 again",
        "torch batch 1",
    )
    assert found.more == 2
    assert found.left.seconds is None


def test_points_take_from_the_end_of_the_one_before() -> None:
    found = order(running((point("torch-b1", 102.0), point("torch-b2", 105.0))), 106.0)
    assert found.took_s == {
        ("bare", "torch-b1"): pytest.approx(2.0),
        ("bare", "torch-b2"): pytest.approx(3.0),
    }
    assert found.now == "torch batch 4"
    assert found.now_s == pytest.approx(1.0)
    # b4 as the mean of its pass less the second that has gone, b1 again, then b1, b2, b4 in torch
    assert found.left.seconds == pytest.approx((2.5 - 1.0) + 2.0 + 2.0 + 3.0 + 2.5)
    assert [(one.name, one.done, one.points) for one in found.passes] == [
        ("bare", 2, 4),
        ("torch", 0, 3),
    ]


def test_a_search_says_what_is_measured_and_that_nobody_knows_how_long() -> None:
    made = running((point("server-b1-c1", 102.0),), planned={"bare": (), "torch": ()})
    found = order(made, 103.0, ("server-b1-c1", "server-b1-c8"))
    assert found.now == "server batch 1, concurrency 8"
    assert found.planned is None
    assert found.left.seconds is None
    assert "decides on" in found.left.basis


def test_a_search_by_so_many_levels_knows_how_many_are_left() -> None:
    made = running((point("a", 110), point("b", 130)), planned={})
    scan = msgspec.structs.replace(made.scan, settings={"search": 5})
    found = order(msgspec.structs.replace(made, scan=scan), 132)
    assert (found.done, found.planned) == (2, 5)
    assert found.left.seconds == pytest.approx(3 * 15 - 2)
    assert found.left.basis == "3 of 5 points are to come, and one took 15 s on average"


def test_a_command_is_known_by_its_passes() -> None:
    made = manifest(
        passes=(
            PassRecord(name="bare", state="done", start_boot_ns=100 * S, end_boot_ns=110 * S),
            PassRecord(name="torch", layers=("torch",), state="running", start_boot_ns=110 * S),
            PassRecord(name="counters-1", layers=("rocprofv3",)),
        )
    )
    found = order(made, 113.0)
    assert (found.done, found.planned) == (1, 3)
    assert found.now == "the command, under torch"
    assert found.following == ("the counters-1 pass",)
    assert found.left.seconds == pytest.approx(7.0 + 10.0)


def test_a_first_execution_of_a_command_has_no_estimate() -> None:
    made = manifest(passes=(PassRecord(name="bare", state="running", start_boot_ns=100 * S),))
    assert order(made, 200.0).left.seconds is None


@pytest.mark.parametrize(
    ("key", "words"),
    [
        ("torch-b16", "torch batch 16"),
        ("torch-b16~1", "torch batch 16 again"),
        ("server@a-b-b1-c8", "server@a-b batch 1, concurrency 8"),
        ("server-b1-r2.5", "server batch 1, 2.5 requests/s"),
        ("server-b1-r1e+06", "server batch 1, 1e+06 requests/s"),
        ("torch-b4-n1", "torch batch 4, 1 process"),
        ("torch-b4-n2", "torch batch 4, 2 processes"),
        ("batch8-workers0", "batch8-workers0"),
        ("batch8-workers0~1", "batch8-workers0, time 2"),
        ("<script>", "<script>"),
    ],
)
def test_keys_are_said_as_people_say_them(key: str, words: str) -> None:
    assert point_words(key) == words
